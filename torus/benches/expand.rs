//! Question: what does it cost one rank to expand its plan, and how does that grow from 64
//! ranks to the whole of Fugaku (48x69x48 = 158,976 ranks)? Goal: under 1 ms everywhere.
//!
//! Allreduce (bandwidth form) with the `mixed` family and all six ports. Expansion alone: the
//! schedule exists, nothing is executed. A table of medians and growth factors follows
//! criterion's own lines.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use hopbine_torus::collectives::registry;
use hopbine_torus::geometry::RankMap;
use hopbine_torus::plan::{Schedule, n_positions};
use hopbine_torus::{Collective, Request};

const SHAPES: [&str; 6] = ["4x4x4", "8x8x8", "16x16x16", "24x23x24", "32x32x32", "48x69x48"];

fn schedule(shape: &str) -> Schedule {
    let request = Request {
        shape: shape.parse().expect("a shape"),
        map: RankMap::RowMajor,
        root: 0,
        ports: None,
    };
    let mixed = registry::find(Collective::Allreduce, "mixed").expect("mixed is registered");
    mixed.schedule(&request).expect("mixed serves every shape")
}

/// A rank somewhere in the middle, where nothing is special.
fn middle(schedule: &Schedule) -> u32 {
    (u64::from(schedule.shape.n_nodes()) * 49 / 100) as u32
}

fn median_of(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..51)
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
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let mut group = criterion.benchmark_group("expand");
    for shape in SHAPES {
        let schedule = schedule(shape);
        let rank = middle(&schedule);
        // Verified first: a plan that moves something else is not worth timing.
        let plan = schedule.plan(rank).expect("a valid schedule");
        for port in &plan.ports {
            let sends = port.steps.iter().flat_map(|step| &step.sends);
            let sent: u64 = sends.map(|send| n_positions(&send.blocks)).sum();
            assert_eq!(sent, 2 * u64::from(plan.n_ranks - 1));
        }
        group.bench_with_input(BenchmarkId::from_parameter(shape), &schedule, |b, schedule| {
            b.iter(|| schedule.plan(black_box(rank)));
        });
    }
    group.finish();
    criterion.final_summary();

    println!("\n{:>10} {:>8} {:>7} {:>11} {:>8}", "shape", "ranks", "runs", "median us", "growth");
    let mut first = None;
    for shape in SHAPES {
        let schedule = schedule(shape);
        let rank = middle(&schedule);
        let time = median_of(|| drop(black_box(schedule.plan(black_box(rank))))).as_secs_f64();
        let plan = schedule.plan(rank).expect("a valid schedule");
        let steps = plan.ports.iter().flat_map(|port| &port.steps);
        let runs: usize = steps.flat_map(|step| &step.sends).map(|send| send.blocks.len()).sum();
        let first = *first.get_or_insert(time);
        println!(
            "{shape:>10} {:>8} {runs:>7} {:>11.1} {:>8.1}",
            plan.n_ranks,
            time * 1e6,
            time / first
        );
    }
}
