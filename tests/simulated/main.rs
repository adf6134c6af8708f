//! Simulated worlds: all ranks in one thread, on a simulated wire.

mod lost;
mod utofu;

use std::time::Duration;

use hopbine::reduce::Op;
use hopbine::torus::geometry::Shape;
use hopbine::{
    Blocks, CallOptions, Communicator, Error, Fate, Simulated, Simulation, SimulationConfig,
    simulate,
};

fn config(sizes: &[u32], seed: u64) -> SimulationConfig {
    SimulationConfig::new(Shape::torus(sizes).unwrap(), seed)
}

/// Calls five kinds of collectives, each with short and long vectors.
fn all_kinds(comm: &Communicator, _: &Simulated) -> Result<u64, Error> {
    let n = comm.size() as usize;
    let mut seen = 0;
    for len in [1, 37, 5000] {
        let mine: Vec<u64> = (0..len as u64).map(|at| at + u64::from(comm.rank())).collect();
        let mut sum = vec![0; len];
        comm.allreduce(&mine, &mut sum, Op::Sum)?;
        let of_ranks = (n * (n - 1) / 2) as u64;
        assert!(sum.iter().zip(0..).all(|(&sum, at)| sum == n as u64 * at + of_ranks));
        let mut all = vec![0; n * len];
        comm.allgather(&mine, &mut all)?;
        assert!(
            all.chunks(len).zip(0..).all(|(block, rank)| block[len - 1] == rank + len as u64 - 1)
        );
        let mut exchanged = vec![0; n * len];
        comm.alltoall(&all, &mut exchanged)?;
        comm.bcast(&mut sum, comm.size() - 1)?;
        comm.barrier()?;
        seen += exchanged.iter().sum::<u64>();
    }
    Ok(seen)
}

fn well<R>(
    simulation: Result<Simulation<Result<R, Error>>, Error>,
    what: &str,
) -> Simulation<Result<R, Error>> {
    let simulation = simulation.unwrap();
    assert_eq!(simulation.violations, Vec::<String>::new(), "{what}");
    for (rank, result) in simulation.results.iter().enumerate() {
        if let Err(error) = result {
            simulation.story.iter().for_each(|entry| println!("{entry}"));
            panic!("{what}: rank {rank}: {error}");
        }
    }
    simulation
}

#[test]
fn a_seed_repeats_a_run_and_another_one_does_not() {
    for sizes in [&[1][..], &[2], &[3, 2], &[4, 3]] {
        let run = |seed| {
            let mut config = config(sizes, seed);
            config.keeps_story = std::env::var("STORY").is_ok();
            well(simulate(&config, all_kinds), &format!("{sizes:?}, seed {seed}"))
        };
        for seed in 0..12 {
            let (once, again) = (run(seed), run(seed));
            assert_eq!(
                (once.trace, once.n_steps, once.elapsed),
                (again.trace, again.n_steps, again.elapsed)
            );
            assert_ne!(once.trace, run(seed + 1000).trace);
        }
    }
}

#[test]
fn whoever_waits_for_a_dead_rank_learns_of_it() {
    for seed in 0..100 {
        let mut config = config(&[3, 2], seed);
        config.timeout = Duration::from_secs(10);
        let simulation = simulate(&config, |comm, rank| {
            if comm.rank() == 4 {
                rank.meets(Fate::Dies, Duration::from_micros(seed * 7));
            }
            loop {
                if let Err(error) = all_kinds(comm, rank) {
                    return error;
                }
            }
        });
        let simulation = simulation.unwrap();
        assert_eq!(simulation.violations, Vec::<String>::new(), "seed {seed}");
        for (rank, error) in simulation.results.iter().enumerate() {
            assert!(rank == 4 || error.to_string().contains("rank 4"), "seed {seed}: {error}");
        }
    }
}

/// An alltoallv whose sizes the ranks must exchange first has two operations. A rank starts the second when it
/// notices the end of the first, even while it waits for another request.
#[test]
fn requests_of_several_operations_are_waited_for_in_any_order() {
    for seed in 0..60 {
        let config = config(&[3], seed);
        let run = simulate(&config, |comm, _| {
            // Blocks pass through other ranks, which must know their sizes.
            let comm = comm.with(CallOptions::new().algorithm("bruck:2"));
            let n = comm.size() as usize;
            let counts = vec![2u64; n];
            let mine = vec![u64::from(comm.rank()); 2 * n];
            let (mut first, mut second) = (vec![0; 2 * n], vec![0; 2 * n]);
            let blocks = Blocks::new(&counts);
            comm.scope(|scope| {
                let one = scope.alltoallv(&mine, blocks, &mut first, blocks)?;
                let other = scope.alltoallv(&mine, blocks, &mut second, blocks)?;
                let (sooner, later) = match comm.rank() {
                    1 => (other, one),
                    _ => (one, other),
                };
                sooner.wait()?;
                later.wait().map(drop)
            })?;
            let right: Vec<u64> = (0..n as u64).flat_map(|rank| [rank; 2]).collect();
            assert!(first == right && second == right);
            Ok(())
        });
        well(run, &format!("seed {seed}"));
    }
}

#[test]
fn blocks_of_any_size_are_exchanged_in_place() {
    for seed in 0..30 {
        let run = simulate(&config(&[3, 3], seed), |comm, _| {
            let (me, n) = (u64::from(comm.rank()), u64::from(comm.size()));
            let blocks = |counts: &[u64], of: &dyn Fn(u64) -> u64| -> Vec<u64> {
                (0..n).zip(counts).flat_map(|(rank, &len)| vec![of(rank); len as usize]).collect()
            };
            let counts: Vec<u64> = (0..n).map(|other| (me + other) % 4 * 50).collect();
            let mut exchanged = blocks(&counts, &|to| 100 * me + to);
            comm.alltoallv_in_place(&mut exchanged, Blocks::new(&counts))?;
            assert!(exchanged == blocks(&counts, &|from| 100 * from + me));
            let counts: Vec<u64> = (0..n).map(|rank| rank % 4 * 70).collect();
            let mut gathered = blocks(&counts, &|rank| if rank == me { me } else { n });
            comm.allgatherv_in_place(&mut gathered, Blocks::new(&counts))?;
            assert!(gathered == blocks(&counts, &|rank| rank));
            Ok(())
        });
        well(run, &format!("seed {seed}"));
    }
}

/// A failed registration leaves no state in a port that has no room, and the next registration succeeds.
#[test]
fn memory_that_cannot_be_registered_now_can_be_later() {
    let mut n_refused = 0;
    for seed in 0..40 {
        let run = simulate(&config(&[3, 2], seed), |comm, rank| {
            let mut vector = vec![u64::from(comm.rank()); 3000];
            let (ptr, len) = (vector.as_mut_ptr().cast(), size_of_val::<[u64]>(&vector) as u64);
            rank.refuses_memory(1);
            // SAFETY: the vector outlives its registrations.
            let refused = unsafe { comm.register(ptr, len) }.is_err();
            assert_eq!(refused, rank.has_refused_memory());
            // SAFETY: as above.
            let registered = unsafe { comm.register(ptr, len) };
            assert!(registered.is_ok());
            comm.allreduce_in_place(&mut vector, Op::Sum)?;
            assert_eq!(vector, [15; 3000]);
            Ok(refused)
        });
        let run = well(run, &format!("seed {seed}"));
        n_refused += run.results.iter().filter(|refused| **refused == Ok(true)).count();
    }
    assert!(n_refused > 0, "no wire of these registers anything");
}

/// Compares traces between machines: the first machine writes them to the file that `HOPBINE_TEST_TRACES` names, and
/// the other machines compare theirs with it.
#[test]
#[ignore = "run by ci/arm.sh, on two machines"]
fn traces_are_the_same_on_every_machine() {
    let mut traces = String::new();
    for sizes in [&[1][..], &[2], &[3, 2], &[5]] {
        for seed in 0..8 {
            let run = well(simulate(&config(sizes, seed), all_kinds), "all kinds");
            traces += &format!("{sizes:?} {seed}: {:016x} {}\n", run.trace, run.n_steps);
        }
    }
    let file = std::env::var_os("HOPBINE_TEST_TRACES").expect("HOPBINE_TEST_TRACES");
    match std::fs::read_to_string(&file) {
        Ok(of_other) => assert_eq!(traces, of_other),
        Err(_) => std::fs::write(&file, traces).unwrap(),
    }
}
