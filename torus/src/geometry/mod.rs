//! The geometry of ranks: shapes, coordinates, rank maps, links and routes.
//!
//! This module knows nothing of collectives, plans or bytes.

mod axis;
mod boards;
mod cycles;
mod embedding;
mod fold;
mod near_cubic;
mod rank_map;
mod route;
mod shape;
pub mod tofu;
mod topology;
mod trees;

pub use axis::{
    Axis, AxisLink, Coord, InvalidCoord, MAX_DIMS, MAX_TORUS_DIMS, Vertex, parse_coords,
};
pub use boards::Boards;
pub use cycles::Cycles;
pub use embedding::{Embedding, EmbeddingError};
pub use fold::{Fold, FoldAxis};
pub use near_cubic::near_cubic;
pub use rank_map::{RankMap, RankMapError};
pub use route::{Direction, Link, Route};
pub use shape::{Shape, ShapeError};
pub use topology::{Topology, VertexGroups};
pub use trees::Trees;
