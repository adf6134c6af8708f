//! Gather and scatter by single messages: every rank sends its block to the root, or receives it from the root. No
//! rank handles the block of another rank, so none needs to know another block's length.
//!
//! The root communicates with the ranks in the order of their displacements, which, as in the pairwise alltoall, is
//! spread over the links of a node: each lane serves the displacements of one port. Lanes share one working space,
//! in which blocks are in rank order.

use std::sync::Arc;

use super::rounds::{self, displaced};
use crate::geometry::{Coord, Vertex};
use crate::names::{Position, Rank};
use crate::plan::ir::flow::Message;
use crate::plan::ir::pass::{Pass, PassScope};
use crate::plan::ir::runs::Run;
use crate::plan::ir::torus::Torus;
use crate::plan::ir::view::DependsOn;

/// Messages of a step. The root must be able to post the receives of a step at once.
const PER_STEP: usize = 64;

/// The steps of one lane.
#[derive(Debug)]
pub struct LinearPass {
    torus: Arc<Torus>,
    root: Coord,
    /// True if the root sends.
    from_root: bool,
    /// The displacements from the root of the ranks that the lane serves.
    displacements: Vec<u32>,
}

/// The passes of `n_lanes` lanes.
pub fn passes(torus: &Arc<Torus>, root: Coord, from_root: bool, n_lanes: u32) -> Vec<LinearPass> {
    let lane = |displacements| LinearPass { torus: torus.clone(), root, from_root, displacements };
    rounds::displacements(&torus.shape, n_lanes).into_iter().map(lane).collect()
}

impl LinearPass {
    /// The ranks that the root communicates with in a step.
    fn ranks(&self, step: usize) -> impl Iterator<Item = Rank> {
        let Torus { shape, .. } = &*self.torus;
        let end = self.displacements.len().min((step + 1) * PER_STEP);
        self.displacements[step * PER_STEP..end].iter().map(|&by| {
            let by = shape.coord(Vertex(by));
            self.torus.rank_on(displaced(shape, self.root, by))
        })
    }
}

impl Pass for LinearPass {
    fn n_steps(&self) -> usize {
        self.displacements.len().div_ceil(PER_STEP)
    }

    fn depends_on(&self, _step: usize) -> DependsOn {
        DependsOn::Nothing
    }

    fn messages(&self, scope: PassScope<'_>, visit: &mut dyn FnMut(usize, Message<'_>)) {
        let root = self.torus.rank(self.root);
        let steps = match scope {
            PassScope::Step(step, _) => step..step + 1,
            PassScope::Rank(..) => 0..self.n_steps(),
        };
        let is_wanted = |peer: &Rank| match scope {
            PassScope::Step(_, tile) => tile.positions().contains(&peer.0),
            PassScope::Rank(rank, _) => rank == root || rank == *peer,
        };
        for step in steps {
            for peer in self.ranks(step).filter(is_wanted) {
                let (from, to) = if self.from_root { (root, peer) } else { (peer, root) };
                visit(step, Message { from, to, runs: &[Run::single(Position(peer.0))] });
            }
        }
    }
}
