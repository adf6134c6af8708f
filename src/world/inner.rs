//! A communicator, whatever the options of its handles: a context, its members, and the world.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::backend::SmallCollectives;
use super::members::Members;
use super::rank::RankOfWorld;
use crate::endpoint::Tag;

/// See the module documentation.
pub(super) struct Inner {
    pub(super) of_world: Arc<RankOfWorld>,
    pub(super) members: Arc<Members>,
    /// What performs its small collectives, if it is not the world's and has something that does.
    pub(super) small: Option<Box<dyn SmallCollectives>>,
    /// Tells its messages from those of all other communicators.
    context: u64,
    next_operation: AtomicU32,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.of_world.give_context(self.context);
    }
}

impl Inner {
    pub(super) fn new(
        of_world: Arc<RankOfWorld>,
        members: Arc<Members>,
        context: u64,
        small: Option<Box<dyn SmallCollectives>>,
    ) -> Self {
        Inner { of_world, members, small, context, next_operation: AtomicU32::new(0) }
    }

    /// Whether this is the world's first communicator.
    pub(super) fn is_world(&self) -> bool {
        self.context == 0
    }

    /// The number of the next operation.
    pub(super) fn next_operation(&self) -> u32 {
        // Relaxed: see below.
        self.next_operation.load(Ordering::Relaxed)
    }

    /// Names the next `n` operations, by context and the number of the first. Ranks must start
    /// operations in the same order.
    pub(super) fn next_operations(&self, n: u32) -> (u64, u32) {
        // Relaxed: a plain counter. It wraps after 2^24 operations, long after the first ones
        // have left the wire.
        let number = self.next_operation.fetch_add(n, Ordering::Relaxed);
        (self.context, number % Tag::OPERATIONS)
    }
}
