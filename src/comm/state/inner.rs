//! A communicator, whatever the options of its handles: a context, its members, and the world.

use std::sync::{Arc, OnceLock};

use super::members::Members;
use super::rank::RankOfWorld;
use super::small::{Requests, SmallCollectives};
use super::turns::{Turn, Turns};
use crate::endpoint::Tag;
use crate::engine::{Advance, Advanced};
use crate::planted::{self, Planted};

/// See the module documentation.
pub(crate) struct Inner {
    pub(crate) of_world: Arc<RankOfWorld>,
    pub(crate) members: Arc<Members>,
    /// What performs its small collectives, or why nothing does, if it is not the world's.
    pub(crate) small: OnceLock<Result<Box<dyn SmallCollectives>, String>>,
    /// Tells its messages from those of all other communicators.
    context: u64,
    operations: Turns,
}

impl Advance for Inner {
    fn advance(&self) -> Advanced {
        self.requests().map_or(Advanced::Idle, |requests| requests.advance())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.of_world.give_context(self.context);
    }
}

impl Inner {
    pub(crate) fn new(of_world: Arc<RankOfWorld>, members: Arc<Members>, context: u64) -> Self {
        let (small, operations) = Default::default();
        Inner { of_world, members, small, context, operations }
    }

    /// Whether this is the world's first communicator.
    pub(crate) fn is_world(&self) -> bool {
        self.context == 0
    }

    /// What performs its small collectives, or why nothing does.
    #[inline]
    pub(crate) fn small_collectives(&self) -> Result<&dyn SmallCollectives, &str> {
        let small = self.small.get().unwrap_or(&self.of_world.small);
        small.as_deref().map_err(String::as_str)
    }

    /// What starts small collectives that are not blocking, if anything does.
    #[inline]
    pub(crate) fn requests(&self) -> Option<&dyn Requests> {
        self.small_collectives().ok()?.requests()
    }

    /// Its context.
    pub(crate) fn context(&self) -> u64 {
        self.context
    }

    /// The number of the next operation.
    pub(crate) fn next_operation(&self) -> u32 {
        self.operations.next()
    }

    /// Names the next `n` operations, by context and the number of the first, which is to be started
    /// before the turn is dropped: ranks must start operations in the same order, and so must the threads
    /// of each rank, of which one may take its numbers before another and start later.
    #[inline]
    pub(crate) fn next_operations(&self, n: u32) -> (Turn<'_>, (u64, u32)) {
        // Numbers are used again after 2^24 operations, long after the first ones have left the wire.
        let turn = self.operations.wait(n);
        let modulus = if planted::is(Planted::NumbersWrap) { 16 } else { Tag::OPERATIONS };
        let number = turn.first() % modulus;
        (turn, (self.context, number))
    }
}
