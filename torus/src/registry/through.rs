//! The algorithms of an alltoall by single messages: which ranks a block passes through.

use crate::geometry::Shape;
use crate::plan::{Exchange, Groups, Stages};

/// How blocks are exchanged, and how many messages a rank has under way at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    pub(super) through: Through,
    /// Messages at a time; all if `None`.
    pub(super) batch: Option<u32>,
}

/// The ranks that pass blocks on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Through {
    /// None: every block goes straight to its owner.
    Owners,
    /// Ranks that differ from the block's owner in ever fewer dimensions: one dimension after the
    /// other.
    Dimensions,
    /// So many leaders on each node.
    Leaders { per_node: u32, node_aware: bool },
    /// The rank with the sender's place in the receiver's node.
    Nodes,
    /// The rank with the sender's place in the receiver's group of so many ranks.
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
    pub(super) fn on(self, shape: &Shape) -> Exchange {
        let node = Groups::Of(shape.ranks_per_node());
        let (groups, stages) = match self.through {
            Through::Owners => (Groups::Of(1), Stages::Together),
            Through::Dimensions => (node, Stages::Dimensions),
            Through::Leaders { per_node, node_aware: false } => {
                (Groups::Led(per_node), Stages::Together)
            }
            Through::Leaders { per_node, node_aware: true } => {
                (Groups::Led(per_node), Stages::NodesFirst)
            }
            Through::Nodes => (node, Stages::NodesFirst),
            Through::Groups(group) => (Groups::Of(group), Stages::NodesFirst),
        };
        Exchange { groups, stages, batch: self.batch }
    }
}
