//! Pipelines of whole vectors along spanning trees of the torus: each lane has a tree and a part of the vector.
//!
//! With as many lanes as trees, each direction of the torus has a port, which moves what goes in that direction,
//! whatever its tree. A rank passes the part of one tree on over up to five links and the part of another tree over
//! none, but over each link it passes on one part. So every port sends one part, and receives one.
//!
//! A node sends to its children in the step of its depth. Segments of a long vector are pipelined down the tree,
//! because the engine waits for bytes and not for steps. Towards the root the same steps run backwards.

use std::sync::{Arc, OnceLock};

use crate::collectives::Action;
use crate::geometry::{Trees, Vertex};
use crate::names::{PortId, Rank};
use crate::plan::ir::flow::Message;
use crate::plan::ir::pass::{Pass, PassScope};
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
    /// The depth of each node.
    depths: Vec<u32>,
    n_steps: usize,
    /// (parent, child) pairs by the parent's depth, in the order in which parents send. Computed when the messages
    /// of all ranks are visited; a rank that performs the plan never needs them.
    edges: OnceLock<Vec<Vec<(Vertex, Vertex)>>>,
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
        let n_steps = depths.iter().copied().max().unwrap_or(0) as usize;
        let edges = OnceLock::new();
        TreePass { torus, trees, tree, by_direction, action, depths, n_steps, edges }
    }

    fn is_backwards(&self) -> bool {
        self.action == Action::Reduce
    }

    /// The edges from the nodes of a depth to their children.
    fn edges(&self, depth: usize) -> &[(Vertex, Vertex)] {
        let edges = self.edges.get_or_init(|| {
            let mut edges = vec![Vec::new(); self.n_steps + 1];
            for (node, &depth) in (0..).map(Vertex).zip(&self.depths) {
                let children = self.trees.children(self.tree, node);
                edges[depth as usize].extend(children.into_iter().map(|child| (node, child)));
            }
            edges
        });
        &edges[depth]
    }

    /// The step in which the nodes of a depth and their children communicate; applied to a step, that depth.
    fn step_of(&self, depth: usize) -> usize {
        if self.is_backwards() { self.n_steps() - 1 - depth } else { depth }
    }
}

impl Pass for TreePass {
    fn n_steps(&self) -> usize {
        self.n_steps
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
                let depth = self.depths[node.index()] as usize;
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
