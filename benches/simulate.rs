//! Question: the time of a prediction by the network model. Goals for allreduce, every algorithm, 27 sizes from 32 B
//! to 2 GiB, with the fast player: under 1 s on 128x128, under 5 s on all of Fugaku (48x69x48 = 158,976 ranks). Goal
//! for pairwise alltoall on 512 ranks with the exact player and six ports: under 10 s. The benchmark uses one thread,
//! `hopbine simulate` one per core.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion};
use hopbine_torus::geometry::RankMap;
use hopbine_torus::plan::{Expansion, Schedule};
use hopbine_torus::sim::{CallForm, Machine, Network, Profile, RoutedPlan};
use hopbine_torus::{Collective, Rank, Request, Shape, registry};

const PROFILE: Profile =
    Profile::Hopbine { segment_bytes: Profile::SEGMENT_BYTES, call: CallForm::Repeated };

fn schedule(collective: Collective, name: &str, shape: &Shape) -> Option<(Schedule, Expansion)> {
    let (map, root) = (RankMap::RowMajor, Rank(0));
    let request = Request { shape: shape.clone(), map, root, ports: None };
    let algorithm = registry::find(collective, name).expect("an algorithm");
    let schedule = algorithm.schedule(&request).ok()?;
    let flow = schedule.expand().expect("the registry's schedules are valid");
    Some((schedule, flow))
}

/// Sum of the predicted times of all sizes, in ns.
fn predict(
    (schedule, flow): &(Schedule, Expansion),
    routed: &RoutedPlan,
    machine: &Machine,
    sizes: impl Iterator<Item = u64>,
) -> f64 {
    let time = |bytes: u64| {
        let played = PROFILE.play(schedule, flow, routed, machine, bytes as f64, false);
        played.expect("our engine performs every plan").ns
    };
    sizes.map(time).sum()
}

/// Predicts every allreduce on a shape for 27 sizes: expands it, routes it over the network and simulates it.
fn all_allreduces(machine: &Machine, shape: &Shape) -> f64 {
    let network = Network::new(machine.network, shape, machine.fold).expect("a shape of Tofu");
    let of = |name: &str| {
        let plan = schedule(Collective::Allreduce, name, shape)?;
        let place = |rank| plan.0.map.vertex_of(shape, rank);
        let routed = RoutedPlan::of_one(&plan.1, &network, place);
        Some(predict(&plan, &routed, machine, (5..32).map(|exponent| 1 << exponent)))
    };
    let all = registry::algorithms(Collective::Allreduce);
    all.into_iter().filter_map(|algorithm| of(&algorithm.name)).sum()
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_secs(1))
        .sample_size(10)
        .configure_from_args();
    let tofu = Machine::built_in("tofu-d").expect("built in");
    let ideal = Machine::built_in("ideal-torus").expect("built in");
    let mut group = criterion.benchmark_group("fast");
    for (machine, text) in [(&ideal, "128x128"), (&tofu, "128x128"), (&tofu, "48x69x48")] {
        let shape: Shape = text.parse().expect("a shape");
        let id = BenchmarkId::new(&machine.name, text);
        group.bench_function(id, |b| b.iter(|| all_allreduces(black_box(machine), &shape)));
    }
    group.finish();
    let mut group = criterion.benchmark_group("exact");
    let shape: Shape = "8x8x8".parse().expect("a shape");
    let network = Network::new(tofu.network, &shape, 0).expect("a shape of Tofu");
    for (collective, name, text) in [
        (Collective::Allreduce, "bine", "allreduce bine, 1 MiB"),
        (Collective::Alltoall, "pairwise", "alltoall pairwise, 1 MiB"),
    ] {
        let plan = schedule(collective, name, &shape).expect("it serves the shape");
        group.bench_function(text, |b| {
            b.iter(|| {
                let place = |rank| plan.0.map.vertex_of(&shape, rank);
                let routed = RoutedPlan::of_all(&plan.1, &network, place).expect("not too long");
                predict(black_box(&plan), &routed, &tofu, std::iter::once(1 << 20))
            });
        });
    }
    group.finish();
    criterion.final_summary();
}
