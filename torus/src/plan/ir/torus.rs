//! A torus and the ranks on it.

use crate::geometry::{Coord, RankMap, Shape, Vertex};
use crate::names::Rank;

/// A shape and its rank map.
#[derive(Debug)]
pub struct Torus {
    /// The shape.
    pub shape: Shape,
    /// The rank map.
    pub map: RankMap,
}

impl Torus {
    /// The rank at a coordinate.
    pub fn rank(&self, coord: Coord) -> Rank {
        self.map.rank_of(&self.shape, self.shape.vertex(coord))
    }

    /// The rank on a node.
    pub fn rank_on(&self, node: Vertex) -> Rank {
        self.map.rank_of(&self.shape, node)
    }

    /// The node of a rank.
    pub fn vertex(&self, rank: Rank) -> Vertex {
        self.map.vertex_of(&self.shape, rank)
    }

    /// The coordinate of a rank.
    pub fn coord(&self, rank: Rank) -> Coord {
        self.map.coord_of(&self.shape, rank)
    }
}
