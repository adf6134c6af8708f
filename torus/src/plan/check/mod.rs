//! The checker: it executes the plans of all ranks symbolically and proves that they perform the collective. It
//! knows no algorithm and shares no code with the derivation.
//!
//! Proved; all violations are returned:
//! 1. Every plan obeys the local rules ([`Plan::validate`](super::Plan::validate)): data that are stored have room;
//!    no two lanes of one part access the same position; and in a space of pairs each rank's positions hold the
//!    block for every rank once at the start, and the block from every rank once at the end.
//! 2. Every send matches one receive of the same step, with the same port and runs: no rank waits for ever,
//!    whatever the windows are.
//! 3. The messages that are executed are those that the plans list (flows are executed without listing plans):
//!    lanes with their ports, parts, windows, spaces and numbers of steps; the port of each message; and for each
//!    step that receives, its action, the runs from each rank, the order of operands and the place of the rank's
//!    own operand.
//! 4. No position is sent that holds nothing, no contribution is counted twice, and no data are overwritten that
//!    are still to be sent, even by another lane.
//! 5. At the end every rank has all the data that the collective gives it, with all contributions. What these data
//!    are follows from the collective, not from the plan.
//! 6. All ranks of an allreduce combine operands in the same order and grouping, so floating-point results have
//!    identical bits (algorithms.md section 5). A scan combines operands in the order of ranks.
//! 7. The busiest rank sends at least the minimum of any algorithm
//!    ([`Collective::minimal_volume`](crate::Collective::minimal_volume)).
//! 8. Volumes and numbers of steps are those of [`Expect`], as far as it names any.
//!
//! As transfers keep positions, the proof is divided into *tiles* of positions that are independent of each other,
//! and are executed by as many threads as the caller has ([`Checker::run`]). If nothing is combined, contents are
//! exact. Sets of contributors are bit sets for up to [`EXACT_RANKS`] ranks, and always for barriers. On more ranks
//! they are sums of pseudo-random 64-bit numbers, one per rank: two different multisets have the same sum with a
//! probability of about 2^-64. For scans they are intervals of ranks, which are exact. Point 2, the messages of
//! point 3 and the expressions of point 6 are compared as 64-bit hashes, with the same probability of an error.
//!
//! Not proved:
//! - that ports use different links (see [`super::traffic()`]), and anything about time;
//! - for reductions other than scans, that operands are combined in the order of ranks: operators are assumed to
//!   commute;
//! - that volumes are minimal if [`Expect`] names none: point 7 bounds only the busiest rank;
//! - that the order in which the sends of a step are posted, and the order of receives that are stored, are those
//!   that a schedule describes: no result depends on them;
//! - that a flow returns the same data at every call;
//! - how counts are cut into parts, positions and segments ([`super::ir::layout`]), and how the engine executes a
//!   plan.

mod contents;
mod execute;
mod expected;
mod fault;
mod local;
mod operands;
mod splitmix64;
mod strips;
mod values;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::ir::flow::Flow;
use super::ir::members::Tile;
use crate::collectives::Sums;
use crate::names::{LaneId, Rank};
use execute::{Execution, TileScratch, combines, is_barrier};
use expected::Expected;
pub use fault::{PlanFault, Violation, WrongContent};
use local::Fingerprints;
use values::Values;

/// Largest number of ranks for which sets of contributors are bit sets.
pub const EXACT_RANKS: u32 = 1024;

/// Positions of a tile. Larger tiles share the cost of a message among more positions, smaller tiles need less
/// memory for the state of all ranks.
const TILE_POSITIONS: u32 = 512;
/// Contributors of a barrier that are tracked at once, in 64-bit words.
const BARRIER_WORDS: usize = 64;
/// Plans in a unit of work.
const PLANS_PER_UNIT: u32 = 64;

/// Properties to check beyond correctness.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expect {
    /// Positions that every rank must send in total on every lane, if given: p - 1 for a reduce-scatter or
    /// allgather of minimal volume, twice that for an allreduce.
    pub sent_per_rank: Option<u64>,
    /// Positions that the root of a gather must receive, or of a scatter send, of each part of the data, if given:
    /// p - 1 if every block passes the root's port once.
    pub at_root: Option<u64>,
    /// Steps of the longest lane, if given: for a tree the sum over the dimensions of the fewest steps.
    pub steps: Option<u32>,
}

/// A proof, divided into independent units of work.
#[derive(Debug)]
pub struct Checker<'a> {
    flow: &'a dyn Flow,
    expect: Expect,
    units: Vec<Unit>,
    /// Lanes whose tiles do not cover their positions.
    uncovered: Vec<LaneId>,
    /// Number of executions of each message of a barrier: one for every group of contributors.
    times: u64,
    /// Memory of finished executions, for reuse.
    idle: Mutex<Vec<TileScratch>>,
}

#[derive(Debug)]
enum Unit {
    /// The plans of ranks `first..end`, each checked by itself.
    Plans { first: u32, end: u32 },
    /// A tile of the lanes of one part, with the contributors from `base` on.
    Tile { lanes: Vec<LaneId>, tile: Tile, base: u32 },
}

/// The results of a unit of work.
#[derive(Debug)]
pub struct Findings {
    violations: Vec<Violation>,
    fingerprints: Fingerprints,
    max_sent: f64,
    is_local: bool,
}

impl std::fmt::Debug for dyn Flow + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} ranks", self.collective(), self.n_ranks())
    }
}

/// Checks a flow completely in one thread.
///
/// Returns all violations; if there are none, the plans are proved.
pub fn check(flow: &dyn Flow, expect: Expect) -> Vec<Violation> {
    let checker = Checker::new(flow, expect);
    let findings = (0..checker.n_units()).map(|unit| checker.run(unit));
    checker.conclude(findings)
}

impl<'a> Checker<'a> {
    /// Prepares the proof of `flow`.
    pub fn new(flow: &'a dyn Flow, expect: Expect) -> Self {
        let n_ranks = flow.n_ranks();
        let plans = (0..n_ranks).step_by(PLANS_PER_UNIT as usize).map(|first| {
            let end = n_ranks.min(first + PLANS_PER_UNIT);
            Unit::Plans { first, end }
        });
        let (units, idle) = (plans.collect(), Mutex::default());
        let mut checker = Checker { flow, expect, units, uncovered: Vec::new(), times: 1, idle };
        let mut parts: Vec<_> = flow.lanes().iter().map(|lane| lane.part).collect();
        parts.sort_unstable();
        parts.dedup();
        for part in parts {
            let lanes: Vec<LaneId> = LaneId::first(flow.lanes().len())
                .filter(|lane| flow.lanes()[lane.index()].part == part)
                .collect();
            let tiles = flow.tiles(lanes[0], TILE_POSITIONS);
            let covered = tiles.iter().try_fold(0, |at, tile| {
                let Range { start, end } = tile.positions();
                (start == at).then_some(end)
            });
            if covered != Some(flow.lanes()[lanes[0].index()].space.n_positions) {
                checker.uncovered.push(lanes[0]);
            }
            for tile in tiles {
                let step = if is_barrier(flow) { BARRIER_WORDS * 64 } else { usize::MAX };
                let bases = (0..n_ranks as usize).step_by(step);
                checker.times = bases.len() as u64;
                for base in bases {
                    let (lanes, tile, base) = (lanes.clone(), tile.clone(), base as u32);
                    checker.units.push(Unit::Tile { lanes, tile, base });
                }
            }
        }
        checker
    }

    /// Number of words of a bit set of contributors; `None` if sets are sums.
    fn words(&self) -> Option<usize> {
        let words = self.flow.n_ranks().div_ceil(64) as usize;
        match is_barrier(self.flow) {
            true => Some(words.min(BARRIER_WORDS)),
            false => (self.flow.n_ranks() <= EXACT_RANKS).then_some(words),
        }
    }

    fn values(&self) -> Values {
        let n_ranks = self.flow.n_ranks();
        match (combines(self.flow), self.words()) {
            (false, _) => Values::single(n_ranks),
            _ if self.flow.collective().sums() != Sums::Everyone => Values::runs(n_ranks),
            (true, Some(words)) => Values::bits(n_ranks, words),
            (true, None) => Values::sums(n_ranks),
        }
    }

    /// Number of units of work.
    pub fn n_units(&self) -> usize {
        self.units.len()
    }

    /// Performs a unit of work. Units may be performed in any order, in any thread.
    ///
    /// # Panics
    /// If `unit` is not below [`Checker::n_units`].
    pub fn run(&self, unit: usize) -> Findings {
        let mut found = Findings {
            violations: Vec::new(),
            fingerprints: Fingerprints::new(self.flow),
            max_sent: 0.0,
            is_local: false,
        };
        match &self.units[unit] {
            Unit::Plans { first, end } => {
                found.is_local = true;
                for rank in (*first..*end).map(Rank) {
                    let Findings { violations, fingerprints, max_sent, .. } = &mut found;
                    let sent =
                        local::check_plan(self.flow, rank, &self.expect, fingerprints, violations);
                    *max_sent = max_sent.max(sent);
                }
            }
            Unit::Tile { lanes, tile, base } => {
                let words = self.words().unwrap_or(0);
                let expected = Expected::new(self.flow.n_ranks(), words, *base);
                let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                let kept = idle().pop();
                let mut scratch = kept.unwrap_or_else(|| TileScratch::new(self.values()));
                let execution = Execution::new(self.flow, lanes, tile, *base, &mut scratch);
                found.violations = execution.run(&expected, &mut found.fingerprints);
                idle().push(scratch);
            }
        }
        found
    }

    /// The violations found by all units together.
    pub fn conclude(&self, findings: impl IntoIterator<Item = Findings>) -> Vec<Violation> {
        let (mut local, mut executed) = (Vec::new(), Vec::new());
        let mut fingerprints = Fingerprints::new(self.flow);
        let mut max_sent = 0.0f64;
        for found in findings {
            fingerprints.merge(&found.fingerprints);
            max_sent = max_sent.max(found.max_sent);
            if found.is_local { &mut local } else { &mut executed }.extend(found.violations);
        }
        let unmatched = fingerprints.unmatched();
        if !unmatched.is_empty() {
            local.extend(local::find_unmatched(self.flow, &unmatched));
        }
        let on_all =
            |lane, step, fault| Violation { rank: Rank(0), lane, step, position: None, fault };
        // The faults of messages that do not match, or that break a rule, have already been reported.
        let has_fault = |local: &[Violation], at| {
            unmatched.contains(&at)
                || local.iter().any(|found| found.lane.zip(found.step) == Some(at))
        };
        for at in fingerprints.unplanned(self.times) {
            if !has_fault(&local, at) {
                let fault = PlanFault::DifferentFlow { what: "its messages or their order" };
                local.push(on_all(Some(at.0), Some(at.1), fault));
            }
        }
        for &lane in &self.uncovered {
            let fault = PlanFault::DifferentFlow { what: "the positions that its tiles cover" };
            local.push(on_all(Some(lane), None, fault));
        }
        let minimum = self.flow.collective().minimal_volume(self.flow.n_ranks());
        if max_sent < minimum - 1e-9 {
            let fault = PlanFault::BelowMinimum { sent: max_sent, minimum };
            local.push(on_all(None, None, fault));
        }
        let n_steps = self.flow.lanes().iter().map(|lane| lane.n_steps).max().unwrap_or(0);
        if let Some(expected) = self.expect.steps.filter(|&steps| steps as usize != n_steps) {
            local.push(on_all(None, None, PlanFault::Steps { found: n_steps, expected }));
        }
        local.extend(executed);
        local
    }
}
