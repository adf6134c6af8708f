//! What a port knows of one of its peers: their queues, and what waits to be matched.

use std::sync::Arc;

use crate::endpoint::Rank;
use crate::endpoint::matcher;

use super::EAGER_BYTES;
use super::copy_costs::CopyCosts;
use super::descriptor::{INLINE_BYTES, Rendezvous, Staged, Via};
use super::layout::PAYLOAD_BYTES;
use super::process::Watch;
use super::queue::{Inbox, Outbox, WINDOW};

/// A peer, as seen by one port.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) rank: Rank,
    pub(super) process: Arc<Watch>,
    pub(super) outbox: Outbox,
    pub(super) inbox: Inbox,
    pub(super) costs: CopyCosts,
    /// It is asked to send no short messages.
    pub(super) is_held: bool,
    pub(super) habit: Habit,
}

/// How a peer lately took long messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habit {
    /// In pieces, and has not read the last one.
    pub(super) takes_pieces: bool,
    /// So many messages went to it with early bytes since it has last chosen.
    pub(super) n_early: u32,
}

impl Habit {
    /// Of a peer that has taken none, and that may or may not read others' memory.
    pub(super) fn of(can_read: bool) -> Self {
        Habit { takes_pieces: !can_read, n_early: 0 }
    }
}

/// A message that waits for its receive.
pub(super) type Unexpected = matcher::Unexpected<Body>;

/// Where the bytes of a message are.
#[derive(Debug)]
pub(super) enum Body {
    Inline([u8; INLINE_BYTES]),
    Copied(Vec<u8>),
    /// In a slot of the sender's staging.
    Staged(Staged),
    /// In the sender's memory.
    Rendezvous(Rendezvous),
}

impl Body {
    /// How it has come.
    pub(super) fn via(&self) -> Via {
        match *self {
            Body::Inline(_) => Via::Line,
            Body::Copied(_) => Via::Ring,
            Body::Staged(at) => Via::Slot(at),
            Body::Rendezvous(rendezvous) => Via::Rendezvous(rendezvous),
        }
    }
}

/// Bytes that a message takes here, if its sender does not keep it.
pub(super) fn kept_bytes(unexpected: &Unexpected) -> usize {
    match &unexpected.body {
        Body::Inline(_) => size_of::<Unexpected>(),
        Body::Copied(bytes) => size_of::<Unexpected>() + bytes.capacity(),
        Body::Staged(_) | Body::Rendezvous { .. } => 0,
    }
}

/// Bytes that messages of a peer take at most that has been asked to send none.
pub(super) const WINDOW_BYTES: usize =
    WINDOW * size_of::<Unexpected>() + PAYLOAD_BYTES + EAGER_BYTES;
