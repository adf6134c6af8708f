//! What a port knows of one of its peers: their queues, and what waits to be matched.

use std::sync::Arc;

use crate::endpoint::Rank;
use crate::endpoint::matcher::Unexpected;

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
    /// It is asked to send no short messages.
    pub(super) is_held: bool,
}

/// A message that waits for its receive.
pub(super) type Early = Unexpected<Body>;

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

/// Bytes that a message takes here, if its sender does not keep it.
pub(super) fn kept_bytes(early: &Early) -> usize {
    match &early.body {
        Body::Inline(_) => size_of::<Early>(),
        Body::Copied(bytes) => size_of::<Early>() + bytes.capacity(),
        Body::Staged(_) | Body::Lent { .. } => 0,
    }
}

/// Bytes that messages of a peer take at most that has been asked to send none.
pub(super) const WINDOW_BYTES: usize = WINDOW * size_of::<Early>() + PAYLOAD_BYTES + EAGER_BYTES;
