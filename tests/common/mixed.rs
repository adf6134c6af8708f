//! Many small collectives of all kinds back to back. Each result is compared with the reference at once, and again
//! after later results have been received.

use std::collections::VecDeque;
use std::time::Duration;

use hopbine::torus::{Algorithm, Collective, registry};
use hopbine::{CallOptions, Communicator, Latency};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::calls::{call_in_place_on, call_on};
use super::reference::{Case, expected, inputs};
use super::skew::Skew;

/// Largest number of elements of a vector or block: lengths below, at and above the size that a descriptor can carry.
const MOST_ELEMENTS: usize = 64;
/// Number of different calls in the pool: more than a few, but few enough that most calls reuse a program.
const POOL: usize = 60;
/// Number of calls after which half of the pool is replaced.
const RENEWED_EVERY: usize = 500;
/// Number of results that are kept and compared again after later results have been received.
const KEPT: usize = 16;

/// A call that all ranks make identically.
#[derive(Clone, Debug)]
struct PlannedCall {
    case: Case,
    /// `None`: the library chooses, possibly the barrier gates.
    algorithm: Option<String>,
    ports: Option<u32>,
    segment_bytes: Option<u64>,
    in_place: bool,
}

impl PlannedCall {
    fn random(rng: &mut SmallRng, algorithms: &[Algorithm], n_ranks: u32, n_ports: u32) -> Self {
        let algorithm = algorithms.choose(rng).expect("some serve every shape");
        let collective = algorithm.collective;
        let root = if collective.is_rooted() { rng.random_range(0..n_ranks) } else { 0 };
        let count = rng.random_range(0..=MOST_ELEMENTS);
        let named = rng.random_bool(0.7);
        PlannedCall {
            case: Case { collective, n_ranks, count, root },
            algorithm: named.then(|| algorithm.name.to_string()),
            ports: rng.random_bool(0.8).then(|| rng.random_range(1..=n_ports)),
            segment_bytes: rng.random_bool(0.3).then(|| rng.random_range(8..600)),
            in_place: rng.random_bool(0.4),
        }
    }

    fn options(&self) -> CallOptions {
        let mut options = CallOptions::new();
        options.algorithm = self.algorithm.as_deref().map(Into::into);
        options.ports = self.ports;
        options.segment_bytes = self.segment_bytes;
        options
    }

    /// Value that distinguishes the data of this round from those of other rounds.
    fn salt(round: usize) -> u64 {
        (round as u64 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    /// Makes the call; returns the received and the expected elements.
    fn perform(&self, comm: &Communicator, round: usize) -> [Vec<u64>; 2] {
        let comm = comm.with(self.options());
        let (rank, salt) = (comm.rank(), Self::salt(round));
        let salted = |values: Vec<u64>| -> Vec<u64> {
            values.into_iter().map(|value| value.wrapping_add(salt)).collect()
        };
        let send = salted(inputs(&self.case, rank));
        let got = if self.in_place {
            call_in_place_on(&comm, &self.case, &send)
        } else {
            call_on(&comm, &self.case, &send)
        };
        let got =
            got.unwrap_or_else(|error| panic!("round {round}, rank {rank}, {self:?}: {error}"));
        // Every rank's input contains the salt, so a sum contains it once per rank.
        let add = |a: u64, b: u64| a.wrapping_add(b).wrapping_add(salt);
        let want = expected(&self.case, rank, add);
        // Rank 0 receives nothing in an exscan, so its buffer has no salt.
        let is_untouched = self.case.collective == Collective::Exscan && rank == 0;
        [got, if is_untouched { want } else { salted(want) }]
    }
}

/// A sequence of calls, the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Mixed {
    pub calls: usize,
    pub seed: u64,
    /// The longest pause between two calls; zero for no pauses.
    pub longest_pause: Duration,
    /// Number of the first call. Calls with different numbers have different data.
    pub first: usize,
}

impl Mixed {
    /// Makes the calls of this rank.
    pub fn run(&self, comm: &Communicator) {
        let algorithms: Vec<Algorithm> =
            registry::all().into_iter().filter(|a| a.serves(comm.shape()).is_ok()).collect();
        // All ranks draw the same calls; their pauses differ.
        let rng = &mut SmallRng::seed_from_u64(self.seed);
        let mut skew = Skew::new(self.seed, comm.rank(), self.longest_pause);
        let draw =
            |rng: &mut SmallRng| PlannedCall::random(rng, &algorithms, comm.size(), comm.n_ports());
        let mut pool: Vec<PlannedCall> = (0..POOL).map(|_| draw(rng)).collect();
        let mut kept: VecDeque<(usize, PlannedCall, Vec<u64>, Vec<u64>)> = VecDeque::new();
        for round in self.first..self.first + self.calls {
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
        planned: &PlannedCall,
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

/// Random latencies of up to some microseconds. Some seeds give slow links, some long ones, and some enough jitter
/// that messages overtake each other.
pub fn latency(seed: u64) -> Latency {
    let mut rng = SmallRng::seed_from_u64(seed);
    Latency {
        put_ns: rng.random_range(0..8000),
        hop_ns: rng.random_range(0..2000),
        jitter_ns: if rng.random_bool(0.7) { rng.random_range(1..20_000) } else { 0 },
        tni_mbps: if rng.random_bool(0.5) { rng.random_range(50..2000) } else { 0 },
        ..Latency::default()
    }
}
