//! The shared-memory wire: messages between ranks of one host.
//!
//! | bytes | path |
//! | --- | --- |
//! | up to 32 | in the descriptor line of the queue |
//! | up to 2 KiB | in the queue's ring of bytes; the receiver copies them out at once |
//! | up to 32 KiB, with two ranks 16 KiB [^limits]; if cheap 64 KiB | in a slot; the receiver may read them in place |
//! | more, or no slot free | rendezvous: the receiver reads the sender's memory (CMA), or asks for pieces (CICO) |
//!
//! [^limits]: unless the decision table has other [`ShmLimits`](hopbine_torus::choose::ShmLimits).
//!
//! Pieces go through staging slots. The first ones follow the announcement at once if the peer asked for pieces of
//! the last long message. Receivers choose between CMA and CICO by the recent cost of both kinds of copies
//! (`copy_costs`), senders choose whether to write slots with non-temporal stores (`store_policy`). If ranks may not
//! read each other's memory, messages of up to 64 KiB are staged, and longer ones go in pieces.
//!
//! A receiver empties its queues at every poll, into private memory if necessary. A message that finds no slot for
//! some time is announced; a piece that finds none, because other receivers do not read theirs, goes through the
//! ring. So no message waits for another. The peers of a receiver with too many unexpected bytes announce their next
//! messages ([`unexpected`](super::unexpected)).

mod backlog;
mod bell;
mod bulk;
mod cma;
mod copy_costs;
mod descriptor;
mod early;
mod flat_buffer;
mod flat_buffers;
mod flat_call;
mod flat_groups;
#[cfg(feature = "fuzzing")]
pub(crate) mod hostile;
mod inbound;
mod layout;
mod observer;
mod peer;
mod process;
mod queue;
mod rendezvous;
mod segment;
mod setup;
mod stages;
mod staging;
mod state;
mod store_policy;

use std::collections::VecDeque;
use std::sync::Arc;

use hopbine_torus::PortId;

pub use flat_buffer::FlatBuffer;
pub use flat_buffers::{FlatBufferLease, FlatBuffers};
pub use flat_call::{Contribution, Entered};
pub use layout::{CONTRIBUTION_BYTES, GROUP_BYTES, SLOT_BYTES};
#[cfg(feature = "fuzzing")]
pub(crate) use setup::check_startup_record;
pub use setup::{ShmConfig, connect};
pub use stages::LeaderStage;

use super::Posted;
use super::lists::hand_over;
use super::matcher::Matcher;
use super::validation::InvalidField;
use super::{Bell, Endpoint, Event, Matching, Observer, RecvPost, SendPost, Status, WireError};
use crate::Rank;
use crate::error::Blame;
use crate::slab::Slab;
use cma::Cma;
use descriptor::{Early, EarlyPiece, INLINE_BYTES, LineKind, ShmDescriptor, StagingPlace};
use layout::ShmLayout;
use peer::{ShmBody, ShmPeer};
use segment::Segment;
use staging::StagingSlots;
use state::{CicoRecv, CicoSend, EarlyRecv, ShmRendezvousRecv, ShmRendezvousSend};

/// The longest message that goes through the queue. The receiver keeps memory for a whole window of such messages
/// ([`peer`]) and refuses longer ones, so the length is no choice of a table.
pub const EAGER_BYTES: usize = 2048;
/// With more peers than this, a port polls queues without a posted receive less often, unless it awaits answers.
const FEW_PEERS: usize = 8;
/// Polls between two looks at such queues.
const RARELY: u32 = 16;

/// Result of [`connect`].
#[derive(Debug)]
pub struct ConnectedShm {
    /// One for each port.
    pub endpoints: Vec<ShmEndpoint>,
    /// The flat buffer of the world, if all ranks are on this host.
    pub flat: Option<FlatBuffer>,
    /// Flat buffers for further communicators, if all ranks are on this host.
    pub flats: Option<Arc<FlatBuffers>>,
    /// Whether receivers read long messages from their senders' memory.
    pub reading: Reading,
}

/// Whether ranks of one host read each other's memory (CMA).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reading {
    /// No other rank is reached through shared memory.
    Unused,
    /// Ranks read long messages from the sender's memory.
    On,
    /// Both sides copy long messages, through staging slots.
    Off {
        /// The setting that forbids reading, or the rank that may not read, and why.
        reason: String,
    },
}

/// One port of a rank on the shared-memory wire.
#[derive(Debug)]
pub struct ShmEndpoint {
    rank: Rank,
    /// Ranks of the world.
    n_ranks: u32,
    port: PortId,
    /// This rank's index among the peers.
    me: usize,
    layout: ShmLayout,
    segment: Arc<Segment>,
    bell: Arc<dyn Bell>,
    /// All ranks of this host, including this one, in the order of ranks.
    peers: Vec<ShmPeer>,
    staging: StagingSlots,
    cma: Cma,
    /// Whether this process may read the memory of all peers.
    can_read: bool,
    /// Whether each rank has a core of its own.
    own_cores: bool,
    /// The longest message that is always staged.
    staged: usize,
    rendezvous_sends: Slab<ShmRendezvousSend>,
    cma_due: Vec<ShmRendezvousRecv>,
    /// Receives of messages that arrive in pieces.
    cico_recvs: Slab<CicoRecv>,
    cico_sends: VecDeque<CicoSend>,
    /// Announced messages whose early bytes have not all arrived, or whose receives are not posted.
    early_recvs: Vec<EarlyRecv>,
    /// Early pieces of messages whose receives are not posted, with their peers' indices.
    early_pieces: Vec<(usize, EarlyPiece)>,
    /// Number of the last announcement that had early bytes.
    last_early: u32,
    /// Answers for which the peer's queue had no room, with the peer's index.
    backlog: Vec<(usize, ShmDescriptor)>,
    /// Events that the next poll reports.
    events: Vec<Event>,
    /// Views of peers' staging slots that the last poll reported, and views that the next poll will report.
    views: Vec<(usize, StagingPlace)>,
    next_views: Vec<(usize, StagingPlace)>,
    matcher: Matcher<ShmBody>,
    /// Number of peers that have been asked to send no short messages.
    n_held: usize,
    n_polls: u32,
    /// Parts of long messages that this port has read, sent or received.
    n_parts: u64,
    is_abandoned: bool,
    answer: Option<Status>,
    /// The last news that was reported.
    reported: Option<Blame>,
}

impl ShmEndpoint {
    /// The ranks that this port reaches.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> {
        self.peers.iter().map(|peer| peer.rank)
    }

    #[inline]
    fn peer_of(&self, rank: Rank) -> Result<usize, WireError> {
        // The ranks of a host are usually consecutive.
        let guess = rank.wrapping_sub(self.peers[0].rank) as usize;
        if self.peers.get(guess).is_some_and(|peer| peer.rank == rank) {
            return Ok(guess);
        }
        self.peers.binary_search_by_key(&rank, |peer| peer.rank).map_err(|_| {
            WireError::new("shared memory", format!("rank {rank} is not on this host")).at(rank)
        })
    }

    fn check(&self) -> Result<(), WireError> {
        if !self.is_abandoned {
            return Ok(());
        }
        Err(WireError::new("shared memory", "given up"))
    }

    /// The error for an invalid record of a peer.
    #[cold]
    fn invalid_from(&self, peer: usize, invalid: InvalidField) -> WireError {
        invalid.wire_error_from(self.peers[peer].rank, "shared memory")
    }

    /// Sends a descriptor with its payload. False if there is no room now.
    #[inline]
    fn push(
        &mut self,
        peer: usize,
        descriptor: &ShmDescriptor,
        payload: &[u8],
    ) -> Result<bool, WireError> {
        let pushed = self.peers[peer].outbox.push(descriptor, payload);
        pushed.map_err(|invalid| self.invalid_from(peer, invalid))
    }
}

impl Endpoint for ShmEndpoint {
    #[inline]
    unsafe fn post_send(&mut self, to: Rank, send: SendPost) -> Result<Posted, WireError> {
        let SendPost { slot, tag, region } = send;
        self.check()?;
        self.enter_call(tag)?;
        let peer = self.peer_of(to)?;
        let mut descriptor = ShmDescriptor {
            kind: LineKind::Inline,
            call: tag.call,
            message: tag.message,
            operation: tag.operation_id(),
            len: region.len as u64,
            id: 0,
            word: 0,
        };
        let staged = self.longest_staged(peer, region.len);
        let is_short = region.len <= EAGER_BYTES;
        if is_short && self.peers[peer].outbox.may_send_short() {
            if region.len > INLINE_BYTES {
                descriptor.kind = LineKind::Eager;
            }
            let bytes: &[u8] = match region.len {
                0 => &[],
                // SAFETY: the region is valid for reads by the caller's promise.
                len => unsafe { std::slice::from_raw_parts(region.ptr, len) },
            };
            let is_pushed = self.push(peer, &descriptor, bytes)?;
            return Ok(if is_pushed { Posted::Done } else { Posted::Later });
        }
        if !is_short && region.len <= staged {
            // SAFETY: the caller's promise; `StagingSlots::sent` is called before the event is reported.
            if let Some(staged) = unsafe { self.staging.put(region.ptr, region.len) } {
                (descriptor.kind, descriptor.id) = (LineKind::Staged, staged.in_line());
                if !self.push(peer, &descriptor, &[])? {
                    self.staging.take_back(staged);
                    return Ok(Posted::Later);
                }
                self.events.push(Event::Sent(slot));
                return Ok(Posted::Accepted);
            }
            if self.staging.may_wait() {
                return Ok(Posted::Later);
            }
        }
        let early = self.early_bytes(peer, region.len);
        let rendezvous = ShmRendezvousSend { peer, is_cico: false, early, send };
        let id = self.rendezvous_sends.insert(rendezvous);
        (descriptor.kind, descriptor.id) = (LineKind::Rendezvous, id);
        let address = region.ptr.expose_provenance() as u64;
        let number = self.last_early.wrapping_add(1);
        let words = [address, self.rendezvous_sends.len() as u64, Early::word(number, early)];
        if !self.push(peer, &descriptor, bytemuck::bytes_of(&words))? {
            self.rendezvous_sends.remove(id);
            return Ok(Posted::Later);
        }
        if early > 0 {
            self.last_early = number;
            // SAFETY: the caller's promise; `early_bytes` has counted the slots.
            unsafe { self.send_early(peer, number, (region, early))? };
            if early == region.len {
                self.rendezvous_sends.remove(id);
                self.events.push(Event::Sent(slot));
            }
        }
        Ok(Posted::Accepted)
    }

    #[inline]
    unsafe fn post_recv(&mut self, from: Rank, recv: RecvPost) -> Result<Posted, WireError> {
        self.check()?;
        self.enter_call(recv.tag)?;
        let peer = self.peer_of(from)?;
        let Some(unexpected) = self.matcher.post(peer, recv) else { return Ok(Posted::Accepted) };
        // SAFETY: the caller's promise.
        unsafe { self.received_unexpected(peer, unexpected, &recv) }
    }

    #[inline]
    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        self.end_views();
        if self.is_abandoned {
            self.events.clear();
            return Ok(());
        }
        self.n_polls = self.n_polls.wrapping_add(1);
        if self.staging.polled() {
            // The slots may become free without another bell.
            self.bell.ring();
        }
        let all = self.peers.len() <= FEW_PEERS
            || self.n_polls.is_multiple_of(RARELY)
            || self.awaits_answers();
        for peer in 0..self.peers.len() {
            if (all || self.matcher.has_posted(peer)) && self.peers[peer].inbox.has_next() {
                self.drain(peer)?;
            }
        }
        if !self.backlog.is_empty() {
            self.flush_backlog()?;
        }
        if !self.cico_sends.is_empty() {
            self.advance_cico()?;
        }
        if !self.cma_due.is_empty() {
            self.advance_cma()?;
            // Rings its own bell: no peer does so for the rest of the message.
            if !self.cma_due.is_empty() {
                self.bell.ring();
            }
        }
        self.staging.sent();
        if !self.next_views.is_empty() {
            std::mem::swap(&mut self.views, &mut self.next_views);
        }
        if !self.events.is_empty() {
            hand_over(&mut self.events, events);
        }
        self.report_news(events)
    }

    fn is_flushed(&self) -> bool {
        self.backlog.is_empty()
    }

    fn abandon(&mut self) {
        if std::mem::replace(&mut self.is_abandoned, true) {
            return;
        }
        self.staging.sent();
        self.end_views();
        std::mem::swap(&mut self.views, &mut self.next_views);
        self.end_views();
        self.cma.revoke();
        self.rendezvous_sends = Slab::default();
        self.cico_recvs = Slab::default();
        self.cma_due.clear();
        self.early_recvs.clear();
        self.early_pieces.clear();
        self.cico_sends.clear();
        self.backlog.clear();
        self.events.clear();
        self.matcher.clear();
    }

    fn n_parts(&self) -> u64 {
        self.n_parts
    }

    fn matching(&mut self) -> Option<&mut dyn Matching> {
        Some(&mut self.matcher)
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn bell(&self) -> Option<Arc<dyn Bell>> {
        Some(self.bell.clone())
    }
}

impl Drop for ShmEndpoint {
    fn drop(&mut self) {
        self.abandon();
    }
}
