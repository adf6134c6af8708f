//! What the owner of a stepped job learns of it, and decides.

use crate::sync::AtomicU64;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A part of an operation, as the late device does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The source of a put is read; the completion is in the TCQ.
    Send,
    /// The target's memory is accessed; the notice is in its queue.
    Arrive,
    /// What a get brings is in place; the local notice is in the queue.
    Finish,
}

/// What [`crate::Job::step`] has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stepped {
    /// When it was due, in ns.
    pub at: u64,
    /// The part of the operation.
    pub stage: Stage,
    /// The rank that has posted the operation.
    pub from: usize,
    /// The rank whose VCQ it names; `None` if there is none.
    pub to: Option<usize>,
    /// Addresses of registered memory that were read or written: of `to` for [`Stage::Arrive`], else
    /// of `from`.
    pub memory: Option<Range<usize>>,
    /// Whether it is of those that write memory.
    pub writes: bool,
}

impl Stepped {
    /// The rank that may find something new in its queues or its memory.
    #[must_use]
    pub fn concerns(&self) -> Option<usize> {
        if self.stage == Stage::Arrive { self.to } else { Some(self.from) }
    }
}

/// What the owner of a job decides.
#[derive(Default)]
pub(crate) struct Stepping {
    pub(crate) now: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    /// Ranks that are gone.
    pub(crate) lost: BTreeSet<usize>,
    /// Ranks that nothing is checked of any more.
    pub(crate) excused: BTreeSet<usize>,
    pub(crate) misuse: Vec<String>,
}

impl Stepping {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
