//! Whole vectors along spanning trees of the torus, one tree and one part of the vector a lane.
//!
//! With as many lanes as trees, each direction of the torus has a port, which moves what goes that way,
//! whatever its tree: a rank passes the part of one tree on over up to five links, and that of another
//! not at all, but over each link it passes on one. So every port sends one part, and receives one.
//!
//! A node sends to its children in the step of its depth; segments of a long vector follow one
//! another down the tree, because the engine waits for bytes and not for steps. Towards the
//! root the same steps run backwards.

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
    /// Which of the trees.
    tree: usize,
    /// Each direction has a port.
    by_direction: bool,
    /// To the root and combining, or from it and storing.
    action: Action,
    /// All nodes by depth.
    by_depth: Vec<Vertex>,
    /// Where the nodes of each depth start in `by_depth`; one entry more than depths.
    start: Vec<u32>,
    /// All nodes but the root by depth, each with its parent, as parents send to them; known when all ranks'
    /// messages are asked for, which a rank that performs the plan never does.
    edges: OnceLock<Vec<(Vertex, Vertex)>>,
}

impl TreePass {
    /// Tree number `tree` of those of so many lanes; towards the root if what arrives is combined.
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

    /// Where those of a depth are sent to, in the place of those of the next.
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

    /// The step in which the nodes of a depth and their children communicate, and the depth whose
    /// step this is.
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
        let direction = self.trees.towards(parent, child);
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
