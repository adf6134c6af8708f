//! Compares the profiles of the papers' code and of MPI with an independent implementation of the same equations,
//! and checks the plausibility of the predictions.

mod rows;

use hopbine_torus::geometry::Vertex;
use hopbine_torus::plan::{Expect, Flow, Interleave, Recipe, Schedule, check};
use hopbine_torus::sim::{
    Api, Machine, Network, Outcome, PaperCall, Preparation, Profile, RoutedPlan, TimeCategory,
    Timed,
};
use hopbine_torus::{Collective, Rank, RankMap, Request, Shape, registry};
use rows::ROWS;

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
    let routed = RoutedPlan::of_one(&flow, &network, |rank| Vertex(rank.0));
    let profile = Profile::Paper(PaperCall { segment_bytes: segment, via_temporary: false });
    let played = profile.play(&schedule, &flow, &routed, &machine, bytes as f64, false);
    played.map_err(|error| error.to_string())
}

/// The other implementation shares links by other rules if the messages that meet differ, and knows other ranks'
/// ports by other rules. Otherwise the two agree within 2 %.
#[test]
fn another_implementation_predicts_the_same() {
    let machine: Machine = rows::MACHINE.parse().unwrap();
    let mut preparation = Preparation::new(&machine);
    for &(torus, api, collective, algorithm, bytes, segment_bytes, ports, us) in ROWS {
        let shape: Shape = torus.parse().unwrap();
        let shape = &shape;
        let timed = Timed { api, shape, collective, algorithm, bytes, segment_bytes, ports };
        let found = preparation.prepare(&timed).unwrap().time(&machine) / 1e3;
        assert!((found / us - 1.0).abs() < 0.02, "{timed:?}: {found} us for {us}");
    }
}

/// Each port pays for timers, one port after the other; with one port no thread waits for a lock.
#[test]
fn short_vectors_pay_for_ports() {
    let parts = |ports| played("8x8x8", Collective::Allreduce, "bine", 1024, 0, ports).unwrap();
    let [one, six] = [1, 6].map(parts);
    assert!(six.ns > 4.0 * one.ns, "{} and {}", one.ns, six.ns);
    assert_eq!(one.breakdown.of(TimeCategory::Lock), 0.0);
    assert!(six.breakdown.of(TimeCategory::Lock) > 0.5 * six.ns);
}

/// A timing names its software, collective and algorithm; timings that differ only in bytes share a schedule.
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
    let mut ring =
        |collective| prepared(Api::Utofu, collective, "ring-vec_doubling_cont_permute", 6);
    assert_eq!(ring(Collective::Scatter), ring(Collective::Allgather));
    assert!(ring(Collective::Allgather).is_ok());
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

/// A far-first walk that is a near-first walk in reverse is a valid schedule.
#[test]
fn walks_from_the_end_are_schedules() {
    for (collective, name) in [
        (Collective::Allreduce, "bine-l"),
        (Collective::Gather, "bine-far"),
        (Collective::Scatter, "bine-near"),
    ] {
        for (torus, root) in [("4x8", 5), ("2x8x4", 0)] {
            let shape: Shape = torus.parse().unwrap();
            let (map, root) = (RankMap::RowMajor, Rank(root));
            let request = Request { shape, map, root, ports: Some(4) };
            let mut schedule =
                registry::find(collective, name).unwrap().schedule(&request).unwrap();
            let Recipe::Walk(recipe) = &mut schedule.recipe else { panic!("{name} is a walk") };
            recipe.interleave = Interleave::RoundRobinBackwards;
            assert_eq!(check(&schedule.expand().unwrap(), Expect::default()), []);
            assert_eq!(schedule.to_string().parse::<Schedule>().unwrap(), schedule);
        }
    }
}

/// Ports whose rings have different lengths begin their parallel regions in different steps.
#[test]
fn rings_may_differ_in_length() {
    let us = |torus| played(torus, Collective::Allreduce, "bucket", 1 << 20, 0, 4).unwrap().ns;
    assert!(us("2x8") > us("2x2") && us("2x8") < us("8x8"));
}

/// Six ports on two dimensions: the first two lanes are repeated, and each lane has a sixth of the data.
#[test]
fn more_ports_than_directions_repeat_lanes() {
    let shape: Shape = "4x4".parse().unwrap();
    let (map, root) = (RankMap::RowMajor, Rank(0));
    let request = Request { shape, map, root, ports: Some(4) };
    let algorithm = registry::find(Collective::Allreduce, "bine").unwrap();
    let flow = algorithm.schedule(&request).unwrap().expand().unwrap().on_ports(6);
    assert_eq!(check(&flow, Expect::default()), []);
    let parts: Vec<_> =
        flow.lanes().iter().map(|lane| (lane.port.0, lane.part.start, lane.part.units)).collect();
    assert_eq!(parts, (0..6).map(|port| (port, u32::from(port), 6)).collect::<Vec<_>>());
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
