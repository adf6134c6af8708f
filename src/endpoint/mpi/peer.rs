//! The state of a port for each peer: credits, streams, and messages that wait.

use std::collections::VecDeque;

use super::header::{CREDITS, Header, PART_BYTES, Parts, RESERVED_CREDITS};
use super::streams::Streams;
use crate::Rank;
use crate::endpoint::matcher;
use crate::endpoint::{RecvPost, Slot, WireRegion};

/// A peer of a port.
#[derive(Debug)]
pub(super) struct MpiPeer {
    pub(super) rank: Rank,
    pub(super) credits: Credits,
    /// The message from the peer of which more parts are to arrive.
    pub(super) parts: Parts,
    /// The receive that this message has met, and whether it fits.
    pub(super) partial: Option<(RecvPost, bool)>,
    /// Streams for long messages to the peer.
    pub(super) streams_to: Streams,
    /// Streams for long messages from the peer.
    pub(super) streams_from: Streams,
    /// Messages to the peer that wait for credits.
    pub(super) outbox: VecDeque<QueuedSend>,
    /// Polls that found too few credits since a short message was last sent.
    pub(super) n_waits: u32,
    /// Whether the peer is on the port's list of peers whose outbox is not empty.
    pub(super) is_pending: bool,
}

/// A peer's credits, in both directions.
#[derive(Debug)]
pub(super) struct Credits {
    /// Credits left for sending to the peer.
    pub(super) available: u32,
    /// Credits of messages from the peer that have to be returned.
    pub(super) to_return: u32,
    /// Credits that unexpected messages from the peer hold.
    held: u32,
}

impl Credits {
    /// Takes the credits that are to be returned now: from half of all credits on, or all at once while unexpected
    /// messages hold some.
    #[inline]
    pub(super) fn due(&mut self) -> Option<u32> {
        let least = if self.held > 0 { 1 } else { CREDITS / 2 };
        (self.to_return >= least).then(|| std::mem::take(&mut self.to_return))
    }

    /// An unexpected message holds one credit that was owed.
    pub(super) fn hold(&mut self) {
        (self.to_return, self.held) = (self.to_return - 1, self.held + 1);
    }

    /// A message that held so many credits is no longer unexpected: they are owed again.
    pub(super) fn release(&mut self, held: u32) {
        (self.to_return, self.held) = (self.to_return + held, self.held - held);
    }
}

/// A message whose receive has not been posted.
pub(super) type Unexpected = matcher::Unexpected<MpiBody>;

/// What has arrived of an unexpected message.
#[derive(Debug)]
pub(super) enum MpiBody {
    /// The first bytes or all of a short message, and the credits that it holds.
    Short { data: Vec<u8>, held: u32 },
    /// The header of a long message: its MPI tag.
    Long(i32),
}

/// Bytes of memory that an unexpected message takes here; 0 if its bytes stay with the sender.
pub(super) fn buffered_bytes(unexpected: &Unexpected) -> usize {
    match &unexpected.body {
        MpiBody::Short { data, .. } => size_of::<Unexpected>() + data.capacity(),
        MpiBody::Long(_) => 0,
    }
}

/// A message of this rank that has not been sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedSend {
    pub(super) header: Header,
    pub(super) slot: Slot,
    pub(super) region: WireRegion,
}

impl MpiPeer {
    /// Most bytes taken by unexpected messages of one peer that hold all credits: 1.9 MiB. For the reason see
    /// [`unexpected`](crate::endpoint::unexpected).
    pub(super) const WINDOW_BYTES: usize =
        (CREDITS - RESERVED_CREDITS) as usize * (size_of::<Unexpected>() + PART_BYTES);

    pub(super) fn new(rank: Rank) -> Self {
        MpiPeer {
            rank,
            credits: Credits { available: CREDITS, to_return: 0, held: 0 },
            parts: Parts::default(),
            partial: None,
            streams_to: Streams::default(),
            streams_from: Streams::default(),
            outbox: VecDeque::new(),
            n_waits: 0,
            is_pending: false,
        }
    }

    /// Forgets everything that refers to users' memory.
    pub(super) fn abandon(&mut self) {
        self.partial = None;
        self.outbox.clear();
    }
}
