//! Where ranks are: shapes, coordinates, rank maps, links and routes.
//!
//! Purely geometric: nothing here knows of collectives, plans or bytes.

mod rank_map;
mod route;
mod shape;
pub mod tofu;
mod trees;

pub use rank_map::{RankMap, RankMapError};
pub use route::{Direction, Link, Route};
pub use shape::{Axis, AxisLink, Coord, MAX_DIMS, MAX_TORUS_DIMS, Node, Shape, ShapeError};
pub use trees::Trees;
