//! The plan: the actions of one rank, lane by lane and step by step.
//!
//! A plan refers to *positions*, never to bytes or addresses: each lane works on a space of positions, and a
//! transfer names runs of positions. A position has the same meaning on every rank, so data sent from a position
//! arrive in the same position. The number of bytes of a position follows from [`super::layout`]; the data that a
//! rank gives and gets follow from the collective. A plan does not record how its steps were derived: the checker
//! proves it without knowledge of its pattern.

use std::num::NonZeroU32;
use std::sync::Arc;

use smallvec::SmallVec;

use super::runs::Runs;
use super::space::Space;
use super::split::Part;
use crate::collectives::{Action, Collective};
use crate::names::{PortId, Rank};

/// Positions that are sent to another rank, or received from it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// The other rank.
    pub peer: Rank,
    /// The port that sends the message, and the port of the receiving rank that receives it. Usually the lane's
    /// port; always a port that drives a lane.
    pub port: PortId,
    /// Positions read by the sender and written by the receiver.
    pub runs: Runs,
}

/// The transfers of a step in one direction; one for most patterns.
pub type Transfers = SmallVec<[Transfer; 1]>;

/// One step of one lane. Its sends read the state before the step, its receives write the state after it. At most
/// one send and one receive per peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Step {
    /// Messages to send, in the order in which they are posted.
    pub sends: Transfers,
    /// Messages to receive. Receives that reduce into the same position are operands of one left fold, in this
    /// order.
    pub recvs: Transfers,
    /// What happens to all data received in the step.
    pub action: Action,
    /// Number of operands received for a position that precede this rank's own value in that fold (0: own value
    /// first; all of them: own value last). All ranks of a group fold in the same order, so that they compute
    /// identical bits (algorithms.md section 5).
    pub own_at: u32,
}

/// A chain of steps over one working space.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The port that drives the lane and performs its reductions and copies. Several lanes may share one port.
    pub port: PortId,
    /// The part of the vector, or of every block, that the lane moves. Lanes with the same part share one working
    /// space, and on no rank do two of them access the same position.
    pub part: Part,
    /// The working space.
    pub space: Arc<Space>,
    /// Most steps whose messages a rank has in flight at a time: the messages of step s start after the rank's
    /// messages of step s - window have been sent and received. `None`: only data dependencies delay messages.
    pub window: Option<NonZeroU32>,
    /// The steps; index = step number, the same on all ranks. Steps may be empty.
    pub steps: Vec<Step>,
}

impl Lane {
    /// All transfers that the lane sends or receives.
    pub fn transfers(&self) -> impl Iterator<Item = &Transfer> {
        self.steps.iter().flat_map(|step| step.sends.iter().chain(&step.recvs))
    }
}

/// The actions of one rank in one collective; see the module documentation.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The collective that the plan performs.
    pub collective: Collective,
    /// This rank.
    pub rank: Rank,
    /// Ranks of the communicator.
    pub n_ranks: u32,
    /// The root, for rooted collectives; 0 otherwise.
    pub root: Rank,
    /// The lanes, a chain of steps each.
    pub lanes: Vec<Lane>,
}

impl Plan {
    /// The largest number of steps of any lane.
    pub fn n_steps(&self) -> usize {
        self.lanes.iter().map(|lane| lane.steps.len()).max().unwrap_or(0)
    }

    /// Number of ports: one more than the highest port that drives a lane.
    pub fn n_ports(&self) -> u32 {
        self.lanes.iter().map(|lane| u32::from(lane.port.0) + 1).max().unwrap_or(0)
    }

    /// The same plan, with the displacements of spaces of up to `most` positions replaced by lists of this rank's
    /// blocks.
    #[must_use]
    pub fn listed(mut self, most: u32) -> Self {
        // Lanes share few spaces, so a linear search suffices.
        let mut known: Vec<[Arc<Space>; 2]> = Vec::new();
        for Lane { space, .. } in
            self.lanes.iter_mut().filter(|lane| lane.space.n_positions <= most)
        {
            let listed = known.iter().find(|[of, _]| Arc::ptr_eq(of, space));
            let listed = match listed {
                Some([_, listed]) => listed.clone(),
                None => space.listed(self.rank).map_or_else(|| space.clone(), Arc::new),
            };
            known.push([space.clone(), listed.clone()]);
            *space = listed;
        }
        self
    }

    /// The plan with all messages reversed: a gather becomes a scatter and a scatter a gather. `None` for other
    /// collectives.
    pub fn reversed(&self) -> Option<Plan> {
        let collective = match self.collective {
            Collective::Gather => Collective::Scatter,
            Collective::Scatter => Collective::Gather,
            _ => return None,
        };
        let mut plan = Plan { collective, ..self.clone() };
        for lane in &mut plan.lanes {
            lane.steps.reverse();
            lane.steps.iter_mut().for_each(|step| std::mem::swap(&mut step.sends, &mut step.recvs));
        }
        Some(plan)
    }
}

/// Plans are equal if the rank performs the same actions; the representations of spaces may differ.
impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        let header = |plan: &Plan| (plan.collective, plan.rank, plan.n_ranks, plan.root);
        header(self) == header(other)
            && self.lanes.len() == other.lanes.len()
            && self.lanes.iter().zip(&other.lanes).all(|(a, b)| {
                (a.port, a.part, a.window) == (b.port, b.part, b.window)
                    && a.steps == b.steps
                    && a.space.equals_on(&b.space, self.rank)
            })
    }
}

impl Eq for Plan {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{RankMap, Shape};
    use crate::plan::{BlockOrder, Flow};
    use crate::registry::{self, Request};

    #[test]
    fn listed_plans_are_the_same() {
        let mut n_listed = 0;
        for text in ["5", "2x3", "2x2+3"] {
            let shape: Shape = text.parse().unwrap();
            for algorithm in registry::algorithms(Collective::Alltoall) {
                let map = RankMap::ColumnMajor;
                let request = Request { shape: shape.clone(), map, root: Rank(0), ports: None };
                let Ok(schedule) = algorithm.schedule(&request) else { continue };
                let expansion = schedule.expand().unwrap();
                for rank in Rank::first(shape.n_ranks()) {
                    let plan = expansion.plan(rank);
                    let listed = plan.clone().listed(1 << 20);
                    assert_eq!(listed, plan, "{} on {text}", algorithm.name);
                    assert_eq!(listed.validate(), plan.validate());
                    let is_listed =
                        |lane: &&Lane| matches!(lane.space.order, BlockOrder::Own { .. });
                    n_listed += listed.lanes.iter().filter(is_listed).count();
                    assert_eq!(plan.listed(1).lanes.iter().filter(is_listed).count(), 0);
                }
            }
        }
        assert!(n_listed > 100, "{n_listed}");
    }
}
