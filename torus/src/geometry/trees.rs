//! Edge-disjoint spanning trees: as many as the shape has directions, from any root.
//!
//! Let a vector be cut into as many parts as there are trees, and let each part be pipelined down its own tree.
//! Then every link into a node is used once: a large broadcast or reduction runs at the bandwidth of all links.
//! There are two trees for each dimension that is a ring of three or more, and one for each dimension that is a
//! mesh or has two coordinates. No shape can have more, as some node has only that many links.
//!
//! **Construction** (ours; for the hypercube it is similar to that of Ho and Johnsson, 1986). Let each tree also
//! give the root a parent. Then every node has one parent per tree, all over different links, and each tree has one
//! cycle, through the root; the tree results from cutting the cycle there. A ring has two such graphs, x <- x - 1
//! and x <- x + 1; a mesh has one, towards the root, and so have two coordinates. Let `first` be the child of the
//! root on the cycle. Given these graphs on two factors A and B with roots a and b, the product has the graphs of A
//! and those of B. Each graph moves along its own factor, except that at nodes (x, y) with x not a and y not b two
//! graphs exchange their parents:
//! - if x is the `first` of tree i of A and y that of tree j of B, i and j exchange their parents;
//! - if only x is a `first`, of i, tree i exchanges with the tree of B by which b is nearest;
//! - if only y is a `first`, of j, tree j exchanges with the tree of A by which a is nearest.
//!
//! So tree i of A enters every copy of A at its `first`, which cuts the copy's cycle, from a copy nearer to b; or
//! from b's own copy if the exchange there was another tree's. In b's own copy nothing is exchanged. The same holds
//! for B. So each tree reaches the root, and no link belongs to two trees. A tree is as deep as its own dimension
//! is long, plus half of the other dimensions.
//!
//! The paths from the root around [`Cycles`] are such trees, too: trees in which each node has one child.
//!
//! If ranks share a node, one of them represents the node in a tree, a different one for each tree, and forwards to
//! the node's other ranks.

use smallvec::SmallVec;

use super::axis::{AxisLink, Coord, MAX_TORUS_DIMS, Vertex};
use super::cycles::Cycles;
use super::route::Direction;
use super::shape::Shape;

/// The link by which a tree reaches a node: its dimension and direction.
type TreeMove = (usize, Direction);

/// The dimension of a move that has not been set.
const UNSET: usize = usize::MAX;

/// The edge-disjoint spanning trees of a shape from one root.
#[derive(Clone, Debug)]
pub struct Trees {
    shape: Shape,
    root: Coord,
    lines: Vec<TreeLine>,
    /// The cycles, if the trees go around cycles.
    cycles: Option<Cycles>,
    n_trees: usize,
}

/// A dimension with links, as a factor of the product.
#[derive(Clone, Copy, Debug)]
struct TreeLine {
    dim: usize,
    size: u32,
    link: AxisLink,
    root: u32,
    /// The trees that move along the dimension.
    trees: [Option<usize>; 2],
}

impl TreeLine {
    /// The direction from the parent to coordinate `x` in tree `way` of this line; the root has a parent, too.
    fn direction_from_parent(&self, way: usize, x: u32) -> Direction {
        let is_up = match self.link {
            AxisLink::Mesh if x == self.root => self.root + 1 == self.size,
            AxisLink::Mesh => x > self.root,
            AxisLink::Torus | AxisLink::Node => way == 0,
        };
        if is_up { Direction::Plus } else { Direction::Minus }
    }

    /// The tree in whose cycle `x` is the child of the root.
    fn first(&self, x: u32) -> Option<usize> {
        let up = if self.root + 1 < self.size { self.root + 1 } else { 0 };
        let down = self.root.checked_sub(1).unwrap_or(self.size - 1);
        match self.link {
            AxisLink::Mesh if self.root + 1 == self.size => (x == down).then_some(self.trees[0]),
            _ if x == up => Some(self.trees[0]),
            _ => (x == down).then_some(self.trees[1]),
        }
        .flatten()
    }

    /// The number of the line's tree (0 upwards, 1 downwards) that goes the shorter way from the root to `x`.
    fn nearest(&self, x: u32) -> usize {
        let up = if x >= self.root { x - self.root } else { x + self.size - self.root };
        usize::from(self.trees[1].is_some() && 2 * up > self.size)
    }

    fn step(&self, x: u32, direction: Direction) -> Option<u32> {
        let (first, last) = match direction {
            Direction::Plus => (self.size - 1, 0),
            Direction::Minus => (0, self.size - 1),
        };
        match direction {
            _ if x == first => (self.link == AxisLink::Torus).then_some(last),
            Direction::Plus => Some(x + 1),
            Direction::Minus => Some(x - 1),
        }
    }
}

impl Trees {
    /// The trees of `shape` from `root`.
    ///
    /// # Panics
    /// If the root is not below the number of nodes.
    pub fn new(shape: &Shape, root: Vertex) -> Self {
        let root = shape.coord(root);
        let mut lines: Vec<TreeLine> = shape
            .active_dims()
            .into_iter()
            .map(|dim| {
                let axis = shape.axes()[dim];
                TreeLine {
                    dim,
                    size: axis.size,
                    link: axis.link,
                    root: root[dim],
                    trees: [None; 2],
                }
            })
            .collect();
        // First one tree per dimension, then the second trees, in the order of ports.
        let mut n_trees = 0;
        for way in 0..2 {
            for line in &mut lines {
                if way == 0 || (line.link == AxisLink::Torus && line.size > 2) {
                    line.trees[way] = Some(n_trees);
                    n_trees += 1;
                }
            }
        }
        Trees { shape: shape.clone(), root, lines, cycles: None, n_trees: n_trees.max(1) }
    }

    /// The trees around the cycles of `shape` from `root`: first one direction of each cycle, then the other.
    /// `None` if the shape has no cycles.
    ///
    /// # Panics
    /// If the root is not below the number of nodes.
    pub fn around_cycles(shape: &Shape, root: Vertex) -> Option<Self> {
        let cycles = Cycles::new(shape)?;
        let n_trees = 2 * cycles.n_cycles();
        Some(Trees { cycles: Some(cycles), n_trees, ..Trees::new(shape, root) })
    }

    /// Number of trees: one per direction in which every node has a link; 1 if there is no such direction.
    pub fn n_trees(&self) -> usize {
        self.n_trees
    }

    /// The root.
    pub fn root(&self) -> Vertex {
        self.shape.vertex(self.root)
    }

    /// By tree, the link by which the tree reaches a place other than the root's.
    fn moves(&self, at: Coord) -> SmallVec<[TreeMove; 2 * MAX_TORUS_DIMS]> {
        let mut moves = SmallVec::from_elem((UNSET, Direction::Plus), self.n_trees);
        // The earlier dimensions in which the place has another coordinate than the root.
        let mut away: SmallVec<[&TreeLine; MAX_TORUS_DIMS]> = SmallVec::new();
        for line in &self.lines {
            let y = at[line.dim];
            for (way, tree) in line.trees.iter().enumerate() {
                if let Some(tree) = *tree {
                    moves[tree] = (line.dim, line.direction_from_parent(way, y));
                }
            }
            if y == line.root {
                continue;
            }
            if let Some(&before) = away.first() {
                let x = at[before.dim];
                let i = if away.len() == 1 { before.first(x) } else { None };
                let j = line.first(y);
                let nearest_j = || line.trees[line.nearest(y)];
                let nearest_i = || {
                    let nearer = (before.dim, before.direction_from_parent(before.nearest(x), x));
                    moves.iter().position(|&known| known == nearer)
                };
                let pair = match (i, j) {
                    (None, None) => None,
                    (Some(i), j) => j.or_else(nearest_j).map(|j| (i, j)),
                    (None, Some(j)) => nearest_i().map(|i| (i, j)),
                };
                if let Some((i, j)) = pair {
                    moves.swap(i, j);
                }
            }
            away.push(line);
        }
        moves
    }

    /// The parent of a node in a tree; `None` for the root.
    ///
    /// # Panics
    /// If there is no such tree or node.
    pub fn parent(&self, tree: usize, node: Vertex) -> Option<Vertex> {
        assert!(tree < self.n_trees, "tree {tree} of {}", self.n_trees);
        let at = self.shape.coord(node);
        if at == self.root {
            return None;
        }
        let Some(slots) = self.shape.node_dim() else {
            return Some(self.shape.vertex(self.parent_coord(tree, at)));
        };
        let representative = self.node_representative(tree, at);
        let parent = if at != representative || self.is_roots_node(at) {
            representative
        } else {
            let parent_coord = self.parent_coord(tree, at);
            parent_coord.with(slots, self.node_representative(tree, parent_coord)[slots])
        };
        Some(self.shape.vertex(parent))
    }

    /// The next or the previous node on the way around a tree's cycle.
    fn around(&self, cycles: &Cycles, tree: usize, at: Coord, is_next: bool) -> Coord {
        let per_node = self.shape.ranks_per_node();
        let node = Vertex(self.shape.vertex(at).0 / per_node);
        let n_cycles = cycles.n_cycles();
        let way = if (tree < n_cycles) == is_next { Direction::Plus } else { Direction::Minus };
        let neighbour = cycles.neighbour(tree % n_cycles, node, way);
        self.shape.coord(Vertex(neighbour.0 * per_node))
    }

    /// The neighbour of a place from which a tree reaches it.
    fn parent_coord(&self, tree: usize, at: Coord) -> Coord {
        if let Some(cycles) = &self.cycles {
            return self.around(cycles, tree, at, false);
        }
        let (dim, direction) = self.moves(at)[tree];
        let back = match direction {
            Direction::Plus => Direction::Minus,
            Direction::Minus => Direction::Plus,
        };
        let line = self.lines.iter().find(|line| line.dim == dim).expect("a dimension with links");
        at.with(dim, line.step(at[dim], back).expect("a parent has a link to its child"))
    }

    /// The tree along lines that starts in the direction of the link between two nodes. `None` on a single node,
    /// and for trees around cycles, in which each node forwards all data over one link.
    pub fn tree_in_direction(&self, from: Vertex, to: Vertex) -> Option<usize> {
        if self.cycles.is_some() {
            return None;
        }
        let [from, to] = [from, to].map(|node| self.shape.coord(node));
        let line = self.lines.iter().find(|line| from[line.dim] != to[line.dim])?;
        let is_down = line.step(from[line.dim], Direction::Minus) == Some(to[line.dim]);
        line.trees[1].filter(|_| is_down).or(line.trees[0])
    }

    fn is_roots_node(&self, at: Coord) -> bool {
        self.lines.iter().all(|line| at[line.dim] == line.root)
    }

    /// The rank that represents the node of a place in a tree: the root on its own node, elsewhere a rank that
    /// depends on the tree.
    fn node_representative(&self, tree: usize, at: Coord) -> Coord {
        let Some(slots) = self.shape.node_dim() else { return at };
        let turn = if self.is_roots_node(at) { 0 } else { tree as u32 };
        at.with(slots, (self.root[slots] + turn) % self.shape.size(slots))
    }

    /// The children of a node in a tree, in order of the dimensions, upwards first; the other ranks on its node are
    /// last.
    ///
    /// # Panics
    /// If there is no such tree or node.
    pub fn children(&self, tree: usize, node: Vertex) -> SmallVec<[Vertex; 4]> {
        assert!(tree < self.n_trees, "tree {tree} of {}", self.n_trees);
        let at = self.shape.coord(node);
        let mut children = SmallVec::new();
        if at != self.node_representative(tree, at) {
            return children;
        }
        let mut visit =
            |child| children.push(self.shape.vertex(self.node_representative(tree, child)));
        match &self.cycles {
            Some(cycles) => {
                let next = self.around(cycles, tree, at, true);
                (!self.is_roots_node(next)).then(|| visit(next));
            }
            None => self.child_coords(tree, at).for_each(visit),
        }
        if let Some(slots) = self.shape.node_dim() {
            let others = (0..self.shape.size(slots)).filter(|&slot| slot != at[slots]);
            children.extend(others.map(|slot| self.shape.vertex(at.with(slots, slot))));
        }
        children
    }

    /// The neighbours of a place that a tree along lines reaches from it.
    fn child_coords(&self, tree: usize, at: Coord) -> impl Iterator<Item = Coord> + '_ {
        let neighbour = move |line: &TreeLine, direction| {
            let child = at.with(line.dim, line.step(at[line.dim], direction)?);
            let is_below =
                !self.is_roots_node(child) && self.moves(child)[tree] == (line.dim, direction);
            is_below.then_some(child)
        };
        let both = [Direction::Plus, Direction::Minus];
        self.lines
            .iter()
            .flat_map(move |line| both.map(|direction| neighbour(line, direction)))
            .flatten()
    }

    /// Number of hops from the root to each node in a tree, by node.
    ///
    /// # Panics
    /// If there is no such tree.
    pub fn depths(&self, tree: usize) -> Vec<u32> {
        const UNKNOWN: u32 = u32::MAX;
        let mut depths = vec![UNKNOWN; self.shape.n_ranks() as usize];
        let mut path = Vec::new();
        for node in self.shape.vertices() {
            let mut at = node;
            let mut depth = loop {
                if depths[at.index()] != UNKNOWN {
                    break depths[at.index()];
                }
                match self.parent(tree, at) {
                    Some(parent) => {
                        path.push(at);
                        at = parent;
                    }
                    None => {
                        depths[at.index()] = 0;
                        break 0;
                    }
                }
            };
            for below in path.drain(..).rev() {
                depth += 1;
                depths[below.index()] = depth;
            }
        }
        depths
    }
}

#[cfg(test)]
mod tests;
