//! One of the ranks that a port speaks with: what is to go there, and what has met nothing yet.

use std::collections::VecDeque;

use super::header::Header;
use crate::Rank;
use crate::endpoint::{Arrival, Slot, Tag, WireRegion};

/// Short messages and announcements that may be on their way to a peer. What comes while that does
/// not look is kept by MPI, so this bounds what it needs.
pub(super) const CREDITS: u32 = 32;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) rank: Rank,
    /// What may still be sent there.
    pub(super) credits: u32,
    /// What has come from there and has not been said to have.
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
    /// Whether it is among those with something in their outbox.
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
