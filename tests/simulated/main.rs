//! Ranks in one thread on a simulated wire.

mod utofu;

use std::time::Duration;

use hopbine::reduce::Op;
use hopbine::torus::geometry::Shape;
use hopbine::{Communicator, Error, Fate, Simulated, Simulation, SimulationConfig, simulate};

fn config(sizes: &[u32], seed: u64) -> SimulationConfig {
    SimulationConfig::new(Shape::torus(sizes).unwrap(), seed)
}

/// Every collective once, with short vectors and long ones.
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
    for sizes in [&[1][..], &[2], &[3, 2], &[4, 4], &[5, 3, 2]] {
        let run = |seed| {
            let mut config = config(sizes, seed);
            config.keeps_story = std::env::var("STORY").is_ok();
            well(simulate(&config, all_kinds), &format!("{sizes:?}, seed {seed}"))
        };
        for seed in 0..20 {
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
    for seed in 0..200 {
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
