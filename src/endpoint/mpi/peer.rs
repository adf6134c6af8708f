//! A peer of a port: messages that wait to go there, and sends and receives without a partner yet.

use std::collections::VecDeque;

use super::header::{CREDITS, Header, KEPT_CREDITS, PART_BYTES, Parts};
use super::lanes::Lanes;
use crate::Rank;
use crate::endpoint::{Arrival, Slot, Tag, WireRegion};

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) rank: Rank,
    /// Credits left for sending there.
    pub(super) credits: u32,
    /// Credits of messages from there that have not been given back yet.
    pub(super) owed: u32,
    /// Credits of messages from there that are kept, and hold them.
    pub(super) held: u32,
    /// The message of which more parts are to come.
    pub(super) parts: Parts,
    /// Receives whose message has not come.
    pub(super) posted: Vec<Posted>,
    /// Messages whose receive has not been posted, in the order in which they came.
    pub(super) early: VecDeque<Early>,
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

#[derive(Clone, Copy, Debug)]
pub(super) struct Posted {
    pub(super) tag: Tag,
    pub(super) slot: Slot,
    pub(super) region: WireRegion,
    pub(super) arrival: Arrival,
}

impl Posted {
    /// Whether a message that names it is of the same call, and as long.
    pub(super) fn fits(&self, tag: Tag, len: usize) -> bool {
        (self.tag.call, self.region.len) == (tag.call, len)
    }
}

#[derive(Debug)]
pub(super) struct Early {
    pub(super) tag: Tag,
    pub(super) len: usize,
    pub(super) message: Message,
    /// Credits that it holds.
    pub(super) held: u32,
}

impl Early {
    /// Bytes of memory that it takes here, if its sender does not keep it.
    pub(super) fn bytes(&self) -> usize {
        match &self.message {
            Message::Short(data) => size_of::<Early>() + data.capacity(),
            Message::Long(_) => 0,
        }
    }
}

/// What has come of a message.
#[derive(Debug)]
pub(super) enum Message {
    /// Its first bytes, or all of them.
    Short(Vec<u8>),
    /// Word that it is under way with this tag of MPI's.
    Long(i32),
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
        (CREDITS - KEPT_CREDITS) as usize * (size_of::<Early>() + PART_BYTES);

    /// Credits of messages from there that are to be given back now, if any. Those that are not held are
    /// given back in good time, as long as others are.
    #[inline]
    pub(super) fn due(&mut self) -> Option<u32> {
        let least = if self.held > 0 { 1 } else { CREDITS / 2 };
        (self.owed >= least).then(|| std::mem::take(&mut self.owed))
    }

    pub(super) fn new(rank: Rank) -> Self {
        Peer {
            rank,
            credits: CREDITS,
            owed: 0,
            held: 0,
            parts: Parts::default(),
            posted: Vec::new(),
            early: VecDeque::new(),
            lanes_to: Lanes::default(),
            lanes_from: Lanes::default(),
            outbox: VecDeque::new(),
            n_waits: 0,
            is_listed: false,
        }
    }

    /// Forgets everything that has to do with memory of users.
    pub(super) fn abandon(&mut self) {
        self.posted.clear();
        self.early.clear();
        self.outbox.clear();
    }

    /// Whether something has come from there that belongs to the operation, but to a call whose
    /// messages do not meet those of this one.
    pub(super) fn misses(&self, tag: Tag) -> bool {
        let misses = |other: Tag| {
            other.operation_id() == tag.operation_id() && !Tag::do_meet(other.call, tag.call)
        };
        self.early.iter().any(|early| misses(early.tag))
    }
}
