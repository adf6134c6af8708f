//! Folding of the ranks outside the core of a latency form: they send their vectors to a rank of the core before
//! the walk, and receive the result from it afterwards (algorithms.md, section 5; Thakur et al., IJHPCA 19(1),
//! 2005, section 3.1). If a node has a leader, its other ranks fold onto the leader first, so that no other vector
//! leaves the node.
//!
//! The core has the coordinates below its size in every dimension. A node outside it folds onto the node with its
//! coordinates modulo the core's sizes, in one step for all dimensions.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::collectives::Action;
use crate::geometry::{Coord, Vertex};
use crate::names::Rank;
use crate::plan::ir::flow::Message;
use crate::plan::ir::pass::{Pass, PassScope};
use crate::plan::ir::runs::WHOLE;
use crate::plan::ir::torus::Torus;
use crate::plan::ir::view::{MessagesKey, StepView};

/// One step: towards the core, with a reduction, or away from it, with a copy.
#[derive(Debug)]
pub struct FoldPass {
    torus: Arc<Torus>,
    /// By dimension, number of coordinates that take part.
    all: SmallVec<[u32; 4]>,
    /// By dimension, size of the core.
    core: SmallVec<[u32; 4]>,
    action: Action,
}

impl FoldPass {
    /// The step of the coordinates below the sizes `all`: towards the core if `action` combines, else away from it.
    /// `None` if no coordinate is outside the core.
    pub fn new(torus: &Arc<Torus>, all: &[u32], core: &[u32], action: Action) -> Option<Self> {
        let is_folded = core.iter().zip(all).any(|(core, all)| core < all);
        let torus = torus.clone();
        is_folded.then(|| FoldPass { torus, all: all.into(), core: core.into(), action })
    }

    /// The node of the core that the node at `at` folds onto: itself if it is in the core.
    fn proxy(&self, at: Coord) -> Vertex {
        let parts: SmallVec<[u32; 8]> =
            self.core.iter().enumerate().map(|(dim, size)| at[dim] % size).collect();
        self.torus.shape.vertex(Coord::new(&parts))
    }

    /// All other nodes that fold onto the node at `at` of the core, by number.
    fn clients(&self, at: Coord) -> SmallVec<[Vertex; 2]> {
        let shape = &self.torus.shape;
        let mut nodes: SmallVec<[Vertex; 2]> = SmallVec::from_slice(&[Vertex(0)]);
        for (dim, &core) in self.core.iter().enumerate() {
            let (size, all) = (shape.size(dim), self.all[dim]);
            let at = |node: &Vertex| {
                let first = node.0 * size;
                (at[dim]..all).step_by(core as usize).map(move |a| Vertex(first + a))
            };
            nodes = nodes.iter().flat_map(at).collect();
        }
        nodes.remove(0);
        nodes
    }
}

impl Pass for FoldPass {
    fn n_steps(&self) -> usize {
        1
    }

    fn action(&self, _step: usize) -> Action {
        self.action
    }

    fn view(&self, _step: usize, except: Option<Rank>) -> StepView<'_> {
        let sizes = [&self.all[..], &self.core, &[u32::from(self.action == Action::Reduce)]];
        let key = MessagesKey(sizes.concat().into());
        StepView::Messages(Some(key).filter(|_| except.is_none()))
    }

    fn messages(&self, scope: PassScope<'_>, visit: &mut dyn FnMut(usize, Message<'_>)) {
        let shape = &self.torus.shape;
        let mut visit_pair = |client: Vertex, proxy: Vertex| {
            let [client, proxy] = [client, proxy].map(|node| self.torus.rank_on(node));
            let (from, to) = match self.action {
                Action::Reduce => (client, proxy),
                Action::Copy => (proxy, client),
            };
            visit(0, Message { from, to, runs: &WHOLE });
        };
        let proxy = |node: Vertex, at: Coord| Some(self.proxy(at)).filter(|&proxy| proxy != node);
        match scope {
            PassScope::Step(..) => {
                for node in shape.vertices() {
                    let at = shape.coord(node);
                    if let Some(proxy) = proxy(node, at).filter(|_| at.is_below(&self.all)) {
                        visit_pair(node, proxy);
                    }
                }
            }
            // The leader of a rank that takes no part already has its vector.
            PassScope::Rank(_, at) if !at.is_below(&self.all) => {}
            PassScope::Rank(_, at) => match (shape.vertex(at), proxy(shape.vertex(at), at)) {
                (node, Some(proxy)) => visit_pair(node, proxy),
                (node, None) => {
                    self.clients(at).into_iter().for_each(|client| visit_pair(client, node));
                }
            },
        }
    }
}
