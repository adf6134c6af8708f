//! Gather and scatter by single messages: every rank sends its block to the root, or gets it
//! from there. No rank handles another's block, so none needs to know how long it is.
//!
//! Ranks take turns in the order of their displacements from the root, which pairwise alltoall
//! spreads over the links of a node: each lane serves those of one port. Lanes share one
//! working space, in which blocks stand in the order of ranks.

use std::sync::Arc;

use super::rounds::{self, displaced};
use crate::geometry::{Coord, Node};
use crate::names::{Position, Rank};
use crate::plan::ir::flow::Message;
use crate::plan::ir::members::Tile;
use crate::plan::ir::places::Places;
use crate::plan::ir::runs::{Blocks, Run};
use crate::plan::ir::types::{Step, Transfer};

/// Messages of a step: the root must be able to post their receives at once.
const PER_STEP: usize = 64;

/// The steps of one lane.
#[derive(Debug)]
pub struct LinearPass {
    places: Arc<Places>,
    root: Coord,
    /// The root sends.
    from_root: bool,
    /// The displacements of the lane's ranks from the root.
    displacements: Vec<u32>,
}

/// The passes of `n_lanes` lanes.
pub fn passes(places: &Arc<Places>, root: Coord, from_root: bool, n_lanes: u32) -> Vec<LinearPass> {
    let lane =
        |displacements| LinearPass { places: places.clone(), root, from_root, displacements };
    rounds::displacements(&places.shape, n_lanes).into_iter().map(lane).collect()
}

impl LinearPass {
    /// Number of steps.
    pub fn n_steps(&self) -> usize {
        self.displacements.len().div_ceil(PER_STEP)
    }

    /// The ranks that the root communicates with in a step.
    fn ranks(&self, step: usize) -> impl Iterator<Item = Rank> {
        let Places { shape, .. } = &*self.places;
        let end = self.displacements.len().min((step + 1) * PER_STEP);
        self.displacements[step * PER_STEP..end].iter().map(|&by| {
            let by = shape.coord(Node(by));
            self.places.rank_on(displaced(shape, self.root, by))
        })
    }

    /// Appends what the node at `at` does.
    pub fn list(&self, at: Coord, steps: &mut Vec<Step>) {
        let root = self.places.rank(self.root);
        let rank = self.places.rank(at);
        let transfer = |peer: Rank, block: Rank| Transfer {
            peer,
            blocks: Blocks::from_slice(&[Run::single(Position(block.0))]),
        };
        for number in 0..self.n_steps() {
            let mut step = Step::default();
            let (at_root, elsewhere) = match self.from_root {
                true => (&mut step.sends, &mut step.recvs),
                false => (&mut step.recvs, &mut step.sends),
            };
            if rank == root {
                at_root.extend(self.ranks(number).map(|peer| transfer(peer, peer)));
            } else if self.ranks(number).any(|other| other == rank) {
                elsewhere.push(transfer(root, rank));
            }
            steps.push(step);
        }
    }

    /// Visits the messages of a step as far as they touch a tile.
    pub fn messages(&self, step: usize, tile: &Tile, visit: &mut dyn FnMut(Message<'_>)) {
        let root = self.places.rank(self.root);
        for rank in self.ranks(step).filter(|rank| tile.positions().contains(&rank.0)) {
            let (from, to) = if self.from_root { (root, rank) } else { (rank, root) };
            visit(Message { from, to, runs: &[Run::single(Position(rank.0))] });
        }
    }
}
