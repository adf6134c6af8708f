//! Plans of all ranks that are given as a list, as a flow: the checker reads such plans from files.

use super::flow::{Flow, LaneHeader, Message, Visit};
use super::members::{Tile, clip};
use super::runs::n_positions;
use super::space::Space;
use super::types::{Lane, Plan};
use crate::collectives::{Action, Collective, Payload};
use crate::names::{LaneId, PortId, Rank, StepId};

/// A flow that consists of the plans of all ranks.
#[derive(Clone, Debug)]
pub struct Listed {
    plans: Vec<Plan>,
    headers: Vec<LaneHeader>,
}

/// Plans that do not belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the plan of rank {rank} differs from the others in {what}")]
#[non_exhaustive]
pub struct InconsistentPlans {
    /// The first rank whose plan does not fit the plans before it.
    pub rank: Rank,
    /// What differs.
    pub what: &'static str,
}

impl Listed {
    /// The plans of ranks 0, 1, ... in order.
    ///
    /// # Errors
    /// [`InconsistentPlans`] if they are not plans of one collective with equal lanes.
    pub fn new(plans: Vec<Plan>) -> Result<Self, InconsistentPlans> {
        let first = plans.first();
        for (index, plan) in plans.iter().enumerate() {
            let rank = Rank(index as u32);
            let inconsistent = |what| Err(InconsistentPlans { rank, what });
            let first = first.unwrap_or(plan);
            if plan.rank != rank || plan.n_ranks as usize != plans.len() {
                return inconsistent("the ranks they name");
            }
            if (plan.collective, plan.root) != (first.collective, first.root) {
                return inconsistent("collective or root");
            }
            if plan.lanes.len() != first.lanes.len() {
                return inconsistent("the number of lanes");
            }
            for (a, b) in plan.lanes.iter().zip(&first.lanes) {
                let header = |lane: &Lane| (lane.port, lane.part, lane.window, lane.steps.len());
                if header(a) != header(b) {
                    return inconsistent("port, part, window or number of steps of a lane");
                }
                let kinds = |space: &Space| (space.payload, space.n_positions);
                let agree = kinds(&a.space) == kinds(&b.space)
                    // Blocks of pairs have different positions on different ranks.
                    && (a.space.payload == Payload::Pairs || a.space.equals_on(&b.space, rank));
                if !agree {
                    return inconsistent("the positions of a lane or the order of their blocks");
                }
            }
        }
        let header = |lane: &Lane| LaneHeader {
            port: lane.port,
            part: lane.part,
            space: lane.space.clone(),
            window: lane.window,
            n_steps: lane.steps.len(),
        };
        let headers = first.map(|plan| plan.lanes.iter().map(header).collect());
        Ok(Listed { headers: headers.unwrap_or_default(), plans })
    }

    fn first(&self) -> Option<&Plan> {
        self.plans.first()
    }
}

impl Flow for Listed {
    fn collective(&self) -> Collective {
        self.first().map_or(Collective::Barrier, |plan| plan.collective)
    }

    fn n_ranks(&self) -> u32 {
        self.plans.len() as u32
    }

    fn root(&self) -> Rank {
        self.first().map_or(Rank(0), |plan| plan.root)
    }

    fn lanes(&self) -> &[LaneHeader] {
        &self.headers
    }

    fn space(&self, lane: LaneId, rank: Rank) -> &Space {
        &self.plans[rank.index()].lanes[lane.index()].space
    }

    fn port(&self, lane: LaneId, step: StepId, from: Rank, to: Rank) -> PortId {
        let sends = self.plans.get(from.index()).map(|plan| {
            let Lane { port, steps, .. } = &plan.lanes[lane.index()];
            let send = steps[step.index()].sends.iter().find(|send| send.peer == to);
            send.map_or(*port, |send| send.port)
        });
        sends.unwrap_or(self.headers[lane.index()].port)
    }

    fn action(&self, lane: LaneId, step: StepId, rank: Rank) -> Action {
        self.plans[rank.index()].lanes[lane.index()].steps[step.index()].action
    }

    fn own_at(&self, lane: LaneId, step: StepId, rank: Rank) -> u32 {
        self.plans[rank.index()].lanes[lane.index()].steps[step.index()].own_at
    }

    fn tiles(&self, lane: LaneId, most: u32) -> Vec<Tile> {
        Tile::ranges(self.headers[lane.index()].space.n_positions, most)
    }

    fn messages(&self, lane: LaneId, step: StepId, tile: &Tile, visit: Visit<'_>) {
        // Visit by receiver: the order of its receives is the order of the fold.
        let mut clipped = Vec::new();
        for plan in &self.plans {
            for recv in &plan.lanes[lane.index()].steps[step.index()].recvs {
                let Some(sender) = self.plans.get(recv.peer.index()) else { continue };
                let sends = &sender.lanes[lane.index()].steps[step.index()].sends;
                let Some(send) = sends.iter().find(|send| send.peer == plan.rank) else { continue };
                clipped.clear();
                clipped.extend(send.runs.iter().filter_map(|run| clip(*run, tile)));
                if n_positions(&clipped) > 0 {
                    visit(Message { from: recv.peer, to: plan.rank, runs: &clipped });
                }
            }
        }
    }

    fn plan(&self, rank: Rank) -> Plan {
        self.plans[rank.index()].clone()
    }
}
