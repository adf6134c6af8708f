//! The profile of the papers' code against an independent implementation of the same equations
//! (`torus/study`), and what the measured code does against common sense.

use hopbine_torus::geometry::Vertex;
use hopbine_torus::sim::{
    Api, Machine, Network, Outcome, PaperCall, Part, Preparation, Profile, Score, Timed, play,
};
use hopbine_torus::{Collective, Rank, RankMap, Request, Shape, registry};

fn played(
    torus: &str,
    collective: Collective,
    name: &str,
    bytes: u64,
    segment: u64,
    ports: u32,
) -> Result<Outcome, String> {
    let shape: Shape = torus.parse().unwrap();
    let machine = Machine::built_in("tofu-d").unwrap();
    let network = Network::new(machine.network, &shape, machine.fold).unwrap();
    let (map, root) = (RankMap::RowMajor, Rank(0));
    let request = Request { shape: shape.clone(), map, root, ports: Some(ports) };
    let algorithm = registry::find(collective, name).unwrap();
    let schedule = algorithm.schedule(&request).unwrap();
    let flow = schedule.expand().unwrap();
    let score = Score::of_one(&flow, &network, |rank| Vertex(rank.0));
    let profile = Profile::Paper(PaperCall { segment_bytes: segment, via_temporary: false });
    let script = profile.script(&schedule, &flow, &score, &machine, bytes as f64);
    let script = script.map_err(|error| error.to_string())?;
    Ok(play(&score, &script, &machine.speeds(), bytes as f64, false))
}

/// Microseconds that the study predicts with the same parameters. They share links by another rule where
/// messages that meet are not alike, and a part of a message is a message of its own there.
#[test]
fn another_implementation_predicts_the_same() {
    use Collective::{Allgather, Allreduce, Alltoall, ReduceScatter};
    for (torus, collective, name, bytes, segment, ports, us) in [
        ("2x2x2", Allreduce, "bine-l", 2048, 0, 3, 27.2),
        ("4x4x4", Allreduce, "bine-l", 32, 0, 1, 15.6),
        ("4x4x4", Allreduce, "bine-l", 131_072, 0, 6, 178.3),
        ("4x4x4", Allreduce, "bine", 1 << 20, 0, 6, 666.4),
        ("4x4x4", Allreduce, "doubling", 64 << 20, 1 << 20, 3, 8181.9),
        ("8x8x8", Allreduce, "bine", 16_384, 0, 6, 988.9),
        ("8x8x8", Allreduce, "bucket", 64 << 20, 0, 6, 9698.6),
        ("8x8x8", ReduceScatter, "bine", 1 << 20, 0, 1, 345.6),
        ("8x8x8", Allgather, "bine", 8 << 20, 0, 6, 579.3),
        ("4x4x4", Alltoall, "bine", 131_072, 0, 1, 147.1),
    ] {
        let found = played(torus, collective, name, bytes, segment, ports).unwrap().ns / 1e3;
        println!(
            "{torus} {collective} {name} {bytes} {ports}: {found:.1} study {us:.1} {:.3}",
            found / us
        );
        assert!((found / us - 1.0).abs() < 0.02, "{torus} {collective} {name}: {found} for {us}");
    }
}

/// Timers cost what they cost for each port, one after the other; one port has no lock to wait for.
#[test]
fn short_vectors_pay_for_ports() {
    let parts = |ports| played("8x8x8", Collective::Allreduce, "bine", 1024, 0, ports).unwrap();
    let [one, six] = [1, 6].map(parts);
    assert!(six.ns > 4.0 * one.ns, "{} and {}", one.ns, six.ns);
    assert_eq!(one.parts.of(Part::Lock), 0.0);
    assert!(six.parts.of(Part::Lock) > 0.5 * six.ns);
}

/// A timing says whose it is, and what of, by names; what differs in bytes only shares a schedule.
#[test]
fn timings_have_schedules() {
    let shape: Shape = "4x4x4".parse().unwrap();
    let machine = Machine::built_in("tofu-d").unwrap();
    let mut preparation = Preparation::new(&machine);
    let mut prepared = |api, collective, algorithm, ports| {
        let (bytes, segment_bytes) = (1 << 20, 0);
        let shape = &shape;
        let timed = Timed { api, shape, collective, algorithm, bytes, segment_bytes, ports };
        preparation.prepare(&timed).map(|prepared| prepared.time(&machine))
    };
    let ns = prepared(Api::Utofu, Collective::Allreduce, "bine-b_cont", 6).unwrap();
    assert_eq!(ns, played("4x4x4", Collective::Allreduce, "bine", 1 << 20, 0, 6).unwrap().ns);
    let scatter = prepared(Api::Utofu, Collective::Scatter, "ring-vec_doubling_cont_permute", 6);
    let allgather =
        prepared(Api::Utofu, Collective::Allgather, "ring-vec_doubling_cont_permute", 6);
    assert_eq!(scatter.map_err(|_| ()), allgather.map_err(|_| ()));
    let ours = prepared(Api::Hopbine, Collective::Allreduce, "mixed", 6).unwrap();
    assert!(ours > 0.0 && ours < ns, "{ours} and {ns}");
    let mut why = |api, collective, algorithm, ports| {
        prepared(api, collective, algorithm, ports).unwrap_err().to_string()
    };
    let pairwise = why(Api::FujitsuMpi, Collective::Alltoall, "pairwise", 1);
    assert!(pairwise.starts_with("alltoall `pairwise` of fujitsu-mpi is not modelled"));
    assert!(why(Api::Hopbine, Collective::Allreduce, "best", 1).contains("known are"));
    assert!(why(Api::Utofu, Collective::Allreduce, "bine-l", 7).contains("7 ports"));
    assert!("openmpi".parse::<Api>().unwrap_err().to_string().contains("utofu, mpi, fujitsu-mpi"));
}

#[test]
fn what_is_not_modelled_is_refused() {
    for (collective, name) in [
        (Collective::Scan, "sweeps"),
        (Collective::Alltoall, "pairwise"),
        (Collective::ReduceScatter, "bine-send"),
    ] {
        let message = played("4x4x4", collective, name, 1024, 0, 1).unwrap_err();
        assert!(message.contains("--profile hopbine"), "{message}");
    }
}
