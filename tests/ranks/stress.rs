//! Thousands of small collectives back to back, with ranks out of step and a slow wire. No call deadlocks (a wait
//! without progress fails after the time-out), no message is lost, and no buffer is overwritten, neither by a message
//! of another call nor after the call has returned.

use std::time::Duration;

use crate::common::calls::config;
use crate::common::mixed::{Mixed, latency};
use hopbine::{CallOptions, Drive, EmulationConfig, Latency, emulate};

/// A long run of calls.
struct Run {
    config: EmulationConfig,
    calls: usize,
    seed: u64,
    /// The longest pause between two calls; zero for no pauses.
    longest_pause: Duration,
}

impl Run {
    fn go(&self) {
        let Run { calls, seed, longest_pause, .. } = *self;
        let mixed = Mixed { calls, seed, longest_pause, first: 0 };
        emulate(&self.config, |comm| mixed.run(comm)).unwrap();
    }
}

fn on(sizes: &[u32], drive: Drive) -> EmulationConfig {
    config(sizes, drive).with(|config| config.ports = Some(2))
}

const NO_PAUSE: Duration = Duration::ZERO;
const SHORT: Duration = Duration::from_micros(500);

#[test]
fn ten_thousand_calls_of_ranks_in_step() {
    Run { config: on(&[2, 2], Drive::Inline), calls: 10_000, seed: 1, longest_pause: NO_PAUSE }
        .go();
}

#[test]
fn ten_thousand_calls_of_skewed_ranks() {
    let config = config(&[2, 2], Drive::Inline);
    Run { config, calls: 10_000, seed: 2, longest_pause: SHORT }.go();
}

#[test]
fn ten_thousand_calls_over_a_slow_wire() {
    let config = on(&[2, 2], Drive::Inline).with(|config| config.latency = latency(3));
    Run { config, calls: 10_000, seed: 3, longest_pause: SHORT }.go();
}

#[test]
fn wires_of_many_kinds() {
    for seed in 10..30 {
        let sizes: &[u32] = [&[2_u32, 2][..], &[2], &[3], &[2, 3]][seed as usize % 4];
        let config = config(sizes, Drive::Inline).with(|config| config.latency = latency(seed));
        Run { config, calls: 500, seed, longest_pause: SHORT }.go();
    }
}

#[test]
fn workers_meet_skew_and_delay() {
    for drive in [Drive::Workers, Drive::Worker] {
        let config = on(&[2, 2], drive).with(|config| config.latency = latency(4));
        Run { config, calls: 2000, seed: 4, longest_pause: SHORT }.go();
    }
}

#[test]
fn sixteen_ranks() {
    for (seed, latency) in [(5, Latency::default()), (6, latency(6))] {
        let config = config(&[4, 4], Drive::Inline).with(|config| config.latency = latency);
        Run { config, calls: 500, seed, longest_pause: SHORT }.go();
    }
}

#[test]
fn sixty_four_ranks() {
    for (seed, latency) in [(7, Latency::default()), (8, latency(8))] {
        let config = on(&[4, 4, 4], Drive::Inline).with(|config| config.latency = latency);
        Run { config, calls: 50, seed, longest_pause: SHORT }.go();
    }
}

/// The device does everything as late as it may, and ends the process if memory is used too early: if a source
/// changes before its completion, if two puts write to a target at the same time, or if memory is deregistered while
/// it is needed.
#[test]
fn a_late_device() {
    for (sizes, drive, seed) in [
        (&[2_u32, 2][..], Drive::Inline, 50),
        (&[3], Drive::Inline, 51),
        (&[2, 3], Drive::Inline, 52),
        (&[2, 2], Drive::Workers, 53),
        (&[4, 4], Drive::Inline, 54),
    ] {
        let latency = Latency { late: Some(seed), checked: true, ..Latency::default() };
        let config = config(sizes, drive).with(|config| config.latency = latency);
        Run { config, calls: 300, seed, longest_pause: SHORT }.go();
    }
}

/// The complete test; the tests above are shorter or have fewer ranks.
#[test]
#[ignore = "takes minutes: cargo test --test ranks -- --ignored"]
fn ten_thousand_calls_of_sixty_four_ranks() {
    for (sizes, seed) in [(&[2_u32, 2, 2][..], 40), (&[4, 4], 41), (&[4, 4, 4], 42)] {
        let config = on(sizes, Drive::Inline).with(|config| config.latency = latency(seed));
        Run { config, calls: 10_000, seed, longest_pause: SHORT }.go();
    }
}

/// Many senders flood a sleeping receiver with far more messages than its channels hold.
#[test]
fn a_sleeping_root_is_flooded_and_loses_nothing() {
    const ROUNDS: u64 = 3000;
    let algorithm = CallOptions::new().algorithm("direct");
    let config = config(&[8], Drive::Inline).with(|config| config.latency = latency(9));
    emulate(&config, |comm| {
        let comm = comm.with(algorithm.clone());
        let mut all = vec![0; if comm.rank() == 0 { 24 } else { 0 }];
        for round in 0..ROUNDS {
            if comm.rank() == 0 && round % 1000 == 0 {
                std::thread::sleep(Duration::from_millis(50));
            }
            let of = |rank: u64| [rank, round, rank << 32 | round];
            comm.gather(&of(u64::from(comm.rank())), &mut all, 0).unwrap();
            if comm.rank() == 0 {
                let want: Vec<u64> = (0..8).flat_map(of).collect();
                assert_eq!(all, want, "round {round}");
            }
        }
    })
    .unwrap();
}

/// So many peers that late ones get channels of only a few slots, and a rank that sleeps while all peers write to it.
#[test]
fn hundreds_of_peers() {
    const RANKS: u32 = 300;
    let algorithm = CallOptions::new().algorithm("pairwise");
    let config = config(&[RANKS], Drive::Inline).with(|config| config.ports = Some(1));
    emulate(&config, |comm| {
        let comm = comm.with(algorithm.clone());
        // Messages within descriptors, in eager slots, and of the kind that waits for its receive.
        for (round, block) in [1, 2, 30, 300, 1, 30].into_iter().enumerate() {
            if comm.rank() as usize % 100 == round {
                std::thread::sleep(Duration::from_millis(100));
            }
            let of = |from: u32, to: u32| u64::from(from) << 32 | u64::from(to) << 8 | round as u64;
            let blocks = |of: &dyn Fn(u32) -> u64| -> Vec<u64> {
                (0..RANKS).flat_map(|other| vec![of(other); block]).collect()
            };
            let mine = blocks(&|to| of(comm.rank(), to));
            let mut all = vec![0; mine.len()];
            comm.alltoall(&mine, &mut all).unwrap();
            assert!(all == blocks(&|from| of(from, comm.rank())), "round {round}");
        }
    })
    .unwrap();
}
