//! The messages of all ranks as a stream. The checker, the traffic count and the network model read it and need no
//! plans.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::members::Tile;
use super::runs::{Run, n_positions};
use super::space::Space;
use super::split::Part;
use super::types::Plan;
use super::view::{DependsOn, StepView};
use crate::collectives::{Action, Collective};
use crate::names::{LaneId, PortId, Rank, StepId};

/// The properties of a lane that are the same on all ranks.
#[derive(Clone, Debug)]
pub struct LaneHeader {
    /// The port that drives the lane.
    pub port: PortId,
    /// The part of the data that the lane moves.
    pub part: Part,
    /// Its working space.
    pub space: Arc<Space>,
    /// Most steps whose messages a rank has in flight at a time; see [`Lane::window`](crate::plan::Lane::window).
    pub window: Option<NonZeroU32>,
    /// Number of steps.
    pub n_steps: usize,
}

impl LaneHeader {
    /// Size of a position as a fraction of n, the bytes of the vector or of all blocks of a rank.
    pub fn position_share(&self) -> f64 {
        let n_blocks = f64::from(self.space.n_blocks().max(1));
        f64::from(self.part.weight()) / (f64::from(self.part.units) * n_blocks)
    }
}

/// A message, or the part of one that lies in a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The sender.
    pub from: Rank,
    /// The receiver.
    pub to: Rank,
    /// The positions, ascending unless a plan lists them otherwise.
    pub runs: &'a [Run],
}

/// Callback for each message.
pub type Visit<'v> = &'v mut dyn FnMut(Message<'_>);

/// The messages of all ranks, lane by lane and step by step.
pub trait Flow: Sync {
    /// The collective that is performed.
    fn collective(&self) -> Collective;

    /// Number of ranks.
    fn n_ranks(&self) -> u32;

    /// The root; 0 for collectives without one.
    fn root(&self) -> Rank;

    /// The lanes.
    fn lanes(&self) -> &[LaneHeader];

    /// The working space of a lane as a rank knows it.
    fn space(&self, lane: LaneId, _rank: Rank) -> &Space {
        &self.lanes()[lane.index()].space
    }

    /// The port that sends and receives a message of a step: by default the lane's.
    fn port(&self, lane: LaneId, _step: StepId, _from: Rank, _to: Rank) -> PortId {
        self.lanes()[lane.index()].port
    }

    /// What a rank does with the data that it receives in a step.
    fn action(&self, lane: LaneId, step: StepId, rank: Rank) -> Action;

    /// Place of a rank's own value in the fold of a step; see [`Step::own_at`](crate::plan::Step::own_at).
    fn own_at(&self, lane: LaneId, step: StepId, rank: Rank) -> u32;

    /// The positions of a lane in order, in tiles of at most `most` positions.
    fn tiles(&self, lane: LaneId, most: u32) -> Vec<Tile>;

    /// Visits those parts of a step's messages that lie in a tile. Messages for the same rank are visited in the
    /// order of that rank's fold.
    fn messages(&self, lane: LaneId, step: StepId, tile: &Tile, visit: Visit<'_>);

    /// The symmetry of a step, if one is known.
    fn view(&self, _lane: LaneId, _step: StepId) -> StepView<'_> {
        StepView::Messages(None)
    }

    /// The data that the sends of a step depend on. The sends start when the messages of the returned step have
    /// arrived and the lane's window has room.
    fn depends_on(&self, _lane: LaneId, step: StepId) -> DependsOn {
        DependsOn::before(step.index())
    }

    /// Visits the messages of a step: (sender, receiver, number of positions).
    fn volumes(&self, lane: LaneId, step: StepId, visit: &mut dyn FnMut(Rank, Rank, u64)) {
        for tile in self.tiles(lane, u32::MAX) {
            self.messages(lane, step, &tile, &mut |message| {
                visit(message.from, message.to, n_positions(message.runs));
            });
        }
    }

    /// The plan of one rank.
    fn plan(&self, rank: Rank) -> Plan;
}

/// Visits all messages of all lanes and steps: (lane, step, message).
pub fn for_each_message(flow: &dyn Flow, mut visit: impl FnMut(LaneId, StepId, Message<'_>)) {
    for (id, lane) in LaneId::first(flow.lanes().len()).zip(flow.lanes()) {
        for tile in flow.tiles(id, u32::MAX) {
            for step in StepId::first(lane.n_steps) {
                flow.messages(id, step, &tile, &mut |message| visit(id, step, message));
            }
        }
    }
}
