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
    /// Number of these calls that have contributed.
    pub(super) n_contributed: usize,
    /// The rank that the first of these calls waits for, by the last look.
    pub(super) awaited: usize,
    /// Numbers and errors of calls that have failed and whose owners have not asked yet.
    pub(super) failures: Vec<(u64, Error)>,
    /// Calls from this number on have been given up, if any have.
    pub(super) given_up: Option<u64>,
}

/// The state of the started calls that can be read without the lock.
#[derive(Default)]
pub(super) struct StartedStatus {
    /// All calls before this number have ended; and whether some have failed.
    pub(super) ended: AtomicU64,
    pub(super) has_failures: AtomicBool,
    /// Whether calls are under way; whether waits and tests of this rank advance them; whether they have moved since
    /// `advance` last said so.
    pub(super) are_under_way: AtomicBool,
    pub(super) is_hooked: AtomicBool,
    pub(super) has_moved: AtomicBool,
}

pub(super) struct StartedCall {
    pub(super) call: Call<'static>,
    pub(super) entered: Entered,
    /// The contributions of the ranks before this one have arrived.
    pub(super) next: usize,
}

// SAFETY: its addresses are used only until the call has ended. The caller of `start` has promised that they are
// valid until then, for all threads.
unsafe impl Send for StartedCall {}

impl StartedCalls {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}
