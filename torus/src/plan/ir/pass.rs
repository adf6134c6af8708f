//! The interface of all kinds of passes: one description yields the messages of a lane's steps.

use std::fmt::Debug;

use crate::collectives::Action;
use crate::geometry::Coord;
use crate::names::{PortId, Rank};
use crate::plan::ir::flow::Message;
use crate::plan::ir::members::Tile;
use crate::plan::ir::runs::Runs;
use crate::plan::ir::types::{Step, Transfer};
use crate::plan::ir::view::{DependsOn, StepView};

/// The messages of a pass to visit.
#[derive(Clone, Copy, Debug)]
pub enum PassScope<'a> {
    /// The messages of all ranks in one step, clipped to a tile.
    Step(usize, &'a Tile),
    /// All messages that one rank, at its coordinate, sends or receives in any step.
    Rank(Rank, Coord),
}

/// Consecutive steps of a lane.
pub trait Pass: Debug + Send + Sync {
    /// Number of steps.
    fn n_steps(&self) -> usize;

    /// What happens to data received in a step.
    fn action(&self, _step: usize) -> Action {
        Action::Copy
    }

    /// The port that sends and receives a message, in a lane that is driven by port `own`.
    fn port(&self, own: PortId, _from: Rank, _to: Rank) -> PortId {
        own
    }

    /// Number of operands before a rank's own value in the fold of a step.
    fn own_at(&self, _step: usize, _rank: Rank) -> u32 {
        0
    }

    /// Tiles of at most `most` positions, if the pass has an order of its own.
    fn tiles(&self, _most: u32) -> Option<Vec<Tile>> {
        None
    }

    /// The symmetry of a step, if one is known; nothing is sent to `except`.
    fn view(&self, _step: usize, _except: Option<Rank>) -> StepView<'_> {
        StepView::Messages(None)
    }

    /// The step of the pass whose received data the sends of `step` carry.
    fn depends_on(&self, step: usize) -> DependsOn {
        DependsOn::before(step)
    }

    /// Visits the messages of a scope, each with its step. Within a step the messages that one rank sends come in
    /// the order in which it posts them, the messages that one rank receives in the order of the fold.
    fn messages(&self, scope: PassScope<'_>, visit: &mut dyn FnMut(usize, Message<'_>));

    /// Appends the steps of a rank in a lane that is driven by port `own`, without messages to `all_data_rank`. A
    /// method of the trait, so that its calls of the other methods are dispatched statically.
    fn list(
        &self,
        (rank, at): (Rank, Coord),
        own: PortId,
        all_data_rank: Option<Rank>,
        steps: &mut Vec<Step>,
    ) {
        let first = steps.len();
        steps.extend((0..self.n_steps()).map(|step| Step {
            action: self.action(step),
            own_at: self.own_at(step, rank),
            ..Step::default()
        }));
        self.messages(PassScope::Rank(rank, at), &mut |step, Message { from, to, runs }| {
            if all_data_rank != Some(to) {
                let Step { sends, recvs, .. } = &mut steps[first + step];
                let (peer, transfers) = if from == rank { (to, sends) } else { (from, recvs) };
                let port = self.port(own, from, to);
                transfers.push(Transfer { peer, port, runs: Runs::from_slice(runs) });
            }
        });
    }
}
