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
use crate::run::{self, Call, CollectiveCase, Lists, Reference, verify};

/// An algorithm with a number of ports and a segment length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellCandidate {
    pub algorithm: String,
    pub ports: u32,
    /// The longest message in bytes.
    pub segment_bytes: u64,
}

/// The value of [`CellCandidate::algorithm`] for the library's own choice.
pub const AUTO: &str = "auto";

impl CellCandidate {
    /// A call without options. It is measured for comparison only, since no table can name it.
    pub fn without_options() -> Self {
        CellCandidate { algorithm: AUTO.to_owned(), ports: 0, segment_bytes: u64::MAX }
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
pub struct TimedCandidate {
    pub candidate: CellCandidate,
    /// Time of a call in seconds, for each round: the median of its calls, each with the time of the slowest rank.
    pub rounds: Vec<f64>,
}

/// The result for a collective at one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellResult {
    pub collective: String,
    pub bytes: u64,
    /// All candidates that were not far slower at first. The first is the choice of the reference table, as a plan.
    /// The second is [`CellCandidate::without_options`], which may use barrier gates or a flat buffer.
    pub timed: Vec<TimedCandidate>,
    /// The fastest candidate, if it is faster than the reference choice, with the ratio of the times, measured again.
    pub faster: Option<(CellCandidate, Median)>,
    /// Candidates with wrong results.
    pub wrong: Vec<String>,
}

/// Maximum number of rounds that select the fastest candidate.
const MOST_ROUNDS: usize = 21;
/// Minimum number of rounds, however little time there is.
const LEAST_ROUNDS: usize = 3;
/// Rounds that compare the fastest candidate with the reference choice: the 3rd to 13th of 15 contain the median with
/// 99 %.
const CONFIRMING_ROUNDS: usize = 15;
/// Required confidence that the candidate is faster.
const CONFIDENCE: f64 = 0.99;
/// A ratio above this is not worth a row, at any confidence.
const MOST_RATIO: f64 = 0.98;
/// Duration of a round for each candidate.
const ROUND_TIME: Duration = Duration::from_millis(2);
/// Calls before the first round, of which the median counts: a call may have had to wait for a core.
const FIRST_CALLS: usize = 3;
/// Maximum number of calls in a round.
const MOST_CALLS: f64 = 100.0;
/// Contents of receive buffers before a call that is verified.
const STALE: u8 = 0xa5;

/// Makes and times calls of one size.
pub struct Bench<'a> {
    world: &'a Communicator,
    case: CollectiveCase,
    call: Call,
    lists: Lists,
    send: &'a mut [u8],
    recv: &'a mut [u8],
}

impl<'a> Bench<'a> {
    /// The buffers must have the lengths of the case.
    pub fn new(
        world: &'a Communicator,
        case: CollectiveCase,
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
    fn calibrate_round(&mut self, comm: &Communicator) -> Result<(f64, usize), Error> {
        let first_seconds = self.seconds(comm, FIRST_CALLS)?;
        Ok((
            first_seconds,
            (ROUND_TIME.as_secs_f64() / first_seconds).clamp(1.0, MOST_CALLS) as usize,
        ))
    }

    /// Ratio of the times of two kinds of calls, measured alternately in rounds of the given numbers of calls.
    fn compare_alternating(
        &mut self,
        [new, baseline]: [(&Communicator, usize); 2],
    ) -> Result<Median, Error> {
        let mut ratios = Vec::new();
        for round in 0..CONFIRMING_ROUNDS {
            let mut of = |(comm, calls)| self.seconds(comm, calls);
            let (new, baseline) = match round % 2 {
                0 => (of(new)?, of(baseline)?),
                _ => {
                    let baseline = of(baseline)?;
                    (of(new)?, baseline)
                }
            };
            ratios.push(new / baseline);
        }
        Ok(Median::of(&ratios, CONFIDENCE).expect("of 15 there is an interval"))
    }

    /// Ratio of the times of calls on two communicators with different options.
    pub fn compare(
        &mut self,
        new: &Communicator,
        baseline: &Communicator,
    ) -> Result<Median, Error> {
        let [(_, n_new), (_, n_baseline)] =
            [self.calibrate_round(new)?, self.calibrate_round(baseline)?];
        self.compare_alternating([(new, n_new), (baseline, n_baseline)])
    }
}

/// Number of trials that are kept for comparison: see [`CellResult::timed`].
const N_REFERENCES: usize = 2;
/// Index of the trial of [`CellCandidate::without_options`].
const WITHOUT_OPTIONS: usize = 1;

/// Measures candidates for about `time`. The first candidate must be the choice of the reference table, the second
/// [`CellCandidate::without_options`].
///
/// # Errors
/// The errors of the collectives.
pub fn measure(
    mut bench: Bench<'_>,
    candidates: &[CellCandidate],
    time: Duration,
) -> Result<CellResult, Error> {
    let start = Instant::now();
    let (world, case) = (bench.world, bench.case);
    let reference = Reference::new(case);
    let (mut trials, mut wrong) = (Vec::new(), Vec::new());
    for candidate in candidates {
        let comm = world.with(candidate.options());
        if !bench.is_right(&comm, &reference)? {
            wrong.push(candidate.algorithm.clone());
            continue;
        }
        let (first_seconds, calls) = bench.calibrate_round(&comm)?;
        let timed = TimedCandidate { candidate: candidate.clone(), rounds: Vec::new() };
        trials.push(Trial { comm, calls, first_seconds, timed });
    }
    let mut found = CellResult {
        collective: case.collective.name().to_owned(),
        bytes: case.total_bytes(),
        timed: Vec::new(),
        faster: None,
        wrong,
    };
    if trials.len() < N_REFERENCES
        || trials[..N_REFERENCES]
            .iter()
            .zip(candidates)
            .any(|(trial, own)| trial.timed.candidate != *own)
    {
        return Ok(found);
    }
    let fastest = fastest_plan(&trials, |trial| trial.first_seconds);
    keep(&mut trials, |trial| trial.first_seconds <= 3.0 * fastest);
    for round in 1..=MOST_ROUNDS {
        let n = trials.len();
        // Rotates the order, since a candidate influences the next one, for instance through caches.
        for at in 0..n {
            let trial = &mut trials[(at + round) % n];
            let seconds = bench.seconds(&trial.comm, trial.calls)?;
            trial.timed.rounds.push(seconds);
        }
        let fastest = fastest_plan(&trials, Trial::median);
        // Drops candidates that are twice as slow after one round, or a tenth slower after ten.
        let most = fastest * (1.0 + 1.0 / round as f64);
        keep(&mut trials, |trial| trial.median() <= most);
        let is_over = start.elapsed() >= time && round >= LEAST_ROUNDS;
        if trials.len() == N_REFERENCES || agreed(world, is_over)? {
            break;
        }
    }
    let medians: Vec<f64> = trials.iter().map(Trial::median).collect();
    let best = (N_REFERENCES..trials.len()).min_by(|&a, &b| medians[a].total_cmp(&medians[b]));
    if let Some(best) = best.filter(|&best| medians[best] < MOST_RATIO * medians[0]) {
        // The fastest of many candidates was also lucky, so only new measurements count.
        let ratio =
            bench.compare_alternating([best, 0].map(|at| (&trials[at].comm, trials[at].calls)))?;
        if ratio.high < 1.0 && ratio.value < MOST_RATIO {
            found.faster = Some((trials[best].timed.candidate.clone(), ratio));
        }
    }
    found.timed = trials.into_iter().map(|trial| trial.timed).collect();
    Ok(found)
}

/// A candidate under measurement.
struct Trial {
    comm: Communicator,
    /// Number of calls in a round.
    calls: usize,
    /// Time of the first calls after a warm-up call, in seconds.
    first_seconds: f64,
    timed: TimedCandidate,
}

impl Trial {
    fn median(&self) -> f64 {
        let mut sorted = self.timed.rounds.clone();
        sorted.sort_by(f64::total_cmp);
        quantile(&sorted, 0.5)
    }
}

/// Time of the fastest plan in seconds; excludes the call without options, which a flat buffer may make faster than
/// any plan.
fn fastest_plan(trials: &[Trial], seconds: impl Fn(&Trial) -> f64) -> f64 {
    let plans = trials.iter().enumerate().filter(|(at, _)| *at != WITHOUT_OPTIONS);
    plans.map(|(_, trial)| seconds(trial)).fold(f64::INFINITY, f64::min)
}

/// Keeps the trials for comparison, and those that satisfy a condition.
fn keep(trials: &mut Vec<Trial>, is_kept: impl Fn(&Trial) -> bool) {
    let mut at = 0;
    trials.retain(|trial| {
        at += 1;
        at <= N_REFERENCES || is_kept(trial)
    });
}

/// Returns rank 0's decision on all ranks.
pub fn agreed(world: &Communicator, is_so: bool) -> Result<bool, Error> {
    let mut decision = [u8::from(is_so)];
    world.bcast(&mut decision, 0)?;
    Ok(decision[0] != 0)
}
