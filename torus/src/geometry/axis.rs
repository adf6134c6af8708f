//! One dimension of a shape; vertices and coordinates.

use std::fmt;
use std::ops::Index;
use std::str::FromStr;

/// The most dimensions with links that a shape can have: Tofu's six.
pub const MAX_TORUS_DIMS: usize = 6;

/// The most dimensions of a shape: those with links and one node axis.
pub const MAX_DIMS: usize = MAX_TORUS_DIMS + 1;

/// A vertex of a shape, `0..n_ranks`, in row-major order: the last dimension varies fastest. A vertex is the place
/// of one rank; the vertices along a node axis share one node of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Vertex(pub u32);

impl Vertex {
    /// The number as an index into tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Vertex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The connection between the coordinates of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AxisLink {
    /// Links between neighbours, and between the last and the first coordinate.
    Torus,
    /// Links between neighbours only.
    Mesh,
    /// Shared memory: the ranks of one node. Messages cross no link.
    Node,
}

/// One dimension of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Coordinates along the dimension, at least 1.
    pub size: u32,
    /// The connection between the coordinates.
    pub link: AxisLink,
}

impl Axis {
    /// An axis that wraps.
    pub const fn torus(size: u32) -> Self {
        Axis { size, link: AxisLink::Torus }
    }

    /// An axis that does not wrap.
    pub const fn mesh(size: u32) -> Self {
        Axis { size, link: AxisLink::Mesh }
    }

    /// The axis of ranks that share a node.
    pub const fn node(size: u32) -> Self {
        Axis { size, link: AxisLink::Node }
    }

    /// Signed number of hops of the shorter way from `a` to `b`; positive if both ways are equally long. Always 0
    /// along a node axis.
    pub fn offset(self, a: u32, b: u32) -> i64 {
        let direct = i64::from(b) - i64::from(a);
        match self.link {
            AxisLink::Node => 0,
            AxisLink::Mesh => direct,
            AxisLink::Torus => {
                let size = i64::from(self.size);
                let up = direct.rem_euclid(size);
                if 2 * up <= size { up } else { up - size }
            }
        }
    }
}

/// A coordinate in up to [`MAX_DIMS`] dimensions; it has one component for each dimension of its shape.
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

    /// True if each component is below the size of its dimension.
    pub fn is_below(&self, sizes: &[u32]) -> bool {
        self.as_slice().iter().zip(sizes).all(|(at, size)| at < size)
    }

    /// The same coordinate with component `dim` replaced.
    pub fn with(mut self, dim: usize, value: u32) -> Self {
        self.at[dim] = value;
        self
    }
}

/// The text is not a coordinate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a coordinate; write one such as (0,1,2)")]
pub struct InvalidCoord(pub String);

impl FromStr for Coord {
    type Err = InvalidCoord;

    /// `(0,1,2)`, as in pjsub's rank-map files, or `0 1 2`.
    fn from_str(text: &str) -> Result<Self, InvalidCoord> {
        let bad = || InvalidCoord(text.trim().to_owned());
        let content = text.trim();
        let inner = match content.strip_prefix('(') {
            Some(rest) => rest.strip_suffix(')').ok_or_else(bad)?,
            None => content,
        };
        let components = inner
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter(|part| !part.is_empty())
            .map(|part| part.parse::<u32>().map_err(|_| bad()))
            .collect::<Result<Vec<_>, _>>()?;
        if components.is_empty() || components.len() > MAX_DIMS {
            return Err(bad());
        }
        Ok(Coord::new(&components))
    }
}

/// Parses coordinates, one per line; empty lines and text after `#` are ignored.
///
/// # Errors
/// The number of the faulty line, counted from 1, and its error.
pub fn parse_coords(text: &str) -> Result<Vec<Coord>, (usize, InvalidCoord)> {
    let lines = text.lines().zip(1..).map(|(line, number)| (line, line.split('#').next(), number));
    lines
        .filter(|(_, content, _)| content.is_some_and(|content| !content.trim().is_empty()))
        .map(|(line, content, number)| {
            let coord = content.unwrap_or_default().parse();
            coord.map_err(|_| (number, InvalidCoord(line.trim().to_owned())))
        })
        .collect()
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
