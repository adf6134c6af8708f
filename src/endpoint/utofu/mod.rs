//! The wire over uTofu: one VCQ per port.
//!
//! # Protocol
//! - *Addresses.* A VCQ's id follows from its rank (`addresses`), where a mailbox or a channel is
//!   from the id (`channel`): at start-up each rank tells the place of its VCQs on its node, and
//!   nothing is kept for ranks that are not talked to.
//! - *First contact.* A rank that wants anything from a peer gives it a channel to write to and says so
//!   by a put to the peer's mailbox; the peer answers likewise. A channel has 19 KiB for each of the
//!   first 32 peers and 2 KiB for others. Plans of collectives need O(log p) peers (pairwise alltoall: p).
//! - *Tiny* messages (up to 16 bytes) travel inside a piggybacked descriptor; *eager* ones (up
//!   to 2 KiB) are copied and put into an eager slot. Whoever receives either before having
//!   posted the receive keeps it aside and frees the slot, so no message can block another.
//!   That memory is bounded ([`unexpected`](super::unexpected)): past the bound a slot's credit is
//!   held until its message has met its receive. A sender that gets no credits for some polls
//!   announces its messages, and the receiver grants credits for those that it awaits.
//! - *Longer* messages wait for their receive: the receiver sends a descriptor with the STADD
//!   of its region, the sender puts into it (in pieces of at most the TNI's longest put), and
//!   the notices' addresses tell which receive they belong to. A receiver that expects a short
//!   message announces nothing: so a sender that has waited for a while says how long its is.
//!   Where the two sides differ, the message is dropped (`matching`).
//!
//! # Queues cannot overflow
//! Writes to a channel are under credits, puts of data are announced, hellos are one per rank.
//! The number of a channel says how many credits there are: those that come late to a rank with
//! many peers get a narrow window, and past some thousands there is an error (`channel`). So the MRQ
//! of a port holds at most 79 notices for each of the first peers, 12 for each of the others, and one
//! for each put into an announced receive, of which there are never more than the queue has room for:
//! further receives wait. The TOQ is full at times: then whatever was to be posted waits and
//! `poll_tcq`, called whenever anything has been posted, makes room.
//!
//! # Posts together
//! What goes to channels is posted with one call for all that the engine has for them before it
//! flushes, or that a poll has. Puts of data are long, and their completions differ; each is posted by
//! itself.
//!
//! # Order
//! Nothing relies on the order of two puts; every put has a notice of its own, and its address
//! says what it was. Notices are never compared by path: what names a peer is which memory it
//! wrote to.
//!
//! # Trouble
//! A mailbox starts with three words: this rank's status, which others read with a get when they wait
//! for long (it takes no part in that); the news of a failure, which others write; and the place where
//! the answers to such gets arrive.
//!
//! # The end
//! Endpoints of all ranks must be dropped after a barrier that every rank enters when its
//! [`fence`](crate::endpoint::Registry::fence) has been passed: a last credit may otherwise be written to memory
//! that is gone.

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
pub use setup::connect;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use utofu::handles::{Put, Registration, Vcq};
use utofu::{Stadd, UtofuError};

use super::lists::hand_over;
use super::matcher::Matcher;
use super::{
    Arrival, Clock, Endpoint, Event, LAST_WAIT, Observer, Posted, Rank, RecvPost, Registry,
    SendPost, Status, Tag, Time, UnexpectedBytes, WireError, WireRegion, given_up,
};
use crate::memory::Pages;
use crate::planted::{self, Planted};
use addresses::Addresses;
use channel::{MOST_PEERS, MRQ_FOR_DATA};
use channels::Channels;
use peer::{Channel, Peer, Short, ShortBytes, from_peer, is_long, to_peer, usual_messages};
use peer_table::PeerTable;
use state::{DataPut, Fence, RendezvousRecv, RendezvousSend, Viewed};
use unexpected::{Body, Kept, Unexpected};
use wire::Leave;

/// Notices taken from the MRQ in one poll: bounds how long a poll takes.
const NOTICES_PER_POLL: u32 = 64;
/// After so many polls messages that wait for credits are looked at, and, if enough time has passed, those
/// that wait for their receives.
const POLLS_PER_LOOK: u32 = 64;
/// Puts and announced receives for which room is made in advance.
const USUAL_PUTS: usize = 256;
/// Messages that are read where they are, at a time.
const USUAL_VIEWS: usize = 64;
/// Buffers for messages that come too early, made in advance.
const SPARE_BUFFERS: usize = 16;
/// Between two looks of a wait like that, on a wire's own clock.
const SHORT_WAIT: Duration = Duration::from_millis(1);

/// See the module documentation.
pub struct UtofuEndpoint {
    rank: Rank,
    // Fields are dropped in this order: registrations, then the memory, then the VCQ.
    registrar: Registrar,
    mailbox_registration: Registration,
    mailbox: Pages,
    peers: Vec<Peer>,
    memory: Channels,
    vcq: Vcq,
    addresses: Addresses,
    peer_of_rank: PeerTable,
    /// STADD of each peer's channel here, with the peer: sorted by STADD.
    channels: Vec<(Stadd, u32)>,
    /// Peers that something is to be written to.
    listed: Vec<u32>,
    /// Peers with messages that wait for credits.
    waiting: Vec<u32>,
    unexpected: UnexpectedBytes,
    /// Sorted by place.
    rendezvous_recvs: Vec<RendezvousRecv>,
    /// Puts into them that have not arrived.
    n_announced: u32,
    rendezvous_sends: Vec<Option<RendezvousSend>>,
    puts: VecDeque<DataPut>,
    /// Puts to channels and mailboxes that are posted together, at the next flush.
    batch: Vec<Put>,
    /// Such puts, and the calls that have posted them.
    n_posted: (u64, u64),
    events: Vec<Event>,
    spare: Vec<Vec<u8>>,
    longest_put: usize,
    /// Of each peer, messages from it and messages to it.
    matcher: Matcher<Body>,
    /// Announcements that are void before they come.
    overtaken: Vec<(usize, Tag)>,
    fence: Fence,
    /// Something has been posted since the TCQ was last found empty.
    has_posted: bool,
    /// The rank whose status has been asked for and has not come; no other rank is asked meanwhile.
    asked: Option<Rank>,
    /// The answer to the last question.
    answer: Option<Status>,
    /// Messages that are read where they lie: views that the last poll has reported, and those that
    /// the next one will report.
    views: Vec<Viewed>,
    due_views: Vec<Viewed>,
    /// Posts whose completion the TCQ has yet to report.
    n_open: usize,
    is_abandoned: bool,
    n_polls: u32,
    looked: Instant,
    /// That waits go by.
    time: Time,
}

impl Endpoint for UtofuEndpoint {
    unsafe fn post_recv(&mut self, from: Rank, recv: RecvPost) -> Result<Posted, WireError> {
        self.check_usable()?;
        self.enter_call(recv.tag)?;
        let index = self.peer(from)?;
        let len = recv.region.len;
        if is_long(len) && self.n_announced + self.n_puts(len) > MRQ_FOR_DATA {
            // Those that are announced arrive by themselves.
            return Ok(Posted::Later);
        }
        match self.matcher.take_unexpected(from_peer(index), recv.tag) {
            None => self.awaits(index, recv)?,
            Some(Unexpected { tag, len, body: Body::Kept(kept) }) => {
                self.received_unexpected(index, kept, recv.fits(tag, len), &recv)?;
            }
            Some(Unexpected { tag, len, .. }) => self.awaits_announced(index, recv, (tag, len))?,
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
            if let Some(Unexpected { tag, len, body: Body::ClearToSend(at) }) =
                self.matcher.post(to_peer(index), send)
            {
                self.met_clear_to_send(index, &send, (tag, len), at)?;
            }
            return Ok(Posted::Accepted);
        }
        // SAFETY: the region is valid for reads and unchanging by the contract.
        let payload = unsafe { ShortBytes::of(region) };
        self.send_short(index, &Short { tag, slot, leave: Leave::Credit, payload })?;
        Ok(Posted::Accepted)
    }

    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        if self.is_abandoned {
            return Ok(());
        }
        // Most polls find nothing to do: none of what follows costs more than a look then.
        if !self.views.is_empty() {
            self.take_back()?;
        }
        for _ in 0..NOTICES_PER_POLL {
            if !self.take_notice()? {
                break;
            }
        }
        if self.has_posted {
            self.poll_completions()?;
        }
        if !self.puts.is_empty() {
            self.flush_puts()?;
        }
        self.n_polls = self.n_polls.wrapping_add(1);
        if self.n_polls.is_multiple_of(POLLS_PER_LOOK) {
            self.look()?;
        }
        if !self.listed.is_empty() {
            let mut listed = std::mem::take(&mut self.listed);
            for &index in &listed {
                self.peers[index as usize].is_listed = false;
            }
            let flushed = listed.iter().try_for_each(|&index| self.flush_peer(index));
            // Flushing has listed the peers with something left anew; keep the larger allocation.
            if self.listed.is_empty() {
                listed.clear();
                self.listed = listed;
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
        if !self.due_views.is_empty() {
            std::mem::swap(&mut self.views, &mut self.due_views);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WireError> {
        if self.batch.is_empty() { Ok(()) } else { self.post_batch().map(drop) }
    }

    fn is_flushed(&self) -> bool {
        self.batch.is_empty() && self.puts.is_empty() && self.listed.is_empty() && !self.will_owe()
    }

    fn abandon(&mut self) {
        if std::mem::replace(&mut self.is_abandoned, true) {
            return;
        }
        self.peers.iter_mut().for_each(Peer::abandon);
        self.listed.clear();
        self.waiting.clear();
        self.matcher.clear();
        self.overtaken.clear();
        self.unexpected.clear();
        self.rendezvous_recvs.clear();
        self.puts.clear();
        self.batch.clear();
        self.events.clear();
        self.views.clear();
        self.due_views.clear();
        if planted::is(Planted::RevokedRead) {
            return;
        }
        // Posted operations read memory of users, or carry news for other ranks: wait for them.
        let start = self.time.now();
        while self.n_open > 0 && self.time.now() - start < LAST_WAIT {
            // A post that fails now was for a rank that is gone.
            let _ = self.poll_completions();
            self.time.yield_now(SHORT_WAIT);
        }
        self.registrar.forget();
    }

    fn limit_unexpected(&mut self, bytes: usize) {
        self.unexpected.set_limit(bytes);
    }

    fn unexpected(&self) -> UnexpectedBytes {
        self.unexpected
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
    /// The peer of a rank; makes first contact if need be.
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
                    "a port can exchange messages with at most {MOST_PEERS} ranks; choose an \
                     algorithm whose ranks have fewer peers"
                ),
                // Nothing is wrong with that rank.
                peer: None,
            });
        }
        let (vcq, mailbox) = self.mailbox_of(rank)?;
        let memory = self.memory.add(&mut self.vcq).map_err(|error| failed(error, None))?;
        let index = self.peer_of_rank.add(rank);
        let at = memory.stadd();
        let place = self.channels.partition_point(|(stadd, _)| *stadd < at);
        self.channels.insert(place, (at, index));
        let peer = Peer::new(rank, vcq, mailbox, Channel::new(index, memory));
        self.unexpected.add_window(Kept::window_bytes(peer.here.window));
        let usual = usual_messages(peer.here.window);
        let numbers = [(); 2].map(|()| self.matcher.add_peer(usual));
        debug_assert_eq!(numbers, [from_peer(index), to_peer(index)]);
        self.peers.push(peer);
        self.flush_peer(index)?;
        Ok(index)
    }

    #[cfg(feature = "internals")]
    /// Bytes of this port's own that are registered, of which a device may pin all, and the number
    /// of ranks that it has met.
    pub fn footprint(&self) -> (usize, usize) {
        (self.mailbox.len() + self.memory.bytes(), self.peers.len())
    }

    fn check_usable(&self) -> Result<(), WireError> {
        if self.is_abandoned { Err(given_up()) } else { Ok(()) }
    }
}

/// Copies a message to its region.
///
/// # Safety
/// The region must have the message's length, be valid for writes and accessed by nobody else.
unsafe fn deliver(data: &[u8], region: &WireRegion) {
    debug_assert!(data.len() == region.len);
    if !data.is_empty() {
        // SAFETY: the caller's promise; `data` is in a channel or a buffer of the endpoint.
        unsafe { data.as_ptr().copy_to_nonoverlapping(region.ptr, data.len()) };
    }
}

fn failed(error: UtofuError, peer: Option<Rank>) -> WireError {
    WireError { call: error.call, reason: error.reason(), peer }
}
