//! The exchange behind a reduce-scatter in path order.

use std::sync::Arc;

use super::order::PositionOrder;
use crate::geometry::Coord;
use crate::names::{Position, Rank};
use crate::plan::ir::flow::Message;
use crate::plan::ir::members::Tile;
use crate::plan::ir::places::Places;
use crate::plan::ir::runs::{Blocks, Run};
use crate::plan::ir::types::{Step, Transfer, Transfers};

/// The exchange that puts blocks right after a reduce-scatter in path order: the node whose own
/// position is P sends it to rank P (Bine, section 4.3.1, "send").
#[derive(Debug)]
pub struct ResendPass {
    pub places: Arc<Places>,
    pub order: Arc<PositionOrder>,
    pub backwards: bool,
}

impl ResendPass {
    /// Appends what the node at `at` does.
    pub fn list(&self, at: Coord, steps: &mut Vec<Step>) {
        let rank = self.places.rank(at);
        let position = Position(self.order.position(at));
        let holder = self.places.rank(self.order.coord(rank.0));
        let single = |peer: Rank, position: Position| {
            let transfer = Transfer { peer, blocks: Blocks::from_slice(&[Run::single(position)]) };
            Transfers::from_iter((peer != rank).then_some(transfer))
        };
        let sends = single(Rank(position.0), position);
        let recvs = single(holder, Position(rank.0));
        let mut step = Step { sends, recvs, ..Step::default() };
        if self.backwards {
            std::mem::swap(&mut step.sends, &mut step.recvs);
        }
        steps.push(step);
    }

    /// Visits the messages as far as they touch a tile.
    pub fn messages(&self, tile: &Tile, visit: &mut dyn FnMut(Message<'_>)) {
        for position in tile.positions() {
            let holder = self.places.rank(self.order.coord(position));
            let owner = Rank(position);
            if holder != owner {
                let (from, to) = if self.backwards { (owner, holder) } else { (holder, owner) };
                visit(Message { from, to, runs: &[Run::new(position, 1)] });
            }
        }
    }
}
