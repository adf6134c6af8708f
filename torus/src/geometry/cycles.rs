//! Edge-disjoint Hamiltonian cycles of a torus: one for each of its rings of three or more.
//!
//! Let a vector be cut into as many parts as there are cycles and directions, and let each part be pipelined from
//! node to node along its own cycle and direction. Then every link of the rings is used once, and every node sends
//! each part to one other node: a large broadcast or reduction runs at the bandwidth of all links *and* of all
//! network interfaces. The price is depth: the last of n nodes is n - 1 hops away.
//!
//! Products of rings have such decompositions: of two rings Kotzig, "Every Cartesian product of two circuits is
//! decomposable into two Hamiltonian circuits" (1973), of three Foregger, "Hamiltonian decompositions of products
//! of cycles", Discrete Mathematics 24 (1978). Neither gives a short rule for all sizes, so **we search** (ours).
//! Each cycle begins as the lines of a dimension: a set of closed walks that cover all nodes. The links around a
//! square of four nodes may be exchanged: if one set of walks has two opposite sides, and another set, or none, has
//! the other two, each set gets the other's sides. Every node keeps two links in each set, and two walks of a set
//! that meet at a square become one. The search takes exchanges that leave fewer walks, else exchanges that leave
//! the same number. It is deterministic: all ranks find the same cycles.
//!
//! Dimensions of two coordinates have one link between their nodes. Walks may cross these links, but such
//! dimensions are not rings.

use super::axis::{AxisLink, Vertex};
use super::route::Direction;
use super::shape::Shape;

/// The Hamiltonian cycles of a shape's nodes.
#[derive(Clone, Debug)]
pub struct Cycles {
    /// By cycle and node: the previous and the next node on the cycle.
    neighbours: Vec<Vec<[u32; 2]>>,
}

impl Cycles {
    /// The most nodes for which cycles are searched: on more nodes their depth outweighs their bandwidth even for
    /// 512 MiB.
    pub const MOST_NODES: u32 = 2048;

    /// The most nodes in more than three dimensions, unless the last of these have the sizes 2, 3 and 2 of Tofu's
    /// axes. There are too many larger shapes to prove that the search succeeds on each of them.
    pub const MOST_NODES_IN_MANY_DIMS: u32 = 512;

    /// Number of cycles of a shape: one for each ring of three or more. 0 for a shape that has a mesh, fewer than
    /// two dimensions, or too many nodes: no cycles are known for it.
    pub fn n_of(shape: &Shape) -> usize {
        let dims = shape.active_dims();
        let axes = || dims.iter().map(|&dim| shape.axes()[dim]);
        let n_nodes = shape.n_ranks() / shape.ranks_per_node();
        let is_torus = axes().all(|axis| axis.link == AxisLink::Torus || axis.size == 2);
        let is_tofu = axes().rev().map(|axis| axis.size).take(3).eq([2, 3, 2]);
        let most = match dims.len() <= 3 || is_tofu {
            true => Cycles::MOST_NODES,
            false => Cycles::MOST_NODES_IN_MANY_DIMS,
        };
        match is_torus && dims.len() > 1 && n_nodes <= most {
            true => axes().filter(|axis| axis.size > 2).count(),
            false => 0,
        }
    }

    /// The cycles of a shape; `None` if no cycles are known, or if the search does not find them.
    pub fn new(shape: &Shape) -> Option<Self> {
        let n_cycles = Cycles::n_of(shape);
        (n_cycles > 0).then(|| Search::new(shape, n_cycles).run()).flatten()
    }

    /// Number of cycles.
    pub fn n_cycles(&self) -> usize {
        self.neighbours.len()
    }

    /// The neighbour of a node on a cycle, in a direction.
    ///
    /// # Panics
    /// If there is no such cycle or node.
    pub fn neighbour(&self, cycle: usize, node: Vertex, direction: Direction) -> Vertex {
        let [before, after] = self.neighbours[cycle][node.index()];
        Vertex(if direction == Direction::Plus { after } else { before })
    }
}

/// A set of closed walks that cover all nodes.
#[derive(Clone, Debug)]
struct Walks {
    /// By node, its two neighbours on its walk.
    neighbours: Vec<[u32; 2]>,
    /// By node, the number of its walk, and its place on that walk.
    places: Vec<(u32, u32)>,
    n_walks: usize,
}

impl Walks {
    /// Numbers the walks and the places on them.
    fn number(&mut self) {
        const NONE: u32 = u32::MAX;
        self.places.fill((NONE, 0));
        self.n_walks = 0;
        for start in 0..self.neighbours.len() as u32 {
            let (mut before, mut at, mut place) = (NONE, start, 0);
            while self.places[at as usize].0 == NONE {
                self.places[at as usize] = (self.n_walks as u32, place);
                let [one, other] = self.neighbours[at as usize];
                let next = if one == before { other } else { one };
                (before, at, place) = (at, next, place + 1);
            }
            self.n_walks += usize::from(place > 0);
        }
    }

    /// True if the walk goes from `from` to its neighbour `to`, not from `to` to `from`.
    fn is_forward(&self, from: u32, to: u32) -> bool {
        let [from, to] = [from, to].map(|node| self.places[node as usize].1);
        to == from + 1 || (to == 0 && from > 1)
    }

    /// The decrease in the number of walks if links a-d and b-c replace a-b and d-c.
    fn gain(&self, [a, b, c, d]: [u32; 4]) -> i32 {
        let [of_a, of_d] = [a, d].map(|node| self.places[node as usize].0);
        if of_a != of_d {
            return 1;
        }
        // If a walk passes both links in the same direction, a part of it is reversed; otherwise it is cut in two.
        if self.is_forward(a, b) == self.is_forward(d, c) { 0 } else { -1 }
    }

    /// Replaces the link of a node to `old` by a link to `new`.
    fn relink(&mut self, from: u32, old: u32, new: u32) {
        let neighbours = &mut self.neighbours[from as usize];
        let at = usize::from(neighbours[0] != old);
        neighbours[at] = new;
    }

    /// Replaces the links a-b and d-c by a-d and b-c.
    fn exchange(&mut self, [a, b, c, d]: [u32; 4]) {
        self.relink(a, b, d);
        self.relink(b, a, c);
        self.relink(c, d, b);
        self.relink(d, c, a);
        self.number();
    }
}

/// Four nodes around a square, and the links along its sides.
#[derive(Clone, Copy, Debug)]
struct Square {
    /// A corner, its neighbour along one dimension, the opposite corner, its neighbour along the other dimension.
    corners: [u32; 4],
    /// Indices into `owners`: of the link between the first and the second corner and of the opposite link; and of
    /// the two links along the other dimension.
    links: [[(usize, usize); 2]; 2],
}

/// A search for cycles.
#[derive(Clone, Debug)]
struct Search {
    walks: Vec<Walks>,
    /// By dimension and lower node of a link, the set of walks that has the link.
    owners: Vec<Vec<Option<usize>>>,
    squares: Vec<Square>,
}

impl Search {
    fn new(shape: &Shape, n_cycles: usize) -> Self {
        let shape = shape.without_node_axis();
        let dims = shape.active_dims();
        let n_nodes = shape.n_ranks();
        let neighbour = |node: u32, dim: usize, by: u32| {
            let (at, size) = (shape.coord(Vertex(node)), shape.size(dim));
            shape.vertex(at.with(dim, (at[dim] + by) % size)).0
        };
        let (mut walks, mut owners) = (Vec::with_capacity(n_cycles), Vec::new());
        for &dim in &dims {
            let size = shape.size(dim);
            owners.push(vec![(size > 2).then_some(walks.len()); n_nodes as usize]);
            if size > 2 {
                let of_node = |node| [size - 1, 1].map(|by| neighbour(node, dim, by));
                let neighbours: Vec<_> = (0..n_nodes).map(of_node).collect();
                let mut lines =
                    Walks { places: vec![(0, 0); neighbours.len()], neighbours, n_walks: 0 };
                lines.number();
                walks.push(lines);
            }
        }
        let mut squares = Vec::new();
        for (one, &first) in dims.iter().enumerate() {
            for (other, &second) in dims.iter().enumerate().skip(one + 1) {
                // In a dimension of two coordinates, the square from the other coordinate has the same links.
                let is_new = |node: &u32| {
                    let at = shape.coord(Vertex(*node));
                    [first, second].iter().all(|&dim| shape.size(dim) > 2 || at[dim] == 0)
                };
                squares.extend((0..n_nodes).filter(is_new).map(|a| {
                    let (b, d) = (neighbour(a, first, 1), neighbour(a, second, 1));
                    let corners = [a, b, neighbour(b, second, 1), d];
                    let at = |axis: usize, node: u32| (axis, node as usize);
                    Square {
                        corners,
                        links: [[at(one, a), at(one, d)], [at(other, a), at(other, b)]],
                    }
                }));
            }
        }
        Search { walks, owners, squares }
    }

    /// The common owner of two opposite sides of a square (`None` inside if no set has them); `None` if their
    /// owners differ.
    fn owner(&self, links: [(usize, usize); 2]) -> Option<Option<usize>> {
        let [one, other] = links.map(|(axis, node)| self.owners[axis][node]);
        (one == other).then_some(one)
    }

    /// The two sets of walks, or one set and none, that may exchange the sides of a square.
    fn parties(&self, square: &Square) -> Option<[Option<usize>; 2]> {
        let parties = [self.owner(square.links[0])?, self.owner(square.links[1])?];
        (parties[0] != parties[1]).then_some(parties)
    }

    /// The decrease in the number of walks by an exchange; `None` if the exchange is not allowed.
    fn gain(&self, square: &Square) -> Option<i32> {
        let [along, across] = self.parties(square)?;
        let [a, b, c, d] = square.corners;
        let gain = |who: Option<usize>, corners| who.map_or(0, |who| self.walks[who].gain(corners));
        Some(gain(along, [a, b, c, d]) + gain(across, [a, d, c, b]))
    }

    fn exchange(&mut self, at: usize) {
        let Some([along, across]) = self.parties(&self.squares[at]) else { return };
        let Square { corners: [a, b, c, d], links } = self.squares[at];
        for (links, owner) in links.into_iter().zip([across, along]) {
            links.into_iter().for_each(|(axis, node)| self.owners[axis][node] = owner);
        }
        if let Some(who) = along {
            self.walks[who].exchange([a, b, c, d]);
        }
        if let Some(who) = across {
            self.walks[who].exchange([a, d, c, b]);
        }
    }

    /// The square to exchange next, searched from `from` on: in the first quarter of all squares the first that
    /// gains two walks; after it the best so far, as soon as it gains a walk; else one that loses none.
    fn next(&self, from: usize) -> Option<usize> {
        let n_squares = self.squares.len();
        let mut best: Option<(i32, usize)> = None;
        for number in 0..n_squares {
            let at = (from + number) % n_squares;
            let gain = self.gain(&self.squares[at]).filter(|&gain| gain >= 0);
            if let Some(gain) = gain.filter(|&gain| best.is_none_or(|(most, _)| gain > most)) {
                best = Some((gain, at));
            }
            let enough = if number < n_squares / 4 { 2 } else { 1 };
            if best.is_some_and(|(most, _)| most >= enough) {
                break;
            }
        }
        best.map(|(_, at)| at)
    }

    /// Exchanges, starting at a square, until each set is a single walk; false if the search fails.
    fn merge(&mut self, first: usize) -> bool {
        let (mut at, mut idle) = (first, 0);
        let count = |walks: &[Walks]| walks.iter().map(|walks| walks.n_walks).sum::<usize>();
        let mut left = count(&self.walks);
        while left > self.walks.len() {
            let Some(next) = self.next(at) else { return false };
            self.exchange(next);
            let before = std::mem::replace(&mut left, count(&self.walks));
            idle += usize::from(left == before);
            // Long thin tori need many exchanges that only reverse a part of a walk.
            if idle > self.squares.len() {
                return false;
            }
            // Do not undo the exchange.
            at = (next + 1) % self.squares.len();
        }
        true
    }

    fn run(self) -> Option<Cycles> {
        /// Number of different squares at which the search is started, until it succeeds.
        const ATTEMPTS: usize = 16;
        let begin = |attempt: usize| {
            let mut search = self.clone();
            search.merge(attempt * self.squares.len() / ATTEMPTS).then_some(search)
        };
        let found = (0..ATTEMPTS).find_map(begin)?;
        let in_order = |walks: Walks| {
            let mut order = vec![0; walks.places.len()];
            for (node, (_, place)) in (0..).zip(walks.places) {
                order[place as usize] = node;
            }
            let n_nodes = order.len();
            let mut neighbours = vec![[0; 2]; n_nodes];
            for (place, &node) in order.iter().enumerate() {
                let [before, after] = [n_nodes - 1, 1].map(|by| order[(place + by) % n_nodes]);
                neighbours[node as usize] = [before, after];
            }
            neighbours
        };
        Some(Cycles { neighbours: found.walks.into_iter().map(in_order).collect() })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::geometry::axis::MAX_TORUS_DIMS;

    fn check(shape: &Shape) {
        let cycles = Cycles::new(shape).unwrap_or_else(|| panic!("{shape}: no cycles found"));
        assert_eq!(cycles.n_cycles(), Cycles::n_of(shape));
        let nodes = shape.without_node_axis();
        let mut used = HashSet::new();
        for cycle in 0..cycles.n_cycles() {
            let mut at = Vertex(0);
            for number in 1..=nodes.n_ranks() {
                let next = cycles.neighbour(cycle, at, Direction::Plus);
                assert_eq!(cycles.neighbour(cycle, next, Direction::Minus), at);
                assert_eq!(nodes.distance(at, next), 1, "{shape}: {at} to {next}");
                assert!(used.insert((at.min(next), at.max(next))), "{shape}: {at}-{next} twice");
                // The cycle returns to its start after all nodes, and not before.
                assert_eq!(next == Vertex(0), number == nodes.n_ranks(), "{shape} cycle {cycle}");
                at = next;
            }
        }
    }

    /// The sizes of all shapes of `n_dims` dimensions with at most `most` nodes, each size at least two.
    fn shapes(n_dims: usize, most: u32) -> Vec<Vec<u32>> {
        if n_dims == 0 {
            return vec![Vec::new()];
        }
        let with = |size: u32| {
            let more = move |mut sizes: Vec<u32>| {
                sizes.push(size);
                sizes
            };
            shapes(n_dims - 1, most / size).into_iter().map(more)
        };
        (2..=most).flat_map(with).collect()
    }

    fn check_all(n_dims: usize, most: u32) -> usize {
        let all = shapes(n_dims, most).into_iter().map(|sizes| Shape::torus(&sizes).unwrap());
        all.filter(|shape| Cycles::n_of(shape) > 0).map(|shape| check(&shape)).count()
    }

    #[test]
    fn cycles_have_all_nodes_and_share_no_link() {
        assert!(check_all(2, 150) > 400);
        assert!(check_all(3, 130) > 300);
        for text in
            ["8x8x8", "5x7x11", "2x3x2x2x3x2", "3x3x3x3", "4x1x4", "4x4+3", "12x160", "2x1024"]
        {
            check(&text.parse().unwrap());
        }
    }

    /// Every shape for which [`Cycles::n_of`] promises cycles.
    #[test]
    #[ignore = "takes minutes; run by ci/nightly.sh"]
    fn all_promised_cycles_are_found() {
        let most = |n_dims| match n_dims {
            2 | 3 => Cycles::MOST_NODES,
            _ => Cycles::MOST_NODES_IN_MANY_DIMS,
        };
        let n_shapes: usize = (2..=MAX_TORUS_DIMS).map(|n| check_all(n, most(n as u32))).sum();
        assert!(n_shapes > 48_000, "{n_shapes}");
        // Tofu's axes.
        for sizes in (1..=3).flat_map(|n_dims| shapes(n_dims, Cycles::MOST_NODES / 12)) {
            check(&Shape::torus(&[&sizes[..], &[2, 3, 2]].concat()).unwrap());
        }
    }

    #[test]
    fn shapes_without_cycles_have_none() {
        for text in [
            "1",
            "7",
            "2x2",
            "2x2x2",
            "4x4m",
            "4m",
            "64x64",
            "3+4",
            "3x3x3x19",
            "2x3x2x5x9",
            "3x2x3x2x3x5",
        ] {
            let shape: Shape = text.parse().unwrap();
            assert_eq!(Cycles::n_of(&shape), 0, "{text}");
            assert!(Cycles::new(&shape).is_none(), "{text}");
        }
        // A mesh of two is a link between two nodes.
        assert_eq!(Cycles::n_of(&"3x2m".parse().unwrap()), 1);
        check(&"3x2m".parse().unwrap());
        assert_eq!(Cycles::n_of(&"5x9x2x3x2".parse().unwrap()), 3);
    }
}
