//! What the owner of a stepped job learns of it, and decides.

use crate::sync::AtomicU64;
use crate::timing::model::Random;
use std::collections::{BTreeMap, BTreeSet};
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
    /// A packet is at a barrier gate; at a start gate it may have ended the operation.
    Packet,
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
    /// The rank whose VCQ or start gate it names; `None` if there is none.
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
        match self.stage {
            Stage::Arrive | Stage::Packet => self.to,
            Stage::Send | Stage::Finish => Some(self.from),
        }
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
    /// How often memory was unmapped.
    pub(crate) n_unmapped: u64,
    /// By rank and page, which of these was the last.
    pub(crate) unmapped: BTreeMap<(usize, u64), u64>,
    /// By rank, how many of its next registrations are refused, and whether one has been.
    pub(crate) refusals: BTreeMap<usize, (u32, bool)>,
    /// How late packets of barrier gates are; from the first one on.
    pub(crate) gates: Option<Random>,
}

impl Stepping {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
