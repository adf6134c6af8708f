//! Pipelines of whole vectors along spanning trees of the torus: each lane has a tree and a part of the vector.
//!
//! With as many lanes as trees, each direction of the torus has a port, which moves what goes in that direction,
//! whatever its tree. A rank passes the part of one tree on over up to five links and the part of another tree over
//! none, but over each link it passes on one part. So every port sends one part, and receives one.
//!
//! A node sends to its children in the step of its depth. Segments of a long vector are pipelined down the tree,
//! because the engine waits for bytes and not for steps. Towards the root the same steps run backwards.

use std::sync::{Arc, OnceLock};

use super::pass::{Pass, PassScope};
use crate::collectives::Action;
use crate::geometry::{Trees, Vertex};
use crate::names::{PortId, Rank};
use crate::plan::ir::flow::Message;
use crate::plan::ir::runs::WHOLE;
use crate::plan::ir::torus::Torus;

/// The steps of one lane.
#[derive(Debug)]
pub struct TreePass {
    torus: Arc<Torus>,
    trees: Arc<Trees>,
    /// Number of the lane's tree.
    tree: usize,
    /// True if each direction has a port.
    by_direction: bool,
    /// `Reduce` towards the root, `Copy` from it.
    action: Action,
    /// All nodes by depth.
    by_depth: Vec<Vertex>,
    /// Where the nodes of each depth start in `by_depth`; one entry more than depths.
    start: Vec<u32>,
    /// (parent, child) pairs by the parent's depth, in the order in which parents send. Computed when the messages
    /// of all ranks are visited; a rank that performs the plan never needs them.
    edges: OnceLock<Vec<(Vertex, Vertex)>>,
}

impl TreePass {
    /// Tree number `tree` in one of `n_lanes` lanes; towards the root if `action` combines.
    pub fn new(
        torus: Arc<Torus>,
        trees: Arc<Trees>,
        (tree, n_lanes): (usize, usize),
        action: Action,
    ) -> Self {
        let by_direction = n_lanes == trees.n_trees();
        let depths = trees.depths(tree);
        let deepest = depths.iter().copied().max().unwrap_or(0);
        let mut start = vec![0u32; deepest as usize + 2];
        for &depth in &depths {
            start[depth as usize + 1] += 1;
        }
        for depth in 1..start.len() {
            start[depth] += start[depth - 1];
        }
        let mut next = start.clone();
        let mut by_depth = vec![Vertex(0); depths.len()];
        for (node, &depth) in depths.iter().enumerate() {
            let place = &mut next[depth as usize];
            by_depth[*place as usize] = Vertex(node as u32);
            *place += 1;
        }
        TreePass {
            torus,
            trees,
            tree,
            by_direction,
            action,
            by_depth,
            start,
            edges: OnceLock::new(),
        }
    }

    fn is_backwards(&self) -> bool {
        self.action == Action::Reduce
    }

    /// The edges from the nodes of a depth to their children.
    fn edges(&self, depth: usize) -> &[(Vertex, Vertex)] {
        let edges = self.edges.get_or_init(|| {
            let of_node = |&node: &Vertex| {
                let children = self.trees.children(self.tree, node);
                children.into_iter().map(move |child| (node, child))
            };
            self.by_depth.iter().flat_map(of_node).collect()
        });
        let [first, end] = [depth + 1, depth + 2].map(|depth| self.start[depth] as usize - 1);
        &edges[first..end]
    }

    /// The step in which the nodes of a depth and their children communicate; applied to a step, that depth.
    fn step_of(&self, depth: usize) -> usize {
        if self.is_backwards() { self.n_steps() - 1 - depth } else { depth }
    }
}

impl Pass for TreePass {
    fn n_steps(&self) -> usize {
        self.start.len() - 2
    }

    fn port(&self, own: PortId, from: Rank, to: Rank) -> PortId {
        if !self.by_direction {
            return own;
        }
        let (parent, child) = if self.is_backwards() { (to, from) } else { (from, to) };
        let [parent, child] = [parent, child].map(|rank| self.torus.vertex(rank));
        let direction = self.trees.tree_in_direction(parent, child);
        direction.map_or(own, |direction| PortId(direction as u16))
    }

    fn action(&self, _step: usize) -> Action {
        self.action
    }

    fn messages(&self, scope: PassScope<'_>, visit: &mut dyn FnMut(usize, Message<'_>)) {
        let mut visit_edge = |step: usize, parent: Vertex, child: Vertex| {
            let [parent, child] = [parent, child].map(|node| self.torus.rank_on(node));
            let (from, to) = if self.is_backwards() { (child, parent) } else { (parent, child) };
            visit(step, Message { from, to, runs: &WHOLE });
        };
        match scope {
            PassScope::Step(step, _) => {
                let depth = self.step_of(step);
                let edges = self.edges(depth).iter();
                edges.for_each(|&(parent, child)| visit_edge(step, parent, child));
            }
            PassScope::Rank(_, at) => {
                let node = self.torus.shape.vertex(at);
                let depth = self.trees.depth(self.tree, node) as usize;
                for child in self.trees.children(self.tree, node) {
                    visit_edge(self.step_of(depth), node, child);
                }
                if let Some(parent) = self.trees.parent(self.tree, node) {
                    visit_edge(self.step_of(depth - 1), parent, node);
                }
            }
        }
    }
}
