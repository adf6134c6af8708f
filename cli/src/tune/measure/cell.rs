//! A cell: all that may serve a call of a size, in turn, until it is clear whether something is faster than what the
//! table before chooses.
//!
//! All ranks do the same: what they decide by has been agreed on, and clocks are asked on rank 0 alone.

use std::time::{Duration, Instant};

use hopbine::reduce::Op;
use hopbine::{CallOptions, Communicator, Error, Hardware};
use hopbine_torus::Collective;
use hopbine_torus::fit::quantile;
use serde::{Deserialize, Serialize};

use super::median::Median;
use crate::run::{self, Call, Case, Lists, Reference, verify};

/// An algorithm, on how many ports and in which pieces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    pub algorithm: String,
    pub ports: u32,
    /// The longest message, bytes.
    pub segment_bytes: u64,
}

/// As [`Candidate::algorithm`] says that the library chooses.
pub const AUTO: &str = "auto";

impl Candidate {
    /// What a call takes that names nothing: it is measured for comparison only, since no table can name it.
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

/// What a candidate took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Timed {
    pub candidate: Candidate,
    /// Seconds of a call: of a round the median, with the slowest rank's time of each call.
    pub rounds: Vec<f64>,
}

/// What has been found for a call of a size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Found {
    pub collective: String,
    pub bytes: u64,
    /// Everything that was not slower by far at first. The first is the choice of the table before, as a plan; the second
    /// a call that says nothing ([`Candidate::as_called`]), which may go by hardware or a flat buffer.
    pub timed: Vec<Timed>,
    /// The fastest, if it is faster than that: its time over the other's, measured anew.
    pub faster: Option<(Candidate, Median)>,
    /// Candidates with wrong results.
    pub wrong: Vec<String>,
}

/// Rounds that tell candidates apart, at most.
const ROUNDS: usize = 21;
/// Rounds at least, however little time there is.
const LEAST_ROUNDS: usize = 3;
/// Rounds that compare the fastest with the choice before: of 15, the 3rd to the 13th hold the median with 99 %.
const ANEW: usize = 15;
/// How certain it must be that it is faster.
const CONFIDENCE: f64 = 0.99;
/// What is less is not worth a row, however certain.
const WORTH: f64 = 0.98;
/// Time of a round for each candidate.
const ROUND: Duration = Duration::from_millis(2);
/// Calls before the first round, of which the median counts: one may have had to wait for a core.
const FIRST_CALLS: usize = 3;
/// Calls of a round, at most.
const MOST_CALLS: f64 = 100.0;
/// What buffers hold before a call that is verified.
const STALE: u8 = 0xa5;

/// Calls of one size.
pub struct Bench<'a> {
    world: &'a Communicator,
    case: Case,
    call: Call,
    lists: Lists,
    send: &'a mut [u8],
    recv: &'a mut [u8],
}

impl<'a> Bench<'a> {
    /// With buffers as long as the case's.
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

    /// Whether the result is right on all ranks.
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

    /// The median of some calls, seconds; of each what the slowest rank took. All ranks get the same.
    fn seconds(&mut self, comm: &Communicator, n: usize) -> Result<f64, Error> {
        // What the candidate before has left in caches is not its own.
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

    /// What the first calls take that find everything there, seconds, and how many make a round.
    fn pace(&mut self, comm: &Communicator) -> Result<(f64, usize), Error> {
        let once = self.seconds(comm, FIRST_CALLS)?;
        Ok((once, (ROUND.as_secs_f64() / once).clamp(1.0, MOST_CALLS) as usize))
    }

    /// The time of one kind of calls over that of another, in rounds of so many calls.
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

    /// The time of calls with some options over that with others.
    pub fn compare(&mut self, new: &Communicator, before: &Communicator) -> Result<Median, Error> {
        let [(_, n_new), (_, n_before)] = [self.pace(new)?, self.pace(before)?];
        self.in_turn([(new, n_new), (before, n_before)])
    }
}

/// Lanes that are only compared with: see [`Found::timed`].
const KEPT: usize = 2;
/// Of these the one of [`Candidate::as_called`].
const AS_CALLED: usize = 1;

/// Measures candidates for about so long, of which the first is the choice of the table before, and the second
/// [`Candidate::as_called`].
///
/// # Errors
/// As the collectives.
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
        // Not always in the same order: what comes before leaves its traces.
        for at in 0..n {
            let lane = &mut lanes[(at + round) % n];
            let seconds = bench.seconds(&lane.comm, lane.calls)?;
            lane.timed.rounds.push(seconds);
        }
        let fastest = fastest_plan(&lanes, Lane::median);
        // Twice as long after a round, a tenth longer after ten: then it is not the fastest.
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
        // The fastest of many was lucky, too: only what it takes from here on counts.
        let ratio = bench.in_turn([best, 0].map(|at| (&lanes[at].comm, lanes[at].calls)))?;
        if ratio.high < 1.0 && ratio.value < WORTH {
            found.faster = Some((lanes[best].timed.candidate.clone(), ratio));
        }
    }
    found.timed = lanes.into_iter().map(|lane| lane.timed).collect();
    Ok(found)
}

/// A candidate that is measured.
struct Lane {
    comm: Communicator,
    /// Calls of a round.
    calls: usize,
    /// What the first calls took that found everything there, seconds.
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

/// What the fastest plan takes, seconds. A call that says nothing may go by a flat buffer, which no plan is as fast as.
fn fastest_plan(lanes: &[Lane], seconds: impl Fn(&Lane) -> f64) -> f64 {
    let plans = lanes.iter().enumerate().filter(|(at, _)| *at != AS_CALLED);
    plans.map(|(_, lane)| seconds(lane)).fold(f64::INFINITY, f64::min)
}

/// Keeps what is compared with, and what fulfils a condition.
fn keep(lanes: &mut Vec<Lane>, is_kept: impl Fn(&Lane) -> bool) {
    let mut at = 0;
    lanes.retain(|lane| {
        at += 1;
        at <= KEPT || is_kept(lane)
    });
}

/// What rank 0 says.
pub fn agreed(world: &Communicator, is_so: bool) -> Result<bool, Error> {
    let mut said = [u8::from(is_so)];
    world.bcast(&mut said, 0)?;
    Ok(said[0] != 0)
}
