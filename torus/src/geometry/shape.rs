//! The shape of a torus or mesh and the coordinates in it.
//!
//! ```
//! use hopbine_torus::geometry::{Shape, Vertex};
//! let shape: Shape = "4x6x4m".parse().unwrap(); // the last dimension does not wrap
//! assert_eq!(shape.n_ranks(), 96);
//! assert_eq!(shape.coord(Vertex(95)).to_string(), "(3,5,3)");
//! assert_eq!(shape.to_string(), "4x6x4m");
//! let shape: Shape = "4x4x4+2".parse().unwrap(); // two ranks share the memory of each node
//! assert_eq!((shape.n_ranks(), shape.ranks_per_node()), (128, 2));
//! ```

use std::fmt;
use std::str::FromStr;

use super::axis::{Axis, AxisLink, Coord, MAX_DIMS, MAX_TORUS_DIMS, Vertex};

/// A text or a list of sizes is not a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// Not of the form `4x6x4`.
    #[error(
        "`{text}` is not a torus shape: `{part}` is not a size; write sizes joined by `x`, such \
         as 4x6x4, with an `m` behind a dimension that does not wrap (4x6x4m) and `+K` at the \
         end for K ranks on each node (4x6x4+2)"
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
    /// No dimension with links, or more than six.
    #[error("a shape has 1 to {MAX_TORUS_DIMS} dimensions, not {n_dims}")]
    Dimensions {
        /// Number of dimensions with links.
        n_dims: usize,
    },
    /// A node axis that is not the last dimension.
    #[error("dimension {dim} is a node axis; only the last dimension can be one")]
    NodeAxis {
        /// The dimension, from 0.
        dim: usize,
    },
    /// More nodes than there can be rank numbers.
    #[error("the shape has more than {} nodes", u32::MAX)]
    TooLarge,
}

/// The shape of a torus or mesh: one to six dimensions of any size, each of which wraps or not, followed by a node
/// axis if several ranks share each node.
///
/// Vertices are numbered in row-major order: the last dimension varies fastest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    axes: Vec<Axis>,
    n_ranks: u32,
}

impl Shape {
    /// A torus (every dimension wraps) with the given sizes.
    ///
    /// # Errors
    /// [`ShapeError`] for a size of 0, no or too many dimensions, or over `u32::MAX` nodes.
    pub fn torus(sizes: &[u32]) -> Result<Self, ShapeError> {
        Self::from_axes(sizes.iter().map(|&size| Axis::torus(size)).collect())
    }

    /// A shape from its dimensions.
    ///
    /// # Errors
    /// As [`Shape::torus`]; and for a node axis that is not the last of several dimensions.
    pub fn from_axes(axes: Vec<Axis>) -> Result<Self, ShapeError> {
        let is_node = |axis: &Axis| axis.link == AxisLink::Node;
        let n_linked = axes.iter().filter(|axis| !is_node(axis)).count();
        if n_linked == 0 || n_linked > MAX_TORUS_DIMS {
            return Err(ShapeError::Dimensions { n_dims: n_linked });
        }
        if let Some(dim) = axes[..axes.len() - 1].iter().position(is_node) {
            return Err(ShapeError::NodeAxis { dim });
        }
        if let Some(dim) = axes.iter().position(|axis| axis.size == 0) {
            return Err(ShapeError::ZeroSize { dim });
        }
        let n_ranks = axes
            .iter()
            .try_fold(1u32, |product, axis| product.checked_mul(axis.size))
            .ok_or(ShapeError::TooLarge)?;
        Ok(Shape { axes, n_ranks })
    }

    /// The dimensions.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Number of dimensions, including those of size 1.
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

    /// Number of ranks, one for each vertex: the number of nodes times the ranks per node.
    pub fn n_ranks(&self) -> u32 {
        self.n_ranks
    }

    /// All vertices in order.
    pub fn vertices(&self) -> impl ExactSizeIterator<Item = Vertex> + DoubleEndedIterator + use<> {
        (0..self.n_ranks).map(Vertex)
    }

    /// The dimensions whose links can carry messages: of size above 1, and not the node axis. The number of ports
    /// depends on them.
    pub fn active_dims(&self) -> Vec<usize> {
        (0..self.n_dims())
            .filter(|&dim| self.size(dim) > 1 && self.axes[dim].link != AxisLink::Node)
            .collect()
    }

    /// The dimension of the node axis, if there is one: the last.
    pub fn node_dim(&self) -> Option<usize> {
        let last = self.n_dims() - 1;
        (self.axes[last].link == AxisLink::Node).then_some(last)
    }

    /// The coordinates of the first rank on a node; the node's ranks share its links.
    pub fn first_on_node(&self, at: Coord) -> Coord {
        self.node_dim().map_or(at, |dim| at.with(dim, 0))
    }

    /// Number of ranks on each node: the size of the node axis; 1 without a node axis.
    pub fn ranks_per_node(&self) -> u32 {
        self.node_dim().map_or(1, |dim| self.size(dim))
    }

    /// This shape, which must have no node axis, with a node axis of `ranks` appended; for one rank the same shape.
    ///
    /// # Errors
    /// [`ShapeError`] for no ranks, a second node axis, or over `u32::MAX` vertices.
    pub fn with_ranks_per_node(&self, ranks: u32) -> Result<Self, ShapeError> {
        let mut axes = self.axes.clone();
        if ranks != 1 {
            axes.push(Axis::node(ranks));
        }
        Self::from_axes(axes)
    }

    /// The shape without its node axis, if it has one.
    ///
    /// # Panics
    /// Never: a node axis is never the only dimension.
    #[must_use]
    pub fn without_node_axis(&self) -> Self {
        let linked = self.axes.iter().filter(|axis| axis.link != AxisLink::Node);
        Self::from_axes(linked.copied().collect()).expect("a node axis is one of several")
    }

    /// The coordinate of a vertex.
    ///
    /// # Panics
    /// If the vertex is not below `n_ranks()`.
    pub fn coord(&self, vertex: Vertex) -> Coord {
        assert!(vertex.0 < self.n_ranks, "vertex {vertex} of {}", self.n_ranks);
        let mut at = [0; MAX_DIMS];
        let mut rest = vertex.0;
        for (dim, axis) in self.axes.iter().enumerate().rev() {
            at[dim] = rest % axis.size;
            rest /= axis.size;
        }
        Coord::new(&at[..self.axes.len()])
    }

    /// The vertex at a coordinate.
    ///
    /// # Panics
    /// If the coordinate lies outside the shape.
    pub fn vertex(&self, coord: Coord) -> Vertex {
        assert!(self.contains(coord), "{coord} is not in {self}");
        let parts = self.axes.iter().zip(coord.as_slice());
        Vertex(parts.fold(0, |vertex, (axis, &at)| vertex * axis.size + at))
    }

    /// True if the coordinate has the shape's number of dimensions and is inside the shape.
    pub fn contains(&self, coord: Coord) -> bool {
        coord.as_slice().len() == self.n_dims()
            && self.axes.iter().zip(coord.as_slice()).all(|(axis, &at)| at < axis.size)
    }

    /// Number of hops of a shortest path between two nodes.
    pub fn distance(&self, a: Vertex, b: Vertex) -> u32 {
        let (a, b) = (self.coord(a), self.coord(b));
        (0..self.n_dims())
            .map(|dim| self.axes[dim].offset(a[dim], b[dim]).unsigned_abs() as u32)
            .sum()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for (dim, Axis { size, link }) in self.axes.iter().enumerate() {
            let joint = match link {
                _ if dim == 0 => "",
                AxisLink::Torus | AxisLink::Mesh => "x",
                AxisLink::Node => "+",
            };
            let end = if *link == AxisLink::Mesh { "m" } else { "" };
            text += &format!("{joint}{size}{end}");
        }
        f.pad(&text)
    }
}

impl FromStr for Shape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, ShapeError> {
        let axis = |part: &str, digits: &str, link| {
            // `u32::from_str` would accept a sign.
            let size = digits.bytes().all(|byte| byte.is_ascii_digit());
            let size = size.then(|| digits.parse().ok()).flatten();
            let not_a_size =
                || ShapeError::NotASize { text: text.to_owned(), part: part.to_owned() };
            Ok(Axis { size: size.ok_or_else(not_a_size)?, link })
        };
        let (torus, ranks) = match text.split_once('+') {
            Some((torus, ranks)) => (torus, Some(ranks)),
            None => (text, None),
        };
        let linked = torus.split('x').map(|part| match part.strip_suffix('m') {
            Some(digits) => axis(part, digits, AxisLink::Mesh),
            None => axis(part, part, AxisLink::Torus),
        });
        let node = ranks.map(|part| axis(part, part, AxisLink::Node));
        Self::from_axes(linked.chain(node).collect::<Result<_, ShapeError>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_form_round_trips() {
        for text in ["1", "4x6x4", "4x6x4m", "2mx3", "2x3x2x2x3x2", "48x69x48", "4x4m+4", "1+1"] {
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
            ("4+", "is not a size"),
            ("4+2+2", "is not a size"),
            ("4+2m", "is not a size"),
            ("4+0", "dimension 1 has size 0"),
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
        assert_eq!(shape.distance(Vertex(0), shape.vertex(Coord::new(&[7, 0]))), 1);
        assert_eq!(shape.distance(Vertex(0), shape.vertex(Coord::new(&[0, 7]))), 7);
    }

    #[test]
    fn a_node_axis_is_the_last_and_has_no_links() {
        let shape: Shape = "4x1x3+5".parse().unwrap();
        assert_eq!(shape.active_dims(), [0, 2]);
        assert_eq!((shape.node_dim(), shape.ranks_per_node()), (Some(3), 5));
        assert_eq!(shape.distance(Vertex(0), Vertex(4)), 0);
        let torus: Shape = "4x1x3".parse().unwrap();
        assert_eq!((torus.node_dim(), torus.ranks_per_node()), (None, 1));
        assert_eq!(torus.with_ranks_per_node(5).unwrap(), shape);
        assert_eq!(shape.with_ranks_per_node(2), Err(ShapeError::NodeAxis { dim: 3 }));
        let only = Shape::from_axes(vec![Axis::node(4)]);
        assert_eq!(only, Err(ShapeError::Dimensions { n_dims: 0 }));
    }

    proptest! {
        /// Every text is a shape, whose text form is the same shape, or an error.
        #[test]
        fn no_text_does_harm(text in "[0-9xm+]{0,16}|([1-9][0-9]{0,5}m?x){0,6}[1-9](\\+[0-9]{1,10})?|\\PC{0,12}") {
            if let Ok(shape) = text.parse::<Shape>() {
                prop_assert_eq!(&shape.to_string().parse::<Shape>().unwrap(), &shape);
                let n: u128 = shape.sizes().into_iter().map(u128::from).product();
                prop_assert_eq!(n, u128::from(shape.n_ranks()));
                let last = Vertex(shape.n_ranks() - 1);
                prop_assert_eq!(shape.vertex(shape.coord(last)), last);
            }
        }

        #[test]
        fn nodes_and_coordinates_are_inverse(
            sizes in prop::collection::vec(1u32..7, 1..=6),
            seed in any::<u32>(),
        ) {
            let shape = Shape::torus(&sizes).unwrap();
            let node = Vertex(seed % shape.n_ranks());
            prop_assert_eq!(shape.vertex(shape.coord(node)), node);
            let other = Vertex((seed / 7) % shape.n_ranks());
            prop_assert_eq!(shape.distance(node, other), shape.distance(other, node));
        }
    }
}
