//! Measures one cell (a collective at one size): all candidates in turn, until it is clear whether one of them is
//! faster than the choice of the reference table.
//!
//! All ranks take the same decisions: they agree on the measured times, and rank 0's clock ends a cell.

use std::time::{Duration, Instant};

use hopbine::reduce::Op;
use hopbine::{CallOptions, Communicator, Error, Hardware};
use hopbine_torus::Collective;
use hopbine_torus::fit::quantile;
use serde::{Deserialize, Serialize};

use super::median::Median;
use crate::run::{self, Call, Case, Lists, Reference, verify};

/// An algorithm with a number of ports and a segment length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    pub algorithm: String,
    pub ports: u32,
    /// The longest message in bytes.
    pub segment_bytes: u64,
}

/// The value of [`Candidate::algorithm`] for the library's own choice.
pub const AUTO: &str = "auto";

impl Candidate {
    /// A call without options. It is measured for comparison only, since no table can name it.
    pub fn as_called() -> Self {
        Candidate { algorithm: AUTO.to_owned(), ports: 0, segment_bytes: u64::MAX }
    }

    fn options(&self) -> CallOptions {
        if self.algorithm == AUTO {
            return CallOptions::new();
        }
        let mut options = CallOptions::new().hardware(Hardware::Never);
        options.algorithm = Some((&*self.algorithm).into());
        options.ports = Some(self.ports);
        options.segment_bytes = Some(self.segment_bytes);
        options
    }
}

/// The measured times of a candidate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Timed {
    pub candidate: Candidate,
    /// Time of a call in seconds, for each round: the median of its calls, each with the time of the slowest rank.
    pub rounds: Vec<f64>,
}

/// The result for a collective at one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Found {
    pub collective: String,
    pub bytes: u64,
    /// All candidates that were not far slower at first. The first is the choice of the reference table, as a plan.
    /// The second is a call without options ([`Candidate::as_called`]), which may use barrier gates or a flat buffer.
    pub timed: Vec<Timed>,
    /// The fastest candidate, if it is faster than the reference choice, with the ratio of the times, measured again.
    pub faster: Option<(Candidate, Median)>,
    /// Candidates with wrong results.
    pub wrong: Vec<String>,
}

/// Maximum number of rounds that select the fastest candidate.
const ROUNDS: usize = 21;
/// Minimum number of rounds, however little time there is.
const LEAST_ROUNDS: usize = 3;
/// Rounds that compare the fastest candidate with the reference choice: the 3rd to 13th of 15 contain the median with
/// 99 %.
const ANEW: usize = 15;
/// Required confidence that the candidate is faster.
const CONFIDENCE: f64 = 0.99;
/// A ratio above this is not worth a row, at any confidence.
const WORTH: f64 = 0.98;
/// Duration of a round for each candidate.
const ROUND: Duration = Duration::from_millis(2);
/// Calls before the first round, of which the median counts: a call may have had to wait for a core.
const FIRST_CALLS: usize = 3;
/// Maximum number of calls in a round.
const MOST_CALLS: f64 = 100.0;
/// Contents of receive buffers before a call that is verified.
const STALE: u8 = 0xa5;

/// Makes and times calls of one size.
pub struct Bench<'a> {
    world: &'a Communicator,
    case: Case,
    call: Call,
    lists: Lists,
    send: &'a mut [u8],
    recv: &'a mut [u8],
}

impl<'a> Bench<'a> {
    /// The buffers must have the lengths of the case.
    pub fn new(
        world: &'a Communicator,
        case: Case,
        (send, recv): (&'a mut [u8], &'a mut [u8]),
    ) -> Self {
        let rank = world.rank();
        case.data.fill(rank, send);
        let lists = Lists::new(&case, rank);
        Bench { world, case, call: run::typed(case.data.dtype), lists, send, recv }
    }

    /// Makes a call and verifies the result on all ranks.
    fn is_right(&mut self, comm: &Communicator, reference: &Reference) -> Result<bool, Error> {
        let rank = self.world.rank();
        self.recv.fill(STALE);
        if self.case.collective == Collective::Bcast && rank == self.case.root {
            self.recv.copy_from_slice(self.send);
        }
        self.call(comm)?;
        let is_barrier = self.case.collective == Collective::Barrier;
        let is_wrong = !is_barrier && verify(reference, rank, self.recv).is_some();
        let mut wrong = [u64::from(is_wrong)];
        self.world.allreduce_in_place(&mut wrong, Op::Max)?;
        Ok(wrong == [0])
    }

    pub fn call(&mut self, comm: &Communicator) -> Result<(), Error> {
        (self.call)(comm, &self.case, &self.lists, self.send, self.recv)
    }

    /// Median time of `n` calls in seconds, each with the time of the slowest rank. All ranks get the same value.
    fn seconds(&mut self, comm: &Communicator, n: usize) -> Result<f64, Error> {
        // A call that is not timed, since the caches hold the data of the previous candidate.
        self.call(comm)?;
        let mut seconds = vec![0.0; n];
        for seconds in &mut seconds {
            self.world.barrier()?;
            let start = Instant::now();
            self.call(comm)?;
            *seconds = start.elapsed().as_secs_f64();
        }
        self.world.allreduce_in_place(&mut seconds, Op::Max)?;
        seconds.sort_by(f64::total_cmp);
        Ok(quantile(&seconds, 0.5))
    }

    /// Time of the first calls after a warm-up call, in seconds, and the number of calls that make a round.
    fn pace(&mut self, comm: &Communicator) -> Result<(f64, usize), Error> {
        let once = self.seconds(comm, FIRST_CALLS)?;
        Ok((once, (ROUND.as_secs_f64() / once).clamp(1.0, MOST_CALLS) as usize))
    }

    /// Ratio of the times of two kinds of calls, measured alternately in rounds of the given numbers of calls.
    fn in_turn(&mut self, [new, before]: [(&Communicator, usize); 2]) -> Result<Median, Error> {
        let mut ratios = Vec::new();
        for round in 0..ANEW {
            let mut of = |(comm, calls)| self.seconds(comm, calls);
            let (new, before) = match round % 2 {
                0 => (of(new)?, of(before)?),
                _ => {
                    let before = of(before)?;
                    (of(new)?, before)
                }
            };
            ratios.push(new / before);
        }
        Ok(Median::of(&ratios, CONFIDENCE).expect("of 15 there is an interval"))
    }

    /// Ratio of the times of calls on two communicators with different options.
    pub fn compare(&mut self, new: &Communicator, before: &Communicator) -> Result<Median, Error> {
        let [(_, n_new), (_, n_before)] = [self.pace(new)?, self.pace(before)?];
        self.in_turn([(new, n_new), (before, n_before)])
    }
}

/// Number of lanes that are kept for comparison: see [`Found::timed`].
const KEPT: usize = 2;
/// Index of the lane of [`Candidate::as_called`].
const AS_CALLED: usize = 1;

/// Measures candidates for about `time`. The first candidate must be the choice of the reference table, the second
/// [`Candidate::as_called`].
///
/// # Errors
/// The errors of the collectives.
pub fn measure(
    mut bench: Bench<'_>,
    candidates: &[Candidate],
    time: Duration,
) -> Result<Found, Error> {
    let start = Instant::now();
    let (world, case) = (bench.world, bench.case);
    let reference = Reference::new(case);
    let (mut lanes, mut wrong) = (Vec::new(), Vec::new());
    for candidate in candidates {
        let comm = world.with(candidate.options());
        if !bench.is_right(&comm, &reference)? {
            wrong.push(candidate.algorithm.clone());
            continue;
        }
        let (once, calls) = bench.pace(&comm)?;
        let timed = Timed { candidate: candidate.clone(), rounds: Vec::new() };
        lanes.push(Lane { comm, calls, once, timed });
    }
    let mut found = Found {
        collective: case.collective.name().to_owned(),
        bytes: case.total_bytes(),
        timed: Vec::new(),
        faster: None,
        wrong,
    };
    if lanes.len() < KEPT
        || lanes[..KEPT].iter().zip(candidates).any(|(lane, own)| lane.timed.candidate != *own)
    {
        return Ok(found);
    }
    let fastest = fastest_plan(&lanes, |lane| lane.once);
    keep(&mut lanes, |lane| lane.once <= 3.0 * fastest);
    for round in 1..=ROUNDS {
        let n = lanes.len();
        // Rotates the order, since a candidate influences the next one, for instance through caches.
        for at in 0..n {
            let lane = &mut lanes[(at + round) % n];
            let seconds = bench.seconds(&lane.comm, lane.calls)?;
            lane.timed.rounds.push(seconds);
        }
        let fastest = fastest_plan(&lanes, Lane::median);
        // Drops candidates that are twice as slow after one round, or a tenth slower after ten.
        let most = fastest * (1.0 + 1.0 / round as f64);
        keep(&mut lanes, |lane| lane.median() <= most);
        let is_over = start.elapsed() >= time && round >= LEAST_ROUNDS;
        if lanes.len() == KEPT || agreed(world, is_over)? {
            break;
        }
    }
    let medians: Vec<f64> = lanes.iter().map(Lane::median).collect();
    let best = (KEPT..lanes.len()).min_by(|&a, &b| medians[a].total_cmp(&medians[b]));
    if let Some(best) = best.filter(|&best| medians[best] < WORTH * medians[0]) {
        // The fastest of many candidates was also lucky, so only new measurements count.
        let ratio = bench.in_turn([best, 0].map(|at| (&lanes[at].comm, lanes[at].calls)))?;
        if ratio.high < 1.0 && ratio.value < WORTH {
            found.faster = Some((lanes[best].timed.candidate.clone(), ratio));
        }
    }
    found.timed = lanes.into_iter().map(|lane| lane.timed).collect();
    Ok(found)
}

/// A candidate under measurement.
struct Lane {
    comm: Communicator,
    /// Number of calls in a round.
    calls: usize,
    /// Time of the first calls after a warm-up call, in seconds.
    once: f64,
    timed: Timed,
}

impl Lane {
    fn median(&self) -> f64 {
        let mut sorted = self.timed.rounds.clone();
        sorted.sort_by(f64::total_cmp);
        quantile(&sorted, 0.5)
    }
}

/// Time of the fastest plan in seconds; excludes the call without options, which a flat buffer may make faster than
/// any plan.
fn fastest_plan(lanes: &[Lane], seconds: impl Fn(&Lane) -> f64) -> f64 {
    let plans = lanes.iter().enumerate().filter(|(at, _)| *at != AS_CALLED);
    plans.map(|(_, lane)| seconds(lane)).fold(f64::INFINITY, f64::min)
}

/// Keeps the lanes for comparison, and those that satisfy a condition.
fn keep(lanes: &mut Vec<Lane>, is_kept: impl Fn(&Lane) -> bool) {
    let mut at = 0;
    lanes.retain(|lane| {
        at += 1;
        at <= KEPT || is_kept(lane)
    });
}

/// Returns rank 0's decision on all ranks.
pub fn agreed(world: &Communicator, is_so: bool) -> Result<bool, Error> {
    let mut said = [u8::from(is_so)];
    world.bcast(&mut said, 0)?;
    Ok(said[0] != 0)
}
