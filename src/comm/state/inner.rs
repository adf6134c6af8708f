//! What all handles of a communicator share, whatever their options: a context, the members, and the world.

use std::sync::{Arc, OnceLock};

use super::labels::Labels;
use super::members::Members;
use super::small::{Requests, SmallCollectives};
use super::ticket_lock::{Ticket, TicketLock};
use super::world_state::WorldState;
use crate::endpoint::Tag;
use crate::engine::{ProgressHook, ProgressState};
use crate::planted::{self, Planted};

/// See the module documentation.
pub(crate) struct Inner {
    pub(crate) world: Arc<WorldState>,
    pub(crate) members: Arc<Members>,
    /// The hardware for small collectives, or why there is none; unset on the world's communicator.
    pub(crate) small: OnceLock<Result<Box<dyn SmallCollectives>, String>>,
    /// Distinguishes the communicator's messages from those of all others.
    context: u64,
    operations: TicketLock,
    pub(crate) labels: Labels,
}

impl ProgressHook for Inner {
    fn advance(&self) -> ProgressState {
        self.requests().map_or(ProgressState::Idle, |requests| requests.advance())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.world.release_context(self.context);
    }
}

impl Inner {
    pub(crate) fn new(world: Arc<WorldState>, members: Arc<Members>, context: u64) -> Self {
        let (small, operations, labels) = Default::default();
        Inner { world, members, small, context, operations, labels }
    }

    /// Whether this is the world's first communicator.
    pub(crate) fn is_world(&self) -> bool {
        self.context == 0
    }

    /// The hardware for the communicator's small collectives, or why there is none.
    #[inline]
    pub(crate) fn small_collectives(&self) -> Result<&dyn SmallCollectives, &str> {
        let small = self.small.get().unwrap_or(&self.world.small);
        small.as_deref().map_err(String::as_str)
    }

    /// The interface for small collectives that are not blocking, if the hardware has one.
    #[inline]
    pub(crate) fn requests(&self) -> Option<&dyn Requests> {
        self.small_collectives().ok()?.requests()
    }

    /// The communicator's context.
    pub(crate) fn context(&self) -> u64 {
        self.context
    }

    /// The number of the next operation.
    pub(crate) fn next_operation(&self) -> u32 {
        self.operations.next()
    }

    /// Reserves the next `n` operations. Returns the context and the number of the first one, which must be started
    /// before the ticket is dropped: ranks must start operations in the same order, and so must the threads of a rank,
    /// since one thread may take its numbers before another and start later.
    #[inline]
    pub(crate) fn next_operations(&self, n: u32) -> (Ticket<'_>, (u64, u32)) {
        // Numbers are used again after 2^24 operations, long after the first ones have left the wire.
        let ticket = self.operations.acquire(n);
        let next = ticket.first().wrapping_add(n);
        if ticket.first() / Tag::REMEMBERED != next / Tag::REMEMBERED {
            let newest = Some(next % Tag::OPERATIONS);
            self.world.engine.forget_calls(self.context, newest);
        }
        let modulus = if planted::is(Planted::NumbersWrap) { 16 } else { Tag::OPERATIONS };
        let number = ticket.first() % modulus;
        (ticket, (self.context, number))
    }
}
