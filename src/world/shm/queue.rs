//! The calls on a flat buffer that have been started and have not ended.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::comm::call::Call;
use crate::endpoint::shm::Entered;
use crate::error::Error;

/// The calls of a rank that have been started and have not ended, in their order.
#[derive(Default)]
pub(super) struct StartedCalls {
    pub(super) calls: VecDeque<StartedCall>,
    /// So many of them have contributed.
    pub(super) n_given: usize,
    /// The rank that the first of them waits for, by the last look.
    pub(super) awaited: usize,
    /// Of calls that have ended with an error whose owners have not asked yet: their numbers, and why.
    pub(super) failures: Vec<(u64, Error)>,
    /// From this number on calls have been given up, if any have.
    pub(super) given_up: Option<u64>,
}

/// What is known of them without the lock.
#[derive(Default)]
pub(super) struct Seen {
    /// They have ended up to this one, without it; and some have failed.
    pub(super) ended: AtomicU64,
    pub(super) has_failures: AtomicBool,
    /// Some are under way; whoever waits for anything moves them on; and they have moved since one did.
    pub(super) are_under_way: AtomicBool,
    pub(super) is_hooked: AtomicBool,
    pub(super) has_moved: AtomicBool,
}

pub(super) struct StartedCall {
    pub(super) call: Call<'static>,
    pub(super) entered: Entered,
    /// The contributions of the ranks before this one are there.
    pub(super) next: usize,
}

// SAFETY: its addresses are used only until the call has ended: whoever has started it has promised that they are good
// for that, for all threads.
unsafe impl Send for StartedCall {}

impl StartedCalls {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}
