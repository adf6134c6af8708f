//! Data that the owner of a stepped job gets from it, and decisions that the owner makes.

use crate::sync::AtomicU64;
use crate::timing::model::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A part of an operation, as the late device performs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The source of a put is read; the completion is in the TCQ.
    Send,
    /// The target's memory is accessed; the notice is in its queue.
    Arrive,
    /// The data of a get are in place; the local notice is in the queue.
    Finish,
    /// A packet has arrived at a barrier gate; at a start gate it may have ended the operation.
    Packet,
}

/// A stage that [`crate::Job::step`] has performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepEvent {
    /// Time at which the stage was due, in ns.
    pub at: u64,
    /// The part of the operation.
    pub stage: Stage,
    /// The rank that has posted the operation.
    pub from: usize,
    /// The rank whose VCQ or start gate is the operation's target; `None` if no such VCQ or start gate exists.
    pub to: Option<usize>,
    /// Addresses of the registered memory that was read or written: memory of `to` for [`Stage::Arrive`], else of
    /// `from`.
    pub memory: Option<Range<usize>>,
    /// Whether the stage writes memory.
    pub writes: bool,
}

impl StepEvent {
    /// Returns the rank that may find a new entry in its queues, or new data in its memory.
    #[must_use]
    pub fn affected_rank(&self) -> Option<usize> {
        match self.stage {
            Stage::Arrive | Stage::Packet => self.to,
            Stage::Send | Stage::Finish => Some(self.from),
        }
    }
}

/// Decisions of the owner of a job.
#[derive(Default)]
pub(crate) struct Stepping {
    pub(crate) now: AtomicU64,
    state: Mutex<SteppingState>,
}

#[derive(Default)]
pub(crate) struct SteppingState {
    /// Ranks that [`Job::fail_rank`](crate::Job::fail_rank) has ended.
    pub(crate) failed: BTreeSet<usize>,
    /// Ranks that the checked mode no longer checks.
    pub(crate) exempt: BTreeSet<usize>,
    pub(crate) misuse: Vec<String>,
    /// Number of unmappings so far.
    pub(crate) unmap_epoch: u64,
    /// Number of the last unmapping of each page, by rank and page.
    pub(crate) unmapped: BTreeMap<(usize, u64), u64>,
    /// By rank: the number of its next registrations to refuse, and whether one has been refused.
    pub(crate) refusals: BTreeMap<usize, (u32, bool)>,
    /// Source of the delays of barrier gates' packets; set by the first packet.
    pub(crate) gates: Option<Random>,
}

impl Stepping {
    pub(crate) fn state(&self) -> MutexGuard<'_, SteppingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
