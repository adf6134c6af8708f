//! Question: the time to expand a schedule, once for all ranks, and to list one rank's plan, and how both grow from
//! 64 ranks to all of Fugaku (48x69x48 = 158,976 ranks). Goals: 100 ms for the expansion and 1 ms for a plan, for
//! every collective and every algorithm, with all six ports. The pairwise alltoall necessarily lists one message per
//! rank.
//!
//! criterion measures the plans of `mixed` for all collectives (for scans, the first algorithm). After criterion's
//! output follows a table of the medians of all algorithms, on 48x69x48 and on rings of 16,384.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use hopbine_torus::geometry::RankMap;
use hopbine_torus::plan::{Flow, Schedule, sent_positions};
use hopbine_torus::{Algorithm, Collective, Rank, Request, registry};

const SHAPES: [&str; 6] = ["4x4x4", "8x8x8", "16x16x16", "24x23x24", "32x32x32", "48x69x48"];

fn schedule(algorithm: &Algorithm, shape: &str) -> Option<Schedule> {
    let shape: hopbine_torus::Shape = shape.parse().expect("a shape");
    let root = if algorithm.collective.is_rooted() { shape.n_ranks() / 3 } else { 0 };
    let request = Request { shape, map: RankMap::RowMajor, root: Rank(root), ports: None };
    algorithm.schedule(&request).ok()
}

/// A rank in the middle, with no special position.
fn middle(n_ranks: u32) -> Rank {
    Rank((u64::from(n_ranks) * 49 / 100) as u32)
}

fn median_of(n: usize, mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..n)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .sample_size(20)
        .configure_from_args();
    let mut group = criterion.benchmark_group("plan");
    for collective in Collective::ALL {
        for shape in SHAPES {
            // Collectives without `mixed`, such as scans, use their first algorithm.
            let first =
                || registry::all().into_iter().find(|algorithm| algorithm.collective == collective);
            let mixed = registry::find(collective, "mixed").ok().or_else(first);
            let mixed = mixed.expect("every collective has an algorithm");
            let schedule = schedule(&mixed, shape).expect("it serves every shape");
            let expansion = schedule.expand().expect("a valid schedule");
            let rank = middle(expansion.n_ranks());
            // Verifies the plan before timing it.
            if let Some(expected) = mixed.promises(&schedule.shape).sent_per_rank {
                let plan = expansion.plan(rank);
                assert!(plan.lanes.iter().all(|lane| sent_positions(lane) == expected));
            }
            let id = BenchmarkId::new(collective.name(), shape);
            group.bench_with_input(id, &expansion, |b, expansion| {
                b.iter(|| expansion.plan(black_box(rank)));
            });
        }
    }
    group.finish();
    criterion.final_summary();

    println!(
        "\n{:<16} {:<18} {:>9} {:>7} {:>7} {:>12} {:>9}",
        "collective", "algorithm", "shape", "steps", "runs", "expand ms", "plan us"
    );
    for shape in ["48x69x48", "16384"] {
        for algorithm in registry::all() {
            let Some(schedule) = schedule(&algorithm, shape) else { continue };
            let expand = median_of(3, || drop(black_box(schedule.expand())));
            let expansion = schedule.expand().expect("a valid schedule");
            let rank = middle(expansion.n_ranks());
            let plan = median_of(15, || drop(black_box(expansion.plan(black_box(rank)))));
            let listed = expansion.plan(rank);
            let steps = listed.lanes.iter().flat_map(|lane| &lane.steps);
            let runs: usize = steps.flat_map(|step| &step.sends).map(|send| send.runs.len()).sum();
            println!(
                "{:<16} {:<18} {shape:>9} {:>7} {runs:>7} {:>12.2} {:>9.1}",
                algorithm.collective.name(),
                algorithm.name,
                listed.n_steps(),
                expand.as_secs_f64() * 1e3,
                plan.as_secs_f64() * 1e6,
            );
        }
    }
}
