//! The checker: executes all ranks' plans symbolically and proves that they do what the
//! collective promises. It knows no algorithm and shares no code with the derivation.
//!
//! Proved, all violations returned:
//! 1. every plan keeps the local rules ([`Plan::validate`](super::Plan::validate)): what is stored
//!    has room, of the lanes of one part no two touch one position, and each rank's positions of
//!    pairs hold the block for every rank once at the start, and that from every rank in the end;
//! 2. every send meets one receive of the same step, with the same port and runs: no rank waits for ever,
//!    whatever the windows;
//! 3. what is executed is what the plans list (flows can be executed without listing plans): lanes
//!    with their ports, parts, windows, spaces and numbers of steps; the port of each message; of each
//!    step that receives the action, the runs from each rank, the order of operands and the own
//!    operand's place;
//! 4. nothing is sent that is not there, no contribution is counted twice, nothing is
//!    overwritten while it is still to be sent, also between lanes;
//! 5. at the end every rank has what the collective gives it, all of it, with all
//!    contributions: what it gets follows from the collective, not from the plan;
//! 6. all ranks of an allreduce combine operands in the same order and grouping, so that
//!    floating-point results have identical bits (algorithms.md section 5); a scan combines them in
//!    the order of ranks;
//! 7. the busiest rank sends at least what it must in any algorithm
//!    ([`Collective::minimal_volume`](crate::Collective::minimal_volume));
//! 8. volumes and steps are those of [`Expect`], where it names any.
//!
//! As transfers keep positions, positions are proved in *tiles*, one independent of the other,
//! by as many threads as the caller has ([`Checker::run`]). Where nothing is combined, contents
//! are exact. Sets of contributors are bit sets up to [`EXACT_RANKS`] ranks and, for barriers,
//! always. On more ranks they are sums of pseudo-random 64-bit numbers, one per rank, and two
//! different multisets have the same sum with a probability of about 2^-64. Of scans they are
//! intervals of ranks, which are exact. Point 2, the messages of point 3 and the expressions of
//! point 6 are compared as 64-bit hashes, with the same probability of a mistake.
//!
//! Not proved:
//! - that ports use different links (see [`super::traffic()`]), and anything about time;
//! - of reductions other than scans, that operands are combined in the order of ranks: operators
//!   are taken to commute;
//! - that volumes are minimal where [`Expect`] names none: point 7 bounds the busiest rank alone;
//! - that the order in which the sends of a step are posted, and that of receives that are stored, is
//!   the one that a schedule describes: no result depends on it;
//! - that a flow tells the same whenever it is asked;
//! - how counts are cut into parts, positions and segments ([`super::ir::layout`]), and how the engine
//!   executes a plan.

mod contents;
mod execute;
mod expected;
mod fault;
mod local;
mod operands;
mod scramble;
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

/// Up to this many ranks sets of contributors are bit sets.
pub const EXACT_RANKS: u32 = 1024;

/// Positions of a tile. With more, the cost of a message is shared by more; with fewer, the state of
/// all ranks takes less memory.
const TILE_POSITIONS: u32 = 512;
/// Contributors of a barrier that are tracked at once, in words of 64.
const BARRIER_WORDS: usize = 64;
/// Plans in a unit of work.
const PLANS_PER_UNIT: u32 = 64;

/// What is expected beyond correctness.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expect {
    /// Positions that every rank sends on every lane in all, if that is fixed: p - 1 for a
    /// reduce-scatter or allgather of minimal volume, twice that for an allreduce.
    pub sent_per_rank: Option<u64>,
    /// Positions that the root receives of a gather, or sends of a scatter, of each part of the
    /// data: p - 1, if every block passes its port once.
    pub at_root: Option<u64>,
    /// Steps of the longest lane: for a tree the fewest of each dimension, added up.
    pub steps: Option<u32>,
}

/// A proof in units of work that do not depend on each other.
#[derive(Debug)]
pub struct Checker<'a> {
    flow: &'a dyn Flow,
    expect: Expect,
    units: Vec<Unit>,
    /// Lanes whose tiles do not cover their positions.
    uncovered: Vec<LaneId>,
    /// How often each message of a barrier is executed: once for every group of contributors.
    times: u64,
    /// Memory of executions that have ended.
    idle: Mutex<Vec<TileScratch>>,
}

#[derive(Debug)]
enum Unit {
    /// The plans of some ranks, each by itself.
    Plans { first: u32, end: u32 },
    /// Some positions of the lanes of one part, for contributors from `base` on.
    Tile { lanes: Vec<LaneId>, tile: Tile, base: u32 },
}

/// What a unit of work found.
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

/// Checks all at once, in one thread.
///
/// Returns every violation found; none means that the plans are proved.
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

    /// Words of a bit set of contributors; `None` if sets are sums.
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

    /// Does a unit of work; in any order, in any thread.
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

    /// The verdict on what all units have found.
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
        // Of messages that do not meet, or that break a rule, it has been said what is wrong.
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
