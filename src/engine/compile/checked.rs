//! Checked plans, with facts about them that the compiler needs in every call.

use std::collections::HashSet;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use hopbine_torus::plan::{LocatedDefect, Plan, Step};
use hopbine_torus::{LaneId, StepId};
use smallvec::SmallVec;

use crate::error::CompileError;

use super::geometry::CompileFailure;
use super::intervals::IntervalMap;
use super::passing::positions;

/// Spaces of up to this many positions are stored as lists, which are faster to look up: 16 bytes per position.
const MOST_LISTED: u32 = 1024;

/// A plan that has been checked.
#[derive(Debug)]
pub struct CheckedPlan {
    plan: Arc<Plan>,
    lanes: Vec<LaneFacts>,
    straight: OnceLock<Result<(), CompileFailure>>,
}

/// The facts about one lane.
#[derive(Debug)]
pub(crate) struct LaneFacts {
    /// Whether other lanes move other positions of the same part.
    pub(crate) is_shared: bool,
    /// The positions that this lane delivers to the user.
    pub(crate) owned: Vec<Range<u32>>,
    /// The positions of the data that the rank has in the end.
    pub(crate) gets: SmallVec<[Range<u32>; 1]>,
}

impl CheckedPlan {
    /// Checks a plan.
    ///
    /// # Errors
    /// [`CompileFailure`] with the first defect.
    pub fn new(plan: Plan) -> Result<Self, CompileFailure> {
        if let Err(found) = plan.validate()
            && let Some(LocatedDefect { lane, step, defect, .. }) = found.into_iter().next()
        {
            let (lane, step) = (lane.unwrap_or_default(), step.unwrap_or_default());
            return Err(CompileFailure { lane, step, error: CompileError::Invalid(defect) });
        }
        let plan = plan.listed(MOST_LISTED);
        let lanes =
            LaneId::first(plan.lanes.len()).map(|lane| LaneFacts::new(&plan, lane)).collect();
        Ok(CheckedPlan { plan: Arc::new(plan), lanes, straight: OnceLock::new() })
    }

    pub(crate) fn facts(&self, lane: LaneId) -> &LaneFacts {
        &self.lanes[lane.index()]
    }

    /// Checks that the plan suits ranks that know only the sizes of their own blocks: such a rank can send the blocks
    /// that it gives, and receive the blocks that it gets, but not forward blocks.
    pub(crate) fn check_straight(&self) -> Result<(), CompileFailure> {
        self.straight.get_or_init(|| self.find_forwarding()).clone()
    }

    fn find_forwarding(&self) -> Result<(), CompileFailure> {
        let Plan { collective, rank, root, n_ranks, ref lanes } = *self.plan;
        for (id, lane) in LaneId::first(lanes.len()).zip(lanes) {
            let gives = lane.space.positions(collective.gives(rank, root, n_ranks), rank, false);
            let LaneFacts { gets, .. } = self.facts(id);
            let holds =
                |ranges: &[Range<u32>], at: &u32| ranges.iter().any(|range| range.contains(at));
            let mut received = HashSet::new();
            for (step, Step { sends, recvs, .. }) in
                StepId::first(lane.steps.len()).zip(&lane.steps)
            {
                let is_own = |at: u32| holds(&gives, &at) && !received.contains(&at);
                let is_straight =
                    positions(sends).all(is_own) && positions(recvs).all(|at| holds(gets, &at));
                if !is_straight {
                    let error = CompileError::Forwards;
                    return Err(CompileFailure { lane: id, step, error });
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
    fn new(plan: &Plan, id: LaneId) -> Self {
        let Plan { collective, rank, root, n_ranks, ref lanes } = *plan;
        let lane = &lanes[id.index()];
        let is_shared = lanes.iter().filter(|other| other.part == lane.part).count() > 1;
        LaneFacts {
            is_shared,
            owned: if is_shared {
                owned(plan, id.index())
            } else {
                std::iter::once(0..lane.space.n_positions).collect()
            },
            gets: lane.space.positions(collective.gets(rank, root, n_ranks), rank, true),
        }
    }
}

/// The positions that lane `index` delivers to the user if several lanes share its part: those that it touches and no
/// lane before it; for the first lane of the part, also those that no lane touches.
fn owned(plan: &Plan, index: usize) -> Vec<Range<u32>> {
    let mut owner = IntervalMap::new();
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
