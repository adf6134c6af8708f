//! A peer of a port: messages that wait to go there, and sends and receives without a partner yet.

use std::collections::VecDeque;

use super::header::{Header, Kind};
use crate::Rank;
use crate::endpoint::{Arrival, Slot, Tag, WireRegion};

/// Credits: short messages and announcements that may be on their way to a peer at a time. MPI keeps
/// those that the peer has not looked at, so this bounds the memory that MPI needs.
pub(super) const CREDITS: u32 = 32;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) rank: Rank,
    /// Credits left for sending there.
    pub(super) credits: u32,
    /// Credits of messages from there that have not been given back yet.
    pub(super) owed: u32,
    /// Short messages' receives whose message has not come.
    pub(super) posted: Vec<Posted>,
    /// Short messages whose receive has not been posted, in the order in which they came.
    pub(super) early: VecDeque<Early>,
    /// Long messages' receives there whose send has not been posted here.
    pub(super) announced: VecDeque<Announced>,
    /// Long messages' sends whose receive has not been announced.
    pub(super) waiting: Vec<Waiting>,
    /// Long messages that wait there for receives that have not been posted here.
    pub(super) said: VecDeque<(Tag, u64)>,
    /// What waits for credits.
    pub(super) outbox: VecDeque<Outgoing>,
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

#[derive(Debug)]
pub(super) struct Early {
    pub(super) tag: Tag,
    pub(super) data: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Announced {
    pub(super) tag: Tag,
    pub(super) len: u64,
    pub(super) mpi_tag: i32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) tag: Tag,
    pub(super) slot: Slot,
    pub(super) region: WireRegion,
}

/// A header, and the message that goes with it if it has a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) header: Header,
    pub(super) message: Option<(Slot, WireRegion)>,
}

impl Peer {
    pub(super) fn new(rank: Rank) -> Self {
        Peer {
            rank,
            credits: CREDITS,
            owed: 0,
            posted: Vec::new(),
            early: VecDeque::new(),
            announced: VecDeque::new(),
            waiting: Vec::new(),
            said: VecDeque::new(),
            outbox: VecDeque::new(),
            is_listed: false,
        }
    }

    /// Whether this says that a message waits, and that has gone.
    pub(super) fn is_void(&self, outgoing: &Outgoing) -> bool {
        let Outgoing { header, .. } = outgoing;
        let waits = || self.waiting.iter().any(|waiting| is_same(waiting.tag, header.tag()));
        header.kind == Kind::Waits && !waits()
    }

    /// Forgets everything that has to do with memory of users.
    pub(super) fn abandon(&mut self) {
        self.posted.clear();
        self.early.clear();
        self.announced.clear();
        self.waiting.clear();
        self.said.clear();
        self.outbox.clear();
    }

    /// Whether something has come from there that belongs to the operation, but to a call whose
    /// messages do not meet those of this one.
    pub(super) fn misses(&self, tag: Tag) -> bool {
        let misses = |other: Tag| {
            other.operation_id() == tag.operation_id() && !Tag::do_meet(other.call, tag.call)
        };
        self.early.iter().any(|early| misses(early.tag))
            || self.announced.iter().any(|announced| misses(announced.tag))
    }
}

/// Whether two tags name one message, whatever call it belongs to.
pub(super) fn is_same(one: Tag, other: Tag) -> bool {
    (one.message, one.operation, one.context) == (other.message, other.operation, other.context)
}
