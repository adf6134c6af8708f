//! Embeddings of logical nodes into the nodes of a physical network.

use super::axis::{AxisLink, Coord, MAX_DIMS, Vertex};
use super::route::{Link, Route};
use super::shape::Shape;
use super::tofu::{ROUTE_ORDER, TofuBox, network};
use super::topology::Topology;
use crate::names::LinkId;

/// The places of a logical shape's nodes in a network, and the network's routes.
///
/// The network is a shape, too: Tofu's has six dimensions. The ranks along a node axis share the place of their
/// node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Embedding {
    network: Shape,
    /// The network's dimensions in the order in which routes take them.
    order: Vec<usize>,
    ranks_per_node: u32,
    places: Vec<Vertex>,
}

/// Logical nodes cannot have the given places in a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddingError {
    /// The number of places is not the number of nodes.
    #[error("{found} places for the {expected} nodes of shape {shape}")]
    Count {
        /// Number of places given.
        found: usize,
        /// Number of nodes, with those of a node axis counted once.
        expected: u32,
        /// The logical shape.
        shape: String,
    },
    /// A place is outside the network.
    #[error("place {place} of node {node} is not in the network {network}")]
    Outside {
        /// The logical node.
        node: usize,
        /// The node's place in the list.
        place: Coord,
        /// The network's shape.
        network: String,
    },
    /// Two nodes have the same place.
    #[error("nodes {first} and {second} are both in place {place}")]
    Twice {
        /// One node.
        first: usize,
        /// The other.
        second: usize,
        /// The place of both.
        place: Coord,
    },
    /// A box that does not fit at its origin.
    #[error("a box of {shape} at {origin} is not inside the network {network}")]
    NoRoom {
        /// The box.
        shape: String,
        /// Its first corner.
        origin: Coord,
        /// The network's shape.
        network: String,
    },
}

impl Embedding {
    /// The embedding of a shape in itself: every node is in its own place.
    pub fn identity(shape: &Shape) -> Self {
        let linked = shape.node_dim().unwrap_or(shape.n_dims());
        let network = Shape::from_axes(shape.axes()[..linked].to_vec()).expect("a part of a shape");
        Embedding {
            order: (0..linked).collect(),
            ranks_per_node: shape.ranks_per_node(),
            places: network.vertices().collect(),
            network,
        }
    }

    /// The nodes of a shape in the listed places, by node.
    ///
    /// # Errors
    /// [`EmbeddingError`] unless every node has a place that no other node has.
    pub fn list(shape: &Shape, network: Shape, coords: &[Coord]) -> Result<Self, EmbeddingError> {
        let ranks_per_node = shape.ranks_per_node();
        let expected = shape.n_ranks() / ranks_per_node;
        if coords.len() != expected as usize {
            let (found, shape) = (coords.len(), shape.to_string());
            return Err(EmbeddingError::Count { found, expected, shape });
        }
        let mut taken = vec![None; network.n_ranks() as usize];
        let mut places = Vec::with_capacity(coords.len());
        for (node, &place) in coords.iter().enumerate() {
            if !network.contains(place) {
                let network = network.to_string();
                return Err(EmbeddingError::Outside { node, place, network });
            }
            places.push(network.vertex(place));
            if let Some(first) = taken[network.vertex(place).index()].replace(node) {
                return Err(EmbeddingError::Twice { first, second: node, place });
            }
        }
        let order = (0..network.n_dims()).collect();
        Ok(Embedding { network, order, ranks_per_node, places })
    }

    /// A shape as a box of a network with the same number of dimensions, with its first corner at `origin`. The box
    /// may wrap around a dimension that wraps.
    ///
    /// # Errors
    /// [`EmbeddingError`] if the box does not fit.
    pub fn sub_box(shape: &Shape, network: Shape, origin: Coord) -> Result<Self, EmbeddingError> {
        let linked = shape.node_dim().unwrap_or(shape.n_dims());
        let fits = network.n_dims() == linked
            && network.contains(origin)
            && network.axes().iter().zip(shape.axes()).zip(origin.as_slice()).all(
                |((axis, part), &at)| match axis.link {
                    AxisLink::Torus => part.size <= axis.size,
                    AxisLink::Mesh => part.size <= axis.size - at,
                    AxisLink::Node => false,
                },
            );
        if !fits {
            let (shape, network) = (shape.to_string(), network.to_string());
            return Err(EmbeddingError::NoRoom { shape, origin, network });
        }
        let inner = Self::identity(shape).network;
        let places = inner.vertices().map(|node| {
            let within = inner.coord(node);
            let at = |dim: usize| (origin[dim] + within[dim]) % network.size(dim);
            let mut place = [0; MAX_DIMS];
            (0..linked).for_each(|dim| place[dim] = at(dim));
            Coord::new(&place[..linked])
        });
        let places: Vec<Coord> = places.collect();
        Self::list(shape, network, &places)
    }

    /// The logical torus of a box of Tofu units, with `ranks_per_node` ranks on each node, in a machine of
    /// `machine` units along x, y and z (24x23x24 for Fugaku, `m` for dimensions that do not wrap). The box's first
    /// unit is at `origin`. The network has six dimensions and Tofu's routes.
    ///
    /// # Errors
    /// [`EmbeddingError`] for a box that does not fit.
    pub fn tofu(
        tofu_box: TofuBox,
        ranks_per_node: u32,
        machine: &Shape,
        origin: Coord,
    ) -> Result<Self, EmbeddingError> {
        let units = Shape::torus(&tofu_box.units);
        let room = units.ok().and_then(|units| Self::sub_box(&units, machine.clone(), origin).ok());
        let (Some(room), Ok(logical), Some(network)) =
            (room, tofu_box.logical_shape(), network(machine))
        else {
            let shape = tofu_box.units.map(|size| size.to_string()).join("x");
            return Err(EmbeddingError::NoRoom { shape, origin, network: machine.to_string() });
        };
        let places = logical.vertices().map(|node| {
            let at = tofu_box.unfold(logical.coord(node)).map(u32::from);
            let [_, y_units, z_units] = tofu_box.units;
            let unit = (at[0] * y_units + at[1]) * z_units + at[2];
            let unit = machine.coord(room.places[unit as usize]);
            network.vertex(Coord::new(&[unit[0], unit[1], unit[2], at[3], at[4], at[5]]))
        });
        let places = places.collect();
        Ok(Embedding { order: ROUTE_ORDER.to_vec(), ranks_per_node, places, network })
    }

    /// The network's shape.
    pub fn network(&self) -> &Shape {
        &self.network
    }

    /// The place of a logical vertex.
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn place(&self, node: Vertex) -> Vertex {
        self.places[(node.0 / self.ranks_per_node) as usize]
    }
}

impl Topology for Embedding {
    fn n_links(&self) -> usize {
        Link::count(&self.network)
    }

    fn route(&self, from: Vertex, to: Vertex, cross: &mut dyn FnMut(LinkId)) {
        let (from, to) = (self.place(from), self.place(to));
        let route = Route::along(&self.network, &self.order, from, to);
        route.for_each(|link| cross(link.id(&self.network)));
    }

    fn link_name(&self, link: LinkId) -> String {
        Link::from_id(&self.network, link).name(&self.network)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn fugaku(machine: &str) -> (Shape, Embedding) {
        let tofu_box = TofuBox { units: [24, 23, 24] };
        let machine: Shape = machine.parse().unwrap();
        let embedding = Embedding::tofu(tofu_box, 1, &machine, Coord::new(&[0; 3])).unwrap();
        (tofu_box.logical_shape().unwrap(), embedding)
    }

    fn mean(values: impl Iterator<Item = u32>) -> f64 {
        let (mut sum, mut n) = (0.0, 0.0);
        values.for_each(|value| (sum, n) = (sum + f64::from(value), n + 1.0));
        sum / n
    }

    /// Distances on the whole of Fugaku if x, y and z do not wrap: random pairs are 41.2 logical hops apart, but
    /// 25.3 hops in six dimensions.
    #[test]
    fn hops_in_six_dimensions_are_fewer() {
        let (shape, embedding) = fugaku("24mx23mx24m");
        let mut rng = SmallRng::seed_from_u64(1);
        let mut random = || Vertex(rng.random_range(0..shape.n_ranks()));
        let pairs: Vec<(Vertex, Vertex)> = (0..40_000).map(|_| (random(), random())).collect();
        let logical = mean(pairs.iter().map(|&(a, b)| shape.hops(a, b)));
        let real = mean(pairs.iter().map(|&(a, b)| embedding.hops(a, b)));
        assert!((logical - 41.2).abs() < 0.2, "{logical}");
        assert!((real - 25.3).abs() < 0.2, "{real}");
        // To the node 21 further along x: 12.7.
        let ahead = |x: u32| {
            let (from, to) = (Coord::new(&[x, 5, 7]), Coord::new(&[(x + 21) % 48, 5, 7]));
            embedding.hops(shape.vertex(from), shape.vertex(to))
        };
        let real = mean((0..48).map(ahead));
        assert!((real - 12.7).abs() < 0.05, "{real}");
        // With the machine's wrap-around links no route is longer, and most are shorter.
        let (_, wrapped) = fugaku("24x23x24");
        assert!(pairs.iter().all(|&(a, b)| wrapped.hops(a, b) <= embedding.hops(a, b)));
        let real = mean(pairs.iter().map(|&(a, b)| wrapped.hops(a, b)));
        assert!((real - 19.4).abs() < 0.2, "{real}");
    }

    #[test]
    fn routes_are_those_of_the_device() {
        let (shape, embedding) = fugaku("24mx23mx24m");
        for (a, b) in [(0, 1), (5, 77_777), (100_000, 158_975), (33, 33)] {
            let (a, b) = (Vertex(a), Vertex(b));
            let tofu = TofuBox { units: [24, 23, 24] };
            let [p, q] = [a, b].map(|node| tofu.unfold(shape.coord(node)));
            assert_eq!(embedding.hops(a, b), super::super::tofu::hops(p, q));
            let mut dims = Vec::new();
            embedding.route(a, b, &mut |link| {
                dims.push(Link::from_id(embedding.network(), link).dim);
            });
            // To the target's a, b, c first, then along x, y, z.
            assert!(
                dims.is_sorted_by_key(|&dim| ROUTE_ORDER
                    .iter()
                    .position(|&k| k == usize::from(dim)))
            );
        }
    }

    #[test]
    fn boxes_lie_where_they_are_put() {
        let shape: Shape = "2x3+2".parse().unwrap();
        let network: Shape = "4x4m".parse().unwrap();
        let place = |at: &[u32]| Embedding::sub_box(&shape, network.clone(), Coord::new(at));
        let embedding = place(&[3, 1]).unwrap();
        let corner = |node| network.coord(embedding.place(Vertex(node))).to_string();
        assert_eq!(
            (corner(0), corner(1), corner(11)),
            ("(3,1)".into(), "(3,1)".into(), "(0,3)".into())
        );
        assert_eq!(embedding.hops(Vertex(0), Vertex(1)), 0);
        assert_eq!(embedding.hops(Vertex(0), Vertex(11)), 3);
        let message = place(&[0, 2]).unwrap_err().to_string();
        assert!(message.contains("2x3+2 at (0,2) is not inside the network 4x4m"), "{message}");
        assert!(place(&[0]).is_err());
        let tofu_box = TofuBox { units: [2, 1, 1] };
        let machine: Shape = "2mx2x2".parse().unwrap();
        let at = |x| Embedding::tofu(tofu_box, 4, &machine, Coord::new(&[x, 1, 1]));
        assert_eq!(at(0).unwrap().network().to_string(), "2mx2x2x2mx3x2m");
        assert!(at(1).is_err());
    }

    #[test]
    fn lists_must_give_every_node_its_place() {
        let shape: Shape = "3+2".parse().unwrap();
        let network: Shape = "4".parse().unwrap();
        let list = |places: &[u32]| {
            let places: Vec<Coord> = places.iter().map(|&place| Coord::new(&[place])).collect();
            Embedding::list(&shape, network.clone(), &places)
        };
        assert_eq!(list(&[3, 1, 0]).unwrap().hops(Vertex(0), Vertex(5)), 1);
        for (places, expected) in [
            (&[1, 2][..], "2 places for the 3 nodes"),
            (&[1, 2, 4], "place (4) of node 2"),
            (&[1, 2, 1], "nodes 0 and 2 are both in place (1)"),
        ] {
            let message = list(places).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let logical: Shape = "2x3".parse().unwrap();
        let identity = Embedding::identity(&logical);
        for (a, b) in logical.vertices().flat_map(|a| logical.vertices().map(move |b| (a, b))) {
            assert_eq!(identity.hops(a, b), logical.hops(a, b));
        }
    }
}
