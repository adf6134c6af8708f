//! The shape of a torus or mesh and the coordinates in it.
//!
//! ```
//! use hopbine_torus::Shape;
//! let shape: Shape = "4x6x4m".parse().unwrap(); // the last dimension does not wrap
//! assert_eq!(shape.n_nodes(), 96);
//! assert_eq!(shape.coord(95).to_string(), "(3,5,3)");
//! assert_eq!(shape.to_string(), "4x6x4m");
//! ```

use std::fmt;
use std::ops::Index;
use std::str::FromStr;

/// The most dimensions a shape can have: Tofu's six.
pub const MAX_DIMS: usize = 6;

/// One dimension of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Coordinates along the dimension, at least 1.
    pub size: u32,
    /// True if the last coordinate is a neighbour of the first (torus), false for a mesh.
    pub wraps: bool,
}

impl Axis {
    /// Signed hops of the shorter way from `a` to `b`; the positive one if both are equal.
    pub fn offset(self, a: u32, b: u32) -> i64 {
        let direct = i64::from(b) - i64::from(a);
        if !self.wraps {
            return direct;
        }
        let size = i64::from(self.size);
        let up = direct.rem_euclid(size);
        if 2 * up <= size { up } else { up - size }
    }
}

/// A coordinate in up to six dimensions; those beyond the shape's are absent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Coord {
    at: [u32; MAX_DIMS],
    n_dims: u8,
}

impl Coord {
    /// A coordinate from its components.
    ///
    /// # Panics
    /// With more than [`MAX_DIMS`] components.
    pub fn new(components: &[u32]) -> Self {
        assert!(components.len() <= MAX_DIMS, "at most {MAX_DIMS} dimensions");
        let mut at = [0; MAX_DIMS];
        at[..components.len()].copy_from_slice(components);
        Coord { at, n_dims: components.len() as u8 }
    }

    /// The components, one per dimension.
    pub fn as_slice(&self) -> &[u32] {
        &self.at[..usize::from(self.n_dims)]
    }

    /// The same coordinate with component `dim` replaced.
    pub fn with(mut self, dim: usize, value: u32) -> Self {
        self.at[dim] = value;
        self
    }
}

impl Index<usize> for Coord {
    type Output = u32;

    fn index(&self, dim: usize) -> &u32 {
        &self.as_slice()[dim]
    }
}

impl fmt::Display for Coord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.as_slice().iter().map(u32::to_string).collect();
        write!(f, "({})", parts.join(","))
    }
}

impl fmt::Debug for Coord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text or a list of sizes is no shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// Not of the form `4x6x4`.
    #[error(
        "`{text}` is not a torus shape: `{part}` is not a size; write sizes joined by `x`, such \
         as 4x6x4, with an `m` behind a dimension that does not wrap (4x6x4m)"
    )]
    NotASize {
        /// The whole text.
        text: String,
        /// The part that is wrong.
        part: String,
    },
    /// A dimension of size 0.
    #[error("dimension {dim} has size 0; every dimension of a torus has at least 1 coordinate")]
    ZeroSize {
        /// The dimension, from 0.
        dim: usize,
    },
    /// No dimension, or more than six.
    #[error("a shape has 1 to {MAX_DIMS} dimensions, not {n_dims}")]
    Dimensions {
        /// Dimensions given.
        n_dims: usize,
    },
    /// More nodes than a rank number can name.
    #[error("the shape has more than {} nodes", u32::MAX)]
    TooLarge,
}

/// The shape of a torus: one to six dimensions of any size, each wrapping or not.
///
/// Nodes are numbered row-major, the last dimension fastest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    axes: Vec<Axis>,
    n_nodes: u32,
}

impl Shape {
    /// A torus (every dimension wraps) with the given sizes.
    ///
    /// # Errors
    /// [`ShapeError`] for a size of 0, no or too many dimensions, or over `u32::MAX` nodes.
    pub fn torus(sizes: &[u32]) -> Result<Self, ShapeError> {
        Self::from_axes(sizes.iter().map(|&size| Axis { size, wraps: true }).collect())
    }

    /// A shape from its dimensions.
    ///
    /// # Errors
    /// As [`Shape::torus`].
    pub fn from_axes(axes: Vec<Axis>) -> Result<Self, ShapeError> {
        if axes.is_empty() || axes.len() > MAX_DIMS {
            return Err(ShapeError::Dimensions { n_dims: axes.len() });
        }
        if let Some(dim) = axes.iter().position(|axis| axis.size == 0) {
            return Err(ShapeError::ZeroSize { dim });
        }
        let n_nodes = axes
            .iter()
            .try_fold(1u32, |product, axis| product.checked_mul(axis.size))
            .ok_or(ShapeError::TooLarge)?;
        Ok(Shape { axes, n_nodes })
    }

    /// The dimensions.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Number of dimensions, those of size 1 included.
    pub fn n_dims(&self) -> usize {
        self.axes.len()
    }

    /// Size of dimension `dim`.
    pub fn size(&self, dim: usize) -> u32 {
        self.axes[dim].size
    }

    /// The sizes of all dimensions.
    pub fn sizes(&self) -> Vec<u32> {
        self.axes.iter().map(|axis| axis.size).collect()
    }

    /// Number of nodes.
    pub fn n_nodes(&self) -> u32 {
        self.n_nodes
    }

    /// The dimensions in which something can be sent: those of size above 1.
    pub fn active_dims(&self) -> Vec<usize> {
        (0..self.n_dims()).filter(|&dim| self.size(dim) > 1).collect()
    }

    /// The coordinate of node `node`.
    ///
    /// # Panics
    /// If `node >= n_nodes()`.
    pub fn coord(&self, node: u32) -> Coord {
        assert!(node < self.n_nodes, "node {node} of {}", self.n_nodes);
        let mut at = [0; MAX_DIMS];
        let mut rest = node;
        for (dim, axis) in self.axes.iter().enumerate().rev() {
            at[dim] = rest % axis.size;
            rest /= axis.size;
        }
        Coord { at, n_dims: self.axes.len() as u8 }
    }

    /// The node at a coordinate.
    ///
    /// # Panics
    /// If the coordinate lies outside the shape.
    pub fn node(&self, coord: Coord) -> u32 {
        assert!(self.contains(coord), "{coord} is not in {self}");
        self.axes.iter().zip(coord.as_slice()).fold(0, |node, (axis, &at)| node * axis.size + at)
    }

    /// True if the coordinate has this shape's dimensions and lies inside.
    pub fn contains(&self, coord: Coord) -> bool {
        coord.as_slice().len() == self.n_dims()
            && self.axes.iter().zip(coord.as_slice()).all(|(axis, &at)| at < axis.size)
    }

    /// Hops of a shortest path between two nodes.
    pub fn distance(&self, a: u32, b: u32) -> u32 {
        let (a, b) = (self.coord(a), self.coord(b));
        (0..self.n_dims())
            .map(|dim| self.axes[dim].offset(a[dim], b[dim]).unsigned_abs() as u32)
            .sum()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self
            .axes
            .iter()
            .map(|axis| format!("{}{}", axis.size, if axis.wraps { "" } else { "m" }))
            .collect();
        f.pad(&parts.join("x"))
    }
}

impl FromStr for Shape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, ShapeError> {
        let axes = text
            .split('x')
            .map(|part| {
                let (digits, wraps) = match part.strip_suffix('m') {
                    Some(digits) => (digits, false),
                    None => (part, true),
                };
                // `u32::from_str` would take a sign.
                let size = digits
                    .bytes()
                    .all(|byte| byte.is_ascii_digit())
                    .then(|| digits.parse().ok())
                    .flatten()
                    .ok_or_else(|| ShapeError::NotASize {
                        text: text.to_owned(),
                        part: part.to_owned(),
                    })?;
                Ok(Axis { size, wraps })
            })
            .collect::<Result<Vec<_>, ShapeError>>()?;
        Self::from_axes(axes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_form_round_trips() {
        for text in ["1", "4x6x4", "4x6x4m", "2mx3", "2x3x2x2x3x2", "48x69x48"] {
            assert_eq!(text.parse::<Shape>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn bad_texts_are_explained() {
        for (text, expected) in [
            ("4x0x4", "dimension 1 has size 0"),
            ("", "is not a size"),
            ("4x", "is not a size"),
            ("4x-1", "is not a size"),
            ("4xm", "is not a size"),
            ("+4", "is not a size"),
            ("4*4", "is not a size"),
            ("1x1x1x1x1x1x1", "1 to 6 dimensions, not 7"),
            ("65536x65536", "more than"),
        ] {
            let message = text.parse::<Shape>().unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn mesh_distance_does_not_wrap() {
        let shape: Shape = "8x8m".parse().unwrap();
        assert_eq!(shape.distance(0, shape.node(Coord::new(&[7, 0]))), 1);
        assert_eq!(shape.distance(0, shape.node(Coord::new(&[0, 7]))), 7);
    }

    proptest! {
        #[test]
        fn nodes_and_coordinates_are_inverse(
            sizes in prop::collection::vec(1u32..7, 1..=6),
            seed in any::<u32>(),
        ) {
            let shape = Shape::torus(&sizes).unwrap();
            let node = seed % shape.n_nodes();
            prop_assert_eq!(shape.node(shape.coord(node)), node);
            let other = (seed / 7) % shape.n_nodes();
            prop_assert_eq!(shape.distance(node, other), shape.distance(other, node));
        }
    }
}
