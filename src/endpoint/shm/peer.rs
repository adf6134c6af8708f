//! What a port knows of one of its peers: their queues, and what waits to be matched.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::endpoint::lists::take_out;
use crate::endpoint::{Arrival, Rank, Slot, Tag, WireRegion};

use super::EAGER_BYTES;
use super::descriptor::{INLINE_BYTES, Loan, Via};
use super::layout::PAYLOAD_BYTES;
use super::process::Watch;
use super::queue::{Inbox, Outbox, WINDOW};
use super::ways::Ways;

/// A peer, as seen by one port.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) rank: Rank,
    pub(super) process: Arc<Watch>,
    pub(super) outbox: Outbox,
    pub(super) inbox: Inbox,
    pub(super) ways: Ways,
    /// Receives whose message has not come.
    pub(super) posted: Vec<Posted>,
    /// Messages whose receive has not been posted, in the order in which they came.
    pub(super) early: VecDeque<Early>,
    /// It is asked to send no short messages.
    pub(super) is_held: bool,
}

/// A receive that is posted and waits for its message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted {
    pub(super) operation: u64,
    pub(super) message: u32,
    pub(super) call: u16,
    pub(super) slot: Slot,
    pub(super) region: WireRegion,
    pub(super) arrival: Arrival,
}

/// A message that waits for its receive.
#[derive(Debug)]
pub(super) struct Early {
    pub(super) tag: Tag,
    pub(super) len: usize,
    pub(super) body: Body,
}

/// Where the bytes of a message are.
#[derive(Debug)]
pub(super) enum Body {
    Inline([u8; INLINE_BYTES]),
    Copied(Vec<u8>),
    /// In this slot of the sender's staging.
    Staged(u32),
    /// In the sender's memory.
    Lent(Loan),
}

impl Body {
    /// How it has come.
    pub(super) fn via(&self) -> Via {
        match *self {
            Body::Inline(_) => Via::Line,
            Body::Copied(_) => Via::Ring,
            Body::Staged(slot) => Via::Slot(slot),
            Body::Lent(loan) => Via::Loan(loan),
        }
    }
}

impl Early {
    /// Bytes that it takes here, if its sender does not keep it.
    pub(super) fn bytes(&self) -> usize {
        match &self.body {
            Body::Inline(_) => size_of::<Early>(),
            Body::Copied(bytes) => size_of::<Early>() + bytes.capacity(),
            Body::Staged(_) | Body::Lent { .. } => 0,
        }
    }

    /// Bytes that messages of a peer take at most that has been asked to send none.
    pub(super) const WINDOW_BYTES: usize =
        WINDOW * size_of::<Early>() + PAYLOAD_BYTES + EAGER_BYTES;
}

impl Peer {
    /// Takes out the receive that a message belongs to.
    #[inline]
    pub(super) fn take_posted(&mut self, operation: u64, message: u32) -> Option<Posted> {
        let is_it = |posted: &Posted| (posted.message, posted.operation) == (message, operation);
        let at = self.posted.iter().position(is_it)?;
        Some(take_out(&mut self.posted, at))
    }

    /// Takes out the message that a receive asks for.
    #[inline]
    pub(super) fn take_early(&mut self, operation: u64, message: u32) -> Option<Early> {
        if self.early.is_empty() {
            return None;
        }
        let is_it =
            |early: &Early| (early.tag.message, early.tag.operation_id()) == (message, operation);
        let at = self.early.iter().position(is_it)?;
        self.early.remove(at)
    }
}
