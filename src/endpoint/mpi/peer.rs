//! A peer of a port: messages that wait to go there, and sends and receives without a partner yet.

use std::collections::VecDeque;

use super::header::{CREDITS, Header, KEPT_CREDITS, PART_BYTES, Parts};
use super::lanes::Lanes;
use crate::Rank;
use crate::endpoint::matcher;
use crate::endpoint::{RecvPost, Slot, WireRegion};

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) rank: Rank,
    pub(super) credits: Credits,
    /// The message of which more parts are to come.
    pub(super) parts: Parts,
    /// The receive that this message has met, and whether it fits.
    pub(super) partial: Option<(RecvPost, bool)>,
    /// By which long messages go there,
    pub(super) lanes_to: Lanes,
    /// and come from there.
    pub(super) lanes_from: Lanes,
    /// What waits for credits.
    pub(super) outbox: VecDeque<Outgoing>,
    /// How often there was none since the last short message has gone.
    pub(super) n_waits: u32,
    /// Whether it is on the port's list of peers whose outbox holds something.
    pub(super) is_listed: bool,
}

/// A peer's credits, in both directions.
#[derive(Debug)]
pub(super) struct Credits {
    /// Left for sending there.
    pub(super) left: u32,
    /// Of messages from there, not given back yet.
    pub(super) owed: u32,
    /// Of messages from there that are kept, and hold them.
    held: u32,
}

impl Credits {
    /// Those to be given back now, if any. Those that are not held are given back in good time, as long as
    /// others are.
    #[inline]
    pub(super) fn due(&mut self) -> Option<u32> {
        let least = if self.held > 0 { 1 } else { CREDITS / 2 };
        (self.owed >= least).then(|| std::mem::take(&mut self.owed))
    }

    /// A message that is kept holds one.
    pub(super) fn hold(&mut self) {
        (self.owed, self.held) = (self.owed - 1, self.held + 1);
    }

    /// A message that held so many is not kept any more.
    pub(super) fn release(&mut self, held: u32) {
        (self.owed, self.held) = (self.owed + held, self.held - held);
    }
}

/// A message that waits for its receive.
pub(super) type Unexpected = matcher::Unexpected<Body>;

/// What has come of a message.
#[derive(Debug)]
pub(super) enum Body {
    /// Its first bytes, or all of them, and the credits that they hold.
    Short { data: Vec<u8>, held: u32 },
    /// Word that it is under way with this tag of MPI's.
    Long(i32),
}

/// Bytes of memory that a message takes here, if its sender does not keep it.
pub(super) fn kept_bytes(unexpected: &Unexpected) -> usize {
    match &unexpected.body {
        Body::Short { data, .. } => size_of::<Unexpected>() + data.capacity(),
        Body::Long(_) => 0,
    }
}

/// A message of this rank that has not gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) header: Header,
    pub(super) slot: Slot,
    pub(super) region: WireRegion,
}

impl Peer {
    /// Bytes that messages of a peer take at most that hold all credits that can be held: 1.9 MiB, see
    /// [`unexpected`](crate::endpoint::unexpected) for why not less.
    pub(super) const WINDOW_BYTES: usize =
        (CREDITS - KEPT_CREDITS) as usize * (size_of::<Unexpected>() + PART_BYTES);

    pub(super) fn new(rank: Rank) -> Self {
        Peer {
            rank,
            credits: Credits { left: CREDITS, owed: 0, held: 0 },
            parts: Parts::default(),
            partial: None,
            lanes_to: Lanes::default(),
            lanes_from: Lanes::default(),
            outbox: VecDeque::new(),
            n_waits: 0,
            is_listed: false,
        }
    }

    /// Forgets everything that has to do with memory of users.
    pub(super) fn abandon(&mut self) {
        self.partial = None;
        self.outbox.clear();
    }
}
