//! The algorithms of an alltoall by single messages: which ranks a block passes through.

use crate::geometry::Shape;
use crate::plan::{Exchange, NodeGroups, Stages};

/// How blocks are exchanged, and how many messages a rank has under way at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relayed {
    pub(super) through: Relay,
    /// Messages at a time; all if `None`.
    pub(super) batch: Option<u32>,
}

/// The ranks that pass blocks on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Relay {
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

impl Relay {
    /// The same with another number of leaders, or of ranks in a group, if it has one.
    pub(super) fn with(self, number: u32) -> Option<Self> {
        match self {
            Relay::Leaders { per_node: 1, .. }
            | Relay::Owners
            | Relay::Dimensions
            | Relay::Nodes => None,
            Relay::Leaders { node_aware, .. } => {
                Some(Relay::Leaders { per_node: number, node_aware })
            }
            Relay::Groups(_) => Some(Relay::Groups(number)),
        }
    }
}

impl Relayed {
    /// The exchange on a shape.
    pub(super) fn on(self, shape: &Shape) -> Exchange {
        let node = NodeGroups::OfSize(shape.ranks_per_node());
        let (groups, stages) = match self.through {
            Relay::Owners => (NodeGroups::OfSize(1), Stages::Together),
            Relay::Dimensions => (node, Stages::Dimensions),
            Relay::Leaders { per_node, node_aware: false } => {
                (NodeGroups::WithLeaders(per_node), Stages::Together)
            }
            Relay::Leaders { per_node, node_aware: true } => {
                (NodeGroups::WithLeaders(per_node), Stages::NodesFirst)
            }
            Relay::Nodes => (node, Stages::NodesFirst),
            Relay::Groups(group) => (NodeGroups::OfSize(group), Stages::NodesFirst),
        };
        Exchange { groups, stages, batch: self.batch }
    }
}
