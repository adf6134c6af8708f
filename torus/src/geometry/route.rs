//! Links of a torus, and the routes of messages over them.
//!
//! Routes are dimension-ordered (first dimension first) and take the shorter way around a ring; of two equally long
//! ways the positive one. Along a node axis no link is crossed.

use super::axis::{Coord, MAX_DIMS, Vertex};
use super::shape::Shape;
use crate::names::LinkId;

/// A direction along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// Towards higher coordinates.
    Plus,
    /// Towards lower coordinates.
    Minus,
}

/// A directed link: out of a node, along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link {
    /// The node that the link leaves.
    pub node: Vertex,
    /// The dimension of the link.
    pub dim: u8,
    /// The direction of the link.
    pub direction: Direction,
}

impl Link {
    /// The link's number, below [`Link::count`].
    pub fn id(self, shape: &Shape) -> LinkId {
        let out = 2 * usize::from(self.dim) + usize::from(self.direction == Direction::Minus);
        LinkId(self.node.index() * 2 * shape.n_dims() + out)
    }

    /// The link with a number.
    pub fn from_id(shape: &Shape, id: LinkId) -> Self {
        let outs = 2 * shape.n_dims();
        let out = id.index() % outs;
        Link {
            node: Vertex((id.index() / outs) as u32),
            dim: (out / 2) as u8,
            direction: if out.is_multiple_of(2) { Direction::Plus } else { Direction::Minus },
        }
    }

    /// The link as text: the coordinate that it leaves, its direction and its dimension.
    pub fn name(self, shape: &Shape) -> String {
        let sign = if self.direction == Direction::Plus { '+' } else { '-' };
        format!("{}{sign}{}", shape.coord(self.node), self.dim)
    }

    /// Upper bound of link numbers of a shape. Links that do not exist (at the ends of a mesh, along dimensions of
    /// size 1 and node axes) are numbered, too.
    pub fn count(shape: &Shape) -> usize {
        shape.n_ranks() as usize * 2 * shape.n_dims()
    }
}

/// Iterator over the links from one node to another, in order.
#[derive(Clone, Debug)]
pub struct Route<'a> {
    shape: &'a Shape,
    to: Coord,
    /// The coordinate that the route has reached.
    at: Coord,
    node: Vertex,
    /// The rest of the current dimension's part of the route.
    leg: Option<Leg>,
    /// The remaining dimensions.
    dims: &'a [usize],
}

/// The part of a route along one dimension.
#[derive(Clone, Copy, Debug)]
struct Leg {
    dim: usize,
    size: u32,
    /// Difference of node numbers between neighbouring coordinates.
    stride: u32,
    direction: Direction,
    hops: u32,
}

/// The dimensions in order.
const IN_ORDER: [usize; MAX_DIMS] = [0, 1, 2, 3, 4, 5, 6];

impl<'a> Route<'a> {
    /// The dimension-order route from node `from` to node `to`.
    pub fn new(shape: &'a Shape, from: Vertex, to: Vertex) -> Self {
        Self::along(shape, &IN_ORDER[..shape.n_dims()], from, to)
    }

    /// The route that takes the dimensions in the order `dims`, which must contain all dimensions of the shape.
    pub fn along(shape: &'a Shape, dims: &'a [usize], from: Vertex, to: Vertex) -> Self {
        let at = shape.first_on_node(shape.coord(from));
        Route { shape, node: shape.vertex(at), at, to: shape.coord(to), leg: None, dims }
    }

    /// The next leg that is not empty.
    fn next_leg(&mut self) -> Option<Leg> {
        loop {
            let (&dim, rest) = self.dims.split_first()?;
            self.dims = rest;
            let axis = self.shape.axes()[dim];
            let offset = axis.offset(self.at[dim], self.to[dim]);
            if offset != 0 {
                return Some(Leg {
                    dim,
                    size: axis.size,
                    stride: self.shape.axes()[dim + 1..].iter().map(|axis| axis.size).product(),
                    direction: if offset > 0 { Direction::Plus } else { Direction::Minus },
                    hops: offset.unsigned_abs() as u32,
                });
            }
        }
    }
}

impl Iterator for Route<'_> {
    type Item = Link;

    fn next(&mut self) -> Option<Link> {
        let mut leg = match self.leg.take() {
            Some(leg) => leg,
            None => self.next_leg()?,
        };
        let Leg { dim, size, stride, direction, .. } = leg;
        let link = Link { node: self.node, dim: dim as u8, direction };
        let here = self.at[dim];
        let next = match direction {
            Direction::Plus if here + 1 == size => 0,
            Direction::Plus => here + 1,
            Direction::Minus => here.checked_sub(1).unwrap_or(size - 1),
        };
        self.node = Vertex(self.node.0 - here * stride + next * stride);
        self.at = self.at.with(dim, next);
        leg.hops -= 1;
        self.leg = (leg.hops > 0).then_some(leg);
        Some(link)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Axis;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shorter_way_round() {
        let shape: Shape = "5x4".parse().unwrap();
        let links: Vec<(u32, u8, Direction)> = Route::new(&shape, Vertex(0), Vertex(18))
            .map(|l| (l.node.0, l.dim, l.direction))
            .collect();
        // (0,0) -> (4,0) by wrapping, then two hops up to (4,2): of two equally long ways the route goes up.
        assert_eq!(
            links,
            [(0, 0, Direction::Minus), (16, 1, Direction::Plus), (17, 1, Direction::Plus)]
        );
    }

    #[test]
    fn the_ranks_of_a_node_share_its_links() {
        let shape: Shape = "4+2".parse().unwrap();
        let links = |from, to| Route::new(&shape, Vertex(from), Vertex(to)).collect::<Vec<_>>();
        // Ranks 0 and 1 are on the first node, 4 and 5 on the third.
        let two = links(0, 4);
        assert_eq!(two.len(), 2);
        assert!([links(0, 5), links(1, 4), links(1, 5)].iter().all(|links| *links == two));
        assert!(links(0, 1).is_empty());
    }

    proptest! {
        #[test]
        fn a_route_is_a_shortest_path(
            axes in prop::collection::vec((1u32..7, any::<bool>()), 1..=4),
            ranks in 0u32..3,
            a in any::<u32>(), b in any::<u32>(),
        ) {
            let axis = |(size, wraps)| if wraps { Axis::torus(size) } else { Axis::mesh(size) };
            let mut shape = Shape::from_axes(axes.into_iter().map(axis).collect()).unwrap();
            if ranks > 0 {
                shape = shape.with_ranks_per_node(ranks).unwrap();
            }
            let (a, b) = (Vertex(a % shape.n_ranks()), Vertex(b % shape.n_ranks()));
            let route: Vec<Link> = Route::new(&shape, a, b).collect();
            prop_assert_eq!(route.len() as u32, shape.distance(a, b));
            for pair in route.windows(2) {
                prop_assert_eq!(shape.distance(pair[0].node, pair[1].node), 1);
                prop_assert_ne!(shape.node_dim(), Some(usize::from(pair[0].dim)));
            }
            for link in route {
                prop_assert_eq!(Link::from_id(&shape, link.id(&shape)), link);
                prop_assert!(link.id(&shape).index() < Link::count(&shape));
            }
        }
    }
}
