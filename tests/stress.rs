//! Thousands of small collectives back to back, with ranks out of step and a wire that takes
//! its time: no deadlock (a wait that does not move fails after the time-out), no loss, and
//! nothing overwritten, neither by a message of another call nor after the call has returned.

mod common;

use std::collections::VecDeque;
use std::time::Duration;

use common::calls::{call_in_place_on, call_on, config};
use common::reference::{Case, expected, inputs};
use common::skew::Skew;
use hopbine::torus::collectives::{Algorithm, registry};
use hopbine::{CallOptions, Communicator, Drive, EmulationConfig, Latency, emulate};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// Elements of a vector or block: short of, at and past what travels inside a descriptor.
const MOST_ELEMENTS: usize = 64;
/// Different calls in turn: more than a few, few enough that programs are mostly reused.
const POOL: usize = 60;
/// Calls after which some of the pool are replaced.
const RENEWED_EVERY: usize = 500;
/// Results that are looked at again later, when others have been received.
const KEPT: usize = 16;

/// A call that all ranks make.
#[derive(Clone, Debug)]
struct Planned {
    case: Case,
    /// `None`: whatever the library chooses, which may be the barrier gates.
    algorithm: Option<String>,
    ports: Option<u32>,
    segment_bytes: Option<u64>,
    in_place: bool,
}

impl Planned {
    fn random(rng: &mut SmallRng, algorithms: &[Algorithm], n_ranks: u32, n_ports: u32) -> Self {
        let algorithm = algorithms.choose(rng).expect("some serve every shape");
        let collective = algorithm.collective;
        let root = if collective.is_rooted() { rng.random_range(0..n_ranks) } else { 0 };
        let count = rng.random_range(0..=MOST_ELEMENTS);
        let named = rng.random_bool(0.7);
        Planned {
            case: Case { collective, n_ranks, count, root },
            algorithm: named.then(|| algorithm.name.clone()),
            ports: rng.random_bool(0.8).then(|| rng.random_range(1..=n_ports)),
            segment_bytes: rng.random_bool(0.3).then(|| rng.random_range(8..600)),
            in_place: rng.random_bool(0.4),
        }
    }

    fn options(&self) -> CallOptions {
        CallOptions {
            algorithm: self.algorithm.as_deref().map(Into::into),
            ports: self.ports,
            segment_bytes: self.segment_bytes,
            ..CallOptions::new()
        }
    }

    /// What tells the data of this round from that of any other.
    fn salt(round: usize) -> u64 {
        (round as u64 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    /// Makes the call; what came, and what had to come.
    fn perform(&self, comm: &Communicator, round: usize) -> [Vec<u64>; 2] {
        let comm = comm.with(self.options());
        let (rank, salt) = (comm.rank(), Self::salt(round));
        let salted = |values: Vec<u64>| -> Vec<u64> {
            values.into_iter().map(|value| value.wrapping_add(salt)).collect()
        };
        let send = salted(inputs(&self.case, rank));
        let got = if self.in_place {
            call_in_place_on(&comm, &self.case, self.algorithm.as_deref().unwrap_or(""), &send)
        } else {
            call_on(&comm, &self.case, &send)
        };
        let got =
            got.unwrap_or_else(|error| panic!("round {round}, rank {rank}, {self:?}: {error}"));
        // Every rank's input has the salt, and so a sum has it as often as there are ranks.
        let add = |a: u64, b: u64| a.wrapping_add(b).wrapping_add(salt);
        [got, salted(expected(&self.case, rank, add))]
    }
}

/// A long run of calls.
struct Run {
    config: EmulationConfig,
    calls: usize,
    seed: u64,
    /// The longest pause between two calls; zero: none.
    longest_pause: Duration,
}

impl Run {
    fn go(&self) {
        let shape = &self.config.shape;
        let algorithms: Vec<Algorithm> =
            registry::all().into_iter().filter(|a| a.serves(shape).is_ok()).collect();
        emulate(&self.config, |comm| self.rank(comm, &algorithms)).unwrap();
    }

    fn rank(&self, comm: &Communicator, algorithms: &[Algorithm]) {
        // The same on all ranks; the pauses are not.
        let rng = &mut SmallRng::seed_from_u64(self.seed);
        let mut skew = Skew::new(self.seed, comm.rank(), self.longest_pause);
        let draw =
            |rng: &mut SmallRng| Planned::random(rng, algorithms, comm.size(), comm.n_ports());
        let mut pool: Vec<Planned> = (0..POOL).map(|_| draw(rng)).collect();
        let mut kept: VecDeque<(usize, Planned, Vec<u64>, Vec<u64>)> = VecDeque::new();
        for round in 0..self.calls {
            if round % RENEWED_EVERY == RENEWED_EVERY - 1 {
                pool.iter_mut().step_by(2).for_each(|planned| *planned = draw(rng));
                pool.rotate_left(1);
            }
            let planned = pool.choose(rng).expect("is not empty");
            let [got, want] = planned.perform(comm, round);
            self.compare(comm, round, planned, &got, &want, "lost or wrong");
            if kept.len() == KEPT
                && let Some((round, planned, got, want)) = kept.pop_front()
            {
                self.compare(comm, round, &planned, &got, &want, "overwritten later");
            }
            kept.push_back((round, planned.clone(), got, want));
            skew.pause();
        }
        comm.barrier().unwrap();
        for (round, planned, got, want) in kept {
            self.compare(comm, round, &planned, &got, &want, "overwritten later");
        }
    }

    fn compare(
        &self,
        comm: &Communicator,
        round: usize,
        planned: &Planned,
        got: &[u64],
        want: &[u64],
        what: &str,
    ) {
        let wrong = got.iter().zip(want).position(|(got, want)| got != want);
        assert!(
            got.len() == want.len() && wrong.is_none(),
            "seed {}, round {round}, rank {}, {planned:?}: {what} at {wrong:?}: {got:x?}",
            self.seed,
            comm.rank(),
        );
    }
}

fn on(sizes: &[u32], drive: Drive) -> EmulationConfig {
    EmulationConfig { ports: Some(2), ..config(sizes, drive) }
}

/// Delays of up to some microseconds, some wires slow and some far.
fn latency(seed: u64) -> Latency {
    let mut rng = SmallRng::seed_from_u64(seed);
    Latency {
        put_ns: rng.random_range(0..8000),
        hop_ns: rng.random_range(0..2000),
        tni_mbps: if rng.random_bool(0.5) { rng.random_range(50..2000) } else { 0 },
    }
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
    let config = EmulationConfig { latency: latency(3), ..on(&[2, 2], Drive::Inline) };
    Run { config, calls: 10_000, seed: 3, longest_pause: SHORT }.go();
}

#[test]
fn wires_of_many_kinds() {
    for seed in 10..30 {
        let sizes: &[u32] = [&[2_u32, 2][..], &[2], &[3], &[2, 3]][seed as usize % 4];
        let config = EmulationConfig { latency: latency(seed), ..config(sizes, Drive::Inline) };
        Run { config, calls: 500, seed, longest_pause: SHORT }.go();
    }
}

#[test]
fn workers_meet_skew_and_delay() {
    let config = EmulationConfig { latency: latency(4), ..on(&[2, 2], Drive::Workers) };
    Run { config, calls: 4000, seed: 4, longest_pause: SHORT }.go();
}

#[test]
fn sixteen_ranks() {
    for (seed, latency) in [(5, Latency::default()), (6, latency(6))] {
        let config = EmulationConfig { latency, ..config(&[4, 4], Drive::Inline) };
        Run { config, calls: 500, seed, longest_pause: SHORT }.go();
    }
}

#[test]
fn sixty_four_ranks() {
    for (seed, latency) in [(7, Latency::default()), (8, latency(8))] {
        let config = EmulationConfig { latency, ..on(&[4, 4, 4], Drive::Inline) };
        Run { config, calls: 50, seed, longest_pause: SHORT }.go();
    }
}

/// Many senders run into one receiver that sleeps, by far more messages than its channels hold.
#[test]
fn a_sleeping_root_is_flooded_and_loses_nothing() {
    const ROUNDS: u64 = 3000;
    let algorithm = CallOptions::new().algorithm("direct");
    let config = EmulationConfig { latency: latency(9), ..config(&[8], Drive::Inline) };
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

/// So many peers that those who come late get only a few slots of their channels, and a rank
/// that sleeps while all of them write.
#[test]
fn hundreds_of_peers() {
    const RANKS: u32 = 300;
    let algorithm = CallOptions::new().algorithm("pairwise");
    let config = EmulationConfig { ports: Some(1), ..config(&[RANKS], Drive::Inline) };
    emulate(&config, |comm| {
        let comm = comm.with(algorithm.clone());
        // Inside descriptors, in eager slots, and of a kind that waits for its receive.
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
