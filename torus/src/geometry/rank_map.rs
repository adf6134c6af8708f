//! Maps of ranks to nodes.

use std::fmt;
use std::sync::Arc;

use super::axis::{Coord, InvalidCoord, MAX_DIMS, Vertex, parse_coords};
use super::shape::Shape;
use crate::names::Rank;

/// A bijection between the ranks `0..n` and the nodes of a shape.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub enum RankMap {
    /// Rank = node number: the last dimension varies fastest.
    RowMajor,
    /// The first dimension varies fastest, as in Fortran and in pjsub's default rank order; the ranks of a node are
    /// consecutive.
    #[default]
    ColumnMajor,
    /// An explicit list.
    List(Arc<RankList>),
}

/// An explicit rank map and its inverse.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RankList {
    node_of: Vec<Vertex>,
    rank_of: Vec<u32>,
}

/// A list of coordinates is not a rank map of a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RankMapError {
    /// The number of entries is not the number of ranks.
    #[error("the rank map has {found} entries; the shape {shape} has {expected} ranks")]
    Count {
        /// Number of entries in the list.
        found: usize,
        /// Number of ranks of the shape.
        expected: u32,
        /// The shape.
        shape: String,
    },
    /// An entry is outside the shape.
    #[error("rank {rank} is mapped to {place}, which is not in the shape {shape}")]
    Outside {
        /// The rank.
        rank: usize,
        /// The entry of the list.
        place: String,
        /// The shape.
        shape: String,
    },
    /// Two ranks have the same node.
    #[error("ranks {first} and {second} are both mapped to {place}")]
    Twice {
        /// The rank listed first.
        first: u32,
        /// The rank listed later.
        second: u32,
        /// The coordinate.
        place: String,
    },
    /// A line of the text form is not a coordinate.
    #[error(
        "line {line} of the rank map, `{text}`, is not a coordinate; write one coordinate per \
         line and rank, such as (0,1,2)"
    )]
    Line {
        /// Line number, counted from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
}

impl RankMap {
    /// The map with the given nodes, by rank.
    ///
    /// # Errors
    /// [`RankMapError`] unless every node of the shape is listed once.
    pub fn from_vertices(shape: &Shape, node_of: Vec<Vertex>) -> Result<Self, RankMapError> {
        const FREE: u32 = u32::MAX;
        if node_of.len() != shape.n_ranks() as usize {
            return Err(RankMapError::Count {
                found: node_of.len(),
                expected: shape.n_ranks(),
                shape: shape.to_string(),
            });
        }
        let mut rank_of = vec![FREE; node_of.len()];
        for (rank, &node) in node_of.iter().enumerate() {
            let Some(slot) = rank_of.get_mut(node.index()) else {
                return Err(RankMapError::Outside {
                    rank,
                    place: format!("node {node}"),
                    shape: shape.to_string(),
                });
            };
            if *slot != FREE {
                return Err(RankMapError::Twice {
                    first: *slot,
                    second: rank as u32,
                    place: shape.coord(node).to_string(),
                });
            }
            *slot = rank as u32;
        }
        Ok(RankMap::List(Arc::new(RankList { node_of, rank_of })))
    }

    /// Parses a map: one coordinate per line in rank order, `(0,1,2)` as in pjsub's rank-map files or `0 1 2`.
    /// Empty lines and text after `#` are ignored.
    ///
    /// # Errors
    /// [`RankMapError`] with the faulty line or rank.
    pub fn parse(shape: &Shape, text: &str) -> Result<Self, RankMapError> {
        let coords = parse_coords(text)
            .map_err(|(line, InvalidCoord(text))| RankMapError::Line { line, text })?;
        let node = |(rank, coord): (usize, Coord)| match shape.contains(coord) {
            true => Ok(shape.vertex(coord)),
            false => Err(RankMapError::Outside {
                rank,
                place: coord.to_string(),
                shape: shape.to_string(),
            }),
        };
        let nodes = coords.into_iter().enumerate().map(node).collect::<Result<Vec<_>, _>>()?;
        Self::from_vertices(shape, nodes)
    }

    /// The node of a rank.
    ///
    /// # Panics
    /// If `rank` is not below the shape's number of nodes.
    pub fn vertex_of(&self, shape: &Shape, rank: Rank) -> Vertex {
        match self {
            RankMap::RowMajor => Vertex(rank.0),
            RankMap::ColumnMajor => {
                assert!(rank.0 < shape.n_ranks(), "rank {rank} of {}", shape.n_ranks());
                let mut rest = rank.0;
                let mut at = [0; MAX_DIMS];
                for dim in fastest_first(shape) {
                    at[dim] = rest % shape.size(dim);
                    rest /= shape.size(dim);
                }
                shape.vertex(Coord::new(&at[..shape.n_dims()]))
            }
            RankMap::List(list) => list.node_of[rank.index()],
        }
    }

    /// The rank on a node.
    ///
    /// # Panics
    /// If `node` is not below the shape's number of nodes.
    pub fn rank_of(&self, shape: &Shape, node: Vertex) -> Rank {
        Rank(match self {
            RankMap::RowMajor => node.0,
            RankMap::ColumnMajor => {
                let coord = shape.coord(node);
                let slowest_first = fastest_first(shape).rev();
                slowest_first.fold(0, |rank, dim| rank * shape.size(dim) + coord[dim])
            }
            RankMap::List(list) => list.rank_of[node.index()],
        })
    }

    /// The nodes by rank of an explicit list; `None` for other maps.
    pub fn as_list(&self) -> Option<&[Vertex]> {
        match self {
            RankMap::List(list) => Some(&list.node_of),
            RankMap::RowMajor | RankMap::ColumnMajor => None,
        }
    }

    /// The coordinate of a rank.
    pub fn coord_of(&self, shape: &Shape, rank: Rank) -> Coord {
        shape.coord(self.vertex_of(shape, rank))
    }
}

/// The dimensions in column-major order, with the node axis first.
fn fastest_first(shape: &Shape) -> impl DoubleEndedIterator<Item = usize> + use<> {
    let node = shape.node_dim();
    node.into_iter().chain(0..node.unwrap_or(shape.n_dims()))
}

impl fmt::Debug for RankMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RankMap::RowMajor => f.write_str("RowMajor"),
            RankMap::ColumnMajor => f.write_str("ColumnMajor"),
            RankMap::List(list) => write!(f, "List({} ranks)", list.node_of.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn column_major_is_fortran_order() {
        let shape: Shape = "2x3".parse().unwrap();
        let coords: Vec<String> = Rank::first(6)
            .map(|rank| RankMap::ColumnMajor.coord_of(&shape, rank).to_string())
            .collect();
        assert_eq!(coords, ["(0,0)", "(1,0)", "(0,1)", "(1,1)", "(0,2)", "(1,2)"]);
        let shape: Shape = "2x2+2".parse().unwrap();
        let coords: Vec<String> = Rank::first(6)
            .map(|rank| RankMap::ColumnMajor.coord_of(&shape, rank).to_string())
            .collect();
        assert_eq!(coords, ["(0,0,0)", "(0,0,1)", "(1,0,0)", "(1,0,1)", "(0,1,0)", "(0,1,1)"]);
    }

    #[test]
    fn texts_are_read_or_explained() {
        let shape: Shape = "2x2".parse().unwrap();
        let error = RankMap::parse(&"4+2".parse().unwrap(), "(0,0)\n").unwrap_err().to_string();
        assert_eq!(error, "the rank map has 1 entries; the shape 4+2 has 8 ranks");
        let map = RankMap::parse(&shape, "# corner first\n(1,1)\n0 0\n\n(0, 1) # third\n1,0\n");
        let map = map.unwrap();
        assert_eq!(map.vertex_of(&shape, Rank(0)), Vertex(3));
        assert_eq!(map.rank_of(&shape, Vertex(2)), Rank(3));
        for (text, expected) in [
            ("(0,0)\n(0,1)\n", "2 entries"),
            ("(0,0)\n(0,2)\n(1,0)\n(1,1)", "rank 1 is mapped to (0,2)"),
            ("(0,0)\n(0,1)\n(1,0)\n(0,1)", "ranks 1 and 3 are both mapped to (0,1)"),
            ("(0,0)\n(0,one)\n", "line 2"),
            ("(0,0\n", "line 1"),
        ] {
            let message = RankMap::parse(&shape, text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    proptest! {
        /// Every file is a map, or gives an error that names the fault.
        #[test]
        fn no_text_does_harm(lines in prop::collection::vec(
            "\\(?[0-2][, ][0-2]\\)?|[0-9(),# -]{0,8}|[0-9]{9,21},0|\\PC{0,8}", 0..7,
        )) {
            let shape: Shape = "2x3".parse().unwrap();
            match RankMap::parse(&shape, &lines.join("\n")) {
                Ok(map) => for rank in Rank::first(6) {
                    prop_assert_eq!(map.rank_of(&shape, map.vertex_of(&shape, rank)), rank);
                }
                Err(error) => {
                    let text = error.to_string();
                    prop_assert!(text.contains("map") || text.contains("rank"), "{}", text);
                }
            }
        }

        /// Every order that results from swapping two of the six nodes is a map.
        #[test]
        fn every_order_is_read(a in 0usize..6, b in 0usize..6) {
            let shape: Shape = "2x3".parse().unwrap();
            let mut nodes: Vec<Vertex> = shape.vertices().collect();
            nodes.swap(a, b);
            let lines = nodes.iter().map(|node| shape.coord(*node).to_string() + "\n");
            let map = RankMap::parse(&shape, &lines.collect::<String>()).unwrap();
            prop_assert_eq!(map.as_list().unwrap(), &nodes[..]);
        }

        #[test]
        fn both_directions_agree(
            sizes in prop::collection::vec(1u32..6, 1..=4),
            seed in any::<u64>(),
        ) {
            let mut shape = Shape::torus(&sizes).unwrap();
            if seed % 3 > 0 {
                shape = shape.with_ranks_per_node((seed % 3) as u32 + 1).unwrap();
            }
            let n = shape.n_ranks();
            let mut nodes: Vec<Vertex> = shape.vertices().collect();
            // Any permutation is possible; this one depends on the seed.
            nodes.sort_by_key(|node| (u64::from(node.0) + 1).wrapping_mul(seed | 1));
            let list = RankMap::from_vertices(&shape, nodes).unwrap();
            for map in [RankMap::RowMajor, RankMap::ColumnMajor, list] {
                for rank in Rank::first(n) {
                    prop_assert_eq!(map.rank_of(&shape, map.vertex_of(&shape, rank)), rank);
                }
            }
        }
    }
}
