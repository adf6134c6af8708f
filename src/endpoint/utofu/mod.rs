//! The wire over uTofu: one VCQ per port.
//!
//! # Protocol
//! - *Addresses.* `addresses` computes a VCQ's id from its rank, `channel` the STADD of a mailbox or channel from
//!   that id. At start-up each rank publishes which VCQs of its node are its own. An endpoint keeps no state for a
//!   rank until one of them contacts the other.
//! - *First contact.* A rank that needs a peer allocates a channel that the peer may write to, and announces the
//!   channel by a hello: a put to the peer's mailbox. The peer answers with a hello for a channel of its own. A
//!   channel takes 18.5 KiB for each of the first 32 peers and 2.25 KiB for further peers. Plans of collectives need
//!   O(log p) peers (pairwise alltoall: p).
//! - *Tiny* messages (up to 16 bytes) travel inside a piggybacked descriptor; *eager* messages (up to 2 KiB) are
//!   copied and put into an eager slot. A receiver that has not posted the receive yet copies the message to a buffer
//!   and frees the slot, so no message can block another. The memory of these buffers is bounded
//!   ([`unexpected`](super::unexpected)): beyond the bound the receiver withholds the slot's credit until the message
//!   has met its receive. A sender that gets no credits for some polls announces its messages, and the receiver
//!   grants credits for those whose receives are posted.
//! - *Longer* messages use a rendezvous: the receiver sends a clear-to-send descriptor with the STADD of its region,
//!   the sender puts into the region (in pieces of at most the TNI's longest put), and the address in each notice
//!   tells which receive the put belongs to. A receiver that expects a short message sends no clear to send, so a
//!   sender that has waited for a while announces the length of its message. If the lengths or calls of the two sides
//!   differ, the message is dropped (`matching`).
//!
//! # Queues cannot overflow
//! A write to a channel needs a credit, a put of data follows an announcement, and a rank sends one hello per peer.
//! The number of a channel determines how many credits its sender has: peers after a port's first 32 get a narrow
//! window, and beyond some thousands of peers first contact is an error (`channel`). So the MRQ of a port holds at
//! most 79 notices for each of the first peers, 12 for each further peer, and one for each put into an announced
//! receive. A port announces no more receives than the MRQ has room for; further receives wait. The port's own posts
//! have MRQ entries, too, whether or not they ask for notices. The TOQ can be full: then posts wait. `poll_tcq` frees
//! entries, and a port that has posted anything calls it whenever it has found its MRQ empty. So the MRQ holds entries
//! of at most two full TOQs: of posts before it was empty, and of those since.
//!
//! # Batched posts
//! Puts to channels are batched: one call of the library posts all that the engine submits before a flush, or all
//! that one poll produces. Puts of data are long and each has a completion of its own, so each is posted by itself.
//!
//! # Order
//! The protocol does not depend on the order of two puts: every put has a notice, and the remote address in the
//! notice identifies the put. Notices are never matched by their path; the memory that was written identifies the
//! peer.
//!
//! # Failure detection
//! A mailbox starts with three words: this rank's status, which other ranks read with a get after a long wait
//! (without help from this rank's CPU); news of a failure, which other ranks write; and the destination of this
//! rank's own status gets.
//!
//! A port that gives up revokes the registrations of all memory that peers may have been told of: a peer that has been
//! computing may start a put into it much later.
//!
//! # Tear-down
//! All ranks must drop their endpoints after a barrier that every rank enters once its
//! [`fence`](crate::endpoint::Registry::fence) has returned true. Otherwise a last credit may be written to freed
//! memory.

mod addresses;
mod batch;
mod channel;
mod channels;
mod credits;
mod fence;
#[cfg(feature = "fuzzing")]
pub(crate) mod hostile;
mod inbound;
mod matching;
mod observer;
mod outbound;
mod peer;
mod peer_table;
mod registrar;
mod setup;
mod state;
#[cfg(test)]
mod tests;
mod unexpected;
mod views;
mod wire;

#[cfg(any(feature = "internals", feature = "sim"))]
pub use registrar::CacheView;
pub use registrar::Registrar;
pub use setup::{OnNode, connect};

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use utofu::handles::{Put, Registration, Vcq};
use utofu::{Stadd, UtofuError};

use super::lists::hand_over;
use super::matcher::Matcher;
use super::{
    Arrival, Clock, Endpoint, Event, LAST_WAIT, Matching, Observer, Posted, Rank, RecvPost,
    Registry, SendPost, Status, Tag, Time, WireError, WireRegion, given_up,
};
use crate::memory::Pages;
use crate::planted::{self, Planted};
use crate::slab::Slab;
use addresses::Addresses;
use channel::{MOST_PEERS, MRQ_FOR_DATA};
use channels::Channels;
use peer::{
    Channel, OutboundShort, ShortBytes, UtofuPeer, from_peer, is_long, to_peer, usual_messages,
};
use peer_table::PeerTable;
use state::{DataPut, Fence, UtofuOpenView, UtofuRendezvousRecv, UtofuRendezvousSend};
use unexpected::{Buffered, Unexpected, UtofuBody};
use wire::CreditKind;

/// Most notices taken from the MRQ in one poll: bounds the time of a poll.
const NOTICES_PER_POLL: u32 = 64;
/// Polls between two checks of the messages that wait for credits (and for receives: `matching::CHECK_INTERVAL`).
const POLLS_PER_CHECK: u32 = 64;
/// Initial capacity for puts, announced receives and events.
const USUAL_PUTS: usize = 256;
/// Initial capacity for views: messages that the engine reads in place.
const USUAL_VIEWS: usize = 64;
/// Buffers for unexpected messages that are allocated at start-up.
const POOL_BUFFERS: usize = 16;
/// Longest pause between two polls of a bounded wait, if the wire has its own clock.
const SHORT_WAIT: Duration = Duration::from_millis(1);

/// The endpoint of one port over uTofu; see the module documentation.
pub struct UtofuEndpoint {
    rank: Rank,
    // Fields are dropped in this order: registrations first, then the memory, then the VCQ.
    registrar: Registrar,
    mailbox_registration: Registration,
    mailbox: Pages,
    peers: Vec<UtofuPeer>,
    memory: Channels,
    vcq: Vcq,
    addresses: Addresses,
    peer_of_rank: PeerTable,
    /// STADD of each peer's channel in this rank's memory, and the peer's index; sorted by STADD.
    channels: Vec<(Stadd, u32)>,
    /// Peers to flush again: the hello, a credit or a write found no room.
    pending: Vec<u32>,
    /// Peers with messages that wait for credits.
    waiting: Vec<u32>,
    /// Announced receives, sorted by STADD.
    rendezvous_recvs: Vec<UtofuRendezvousRecv>,
    /// Puts into `rendezvous_recvs` that have not arrived.
    n_announced: u32,
    rendezvous_sends: Slab<UtofuRendezvousSend>,
    puts: VecDeque<DataPut>,
    /// Puts to channels and mailboxes that the next flush posts together.
    batch: Vec<Put>,
    /// Batched puts posted so far, and the library calls that posted them.
    n_posted: (u64, u64),
    events: Vec<Event>,
    buffer_pool: Vec<Vec<u8>>,
    longest_put: usize,
    /// Two queues for each peer: messages from the peer, and messages to the peer.
    matcher: Matcher<UtofuBody>,
    /// Announcements that became void before they arrived: the queue in `matcher`, and the tag.
    void_announcements: Vec<(usize, Tag)>,
    fence: Fence,
    /// Something has been posted since the TCQ was last found empty.
    has_posted: bool,
    /// The rank whose status was requested and has not arrived; one request is outstanding at a time.
    asked: Option<Rank>,
    /// The answer to the last status request.
    answer: Option<Status>,
    /// Messages that the engine reads in place: those that the last poll reported, those that the next poll will.
    views: Vec<UtofuOpenView>,
    next_views: Vec<UtofuOpenView>,
    /// Posts whose completion has not been taken from the TCQ.
    n_open: usize,
    is_abandoned: bool,
    n_polls: u32,
    last_check: Instant,
    /// The clock for all waits.
    time: Time,
}

impl Endpoint for UtofuEndpoint {
    unsafe fn post_recv(&mut self, from: Rank, recv: RecvPost) -> Result<Posted, WireError> {
        self.check_usable()?;
        self.enter_call(recv.tag)?;
        let index = self.peer(from)?;
        let len = recv.region.len;
        if is_long(len) && self.n_announced + self.n_puts(len) > MRQ_FOR_DATA {
            // Puts into the receives announced so far arrive without further posts, so this receive can be posted
            // later.
            return Ok(Posted::Later);
        }
        match self.matcher.take_unexpected(from_peer(index), recv.tag) {
            None => self.queue_recv(index, recv)?,
            Some(Unexpected { tag, len, body: UtofuBody::Buffered(buffered) }) => {
                self.received_unexpected(index, buffered, recv.fits(tag, len), &recv)?;
            }
            Some(Unexpected { tag, len, .. }) => self.recv_announced(index, recv, (tag, len))?,
        }
        Ok(Posted::Accepted)
    }

    unsafe fn post_send(&mut self, to: Rank, send: SendPost) -> Result<Posted, WireError> {
        let SendPost { slot, tag, region } = send;
        self.check_usable()?;
        self.enter_call(tag)?;
        let index = self.peer(to)?;
        if is_long(region.len) {
            let send = RecvPost { slot, tag, region, arrival: Arrival::InRegion };
            if let Some(Unexpected { tag, len, body: UtofuBody::ClearToSend(at) }) =
                self.matcher.post(to_peer(index), send)
            {
                self.met_clear_to_send(index, &send, (tag, len), at)?;
            }
            return Ok(Posted::Accepted);
        }
        // SAFETY: by the contract of the post the region is valid for reads and does not change.
        let payload = unsafe { ShortBytes::of(region) };
        self.send_short(
            index,
            &OutboundShort { tag, slot, credit_kind: CreditKind::Ordinary, payload },
        )?;
        Ok(Posted::Accepted)
    }

    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        if self.is_abandoned {
            return Ok(());
        }
        // Most polls find no work: each step below first makes a cheap check.
        if !self.views.is_empty() {
            self.end_views()?;
        }
        let mut is_drained = false;
        for _ in 0..NOTICES_PER_POLL {
            if !self.take_notice()? {
                is_drained = true;
                break;
            }
        }
        if self.has_posted && is_drained {
            self.poll_completions()?;
        }
        if !self.puts.is_empty() {
            self.flush_puts()?;
        }
        self.n_polls = self.n_polls.wrapping_add(1);
        if self.n_polls.is_multiple_of(POLLS_PER_CHECK) {
            self.check_waiting()?;
        }
        if !self.pending.is_empty() {
            let mut pending = std::mem::take(&mut self.pending);
            for &index in &pending {
                self.peers[index as usize].is_pending = false;
            }
            let flushed = pending.iter().try_for_each(|&index| self.flush_peer(index));
            // `flush_peer` has listed again the peers with remaining work. Keep the larger allocation.
            if self.pending.is_empty() {
                pending.clear();
                self.pending = pending;
            }
            flushed?;
        }
        if !self.batch.is_empty() {
            self.post_batch()?;
        }
        if let Some(blame) = self.news()? {
            self.events.push(Event::News(blame));
        }
        hand_over(&mut self.events, events);
        if !self.next_views.is_empty() {
            std::mem::swap(&mut self.views, &mut self.next_views);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WireError> {
        if self.batch.is_empty() { Ok(()) } else { self.post_batch().map(drop) }
    }

    fn is_flushed(&self) -> bool {
        self.batch.is_empty()
            && self.puts.is_empty()
            && self.pending.is_empty()
            && !self.due_after_views()
    }

    fn abandon(&mut self) {
        if std::mem::replace(&mut self.is_abandoned, true) {
            return;
        }
        self.peers.iter_mut().for_each(UtofuPeer::abandon);
        self.pending.clear();
        self.waiting.clear();
        self.matcher.clear();
        self.void_announcements.clear();
        self.rendezvous_recvs.clear();
        self.puts.clear();
        self.batch.clear();
        self.events.clear();
        self.views.clear();
        self.next_views.clear();
        if planted::is(Planted::RevokedRead) {
            return;
        }
        // Posted operations read users' memory, or carry news to other ranks: wait for their completions.
        let start = self.time.now();
        while self.n_open > 0 && self.time.now() - start < LAST_WAIT {
            // A post that fails now was addressed to a rank that is gone.
            let _ = self.poll_completions();
            self.time.yield_now(SHORT_WAIT);
        }
        self.registrar.revoke();
    }

    fn matching(&mut self) -> Option<&mut dyn Matching> {
        Some(&mut self.matcher)
    }

    fn registry(&mut self) -> Option<&mut dyn Registry> {
        Some(self)
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn clock(&self) -> Option<Arc<dyn Clock>> {
        self.time.clock()
    }
}

impl UtofuEndpoint {
    /// The index of a rank's peer; makes first contact if the rank is not a peer yet.
    fn peer(&mut self, rank: Rank) -> Result<u32, WireError> {
        match self.peer_of_rank.get(rank) {
            Some(known) => Ok(known),
            None => self.first_contact(rank),
        }
    }

    #[cold]
    fn first_contact(&mut self, rank: Rank) -> Result<u32, WireError> {
        if self.peers.len() == MOST_PEERS as usize {
            return Err(WireError {
                call: "first contact",
                reason: format!(
                    "a port can exchange messages with at most {MOST_PEERS} ranks, those of all \
                     communicators from the start of the job on, also of freed ones; choose \
                     algorithms whose ranks have fewer peers"
                ),
                // The failure is local: `rank` is not to blame.
                peer: None,
            });
        }
        let (vcq, mailbox) = self.mailbox_of(rank)?;
        let memory = self.memory.add(&mut self.vcq).map_err(|error| failed(error, None))?;
        let index = self.peer_of_rank.add(rank);
        let at = memory.stadd();
        let place = self.channels.partition_point(|(stadd, _)| *stadd < at);
        self.channels.insert(place, (at, index));
        let peer = UtofuPeer::new(rank, vcq, mailbox, Channel::new(index, memory));
        self.matcher.bytes.add_window(Buffered::window_bytes(peer.local_channel.window));
        let usual = usual_messages(peer.local_channel.window);
        let numbers = [(); 2].map(|()| self.matcher.add_peer(usual));
        debug_assert_eq!(numbers, [from_peer(index), to_peer(index)]);
        self.peers.push(peer);
        self.flush_peer(index)?;
        Ok(index)
    }

    #[cfg(feature = "internals")]
    /// Bytes that this port has registered for itself, all of which a device may pin, and the number of its peers.
    pub fn footprint(&self) -> (usize, usize) {
        (self.mailbox.len() + self.memory.bytes(), self.peers.len())
    }

    fn check_usable(&self) -> Result<(), WireError> {
        if self.is_abandoned { Err(given_up()) } else { Ok(()) }
    }
}

/// Copies a message to the region of its receive.
///
/// # Safety
/// The region must have the message's length, be valid for writes and not be accessed by other threads.
unsafe fn deliver(data: &[u8], region: &WireRegion) {
    debug_assert!(data.len() == region.len);
    if !data.is_empty() {
        // SAFETY: the caller's promise; `data` lies in a channel or a buffer of the endpoint, hence outside the
        // region.
        unsafe { data.as_ptr().copy_to_nonoverlapping(region.ptr, data.len()) };
    }
}

fn failed(error: UtofuError, peer: Option<Rank>) -> WireError {
    WireError { call: error.call, reason: error.reason(), peer }
}
