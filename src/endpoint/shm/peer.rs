//! State of a peer at a port: queues, costs of copies, and the bodies of unexpected messages.

use std::sync::Arc;

use crate::endpoint::Rank;
use crate::endpoint::matcher;

use super::EAGER_BYTES;
use super::copy_costs::CopyCosts;
use super::descriptor::{INLINE_BYTES, Location, Rendezvous, StagingPlace};
use super::layout::PAYLOAD_BYTES;
use super::process::Watch;
use super::queue::{Inbox, Outbox, WINDOW};

/// A peer, as seen by one port.
#[derive(Debug)]
pub(super) struct ShmPeer {
    pub(super) rank: Rank,
    pub(super) process: Arc<Watch>,
    pub(super) outbox: Outbox,
    pub(super) inbox: Inbox,
    pub(super) costs: CopyCosts,
    /// Whether the peer has been asked to send no short messages.
    pub(super) is_held: bool,
    pub(super) rendezvous_mode: RendezvousMode,
}

/// How a peer has recently received long messages from this port.
#[derive(Clone, Copy, Debug)]
pub(super) struct RendezvousMode {
    /// Whether the peer asked for pieces of the last message for which it had the choice.
    pub(super) chose_cico: bool,
    /// Messages sent to the peer with early bytes since the last one without.
    pub(super) n_early: u32,
}

impl RendezvousMode {
    /// The state before the first message; `can_read` says whether ranks may read each other's memory.
    pub(super) fn of(can_read: bool) -> Self {
        RendezvousMode { chose_cico: !can_read, n_early: 0 }
    }
}

/// An unexpected message.
pub(super) type Unexpected = matcher::Unexpected<ShmBody>;

/// Where the bytes of a message are.
#[derive(Debug)]
pub(super) enum ShmBody {
    Inline([u8; INLINE_BYTES]),
    Copied(Vec<u8>),
    /// In a staging slot of the sender.
    Staged(StagingPlace),
    /// In the sender's memory.
    Rendezvous(Rendezvous),
}

impl ShmBody {
    /// Where the message's bytes are, as in its descriptor.
    pub(super) fn location(&self) -> Location {
        match *self {
            ShmBody::Inline(_) => Location::Line,
            ShmBody::Copied(_) => Location::Ring,
            ShmBody::Staged(at) => Location::Slot(at),
            ShmBody::Rendezvous(rendezvous) => Location::Rendezvous(rendezvous),
        }
    }
}

/// Bytes that a stored message takes here; 0 if the sender keeps its bytes.
pub(super) fn buffered_bytes(unexpected: &Unexpected) -> usize {
    match &unexpected.body {
        ShmBody::Inline(_) => size_of::<Unexpected>(),
        ShmBody::Copied(bytes) => size_of::<Unexpected>() + bytes.capacity(),
        ShmBody::Staged(_) | ShmBody::Rendezvous { .. } => 0,
    }
}

/// Maximum of the bytes of messages from a peer that has been asked to send none.
pub(super) const WINDOW_BYTES: usize =
    WINDOW * size_of::<Unexpected>() + PAYLOAD_BYTES + EAGER_BYTES;
