//! The state of an endpoint for each rank that it communicates with.

use std::collections::VecDeque;

use utofu::{Stadd, VcqId};

use crate::endpoint::validation::InvalidField;
use crate::endpoint::{Rank, RecvPost, Slot, Tag, WireRegion};

use super::channel::{ChannelLayout, ChannelRing, ChannelWindow, EAGER_BYTES, TINY_BYTES};
use super::channels::SlabMemory;
use super::credits::{IncomingRing, OutgoingRing};
use super::state::HELLOS_AT;
use super::wire::{CreditKind, UtofuDescriptor};

/// Messages of each kind for which memory is reserved at first contact with a peer that has a wide channel: 3 KiB in
/// all, little compared to the channel. With more messages in flight the queues grow once.
const USUAL_MESSAGES: usize = 16;

/// Messages of each kind for which memory is reserved at first contact.
pub(super) fn usual_messages(window: ChannelWindow) -> usize {
    if window == ChannelWindow::Wide { USUAL_MESSAGES } else { 0 }
}

/// The matcher's queue for messages from a peer.
pub(super) const fn from_peer(index: u32) -> usize {
    2 * index as usize
}

/// The matcher's queue for messages to a peer.
pub(super) const fn to_peer(index: u32) -> usize {
    2 * index as usize + 1
}

/// Whether a message of `len` bytes needs a rendezvous.
pub(super) const fn is_long(len: usize) -> bool {
    len > EAGER_BYTES
}

/// A short message that the peer has announced, and whose receive is posted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announced {
    pub(super) tag: Tag,
    pub(super) len: usize,
    /// A credit was granted for the message.
    pub(super) is_granted: bool,
}

/// A long send that waits for its receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingSend {
    pub(super) send: RecvPost,
    /// Checks that found the send waiting; no longer counted once the peer has been told.
    pub(super) age: u32,
}

/// An entry for the peer's channel that has not been written yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum OutboundEntry {
    /// A descriptor that is not a message.
    Control(UtofuDescriptor),
    /// A message.
    Short(OutboundShort),
}

/// A short message that has not been written yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutboundShort {
    pub(super) tag: Tag,
    pub(super) slot: Slot,
    pub(super) credit_kind: CreditKind,
    pub(super) payload: ShortBytes,
}

/// The bytes of a short message.
#[derive(Clone, Copy, Debug)]
pub(super) enum ShortBytes {
    /// The length, and bytes that fit in a descriptor.
    Tiny(u8, [u8; TINY_BYTES]),
    /// The region to copy to an eager slot; it stays valid until the message is reported as sent.
    Eager(WireRegion),
}

impl ShortBytes {
    /// # Safety
    /// The region must be valid for reads, and no thread may write it, until the message is reported as sent.
    #[inline]
    pub(super) unsafe fn of(region: WireRegion) -> Self {
        if region.len > TINY_BYTES {
            return ShortBytes::Eager(region);
        }
        let mut data = [0; TINY_BYTES];
        if region.len > 0 {
            // SAFETY: the caller's promise.
            unsafe { region.ptr.copy_to_nonoverlapping(data.as_mut_ptr(), region.len) };
        }
        ShortBytes::Tiny(region.len as u8, data)
    }
}

impl OutboundShort {
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self.payload {
            ShortBytes::Tiny(len, _) => usize::from(len),
            ShortBytes::Eager(region) => region.len,
        }
    }
}

/// The ring of a short message of `len` bytes.
#[inline]
pub(super) fn ring_of(len: usize) -> ChannelRing {
    if len <= TINY_BYTES { ChannelRing::Descriptors } else { ChannelRing::Eager }
}

impl OutboundEntry {
    pub(super) fn ring(&self) -> ChannelRing {
        match self {
            OutboundEntry::Control(_) => ChannelRing::Descriptors,
            OutboundEntry::Short(short) => ring_of(short.len()),
        }
    }
}

/// A peer's channel in this rank's memory.
#[derive(Debug)]
pub(super) struct Channel {
    /// The channel's number in this port.
    number: u32,
    memory: SlabMemory,
    pub(super) window: ChannelWindow,
}

impl Channel {
    pub(super) fn new(number: u32, memory: SlabMemory) -> Self {
        Channel { number, memory, window: ChannelLayout::of(number).window }
    }

    /// The address of a slot.
    pub(super) fn slot(&self, ring: ChannelRing, slot: u32) -> *mut u8 {
        self.memory.ptr().wrapping_add(self.window.offset(ring, slot))
    }
}

/// The state of one peer.
#[derive(Debug)]
pub(super) struct UtofuPeer {
    pub(super) rank: Rank,
    pub(super) vcq: VcqId,
    /// The peer's channel in this rank's memory.
    pub(super) local_channel: Channel,
    /// Whether the hello for `local_channel` has been sent to the peer.
    pub(super) hello_sent: bool,
    /// STADD of the peer's mailbox.
    pub(super) mailbox: Stadd,
    /// This rank's channel in the peer's memory and its width, once the peer's hello has arrived.
    pub(super) remote_channel: Option<(Stadd, ChannelWindow)>,
    /// Bounce buffers for eager messages to the peer; allocated for the first such message.
    pub(super) bounce: Option<SlabMemory>,
    pub(super) outgoing: [OutgoingRing; 2],
    pub(super) incoming: [IncomingRing; 2],
    /// Entries that need only room: descriptors that are not messages, and messages with granted credits.
    pub(super) urgent: VecDeque<OutboundEntry>,
    /// Messages that wait for credits, by ring.
    pub(super) messages: [VecDeque<OutboundShort>; 2],
    /// Checks of `messages` since the last of them was written with an ordinary credit.
    pub(super) n_checks: u32,
    pub(super) awaiting_grant: Vec<Announced>,
    pub(super) waiting_sends: Vec<WaitingSend>,
    /// Whether the peer is on the endpoint's list of peers with messages that wait for credits.
    pub(super) is_waiting: bool,
    /// Whether the peer is on the endpoint's list of peers to flush again.
    pub(super) is_pending: bool,
}

impl UtofuPeer {
    pub(super) fn new(rank: Rank, vcq: VcqId, mailbox: Stadd, local_channel: Channel) -> Self {
        let rings = [ChannelRing::Descriptors, ChannelRing::Eager];
        let window = local_channel.window;
        let usual = usual_messages(window);
        UtofuPeer {
            rank,
            vcq,
            local_channel,
            mailbox,
            hello_sent: false,
            remote_channel: None,
            bounce: None,
            outgoing: rings.map(OutgoingRing::new),
            incoming: rings.map(|ring| IncomingRing::new(ring, window)),
            urgent: VecDeque::with_capacity(usual),
            messages: [usual, usual / 2].map(VecDeque::with_capacity),
            n_checks: 0,
            awaiting_grant: Vec::with_capacity(usual),
            waiting_sends: Vec::with_capacity(usual),
            is_waiting: false,
            is_pending: false,
        }
    }

    /// Handles the peer's hello: this rank's channel in the peer's memory starts at `channel` and has that number.
    pub(super) fn on_hello(&mut self, channel: Stadd, number: u32) {
        let window = ChannelLayout::of(number).window;
        self.remote_channel = Some((channel, window));
        self.outgoing.iter_mut().for_each(|ring| ring.open(window));
    }

    /// Where to write the hello to the peer: the offset encodes the number of the peer's channel here.
    pub(super) fn hello_at(&self) -> Stadd {
        self.mailbox + (HELLOS_AT as u64 + u64::from(self.local_channel.number))
    }

    /// Forgets all messages to and from the peer.
    pub(super) fn abandon(&mut self) {
        self.urgent.clear();
        self.messages.iter_mut().for_each(VecDeque::clear);
        self.awaiting_grant.clear();
        self.waiting_sends.clear();
    }

    /// The next write that credits allow: its ring, the start of the peer's channel, the channel's window, and the
    /// slot.
    #[inline]
    pub(super) fn next(&self) -> Option<(ChannelRing, Stadd, ChannelWindow, u32)> {
        let (channel, window) = self.remote_channel?;
        if let Some(first) = self.urgent.front() {
            let ring = first.ring();
            return Some((ring, channel, window, self.outgoing[ring as usize].slot()?));
        }
        [ChannelRing::Descriptors, ChannelRing::Eager].into_iter().find_map(|ring| {
            self.messages[ring as usize].front()?;
            Some((ring, channel, window, self.outgoing[ring as usize].slot_for_message()?))
        })
    }

    /// Takes a slot of the peer's channel for a message, if nothing is queued before it and credits allow. Returns
    /// the slot's STADD and number.
    #[inline]
    pub(super) fn take_slot(&mut self, ring: ChannelRing) -> Option<(Stadd, u32)> {
        let (channel, window) = self.remote_channel?;
        let is_due = self.incoming.iter().any(IncomingRing::is_due);
        if is_due || self.is_pending || !self.urgent.is_empty() || self.has_messages() {
            return None;
        }
        let outgoing = &mut self.outgoing[ring as usize];
        let place = outgoing.slot_for_message()?;
        outgoing.used();
        self.n_checks = 0;
        Some((channel + window.offset(ring, place) as u64, place))
    }

    /// Takes the entry out of the queues that [`next`](UtofuPeer::next) has found a slot for in this ring.
    #[inline]
    pub(super) fn take_next(&mut self, ring: ChannelRing) -> Option<OutboundEntry> {
        self.outgoing[ring as usize].used();
        self.urgent.pop_front().or_else(|| {
            self.n_checks = 0;
            self.messages[ring as usize].pop_front().map(OutboundEntry::Short)
        })
    }

    /// Whether messages wait for credits.
    #[inline]
    pub(super) fn has_messages(&self) -> bool {
        self.messages.iter().any(|messages| !messages.is_empty())
    }

    /// Announces the messages that wait for credits.
    pub(super) fn announce(&mut self) {
        let waiting = self.messages.iter_mut().flatten();
        for short in waiting.filter(|short| short.credit_kind == CreditKind::Ordinary) {
            short.credit_kind = CreditKind::Announced;
            let (tag, len) = (short.tag, short.len() as u64);
            self.urgent
                .push_back(OutboundEntry::Control(UtofuDescriptor::RequestToSend { tag, len }));
        }
    }

    /// Applies a grant of the peer: moves the short message of this length to `urgent`. Returns false if the message
    /// no longer waits; the granted credit then stays with the peer.
    ///
    /// # Errors
    /// If the peer grants more credits than the channel has slots.
    pub(super) fn granted(&mut self, tag: Tag, len: usize) -> Result<bool, InvalidField> {
        let ring = ring_of(len) as usize;
        let Some(short) = take(&mut self.messages[ring], |short| short.tag.same_message(tag))
        else {
            return Ok(false);
        };
        self.outgoing[ring].granted()?;
        self.urgent.push_back(OutboundEntry::Short(OutboundShort {
            credit_kind: CreditKind::Granted,
            ..short
        }));
        Ok(true)
    }

    /// Grants credits to announced messages whose receives are posted, as far as there are credits.
    pub(super) fn grant(&mut self) {
        let UtofuPeer { awaiting_grant, incoming, urgent, .. } = self;
        for Announced { tag, len, is_granted } in
            awaiting_grant.iter_mut().filter(|it| !it.is_granted)
        {
            *is_granted = incoming[ring_of(*len) as usize].grant();
            if *is_granted {
                let (tag, len) = (*tag, *len as u64);
                urgent.push_back(OutboundEntry::Control(UtofuDescriptor::ClearToSend {
                    tag,
                    at: 0,
                    len,
                }));
            }
        }
    }

    /// Whether an announced message with a posted receive waits for a grant.
    #[inline]
    pub(super) fn has_ungranted(&self) -> bool {
        self.awaiting_grant.iter().any(|awaiting_grant| !awaiting_grant.is_granted)
    }

    /// Accounts for a message, sent with this leave, that has met its receive. Returns whether its announcement has
    /// yet to arrive.
    pub(super) fn met(&mut self, tag: Tag, credit_kind: CreditKind) -> bool {
        let Some(at) = self
            .awaiting_grant
            .iter()
            .position(|awaiting_grant| awaiting_grant.tag.same_message(tag))
        else {
            return credit_kind == CreditKind::Announced;
        };
        let Announced { len, is_granted, .. } = self.awaiting_grant.swap_remove(at);
        if is_granted {
            let is_unused = credit_kind != CreditKind::Granted;
            self.incoming[ring_of(len) as usize].granted_arrived(is_unused);
            if is_unused {
                // Cancel a grant that is still queued here: it would be written after the end of its operation.
                self.take_clear_to_send(tag, false);
            }
        }
        false
    }

    /// Cancels the `ClearToSend` for a long or for a short message if it has not been written. Returns whether it was
    /// cancelled.
    pub(super) fn take_clear_to_send(&mut self, tag: Tag, is_long: bool) -> bool {
        let is_it = |outbound: &OutboundEntry| match outbound {
            OutboundEntry::Control(UtofuDescriptor::ClearToSend { tag: of, len, .. }) => {
                of.same_message(tag) && self::is_long(*len as usize) == is_long
            }
            _ => false,
        };
        take(&mut self.urgent, is_it).is_some()
    }

    /// Whether a descriptor can be written at once, with nothing queued before it.
    pub(super) fn has_credit_to_spare(&self) -> bool {
        let ring = &self.outgoing[ChannelRing::Descriptors as usize];
        self.remote_channel.is_some() && self.urgent.is_empty() && ring.slot().is_some()
    }

    /// True if nothing can be written to the peer now: queued messages, if any, wait for the peer's credits.
    pub(super) fn is_quiet(&self) -> bool {
        let is_due = self.incoming.iter().any(IncomingRing::is_due);
        self.hello_sent && self.next().is_none() && !(is_due && self.remote_channel.is_some())
    }
}

/// Takes out the first element that `is_it` accepts. Messages mostly arrive in the expected order, so this is mostly
/// the front of the queue.
pub(super) fn take<T>(queue: &mut VecDeque<T>, is_it: impl Fn(&T) -> bool) -> Option<T> {
    let index = queue.iter().position(is_it)?;
    queue.remove(index)
}
