//! Ranks beyond the core of a latency form: they give their vector to a rank of the core before
//! the walk, and get the result from it afterwards (algorithms.md, section 5; Thakur et al.,
//! IJHPCA 19(1), 2005, section 3.1).
//!
//! The core has the coordinates below its size in every dimension. A node beyond it folds onto
//! the one that has its coordinates modulo the core's sizes: one step, whatever the number of
//! dimensions.

use std::sync::Arc;

use smallvec::SmallVec;

use super::flow::Message;
use super::places::Places;
use super::types::{Blocks, Run, Step, Transfer};
use crate::collectives::Action;
use crate::geometry::{Coord, Node};

/// One step: towards the core, combining, or away from it.
#[derive(Debug)]
pub struct FoldPass {
    places: Arc<Places>,
    /// Sizes of the core.
    core: SmallVec<[u32; 4]>,
    action: Action,
}

impl FoldPass {
    /// The step towards the core if `action` combines, else the one back; `None` if nobody is
    /// beyond the core.
    pub fn new(places: &Arc<Places>, core: &[u32], action: Action) -> Option<Self> {
        let is_folded = core.iter().enumerate().any(|(dim, &size)| size < places.shape.size(dim));
        is_folded.then(|| FoldPass { places: places.clone(), core: core.into(), action })
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
            let size = shape.size(dim);
            let at = |node: &Node| {
                let first = node.0 * size;
                (at[dim]..size).step_by(core as usize).map(move |a| Node(first + a))
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
        if proxy == node {
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
            let proxy = self.proxy(self.places.shape.coord(node));
            if proxy != node {
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
