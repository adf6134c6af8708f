//! Whole vectors along spanning trees of the torus, one tree and one part of the vector a lane.
//!
//! A node sends to its children in the step of its depth; segments of a long vector follow one
//! another down the tree, because the engine waits for bytes and not for steps. Towards the
//! root the same steps run backwards.

use std::sync::Arc;

use crate::collectives::Action;
use crate::geometry::{Coord, Node, Trees};
use crate::plan::ir::flow::Message;
use crate::plan::ir::places::Places;
use crate::plan::ir::runs::{Blocks, Run};
use crate::plan::ir::types::{Step, Transfer};

/// The steps of one lane.
#[derive(Debug)]
pub struct TreePass {
    places: Arc<Places>,
    trees: Arc<Trees>,
    /// Which of the trees.
    tree: usize,
    /// To the root and combining, or from it and storing.
    action: Action,
    /// All nodes by depth.
    by_depth: Vec<Node>,
    /// Where the nodes of each depth start in `by_depth`; one entry more than depths.
    start: Vec<u32>,
}

impl TreePass {
    /// Tree number `tree`; towards the root if what arrives is combined.
    pub fn new(places: Arc<Places>, trees: Arc<Trees>, tree: usize, action: Action) -> Self {
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
        let mut by_depth = vec![Node(0); depths.len()];
        for (node, &depth) in depths.iter().enumerate() {
            let place = &mut next[depth as usize];
            by_depth[*place as usize] = Node(node as u32);
            *place += 1;
        }
        TreePass { places, trees, tree, action, by_depth, start }
    }

    /// Number of steps: the depth of the tree.
    pub fn n_steps(&self) -> usize {
        self.start.len() - 2
    }

    /// What becomes of what arrives.
    pub fn action(&self) -> Action {
        self.action
    }

    fn is_backwards(&self) -> bool {
        self.action == Action::Reduce
    }

    /// The step in which the nodes of a depth and their children communicate.
    fn step_of(&self, depth: usize) -> usize {
        if self.is_backwards() { self.n_steps() - 1 - depth } else { depth }
    }

    /// Appends what the node at `at` does.
    pub fn list(&self, at: Coord, steps: &mut Vec<Step>) {
        let first = steps.len();
        let idle = Step { action: self.action, ..Step::default() };
        steps.resize(first + self.n_steps(), idle);
        let node = self.places.shape.node(at);
        let depth = self.trees.depth(self.tree, node) as usize;
        let transfer = |peer: Node| Transfer {
            peer: self.places.rank_on(peer),
            blocks: Blocks::from_slice(&[Run::new(0, 1)]),
        };
        let children = self.trees.children(self.tree, node);
        if !children.is_empty() {
            let step = &mut steps[first + self.step_of(depth)];
            let below = if self.is_backwards() { &mut step.recvs } else { &mut step.sends };
            below.extend(children.into_iter().map(transfer));
        }
        if let Some(parent) = self.trees.parent(self.tree, node) {
            let step = &mut steps[first + self.step_of(depth - 1)];
            let above = if self.is_backwards() { &mut step.sends } else { &mut step.recvs };
            above.push(transfer(parent));
        }
    }

    /// Visits the messages of a step.
    pub fn messages(&self, step: usize, visit: &mut dyn FnMut(Message<'_>)) {
        // The rule that gives a depth's step gives a step's depth.
        let depth = self.step_of(step);
        let runs = [Run::new(0, 1)];
        let here = self.start[depth] as usize..self.start[depth + 1] as usize;
        for &node in &self.by_depth[here] {
            let parent = self.places.rank_on(node);
            for child in self.trees.children(self.tree, node) {
                let child = self.places.rank_on(child);
                let (from, to) =
                    if self.is_backwards() { (child, parent) } else { (parent, child) };
                visit(Message { from, to, runs: &runs });
            }
        }
    }
}
