//! The uTofu endpoint in simulated worlds, with its real credits, slots, channels and fences, over the emulated
//! device in its late and checked modes.

use std::ops::Range;
use std::time::{Duration, Instant};

use hopbine::reduce::Op;
use hopbine::{
    CallOptions, Communicator, Error, Fate, Fault, Hardware, OnTimeout, Simulated, SimulatedWire,
    Simulation, SimulationConfig, simulate,
};

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::{config, well};

/// Shapes of 1 to 12 ranks.
const SHAPES: [&[u32]; 10] =
    [&[1], &[2], &[3], &[4], &[5], &[3, 2], &[7], &[2, 2, 2], &[3, 3], &[4, 3]];
/// Numbers of elements: messages within a descriptor, in a slot, and by separate puts.
const LENGTHS: [usize; 9] = [0, 1, 2, 3, 37, 256, 257, 1000, 5000];

fn on_utofu(sizes: &[u32], seed: u64) -> SimulationConfig {
    let mut config = config(sizes, seed);
    config.wire = SimulatedWire::Utofu;
    config.timeout = Duration::from_secs(10);
    config.keeps_story = std::env::var("STORY").is_ok();
    config
}

fn one_of<T: Copy>(numbers: &mut SmallRng, all: &[T]) -> T {
    *all.choose(numbers).expect("there are some")
}

/// Configuration, one of its ranks and a random generator for further choices, all determined by the seed. The shape
/// is one of `shapes`.
fn with_one(shapes: &[&[u32]], seed: u64) -> (SimulationConfig, u64, SmallRng) {
    let mut numbers = SmallRng::seed_from_u64(seed);
    let config = on_utofu(one_of(&mut numbers, shapes), seed);
    let one = numbers.random_range(0..u64::from(config.shape.n_ranks()));
    (config, one, numbers)
}

/// Seeds from the environment variable `SEEDS=from..to`; `usual` if it is not set.
fn seeds(usual: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("SEEDS") else { return usual };
    let (from, to) = text.split_once("..").expect("SEEDS=from..to");
    from.parse().expect("a number")..to.parse().expect("a number")
}

/// Element `at` of the input of rank `rank`.
fn given(rank: u64, at: usize) -> u64 {
    rank * 1_000_003 + at as u64
}

/// Calls random collectives of all kinds; every rank checks its results. Returns the number of calls.
fn some_collectives(comm: &Communicator, rank: &Simulated, seed: u64) -> Result<u64, Error> {
    let (n, me) = (u64::from(comm.size()), u64::from(comm.rank()));
    let mut numbers = SmallRng::seed_from_u64(seed);
    let mut own = SmallRng::seed_from_u64(seed ^ me << 32);
    let n_calls = 4 + numbers.random_range(0..12);
    for _ in 0..n_calls {
        let len = one_of(&mut numbers, &LENGTHS);
        let root = numbers.random_range(0..n);
        let kind = numbers.random_range(0..11);
        if own.random_range(0..4) == 0 {
            // This rank comes late, so it gets messages before it makes their calls.
            rank.sleep(Duration::from_nanos(own.random_range(0..3_000_000)));
        }
        let blocks = n as usize;
        let mine: Vec<u64> = (0..len).map(|at| given(me, at)).collect();
        let long: Vec<u64> = (0..len * blocks).map(|at| given(me, at)).collect();
        let sum = |ranks: u64, at: usize| (0..ranks).map(|rank| given(rank, at)).sum();
        let is_root = me == root;
        let (mut short, mut all) = (vec![0; len], vec![0; len * blocks]);
        let expected: Vec<u64> = match kind {
            0 => {
                comm.allreduce(&mine, &mut short, Op::Sum)?;
                (0..len).map(|at| sum(n, at)).collect()
            }
            1 => {
                comm.reduce(&mine, &mut short, Op::Sum, root as u32)?;
                (0..len).map(|at| if is_root { sum(n, at) } else { 0 }).collect()
            }
            2 => {
                short.fill(if is_root { 7 } else { 0 });
                comm.bcast(&mut short, root as u32)?;
                vec![7; len]
            }
            3 => {
                comm.scan(&mine, &mut short, Op::Sum)?;
                (0..len).map(|at| sum(me + 1, at)).collect()
            }
            4 => {
                comm.exscan(&mine, &mut short, Op::Sum)?;
                (0..len).map(|at| sum(me, at)).collect()
            }
            5 => {
                comm.reduce_scatter(&long, &mut short, Op::Sum)?;
                (0..len).map(|at| sum(n, me as usize * len + at)).collect()
            }
            6 => {
                comm.scatter(&long, &mut short, root as u32)?;
                (0..len).map(|at| given(root, me as usize * len + at)).collect()
            }
            7 => {
                comm.allgather(&mine, &mut all)?;
                (0..n).flat_map(|rank| (0..len).map(move |at| given(rank, at))).collect()
            }
            8 => {
                comm.gather(&mine, &mut all, root as u32)?;
                let gathered = |rank, at| if is_root { given(rank, at) } else { 0 };
                (0..n).flat_map(|rank| (0..len).map(move |at| gathered(rank, at))).collect()
            }
            9 => {
                comm.alltoall(&long, &mut all)?;
                let start = me as usize * len;
                (0..n).flat_map(|rank| (0..len).map(move |at| given(rank, start + at))).collect()
            }
            _ => {
                comm.barrier()?;
                short.clear();
                Vec::new()
            }
        };
        let got = if (7..10).contains(&kind) { all } else { short };
        if got != expected {
            rank.complain(format!("rank {me}: wrong bytes of collective kind {kind}, {len} long"));
        }
    }
    Ok(n_calls)
}

/// One run with a seed, which also determines the shape.
fn run(seed: u64) -> Simulation<Result<u64, Error>> {
    let sizes = one_of(&mut SmallRng::seed_from_u64(seed), &SHAPES);
    let config = on_utofu(sizes, seed);
    let simulated = simulate(&config, |comm, rank| some_collectives(comm, rank, seed));
    well(simulated, &format!("{}, seed {seed}", config.shape))
}

#[test]
fn a_seed_repeats_a_run_on_utofu_too() {
    let start = Instant::now();
    let (mut n_calls, mut n_steps, mut traces) = (0, 0, 0);
    for seed in seeds(0..30) {
        let (once, again) = (run(seed), run(seed));
        assert_eq!(
            (once.trace, once.n_steps, once.elapsed),
            (again.trace, again.n_steps, again.elapsed),
            "seed {seed}"
        );
        assert!(once.results.len() == 1 || once.trace != run(seed + (1 << 32)).trace);
        n_calls += once.results.iter().flatten().sum::<u64>();
        n_steps += once.n_steps;
        traces ^= once.trace.rotate_left((seed % 64) as u32);
    }
    // The traces must be the same in every process.
    println!("{n_calls} calls of ranks, {n_steps} steps, traces {traces:016x}");
    println!("{:.1?} for three runs", start.elapsed());
}

#[test]
fn whoever_waits_for_a_dead_rank_on_utofu_learns_of_it() {
    for seed in seeds(0..60) {
        let (config, dead, mut numbers) = with_one(&SHAPES[1..], seed);
        let after = Duration::from_nanos(numbers.random_range(0..20_000_000));
        let simulated = simulate(&config, |comm, rank| {
            if u64::from(comm.rank()) == dead {
                rank.meets(Fate::Dies, after);
            }
            (0..).find_map(|round| some_collectives(comm, rank, seed ^ round << 40).err())
        });
        let simulation = simulated.unwrap();
        assert_eq!(simulation.violations, Vec::<String>::new(), "seed {seed}");
        let (rank, peer) = (format!("rank {dead}"), format!("peer {dead}"));
        for (at, error) in simulation.results.iter().enumerate() {
            let error = error.as_ref().expect("ends by an error only").to_string();
            let names = error.contains(&rank) || error.contains(&peer);
            assert!(at as u64 == dead || names, "seed {seed}, {dead} is dead, {at}: {error}");
        }
    }
}

#[test]
fn whoever_is_stopped_for_a_while_goes_on_and_so_do_the_others() {
    for seed in seeds(0..30) {
        let (config, stopped, mut numbers) = with_one(&SHAPES, seed);
        let after = Duration::from_nanos(numbers.random_range(0..5_000_000));
        let simulated = simulate(&config, |comm, rank| {
            if u64::from(comm.rank()) == stopped {
                rank.meets(Fate::Stops(Duration::from_millis(30)), after);
            }
            some_collectives(comm, rank, seed)
        });
        well(simulated, &format!("{}, seed {seed}", config.shape));
    }
}

/// A call with another operator on one rank fails on all ranks, and all ranks continue.
#[test]
fn a_call_with_another_operator_fails_alone_on_utofu() {
    for seed in seeds(0..40) {
        let (config, odd, mut numbers) = with_one(&SHAPES[1..], seed);
        let len = one_of(&mut numbers, &LENGTHS[1..]);
        let simulated = simulate(&config, |comm, rank| {
            comm.spare();
            some_collectives(comm, rank, seed)?;
            let me = u64::from(comm.rank());
            let op = if me == odd { Op::Max } else { Op::Sum };
            let by_plan = comm.with(CallOptions::new().hardware(Hardware::Never));
            match by_plan.allreduce(&vec![me; len], &mut vec![0; len], op) {
                Err(Error::Lost { blame, .. }) if blame.fault == Fault::Elsewhere => {}
                other => rank.complain(format!("rank {me}, {len} elements: {other:?}")),
            }
            some_collectives(comm, rank, seed + 1)
        });
        well(simulated, &format!("{}, seed {seed}, rank {odd} differs", config.shape));
    }
}

/// If a rank calls with another number of elements, and so few that some lanes have no message, no rank waits for a
/// message that nobody sends.
#[test]
fn a_call_with_another_count_and_fewer_messages_fails_at_once() {
    for seed in seeds(0..40) {
        let run = simulate(&on_utofu(&[4], seed), |comm, _| {
            comm.spare();
            let by_plan = CallOptions::new().hardware(Hardware::Never).algorithm("direct").ports(2);
            let (comm, count) = (comm.with(by_plan), if comm.rank() == 1 { 3 } else { 1 });
            match seed % 2 {
                0 => comm.allgather(&vec![1u8; count], &mut vec![0; 4 * count]),
                _ => comm.reduce_scatter(&vec![1u64; 4 * count], &mut vec![0; count], Op::Sum),
            }
        });
        for result in run.unwrap().results {
            let error = result.unwrap_err();
            let cause = if let Error::Poisoned(cause) = &error { cause } else { &error };
            let Error::Lost { blame, .. } = cause else { panic!("seed {seed}: {error}") };
            assert_eq!(blame.fault, Fault::Elsewhere, "seed {seed}: {error}");
        }
    }
}

/// At tear-down a rank waits for its own device, however short the time-out for other ranks is.
#[test]
fn the_end_waits_for_the_device_however_short_the_timeout_is() {
    let mut n_well = 0;
    for seed in seeds(0..400) {
        let mut config = on_utofu(&[2], seed);
        config.timeout = Duration::from_millis(1);
        config.on_timeout = OnTimeout::Fail;
        let run = simulate(&config, |comm, _| comm.barrier()).unwrap();
        // Skips runs in which the barrier itself takes longer than the time-out.
        if run.results.iter().any(Result::is_err) {
            continue;
        }
        n_well += 1;
        assert!(run.ends.iter().all(Result::is_ok), "seed {seed}: {:?}", run.ends);
    }
    assert!(n_well > 300, "{n_well} barriers went well");
}

/// Calls use memory that is unmapped and mapped again between them, at few addresses. The registration cache keeps
/// valid registrations, and the results are right.
#[test]
fn memory_comes_and_goes_between_calls() {
    let (mut hits, mut invalidations, mut overflows) = (0, 0, 0);
    for seed in seeds(0..40) {
        let (config, _, _) = with_one(&SHAPES[1..], seed);
        let run = || {
            let simulated = simulate(&config, |comm, rank| {
                let (n, me) = (u64::from(comm.size()), u64::from(comm.rank()));
                let mut own = SmallRng::seed_from_u64(seed ^ me << 32);
                let mut kept = Vec::new();
                for round in 0..12 {
                    let len = LENGTHS[1 + (round * 7) % (LENGTHS.len() - 1)];
                    let (mut mine, mut sum) = (rank.map(len), rank.map(len));
                    mine.iter_mut().zip(0..).for_each(|(word, at)| *word = given(me, at));
                    for _ in 0..2 {
                        comm.allreduce(&mine, &mut sum, Op::Sum)?;
                        let right = |at| (0..n).map(|rank| given(rank, at)).sum();
                        if !sum.iter().copied().eq((0..len).map(right)) {
                            rank.complain(format!("rank {me}: a wrong sum of {len} elements"));
                        }
                    }
                    if own.random_range(0..4) == 0 {
                        kept.push((mine, sum));
                    }
                }
                Ok(comm.cache_stats())
            });
            well(simulated, &format!("{}, seed {seed}", config.shape))
        };
        let (once, again) = (run(), run());
        assert_eq!((once.trace, &once.results), (again.trace, &again.results), "seed {seed}");
        for stats in once.results.into_iter().flatten().flatten() {
            hits += stats.hits;
            invalidations += stats.invalidations;
            overflows += stats.overflows;
        }
    }
    assert!(
        hits > 1000 && invalidations > 100 && overflows > 10,
        "{hits} {invalidations} {overflows}"
    );
}

/// Small collectives by barrier gates, among collectives by plan, while one rank is stopped for a while. The seed
/// determines whether gates are available.
#[test]
fn gates_serve_as_the_seed_has_them() {
    let (mut with_gates, mut without) = (0, 0);
    for seed in seeds(0..24) {
        let (config, stopped, mut numbers) = with_one(&SHAPES[1..], seed);
        let after = Duration::from_nanos(numbers.random_range(0..1_000_000));
        let simulated = simulate(&config, |comm, rank| {
            if u64::from(comm.rank()) == stopped {
                rank.meets(Fate::Stops(Duration::from_millis(3)), after);
            }
            let other = comm.duplicate()?;
            let (n, me) = (u64::from(comm.size()), u64::from(comm.rank()));
            for round in 0..4 {
                let mut max = [round * me];
                other.allreduce_in_place(&mut max, Op::Max)?;
                let mut sum = [me, round];
                comm.allreduce_in_place(&mut sum, Op::Sum)?;
                comm.barrier()?;
                if max != [round * (n - 1)] || sum != [n * (n - 1) / 2, n * round] {
                    rank.complain(format!("rank {me}: {max:?} {sum:?}"));
                }
                some_collectives(&other, rank, seed ^ round << 20)?;
            }
            let gates = comm.with(CallOptions::new().hardware(Hardware::Always));
            Ok(gates.barrier().is_ok())
        });
        let run = well(simulated, &format!("{}, seed {seed}", config.shape));
        let n_served = run.results.iter().flatten().filter(|served| **served).count();
        assert!(n_served == 0 || n_served == run.results.len(), "seed {seed}");
        with_gates += usize::from(n_served > 0);
        without += usize::from(n_served == 0);
    }
    assert!(with_gates > 8 && without > 8, "{with_gates} with gates, {without} without");
}

/// When a call at the gates differs between ranks, all ranks get an error and continue.
#[test]
fn a_mismatch_at_the_gates_is_told_to_all() {
    let mut n_told = 0;
    for seed in seeds(0..40) {
        let (config, odd, _) = with_one(&SHAPES[1..], seed);
        let simulated = simulate(&config, |comm, rank| {
            let me = u64::from(comm.rank());
            let gates = comm.with(CallOptions::new().hardware(Hardware::Always));
            if gates.barrier().is_err() {
                return Ok(false);
            }
            let op = if me == odd { Op::Max } else { Op::Sum };
            match gates.allreduce_in_place(&mut [me], op) {
                Err(Error::GatesMismatch { .. }) => {}
                other => rank.complain(format!("rank {me}: {other:?}")),
            }
            some_collectives(comm, rank, seed).map(|_| true)
        });
        let run = well(simulated, &format!("{}, seed {seed}, rank {odd} differs", config.shape));
        n_told += usize::from(run.results.iter().flatten().all(|told| *told));
    }
    assert!(n_told > 5, "{n_told}");
}

/// A rank cannot register memory for the call in which the ranks of a new communicator tell each other their gates.
#[test]
fn a_rank_that_cannot_complete_a_communicator_tells_the_others() {
    let mut n_failed = 0;
    for seed in seeds(0..8) {
        let mut config = on_utofu(&[6, 6, 3], seed);
        config.ports = Some(1);
        // Some of its messages are too long for a slot.
        config.preferred = "allgather=bruck".parse().unwrap();
        let simulated = simulate(&config, |comm, rank| {
            let (me, ranks): (_, Vec<u32>) = (comm.rank(), (0..comm.size()).collect());
            let by_plan = comm.with(CallOptions::new().hardware(Hardware::Never));
            // Afterwards all slots exist.
            by_plan.allgather(&[me; 6], &mut vec![0; 6 * ranks.len()])?;
            let made = comm.join(&ranks, |number| {
                let mut number = [number];
                comm.bcast(&mut number, 0).unwrap();
                if me == 1 {
                    // Then all others have the number.
                    rank.sleep(Duration::from_millis(100));
                    rank.refuses_memory(u32::MAX);
                }
                number[0]
            });
            rank.refuses_memory(0);
            match (made.map(drop), by_plan.barrier()) {
                (Ok(()), Ok(())) => return Ok(false),
                (Err(_), Err(Error::Poisoned(_))) => {}
                other => rank.complain(format!("rank {me}: {other:?}")),
            }
            Ok(true)
        });
        let run = well(simulated, &format!("seed {seed}"));
        let failed = run.results.iter().flatten().filter(|failed| **failed).count();
        assert!(failed == 0 || failed == run.results.len(), "seed {seed}: on {failed} ranks");
        n_failed += usize::from(failed > 0);
    }
    assert!(n_failed > 1, "{n_failed} seeds have gates");
}
