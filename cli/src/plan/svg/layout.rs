//! Positions of the nodes: one dimension on a circle, two dimensions as a grid, three as a stack of planes in oblique
//! view.

use std::f64::consts::TAU;

use hopbine_torus::Shape;
use hopbine_torus::geometry::{Axis, Coord};

use super::curve::Point;
use crate::error::CliError;

/// Maximum number of nodes in a picture; more nodes could not be distinguished.
pub const MAX_NODES: u32 = 600;

/// Radius of a node.
pub const NODE: f64 = 15.0;

/// The drawing of a shape.
pub struct ShapeDrawing {
    /// The drawn dimensions, by their numbers in the shape: those of size above 1.
    pub dims: Vec<usize>,
    axes: Vec<Axis>,
    kind: Kind,
    /// Enlargement of all distances; the nodes keep their size.
    pub scale: f64,
}

enum Kind {
    Circle {
        radius: f64,
    },
    /// The position of a node is the sum of its coordinates times these vectors, one for each drawn dimension.
    Lattice {
        basis: Vec<Point>,
    },
}

impl ShapeDrawing {
    /// The layout of a shape, enlarged so that `bundle` arrows fit between neighbours.
    ///
    /// # Errors
    /// [`CliError::NotDrawn`] for more than three dimensions of size above 1, a node axis, or
    /// too many nodes.
    pub fn new(shape: &Shape, bundle: usize) -> Result<Self, CliError> {
        let dims = shape.active_dims();
        let axes: Vec<Axis> = dims.iter().map(|&dim| shape.axes()[dim]).collect();
        if dims.len() > 3 {
            return Err(CliError::NotDrawn(format!(
                "a picture shows up to 3 dimensions of size above 1; {shape} has {}",
                dims.len()
            )));
        }
        if shape.node_dim().is_some() {
            return Err(CliError::NotDrawn(format!(
                "a picture shows one rank per node; {shape} has a node axis"
            )));
        }
        if shape.n_ranks() > MAX_NODES {
            return Err(CliError::NotDrawn(format!(
                "a picture shows up to {MAX_NODES} nodes; {shape} has {}",
                shape.n_ranks()
            )));
        }
        let scale = (bundle as f64 / 5.0).max(1.0);
        let kind = match axes[..] {
            [_, _] => Kind::Lattice {
                basis: vec![Point::new(0.0, 132.0) * scale, Point::new(132.0, 0.0) * scale],
            },
            [_, rows, _] => {
                // Rows of a plane go down and to the left, with a slant that puts few nodes below one another. Planes
                // do not overlap.
                let row = Point::new(-104.0, 76.0) * scale;
                let plane = Point::new(0.0, row.y * f64::from(rows.size - 1) + 116.0 * scale);
                Kind::Lattice { basis: vec![plane, row, Point::new(180.0, 0.0) * scale] }
            }
            _ => Kind::Circle {
                radius: (f64::from(shape.n_ranks()) * 84.0 * scale / TAU).max(130.0),
            },
        };
        Ok(ShapeDrawing { dims, axes, kind, scale })
    }

    /// Whether the shape is drawn as one circle.
    pub fn is_circle(&self) -> bool {
        matches!(self.kind, Kind::Circle { .. })
    }

    /// The axes of the drawn dimensions.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The components of a coordinate in the drawn dimensions.
    pub fn components(&self, coord: Coord) -> Vec<i64> {
        self.dims.iter().map(|&dim| i64::from(coord[dim])).collect()
    }

    /// The position of a coordinate, which may lie outside the shape.
    pub fn point(&self, at: &[i64]) -> Point {
        match &self.kind {
            Kind::Circle { radius } => {
                let size = self.axes.first().map_or(1, |axis| axis.size);
                let at = at.first().map_or(0.0, |&at| at as f64);
                // Coordinate 0 on top, clockwise.
                let angle = TAU * (at / f64::from(size) - 0.25);
                Point::new(angle.cos(), angle.sin()) * *radius
            }
            Kind::Lattice { basis } => basis
                .iter()
                .zip(at)
                .fold(Point::new(0.0, 0.0), |sum, (&step, &at)| sum + step * at as f64),
        }
    }

    /// The vector from a coordinate to the next one along the drawn dimension `k`.
    pub fn step(&self, k: usize) -> Point {
        match &self.kind {
            Kind::Circle { .. } => self.point(&[1]) - self.point(&[0]),
            Kind::Lattice { basis } => basis[k],
        }
    }

    /// The largest distance between `count` neighbouring arrows of a bundle over one hop of length `hop` that leaves
    /// room for the bundles in other directions.
    pub fn widest_lane(&self, count: usize, hop: f64) -> f64 {
        // In three dimensions each node has less room than in two.
        let share = if self.axes.len() == 3 { 0.11 } else { 0.2 };
        2.0 * share * hop.min(180.0 * self.scale) / (count.max(2) - 1) as f64
    }

    /// Signed hops along the drawn dimension `k` as drawn: the shorter way around the ring, and of two equal ways the
    /// one that stays within the picture.
    pub fn offset(&self, k: usize, from: i64, to: i64) -> i64 {
        let axis = self.axes[k];
        let shorter = axis.offset(from as u32, to as u32);
        if 2 * shorter.unsigned_abs() == u64::from(axis.size) { to - from } else { shorter }
    }

    /// All drawn coordinates.
    pub fn coordinates(&self) -> Vec<Vec<i64>> {
        self.axes.iter().fold(vec![vec![]], |all, axis| {
            all.iter()
                .flat_map(|head| {
                    (0..i64::from(axis.size)).map(move |at| [head.as_slice(), &[at]].concat())
                })
                .collect()
        })
    }

    /// The two corners of the smallest box around all nodes.
    pub fn bounds(&self) -> (Point, Point) {
        let mut low = Point::new(f64::MAX, f64::MAX);
        let mut high = Point::new(f64::MIN, f64::MIN);
        for at in self.coordinates() {
            let point = self.point(&at);
            low = Point::new(low.x.min(point.x), low.y.min(point.y));
            high = Point::new(high.x.max(point.x), high.y.max(point.y));
        }
        (low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_nodes_touch() {
        for text in ["1", "2", "16", "600", "4x4", "8x8", "2x3x2", "4x4x4", "4x6x4", "8x8x8", "1x6"]
        {
            let layout = ShapeDrawing::new(&text.parse().unwrap(), 4).unwrap();
            let points: Vec<Point> =
                layout.coordinates().iter().map(|at| layout.point(at)).collect();
            for (i, &a) in points.iter().enumerate() {
                for &b in &points[..i] {
                    assert!((a - b).length() > 2.5 * NODE, "{text}: {a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn shapes_without_a_plane_are_refused() {
        for (text, expected) in
            [("2x2x2x2", "2x2x2x2 has 4"), ("601", "601 has 601"), ("48x69x48", "up to 600 nodes")]
        {
            let error = ShapeDrawing::new(&text.parse().unwrap(), 4).err().unwrap().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
