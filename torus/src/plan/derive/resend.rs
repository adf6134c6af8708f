//! The exchange that follows a reduce-scatter in path order.

use std::sync::Arc;

use super::order::PositionOrder;
use crate::names::Rank;
use crate::plan::ir::flow::Message;
use crate::plan::ir::pass::{Pass, PassScope};
use crate::plan::ir::runs::Run;
use crate::plan::ir::torus::Torus;

/// The exchange that moves each block to its rank after a reduce-scatter in path order: the node whose own position
/// is P sends it to rank P (Bine, section 4.3.1, "send"). Backwards it precedes an allgather.
#[derive(Debug)]
pub struct ResendPass {
    pub torus: Arc<Torus>,
    pub order: Arc<PositionOrder>,
    pub backwards: bool,
}

impl Pass for ResendPass {
    fn n_steps(&self) -> usize {
        1
    }

    fn messages(&self, scope: PassScope<'_>, visit: &mut dyn FnMut(usize, Message<'_>)) {
        let mut resend = |position: u32| {
            let holder = self.torus.rank(self.order.coord(position));
            let owner = Rank(position);
            if holder != owner {
                let (from, to) = if self.backwards { (owner, holder) } else { (holder, owner) };
                visit(0, Message { from, to, runs: &[Run::new(position, 1)] });
            }
        };
        match scope {
            PassScope::Step(_, tile) => tile.positions().for_each(resend),
            PassScope::Rank(rank, at) => {
                let held = self.order.position(at);
                // A rank that holds its own block exchanges nothing.
                if held != rank.0 {
                    [held, rank.0].into_iter().for_each(&mut resend);
                }
            }
        }
    }
}
