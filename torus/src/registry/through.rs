//! Ways of the blocks of an alltoall.

use crate::geometry::Shape;
use crate::plan::{Exchange, ScheduleError, Stages};

/// How blocks are exchanged, and how many messages a rank has under way at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    /// The way.
    pub(super) through: Through,
    /// Messages at a time; all if `None`.
    pub(super) batch: Option<u32>,
}

/// Through whose hands blocks go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Through {
    /// Nobody's but their owners'.
    Owners,
    /// Those of ranks in the same place of all dimensions but one, dimension after dimension.
    Dimensions,
    /// Those of so many leaders on each node.
    Leaders { per_node: u32, node_aware: bool },
    /// Those of the rank with the sender's place in the receiver's node.
    Nodes,
    /// Those of the rank with the sender's place in the receiver's group of so many.
    Groups(u32),
}

impl Through {
    /// The same with another number of leaders, or of ranks in a group, if it has one.
    pub(super) fn with(self, number: u32) -> Option<Self> {
        match self {
            Through::Leaders { per_node: 1, .. }
            | Through::Owners
            | Through::Dimensions
            | Through::Nodes => None,
            Through::Leaders { node_aware, .. } => {
                Some(Through::Leaders { per_node: number, node_aware })
            }
            Through::Groups(_) => Some(Through::Groups(number)),
        }
    }
}

impl Blocks {
    /// The exchange on a shape.
    pub(super) fn on(self, shape: &Shape) -> Result<Exchange, ScheduleError> {
        let (batch, per_node) = (self.batch, shape.ranks_per_node());
        let (group, leaders, stages) = match self.through {
            Through::Owners => (1, false, Stages::Together),
            Through::Dimensions => (per_node, false, Stages::Dimensions),
            Through::Leaders { .. } if shape.node_dim().is_none() => {
                return Err(ScheduleError::NoNodes { shape: shape.to_string() });
            }
            Through::Leaders { per_node: leaders, .. }
                if leaders == 0 || !per_node.is_multiple_of(leaders) =>
            {
                return Err(ScheduleError::leaders(leaders, shape));
            }
            Through::Leaders { per_node: leaders, node_aware } => {
                let stages = if node_aware { Stages::NodesFirst } else { Stages::Together };
                (per_node / leaders, true, stages)
            }
            Through::Nodes => (per_node, false, Stages::NodesFirst),
            Through::Groups(group) => (group, false, Stages::NodesFirst),
        };
        Ok(Exchange { group, leaders, stages, batch })
    }
}
