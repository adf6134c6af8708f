//! Shape and rank map of a world, from the known places of its ranks.
//!
//! Pure functions. If a node has several ranks, these form the shape's node axis, behind the node's coordinates. By
//! default the ranks of a node are consecutive, and the first dimension of the nodes varies fastest, as in pjsub's
//! rank order: so ranks `k*i .. k*i + k` are on node `i`.

use std::collections::HashMap;

use hopbine_meet::fnv;
use hopbine_torus::geometry::tofu::TofuBox;
use hopbine_torus::geometry::{Coord, RankMap, Shape, Vertex, near_cubic};

/// Ranks on the nodes of a torus, equally many on each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    nodes: Shape,
    /// The node of each rank.
    node_of: Vec<Vertex>,
}

impl Placement {
    /// `None` if a rank has no node, or not all nodes have equally many ranks.
    fn new(nodes: Shape, of_ranks: impl ExactSizeIterator<Item = Option<Vertex>>) -> Option<Self> {
        let mut node_of = Vec::with_capacity(of_ranks.len());
        let mut ranks_on = vec![0u32; nodes.n_ranks() as usize];
        for node in of_ranks {
            let node = node?;
            ranks_on[node.index()] += 1;
            node_of.push(node);
        }
        let is_even = ranks_on.iter().all(|&ranks| ranks == ranks_on[0]);
        is_even.then_some(Placement { nodes, node_of })
    }

    /// The shape of all ranks, and its rank map.
    ///
    /// # Errors
    /// If the shape is too large.
    pub(super) fn shape_and_map(self) -> Result<(Shape, RankMap), String> {
        let Placement { nodes, node_of: mut places } = self;
        let per_node = places.len() as u32 / nodes.n_ranks();
        let mut ranks_on = vec![0; nodes.n_ranks() as usize];
        for place in &mut places {
            let before = &mut ranks_on[place.index()];
            *place = Vertex(place.0 * per_node + *before);
            *before += 1;
        }
        let shape = nodes.with_ranks_per_node(per_node).map_err(|error| error.to_string())?;
        let map = RankMap::from_vertices(&shape, places).map_err(|error| error.to_string())?;
        Ok((shape, map))
    }
}

/// Places the ranks by their Tofu coordinates, if these fill a box of whole units. (Fugaku allocates whole units to
/// jobs. A box that wraps around the end of the machine is not recognised.)
pub(super) fn from_tofu(
    coords: impl ExactSizeIterator<Item = [u8; 6]> + Clone,
) -> Option<Placement> {
    let mut first = coords.clone().next()?;
    let mut last = first;
    for at in coords.clone() {
        for dim in 0..3 {
            first[dim] = first[dim].min(at[dim]);
            last[dim] = last[dim].max(at[dim]);
        }
    }
    let units = [0, 1, 2].map(|dim| u32::from(last[dim] - first[dim]) + 1);
    let tofu_box = TofuBox { units };
    let nodes = tofu_box.logical_shape().ok()?;
    let of_ranks = coords.map(|mut at| {
        (0..3).for_each(|dim| at[dim] -= first[dim]);
        Some(nodes.vertex(tofu_box.fold(at)?))
    });
    Placement::new(nodes.clone(), of_ranks)
}

/// Logical coordinates, as Fujitsu MPI calls them: the sizes of a job's torus, and a node's place in it; both are 0
/// beyond its dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Logical {
    pub(super) sizes: [u32; 3],
    pub(super) at: [u32; 3],
}

/// A node's place in the job's torus, as ranks exchange it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TorusPlace {
    /// A hash of the torus's sizes.
    pub(super) torus: u16,
    pub(super) node: Vertex,
}

impl Logical {
    /// The torus, and the node's place in it; `None` if the place is outside.
    pub(super) fn torus_place(&self) -> Option<(Shape, TorusPlace)> {
        let Logical { sizes, at } = self;
        let n_dims = sizes.iter().take_while(|&&size| size > 0).count();
        let torus = Shape::torus(&sizes[..n_dims]).ok()?;
        let at = Coord::new(&at[..n_dims]);
        let number = fnv::of_bytes(sizes.iter().flat_map(|size| size.to_le_bytes()));
        let place = || TorusPlace { torus: (number ^ number >> 32) as u16, node: torus.vertex(at) };
        at.is_below(&sizes[..n_dims]).then(|| (torus.clone(), place()))
    }
}

/// Places the ranks by their nodes' places in the torus that one of them reports.
pub(super) fn from_torus_places(
    (torus, mine): &(Shape, TorusPlace),
    ranks: impl ExactSizeIterator<Item = Option<TorusPlace>>,
) -> Option<Placement> {
    let is_inside =
        |place: &TorusPlace| place.torus == mine.torus && place.node.0 < torus.n_ranks();
    Placement::new(
        torus.clone(),
        ranks.map(|place| place.filter(is_inside).map(|place| place.node)),
    )
}

/// Places the ranks by their hosts, if there are several hosts with several ranks each: the hosts become nodes, in
/// the order of their first ranks.
pub(super) fn from_hosts(hosts: &[u64]) -> Option<Placement> {
    let mut known = Vec::new();
    let mut numbers = HashMap::new();
    for host in hosts {
        let next = numbers.len() as u32;
        known.push(*numbers.entry(*host).or_insert(next));
    }
    let n_hosts = numbers.len();
    if n_hosts < 2 || n_hosts == hosts.len() {
        return None;
    }
    let nodes = Shape::torus(&near_cubic(n_hosts as u32)).ok()?;
    // The first dimension varies fastest, as in the default rank map.
    let map = RankMap::default();
    let of_ranks = known.iter().map(|&node| Some(map.vertex_of(&nodes, hopbine_torus::Rank(node))));
    Placement::new(nodes.clone(), of_ranks)
}

/// A rank map that keeps the ranks of a host together. If all hosts have equally many ranks and boxes of that size
/// fill the torus, each host gets a box of the shape with the fewest links to other boxes. Otherwise the hosts
/// follow one another along the last dimension (Bine trees, section 2.2).
///
/// # Errors
/// If there are not as many ranks as the shape has nodes.
pub(super) fn by_host(shape: &Shape, hosts: &[u64]) -> Result<RankMap, String> {
    let mut order: Vec<usize> = (0..hosts.len()).collect();
    // By host, its first rank and its number of ranks.
    let mut known = HashMap::new();
    for (rank, host) in hosts.iter().enumerate() {
        known.entry(*host).or_insert((rank, 0)).1 += 1;
    }
    order.sort_by_key(|&rank| (known[&hosts[rank]].0, rank));
    let per_host = known.get(&hosts[0]).map_or(0, |&(_, n_ranks)| n_ranks);
    let is_even = known.values().all(|&(_, n_ranks)| n_ranks == per_host);
    let sizes = shape.sizes();
    let sides = if is_even { best_box(&sizes, per_host as u32) } else { None };
    let mut nodes: Vec<Vertex> = (0..shape.n_ranks()).map(Vertex).collect();
    if let Some(sides) = sides {
        // Box by box, in the order of their first nodes.
        nodes.sort_by_key(|&node| {
            let at = shape.coord(node);
            let corner: Vec<u32> = at.as_slice().iter().zip(&sides).map(|(x, b)| x / b).collect();
            (corner, node.0)
        });
    }
    let mut node_of = vec![Vertex(0); hosts.len()];
    for (&rank, &node) in order.iter().zip(&nodes) {
        node_of[rank] = node;
    }
    RankMap::from_vertices(shape, node_of).map_err(|error| error.to_string())
}

/// Sides of a box of `volume` nodes that divide the sizes, with the fewest links to other boxes.
fn best_box(sizes: &[u32], volume: u32) -> Option<Vec<u32>> {
    let Some((&size, rest)) = sizes.split_first() else {
        return (volume == 1).then(Vec::new);
    };
    let sides =
        (1..=size).filter(|side| size.is_multiple_of(*side) && volume.is_multiple_of(*side));
    let boxes = sides.filter_map(|side| {
        let mut all = vec![side];
        all.extend(best_box(rest, volume / side)?);
        Some(all)
    });
    // Links that leave a box, for each node: 1/side, summed over the sides that are shorter than their dimension. Of
    // equal boxes the one nearest to a cube is best.
    let leaves = |sides: &[u32]| -> f64 {
        let ends = sides.iter().zip(sizes).filter(|(side, size)| side < size);
        ends.map(|(&side, _)| 1.0 / f64::from(side)).sum()
    };
    boxes.min_by(|a, b| {
        f64::total_cmp(&leaves(a), &leaves(b)).then(a.iter().max().cmp(&b.iter().max()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_host_are_neighbours() {
        let shape: Shape = "4x4x4".parse().unwrap();
        // Eight hosts that take ranks in turn.
        let hosts: Vec<u64> = (0..64).map(|rank| 100 - rank % 8).collect();
        let map = by_host(&shape, &hosts).unwrap();
        for rank in 0..8 {
            let box_of = |rank| {
                let at = map.coord_of(&shape, hopbine_torus::Rank(rank));
                at.as_slice().iter().map(|x| x / 2).collect::<Vec<_>>()
            };
            for other in (rank..64).step_by(8) {
                assert_eq!(box_of(rank), box_of(other), "{rank} and {other}");
            }
        }
        assert_eq!(best_box(&[4, 4], 4), Some(vec![2, 2]));
        // A whole ring has no ends.
        assert_eq!(best_box(&[2, 8], 4), Some(vec![2, 2]));
        assert_eq!(best_box(&[3, 4], 5), None);
        let uneven = by_host(&"3x2".parse().unwrap(), &[7, 7, 8, 7, 9, 9]).unwrap();
        let at = |rank| uneven.vertex_of(&"3x2".parse().unwrap(), hopbine_torus::Rank(rank));
        assert_eq!([at(0), at(1), at(3), at(2)], [0, 1, 2, 3].map(Vertex));
        assert!(by_host(&shape, &[1, 2]).is_err());
    }

    #[test]
    fn hosts_are_nodes_where_each_has_as_many_ranks() {
        // Four hosts that take six ranks in turn.
        let hosts: Vec<u64> = (0..24).map(|rank| 100 - rank % 4).collect();
        let (shape, map) = from_hosts(&hosts).unwrap().shape_and_map().unwrap();
        assert_eq!(shape.to_string(), "2x2+6");
        assert_eq!(map.coord_of(&shape, hopbine_torus::Rank(1)).as_slice(), [1, 0, 0]);
        assert_eq!(map.coord_of(&shape, hopbine_torus::Rank(23)).as_slice(), [1, 1, 5]);
        for none in [&[1, 1, 2][..], &[1, 1, 1], &[1, 2, 3], &[7]] {
            assert_eq!(from_hosts(none), None);
        }
    }

    #[test]
    fn logical_coordinates_become_their_torus() {
        // Two ranks on each node of 3x2, from the last node to the first.
        let at = |node: u32| [2 - node / 2, 1 - node % 2, 0];
        let given = |at| Logical { sizes: [3, 2, 0], at }.torus_place();
        let mine = given(at(0)).unwrap();
        let mut ranks: Vec<Option<TorusPlace>> =
            (0..12).map(|rank| given(at(rank / 2)).map(|(_, given)| given)).collect();
        let laid_out =
            |ranks: &[Option<TorusPlace>]| from_torus_places(&mine, ranks.iter().copied());
        let (shape, map) = laid_out(&ranks).unwrap().shape_and_map().unwrap();
        assert_eq!((shape.n_ranks(), shape.sizes()[..2].to_vec()), (12, vec![3, 2]));
        assert_eq!(map.coord_of(&shape, hopbine_torus::Rank(0)).as_slice(), [2, 1, 0]);
        assert_eq!(map.coord_of(&shape, hopbine_torus::Rank(11)).as_slice(), [0, 0, 1]);
        assert_eq!(laid_out(&ranks[..11]), None);
        assert_eq!(given([3, 0, 0]), None);
        let (_, elsewhere) = Logical { sizes: [2, 3, 0], at: [0; 3] }.torus_place().unwrap();
        for other in [None, Some(elsewhere), Some(TorusPlace { node: Vertex(6), ..mine.1 })] {
            ranks[3] = other;
            assert_eq!(laid_out(&ranks), None);
        }
    }

    #[test]
    fn a_box_of_tofu_units_becomes_its_torus() {
        let tofu_box = TofuBox { units: [2, 1, 3] };
        let nodes = tofu_box.logical_shape().unwrap();
        let coords: Vec<[u8; 6]> = (0..2 * nodes.n_ranks())
            .map(|rank| {
                let mut at = tofu_box.unfold(nodes.coord(Vertex(rank / 2)));
                (at[0], at[2]) = (at[0] + 5, at[2] + 7);
                at
            })
            .collect();
        let of = |coords: &[[u8; 6]]| from_tofu(coords.iter().copied());
        let (shape, map) = of(&coords).unwrap().shape_and_map().unwrap();
        assert_eq!(shape.to_string(), "4x3x6+2");
        for rank in 0..shape.n_ranks() {
            let at = map.coord_of(&shape, hopbine_torus::Rank(rank));
            assert_eq!(at[3], rank % 2);
            assert_eq!(&at.as_slice()[..3], nodes.coord(Vertex(rank / 2)).as_slice());
        }
        assert!(of(&coords[1..]).is_none(), "a node lacks a rank");
        assert!(of(&[[0; 6]]).is_none(), "less than a unit");
    }
}
