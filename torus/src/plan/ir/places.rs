//! Which rank is where.

use crate::geometry::{Coord, Node, RankMap, Shape};
use crate::names::Rank;

/// Who is where.
#[derive(Debug)]
pub struct Places {
    /// The shape.
    pub shape: Shape,
    /// The rank map.
    pub map: RankMap,
}

impl Places {
    /// The rank at a coordinate.
    pub fn rank(&self, coord: Coord) -> Rank {
        Rank(self.map.rank_of(&self.shape, self.shape.node(coord)))
    }

    /// The rank on a node.
    pub fn rank_on(&self, node: Node) -> Rank {
        Rank(self.map.rank_of(&self.shape, node))
    }

    /// The node of a rank.
    pub fn node(&self, rank: Rank) -> Node {
        self.map.node_of(&self.shape, rank.0)
    }

    /// The coordinate of a rank.
    pub fn coord(&self, rank: Rank) -> Coord {
        self.map.coord_of(&self.shape, rank.0)
    }
}
