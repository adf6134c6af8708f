//! Plans as the compiler takes them: checked, and with what it needs to know of them at every call found out
//! once.

use std::collections::HashSet;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use hopbine_torus::plan::{Invalid, Plan, Step};
use smallvec::SmallVec;

use crate::error::CompileError;

use super::geometry::CompileFailure;
use super::intervals::Intervals;
use super::passing::positions;

/// Spaces with up to this many positions are known by lists, which are quicker to look up: 16 bytes each.
const MOST_LISTED: u32 = 1024;

/// A plan that has been checked.
#[derive(Debug)]
pub struct CheckedPlan {
    plan: Arc<Plan>,
    lanes: Vec<LaneFacts>,
    straight: OnceLock<Result<(), CompileFailure>>,
}

/// What follows from the plan for one lane.
#[derive(Debug)]
pub(crate) struct LaneFacts {
    /// Other lanes move other positions of the same part.
    pub(crate) is_shared: bool,
    /// The positions that this lane gives to the user.
    pub(crate) owned: Vec<Range<u32>>,
    /// The positions of what the rank has in the end.
    pub(crate) gets: SmallVec<[Range<u32>; 1]>,
}

impl CheckedPlan {
    /// Checks a plan.
    ///
    /// # Errors
    /// [`CompileFailure`] with the first thing that is wrong.
    pub fn new(plan: Plan) -> Result<Self, CompileFailure> {
        if let Err(found) = plan.validate()
            && let Some(Invalid { lane, step, defect }) = found.into_iter().next()
        {
            let (lane, step) = (lane.unwrap_or_default().index(), step.unwrap_or_default().index());
            return Err(CompileFailure { lane, step, error: CompileError::Invalid(defect) });
        }
        let plan = plan.listed(MOST_LISTED);
        let lanes = (0..plan.lanes.len()).map(|index| LaneFacts::new(&plan, index)).collect();
        Ok(CheckedPlan { plan: Arc::new(plan), lanes, straight: OnceLock::new() })
    }

    pub(crate) fn facts(&self, lane: usize) -> &LaneFacts {
        &self.lanes[lane]
    }

    /// A rank that knows the sizes of its own blocks alone can send what it gives, and receive what
    /// it gets, and nothing in between.
    pub(crate) fn check_straight(&self) -> Result<(), CompileFailure> {
        self.straight.get_or_init(|| self.find_forwarding()).clone()
    }

    fn find_forwarding(&self) -> Result<(), CompileFailure> {
        let Plan { collective, rank, root, n_ranks, ref lanes } = *self.plan;
        for (index, lane) in lanes.iter().enumerate() {
            let gives = lane.space.positions(collective.gives(rank, root, n_ranks), rank, false);
            let LaneFacts { gets, .. } = self.facts(index);
            let holds =
                |ranges: &[Range<u32>], at: &u32| ranges.iter().any(|range| range.contains(at));
            let mut received = HashSet::new();
            for (step, Step { sends, recvs, .. }) in lane.steps.iter().enumerate() {
                let is_own = |at: u32| holds(&gives, &at) && !received.contains(&at);
                let is_straight =
                    positions(sends).all(is_own) && positions(recvs).all(|at| holds(gets, &at));
                if !is_straight {
                    return Err(CompileFailure {
                        lane: index,
                        step,
                        error: CompileError::Forwards,
                    });
                }
                received.extend(positions(recvs));
            }
        }
        Ok(())
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }
}

impl Deref for CheckedPlan {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.plan
    }
}

impl LaneFacts {
    fn new(plan: &Plan, index: usize) -> Self {
        let Plan { collective, rank, root, n_ranks, ref lanes } = *plan;
        let lane = &lanes[index];
        let is_shared = lanes.iter().filter(|other| other.part == lane.part).count() > 1;
        LaneFacts {
            is_shared,
            owned: if is_shared {
                owned(plan, index)
            } else {
                std::iter::once(0..lane.space.n_positions).collect()
            },
            gets: lane.space.positions(collective.gets(rank, root, n_ranks), rank, true),
        }
    }
}

/// The positions that lane `index` gives to the user, when several lanes share a part: those
/// that it is the first to touch; the first lane of the part also those that none touches.
fn owned(plan: &Plan, index: usize) -> Vec<Range<u32>> {
    let mut owner = Intervals::new();
    let sharing = (0..plan.lanes.len()).filter(|&at| plan.lanes[at].part == plan.lanes[index].part);
    let first = sharing.clone().next();
    owner.set(0..u64::from(plan.lanes[index].space.n_positions), first);
    for at in sharing.rev() {
        for step in &plan.lanes[at].steps {
            let sent = step.sends.iter().flat_map(|send| send.runs.iter());
            for run in sent.chain(step.recvs.iter().flat_map(|recv| recv.runs.iter())) {
                owner.set(u64::from(run.start)..u64::from(run.end()), Some(at));
            }
        }
    }
    owner
        .within(0..u64::from(plan.lanes[index].space.n_positions))
        .filter(|(_, owner)| **owner == Some(index))
        .map(|(range, _)| range.start as u32..range.end as u32)
        .collect()
}
