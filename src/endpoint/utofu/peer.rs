//! What an endpoint keeps for each rank that it has exchanged anything with.

use std::collections::VecDeque;

use utofu::{Stadd, VcqId};

use crate::endpoint::{Arrival, Rank, Slot, Tag, WireRegion};

use super::channel::{Lane, Numbered, TINY_BYTES, Window};
use super::channels::SlabMemory;
use super::credits::{Incoming, Outgoing};
use super::state::HELLOS_AT;

/// Messages of each kind for which room is made at first contact with a peer that has a wide
/// channel: 3 KiB in all, little beside that. With more messages under way the room grows once.
const USUAL_MESSAGES: usize = 16;

/// A receive whose message has not begun to arrive.
#[derive(Clone, Copy, Debug)]
pub(super) struct PostedRecv {
    pub(super) tag: Tag,
    pub(super) slot: Slot,
    pub(super) region: WireRegion,
    pub(super) arrival: Arrival,
}

/// A send that waits for the peer's announcement of its receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingSend {
    pub(super) tag: Tag,
    pub(super) slot: Slot,
    pub(super) region: WireRegion,
    /// How often it was found waiting, from time to time, until the peer has been told.
    pub(super) age: u32,
}

/// A receive that the peer has announced before it was sent to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announced {
    pub(super) tag: Tag,
    pub(super) at: Stadd,
    pub(super) len: u64,
}

/// A message that has arrived before its receive was posted.
#[derive(Debug)]
pub(super) struct Unexpected {
    pub(super) tag: Tag,
    pub(super) data: Vec<u8>,
}

/// Messages of which the peer has said that it waits with them, and nothing is known here. Those
/// that are said too late stay for a while: so many are remembered.
pub(super) const MOST_SAID: usize = 16;

/// Something for the peer's channel that has not been written yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outbound {
    /// "I am ready to receive this at that place."
    Ready { tag: Tag, at: Stadd, len: u64 },
    /// "I have this message of that length."
    Waiting { tag: Tag, len: u64 },
    /// A message that fits in a descriptor.
    Tiny { tag: Tag, slot: Slot, len: u8, data: [u8; TINY_BYTES] },
    /// A message for an eager slot; its region stays valid until it is reported as sent.
    Eager { tag: Tag, slot: Slot, region: WireRegion },
}

impl Outbound {
    pub(super) fn lane(&self) -> Lane {
        match self {
            Outbound::Ready { .. } | Outbound::Waiting { .. } | Outbound::Tiny { .. } => {
                Lane::Descriptors
            }
            Outbound::Eager { .. } => Lane::Eager,
        }
    }
}

/// Everything about one peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) rank: Rank,
    pub(super) vcq: VcqId,
    /// Its number among the channels here.
    pub(super) number: u32,
    /// The peer's channel here.
    pub(super) memory: SlabMemory,
    /// How wide that is.
    pub(super) window: Window,
    /// The peer's mailbox.
    pub(super) mailbox: Stadd,
    /// Whether it has been told about its channel here.
    pub(super) greeted: bool,
    /// This rank's channel at the peer, and how wide that is, once its hello has arrived.
    pub(super) channel: Option<(Stadd, Window)>,
    /// The copies of what goes to eager slots there, since the first.
    pub(super) copies: Option<SlabMemory>,
    pub(super) outgoing: [Outgoing; 2],
    pub(super) incoming: [Incoming; 2],
    pub(super) outbound: VecDeque<Outbound>,
    pub(super) posted: VecDeque<PostedRecv>,
    pub(super) waiting: VecDeque<WaitingSend>,
    pub(super) announced: VecDeque<Announced>,
    pub(super) unexpected: VecDeque<Unexpected>,
    /// Tags and lengths of messages that the peer waits with.
    pub(super) said: VecDeque<(Tag, u64)>,
    /// Whether it is on the endpoint's list of peers with something to do.
    pub(super) is_listed: bool,
}

impl Peer {
    pub(super) fn new(
        rank: Rank,
        vcq: VcqId,
        mailbox: Stadd,
        memory: SlabMemory,
        number: u32,
    ) -> Self {
        let lanes = [Lane::Descriptors, Lane::Eager];
        let window = Numbered::of(number).window;
        let usual = if window == Window::Wide { USUAL_MESSAGES } else { 0 };
        Peer {
            rank,
            vcq,
            number,
            memory,
            window,
            mailbox,
            greeted: false,
            channel: None,
            copies: None,
            outgoing: lanes.map(Outgoing::new),
            incoming: lanes.map(|lane| Incoming::new(lane, window)),
            outbound: VecDeque::with_capacity(usual),
            posted: VecDeque::with_capacity(usual),
            waiting: VecDeque::with_capacity(usual),
            announced: VecDeque::with_capacity(usual),
            unexpected: VecDeque::with_capacity(usual),
            said: VecDeque::new(),
            is_listed: false,
        }
    }

    /// The peer's hello has arrived: it has given this rank a channel, at `channel` and with that
    /// number.
    pub(super) fn greeted_by(&mut self, channel: Stadd, number: u32) {
        let window = Numbered::of(number).window;
        self.channel = Some((channel, window));
        self.outgoing.iter_mut().for_each(|lane| lane.open(window));
    }

    /// Where a hello to the peer is written, which says the number of its channel here.
    pub(super) fn hello_at(&self) -> Stadd {
        self.mailbox + (HELLOS_AT as u64 + u64::from(self.number))
    }

    /// Forgets all messages, in either direction.
    pub(super) fn abandon(&mut self) {
        self.outbound.clear();
        self.posted.clear();
        self.waiting.clear();
        self.announced.clear();
        self.unexpected.clear();
        self.said.clear();
    }

    /// Whether a descriptor can be written, and nothing waits for that.
    pub(super) fn has_credit_to_spare(&self) -> bool {
        let lane = &self.outgoing[Lane::Descriptors as usize];
        self.channel.is_some() && self.outbound.is_empty() && lane.slot().is_some()
    }

    /// True if nothing waits to be written to the peer.
    pub(super) fn is_quiet(&self) -> bool {
        let owes = self.incoming.iter().any(Incoming::owes);
        self.greeted && self.outbound.is_empty() && !(owes && self.channel.is_some())
    }
}

/// Takes the first element that `is_it` accepts. Messages mostly come in the order in which
/// they are expected, so it is mostly the very first.
pub(super) fn take<T>(queue: &mut VecDeque<T>, is_it: impl Fn(&T) -> bool) -> Option<T> {
    let index = queue.iter().position(is_it)?;
    queue.remove(index)
}
