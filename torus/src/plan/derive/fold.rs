//! Ranks beyond the core of a latency form: they give their vector to a rank of the core before
//! the walk, and get the result from it afterwards (algorithms.md, section 5; Thakur et al.,
//! IJHPCA 19(1), 2005, section 3.1). Where a node has a leader its other ranks fold onto that
//! first, so that nothing else leaves the node.
//!
//! The core has the coordinates below its size in every dimension. A node beyond it folds onto
//! the one that has its coordinates modulo the core's sizes: one step, whatever the number of
//! dimensions.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::collectives::Action;
use crate::geometry::{Coord, Node};
use crate::plan::ir::flow::Message;
use crate::plan::ir::places::Places;
use crate::plan::ir::runs::{Blocks, Run};
use crate::plan::ir::types::{Step, Transfer};

/// One step: towards the core, combining, or away from it.
#[derive(Debug)]
pub struct FoldPass {
    places: Arc<Places>,
    /// Sizes of what takes part.
    all: SmallVec<[u32; 4]>,
    /// Sizes of the core.
    core: SmallVec<[u32; 4]>,
    action: Action,
}

impl FoldPass {
    /// The step of coordinates below the sizes `all` towards the core if `action` combines, else
    /// the one back; `None` if nobody is beyond the core.
    pub fn new(places: &Arc<Places>, all: &[u32], core: &[u32], action: Action) -> Option<Self> {
        let is_folded = core.iter().zip(all).any(|(core, all)| core < all);
        let places = places.clone();
        is_folded.then(|| FoldPass { places, all: all.into(), core: core.into(), action })
    }

    fn takes_part(&self, at: Coord) -> bool {
        self.all.iter().enumerate().all(|(dim, &size)| at[dim] < size)
    }

    /// What becomes of what arrives.
    pub fn action(&self) -> Action {
        self.action
    }

    /// The node of the core for the one at `at`: itself if it is in the core.
    fn proxy(&self, at: Coord) -> Node {
        let parts: SmallVec<[u32; 8]> =
            self.core.iter().enumerate().map(|(dim, size)| at[dim] % size).collect();
        self.places.shape.node(Coord::new(&parts))
    }

    /// All nodes that fold onto the one at `at` of the core, without itself, by number.
    fn clients(&self, at: Coord) -> SmallVec<[Node; 2]> {
        let shape = &self.places.shape;
        let mut nodes: SmallVec<[Node; 2]> = SmallVec::from_slice(&[Node(0)]);
        for (dim, &core) in self.core.iter().enumerate() {
            let (size, all) = (shape.size(dim), self.all[dim]);
            let at = |node: &Node| {
                let first = node.0 * size;
                (at[dim]..all).step_by(core as usize).map(move |a| Node(first + a))
            };
            nodes = nodes.iter().flat_map(at).collect();
        }
        nodes.remove(0);
        nodes
    }

    /// Appends what the node at `at` does.
    pub fn list(&self, at: Coord, steps: &mut Vec<Step>) {
        let node = self.places.shape.node(at);
        let transfer = |peer: Node| Transfer {
            peer: self.places.rank_on(peer),
            blocks: Blocks::from_slice(&[Run::new(0, 1)]),
        };
        let proxy = self.proxy(at);
        let mut step = Step { action: self.action, ..Step::default() };
        let (inwards, outwards) = match self.action {
            Action::Reduce => (&mut step.recvs, &mut step.sends),
            Action::Copy => (&mut step.sends, &mut step.recvs),
        };
        if !self.takes_part(at) {
            // Its leader has its vector.
        } else if proxy == node {
            inwards.extend(self.clients(at).into_iter().map(transfer));
        } else {
            outwards.push(transfer(proxy));
        }
        steps.push(step);
    }

    /// Visits the messages of the step.
    pub fn messages(&self, visit: &mut dyn FnMut(Message<'_>)) {
        let runs = [Run::new(0, 1)];
        for node in self.places.shape.nodes() {
            let at = self.places.shape.coord(node);
            let proxy = self.proxy(at);
            if proxy != node && self.takes_part(at) {
                let (client, proxy) = (self.places.rank_on(node), self.places.rank_on(proxy));
                let (from, to) = match self.action {
                    Action::Reduce => (client, proxy),
                    Action::Copy => (proxy, client),
                };
                visit(Message { from, to, runs: &runs });
            }
        }
    }
}
