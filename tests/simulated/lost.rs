//! Errors name a lost rank even if no published wait of other ranks leads to it.

use std::time::Duration;

use hopbine::reduce::Op;
use hopbine::{
    CallOptions, Communicator, Error, Fate, OnTimeout, Simulated, SimulatedWire, simulate,
};

use super::config;

const DEAD: u32 = 3;

/// In a reduction rank 0 waits for rank 2, and rank 2 for rank 3, which is dead. No rank sends a message to rank 3,
/// so no send fails. Ranks 1 and 2 wait for rank 0 in barriers that it has not entered. So rank 2 publishes that it
/// waits for rank 0, and the published waits form a circle.
fn circle_beside_a_dead_rank(comm: &Communicator, rank: &Simulated) -> Result<(), Error> {
    let me = comm.rank();
    let with_one = comm.split((me < 2).then_some(0), 0)?;
    let with_two = comm.split(me.is_multiple_of(2).then_some(0), 0)?;
    if me == DEAD {
        rank.meets(Fate::Dies, Duration::ZERO);
        rank.sleep(Duration::from_secs(1));
    }
    let tree = CallOptions::new().algorithm("doubling-tree");
    let (mine, mut sum) = ([1], [0]);
    comm.with(tree).scope(|scope| {
        let reduced = scope.reduce(&mine, &mut sum, Op::Sum, 0)?;
        if me == 0 {
            return reduced.wait().map(drop);
        }
        for pair in with_one.iter().chain(&with_two) {
            pair.barrier()?;
        }
        reduced.wait().map(drop)
    })?;
    comm.barrier()
}

#[test]
fn whoever_is_in_a_circle_beside_a_dead_rank_names_the_dead_one() {
    for (wire, on_timeout) in [
        (SimulatedWire::Messages, OnTimeout::Fail),
        (SimulatedWire::Messages, OnTimeout::Warn),
        (SimulatedWire::Utofu, OnTimeout::Fail),
        (SimulatedWire::Utofu, OnTimeout::Warn),
    ] {
        for seed in 0..30 {
            let mut config = config(&[4], seed);
            config.ports = Some(1);
            (config.wire, config.on_timeout) = (wire, on_timeout);
            config.timeout = Duration::from_secs(10);
            config.keeps_story = std::env::var("STORY").is_ok();
            let run = simulate(&config, circle_beside_a_dead_rank).unwrap();
            run.story.iter().for_each(|entry| println!("{entry}"));
            let what = format!("{wire:?}, {on_timeout:?}, seed {seed}");
            assert_eq!(run.violations, Vec::<String>::new(), "{what}");
            for (rank, result) in (0..DEAD).zip(&run.results) {
                let error = result.as_ref().expect_err("a rank is dead").to_string();
                let named = [format!("rank {DEAD}"), format!("peer {DEAD}")];
                let is_named = named.iter().any(|name| error.contains(name));
                assert!(is_named, "{what}, rank {rank}: {error}");
            }
        }
    }
}

/// No rank waits here: ranks test the requests that they have started, and compute.
#[test]
fn whoever_tests_names_the_rank_that_does_not_come() {
    for wire in [SimulatedWire::Messages, SimulatedWire::Utofu] {
        for seed in 0..20 {
            let mut config = config(&[3], seed);
            (config.wire, config.on_timeout) = (wire, OnTimeout::Fail);
            config.timeout = Duration::from_millis(50);
            let run = simulate(&config, |comm, rank| {
                let mut sum = [1];
                if comm.rank() == 2 {
                    rank.sleep(Duration::from_secs(5));
                    return comm.allreduce_in_place(&mut sum, Op::Sum);
                }
                comm.scope(|scope| {
                    let request = scope.allreduce_in_place(&mut sum, Op::Sum)?;
                    let mut seen = 0;
                    while !request.test() {
                        seen = comm.progress(3, seen);
                    }
                    request.wait().map(drop)
                })
            });
            let run = run.unwrap();
            let what = format!("{wire:?}, seed {seed}");
            assert_eq!(run.violations, Vec::<String>::new(), "{what}");
            for (rank, result) in run.results.iter().enumerate() {
                let error = result.as_ref().expect_err("a rank does not come").to_string();
                assert!(rank == 2 || error.contains("rank 2"), "{what}, rank {rank}: {error}");
            }
        }
    }
}

/// All ranks wait, directly or through other ranks, for one late rank. Exactly one of them reports it.
#[test]
fn one_rank_says_that_a_wait_is_too_long() {
    let calls = ["bucket", "bruck", "pairwise", "bine"];
    for wire in [SimulatedWire::Messages, SimulatedWire::Utofu] {
        for seed in 0..12 {
            let mut config = config(&[4, 4], seed);
            (config.wire, config.on_timeout) = (wire, OnTimeout::Warn);
            (config.timeout, config.keeps_story) = (Duration::from_secs(10), true);
            let late = seed as u32 % 16;
            let run = simulate(&config, |comm, rank| {
                if comm.rank() == late {
                    // The rank is late by 1.5 times the time after which waiting ranks report it, and by less than
                    // the time after which they repeat the report.
                    rank.sleep(Duration::from_secs(15));
                }
                match calls[seed as usize % calls.len()] {
                    "bucket" => comm.with(CallOptions::new().algorithm("bucket")).barrier(),
                    "bruck" => comm.allgather(&[1u8; 9], &mut [0; 16 * 9]),
                    "pairwise" => {
                        let pairwise = comm.with(CallOptions::new().algorithm("pairwise"));
                        pairwise.alltoall(&[1u8; 16], &mut [0; 16])
                    }
                    _ => comm.allreduce_in_place(&mut [1u64; 40], Op::Sum),
                }
            });
            let run = run.unwrap();
            let what = format!("{wire:?}, {}, rank {late} is late", calls[seed as usize % 4]);
            assert_eq!(run.violations, Vec::<String>::new(), "{what}");
            assert!(run.results.iter().all(Result::is_ok), "{what}: {:?}", run.results);
            let said: Vec<String> = run.story.iter().map(ToString::to_string).collect();
            let said: Vec<_> = said.iter().filter(|said| said.contains("; waiting on")).collect();
            assert_eq!(said.len(), 1, "{what}: {said:#?}");
        }
    }
}
