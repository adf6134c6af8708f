//! The wire over MPI: for clusters, and for any other system with an MPI.
//!
//! # Protocol
//! - *Short* messages follow a header of 32 bytes in the same MPI message and are copied on both sides: up to
//!   [`EAGER_BYTES`](header::EAGER_BYTES) if a send takes MPI long, less if it does not (`lengths`). A message that is
//!   longer than what MPI sends eagerly goes in parts, each behind a header. All headers have one MPI tag and match
//!   receives that each port keeps posted, its ring.
//! - *Long* messages go from region to region in an MPI message of their own: without a header if a stream carries
//!   them, that is by an MPI tag that both sides compute (`streams`), otherwise right behind a header.
//!
//! A message without a header is sent at once, and its receive is posted at once, as in MPI programs. If the receiver
//! makes another call or expects another length, no receive matches the message. So a port announces a message that
//! has waited for long by a header after all: the receiver then sees the difference and drops the message.
//!
//! A long message goes without a stream if it is one of the first, if MPI has few tags, if more communicators are in
//! use than there are streams, if its operation has many messages (all but the first of these), or if its operation
//! keeps no order. Its header names an MPI tag that no other message with a header from that port is using. The
//! sender sends the message at once, whether or not its receive is posted; the receiver posts an MPI receive with
//! that tag when the header has met its receive. Messages are cut into pieces whose lengths fit in an `int`.
//!
//! Sends of long messages are synchronous (`MPI_Issend`): each completes when its message has been matched, and only
//! then another message may use the tag. A standard send could complete before that, since MPI may send messages of
//! any length eagerly: the message would never be announced, and nothing would limit the memory that messages ahead
//! of their receives take.
//!
//! A long message that is sent well before its receive is posted stays with its sender, except for the bytes that MPI
//! sends ahead: MPIs use a rendezvous for most messages of such a length.
//!
//! MPI buffers what arrives while a rank does not poll. So a message with a header needs a credit; a sender has 32
//! for each peer and port. A port returns the credit of each message that it takes from the ring, even if the message
//! has met no receive, so no message waits for another. But once a port has buffered enough unexpected short
//! messages, further ones hold their credits until they meet their receives ([`unexpected`](super::unexpected)). A
//! short message that has waited for credits for some polls is then sent like a long one; the last credits are
//! reserved for the headers of long messages.
//!
//! When a header meets its receive, the receiver compares length and call. A long message that does not fit is
//! received into the port's own memory and dropped.
//!
//! # Failure detection
//! News of a failure and status requests are messages as well: a rank answers while it polls. A rank that does not
//! answer is not reported as lost, since it may be computing; MPI's launchers end a job of which a rank has died.
//!
//! # Tear-down
//! [`abandon`](Endpoint::abandon) cancels posted receives. MPI cannot cancel a receive that a message has matched, and
//! writes to its region when the sender calls MPI again. So `abandon` waits for such a message without the usual limit:
//! no call returns while MPI may write to its memory. A sender that computes delays the error; the rank says so once.
//! After ten minutes the process ends, since it can neither return nor should it hang; it ends at once if the failure
//! was found on a thread that may not call MPI, and receives are open. MPI cannot cancel sends either;
//! for these `abandon` waits 100 ms at most. Ranks give up at about the same time, so each one also receives and drops
//! what its peers have sent (`drain`), which completes the peers' sends. A send whose receiver does not poll in that
//! time stays with MPI, which may read its memory later: the bytes that MPI sends ahead, or all of them if the
//! receiver, not having heard of the failure, posts a receive for it, or gives up. The receiver may then get arbitrary
//! bytes: here this wire breaks the contract of endpoints. [`end`](Endpoint::end) returns everything to MPI, which may
//! be finalised when all ranks are done. Neither Open MPI nor MPICH waits in `MPI_Finalize` for unmatched sends
//! (`unmet` in sys/mpi/tests/mpi; MPICH over UCX reports that some are left).

mod drain;
pub mod ffi;
mod header;
mod inbound;
mod lengths;
mod library;
mod long_message;
mod observer;
mod opening;
mod outbound;
mod peer;
mod posting;
mod requests;
mod ring;
mod streams;
mod transfers;

use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "internals")]
pub use header::EAGER_BYTES;
#[cfg(feature = "fuzzing")]
pub(crate) use header::play as play_headers;
pub use library::{Comm, Library, check, is_finalised, is_running};

use super::calls::CALLS;
use super::lists::hand_over;
use super::matcher::Matcher;
use super::{
    Endpoint, Event, LAST_WAIT, Matching, Observer, Posted, RecvPost, SendPost, Status, WireError,
};
use crate::Rank;
use crate::error::Blame;
use observer::StatusRequest;
use outbound::HeaderSends;
use peer::{MpiBody, MpiPeer};
use ring::RecvRing;
use streams::Tags;
use transfers::Transfers;

/// The MPI tag of all messages with a header.
const HEADERS: i32 = 0;
/// Most messages taken from the ring in one poll: bounds the time of a poll.
const MESSAGES_PER_POLL: usize = 64;
/// A port that awaits no message looks at its ring in one of this many polls: for status requests, news, and
/// unexpected messages.
const RARELY: u32 = 8;
/// While polls find no message, one in this many checks whether sends are complete.
const QUIET_POLLS: u32 = 4;
/// Time that an abandoned port gives its peers to hear of the failure before it receives and drops their messages
/// (which completes their sends), and the least time for which it then does so.
const LEAST_DRAIN: Duration = Duration::from_millis(20);
/// Marks a rank that is not a peer yet.
const NOBODY: u32 = u32::MAX;

/// The endpoint of one port over MPI.
#[derive(Debug)]
pub struct MpiEndpoint {
    library: Arc<Library>,
    state: State,
}

#[derive(Debug)]
struct State {
    rank: Rank,
    n_ranks: u32,
    peers: Vec<MpiPeer>,
    peer_of_rank: Vec<u32>,
    ring: RecvRing,
    outbound: HeaderSends,
    transfers: Transfers,
    tags: Tags,
    /// Peers whose outbox is not empty.
    pending: Vec<u32>,
    /// Events for the next poll to report.
    events: Vec<Event>,
    matcher: Matcher<MpiBody>,
    /// Receives that have met a short message whose last parts have not arrived.
    n_partial: usize,
    /// Polls since the port last looked at the ring.
    n_polls: u32,
    /// Consecutive polls that have looked at the ring and found no message.
    n_quiet: u32,
    status: Status,
    news: Option<Blame>,
    has_reported: bool,
    status_request: StatusRequest,
    is_abandoned: bool,
    /// True once everything that was posted has been cancelled or given up.
    has_cancelled: bool,
}

// SAFETY: the state has MPI handles, which a thread uses only after `Library` has admitted it, and memory.
unsafe impl Send for State {}

impl MpiEndpoint {
    /// Creates this rank's port over `comm`; collective over `comm`, on which nothing else may send messages. Ranks
    /// are those of `comm`.
    ///
    /// # Safety
    /// `comm` must be an intracommunicator with `MPI_ERRORS_RETURN`, and must live until [`end`](Endpoint::end), or
    /// for ever.
    ///
    /// # Errors
    /// [`WireError`] if MPI fails.
    pub unsafe fn new(library: Arc<Library>, comm: Comm) -> Result<Self, WireError> {
        let inside = library.enter()?;
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the caller's promise.
        unsafe {
            check("MPI_Comm_rank", ffi::PMPI_Comm_rank(comm.0, &mut rank))?;
            check("MPI_Comm_size", ffi::PMPI_Comm_size(comm.0, &mut size))?;
        }
        let tags = Tags::up_to(last_tag()?);
        let state = State {
            rank: rank as Rank,
            n_ranks: size as u32,
            peers: Vec::new(),
            peer_of_rank: vec![NOBODY; size as usize],
            ring: RecvRing::new(comm)?,
            outbound: HeaderSends::new(comm),
            transfers: Transfers::new(comm, tags.last_numbered()),
            tags,
            pending: Vec::new(),
            events: Vec::with_capacity(64),
            matcher: Matcher::new(CALLS),
            n_partial: 0,
            n_polls: 0,
            n_quiet: 0,
            status: Status::Busy,
            news: None,
            has_reported: false,
            status_request: StatusRequest::default(),
            is_abandoned: false,
            has_cancelled: false,
        };
        drop(inside);
        Ok(MpiEndpoint { library, state })
    }

    /// Posts the receives of long messages that are queued.
    #[cold]
    fn begin(&mut self) -> Result<(), WireError> {
        let _inside = self.library.enter()?;
        self.state.transfers.post_queued()
    }
}

/// The value of `MPI_TAG_UB`, which only `MPI_COMM_WORLD` has for certain.
fn last_tag() -> Result<i32, WireError> {
    let (mut value, mut is_set) = (std::ptr::null_mut::<i32>(), 0);
    // SAFETY: `new`'s caller has a communicator, so MPI runs. The attribute is a pointer to the value.
    unsafe {
        let (world, at) = (ffi::comm_world(), (&raw mut value).cast());
        let key = ffi::tag_ub();
        check("MPI_Comm_get_attr", ffi::PMPI_Comm_get_attr(world, key, at, &mut is_set))?;
        // Without the attribute: the smallest value that the standard allows.
        Ok(if is_set == 0 || value.is_null() { 32_767 } else { *value })
    }
}

impl Endpoint for MpiEndpoint {
    #[inline]
    unsafe fn post_send(&mut self, to: Rank, send: SendPost) -> Result<Posted, WireError> {
        let _inside = self.library.enter()?;
        // SAFETY: the caller's promise.
        unsafe { self.state.post_send(to, send) }
    }

    #[inline]
    unsafe fn post_recv(&mut self, from: Rank, recv: RecvPost) -> Result<Posted, WireError> {
        let _inside = self.library.enter()?;
        // SAFETY: the caller's promise.
        unsafe { self.state.post_recv(from, recv) }
    }

    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        let _inside = self.library.enter()?;
        self.state.poll(events)
    }

    #[inline]
    fn flush(&mut self) -> Result<(), WireError> {
        if self.state.transfers.has_to_post() { self.begin() } else { Ok(()) }
    }

    fn is_flushed(&self) -> bool {
        // Messages that wait for credits belong to an operation that has not ended, so they need no check here.
        let State { outbound, transfers, .. } = &self.state;
        outbound.is_empty() && !transfers.is_dropping()
    }

    fn abandon(&mut self) {
        // A thread that may not call MPI leaves the clean-up to `end`.
        match self.library.enter() {
            Ok(_inside) => self.state.give_up(LEAST_DRAIN),
            Err(_) if self.state.transfers.is_receiving() => {
                drain::abort(self.state.rank, "this thread may not call MPI to cancel that");
            }
            Err(_) => self.state.is_abandoned = true,
        }
    }

    fn end(&mut self) {
        match self.library.enter() {
            // No message is in flight, unless the endpoint was abandoned.
            Ok(_inside) => self.state.give_up(Duration::ZERO),
            Err(_) => self.state.is_abandoned = true,
        }
    }

    fn matching(&mut self) -> Option<&mut dyn Matching> {
        Some(&mut self.state.matcher)
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }
}

impl Drop for MpiEndpoint {
    fn drop(&mut self) {
        // If MPI has been finalised already, `end` has returned everything to it.
        if is_running() {
            self.abandon();
        }
    }
}

impl State {
    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        if self.is_abandoned {
            return Ok(());
        }
        // Receives for headers that the last poll has found. The sends that the engine posts in answer to that poll's
        // events must precede them, and have been posted by now.
        self.transfers.post_queued()?;
        let mut is_quiet = false;
        if self.is_time_for_ring() {
            // The views of the last poll have ended.
            self.ring.release()?;
            for _ in 0..MESSAGES_PER_POLL {
                let Some(taken) = self.ring.next()? else {
                    is_quiet = true;
                    self.ring.repost_one()?;
                    break;
                };
                self.arrived(&taken)?;
                if self.n_awaited() == 0 {
                    break;
                }
            }
        }
        self.transfers.advance(&mut self.events)?;
        while let Some(envelope) = self.transfers.next_headerless() {
            self.headerless_arrived(envelope)?;
        }
        if self.transfers.is_time_to_announce() {
            for (rank, header) in self.transfers.unmatched() {
                // SAFETY: there is no payload.
                unsafe { self.outbound.send(rank, &header, None) }?;
            }
        }
        // MPI has just made progress, and a port mostly waits for messages rather than for its own sends.
        self.n_quiet = if is_quiet { self.n_quiet.wrapping_add(1) } else { 0 };
        if !self.outbound.is_empty() && self.n_quiet.is_multiple_of(QUIET_POLLS) {
            self.outbound.collect()?;
        }
        if !self.pending.is_empty() {
            for index in std::mem::take(&mut self.pending) {
                self.peers[index as usize].is_pending = false;
                self.flush(index)?;
            }
        }
        hand_over(&mut self.events, events);
        if let Some(blame) = self.news
            && !std::mem::replace(&mut self.has_reported, true)
        {
            events.push(Event::News(blame));
        }
        Ok(())
    }

    /// Receives whose message has not arrived, or not completely.
    #[inline]
    fn n_awaited(&self) -> usize {
        self.matcher.n_posted() + self.n_partial
    }

    /// Whether to look at the ring in this poll. A look that finds nothing costs as much as one that does, and a
    /// message that is taken before its receive is posted has to be copied.
    #[inline]
    fn is_time_for_ring(&mut self) -> bool {
        self.n_polls += 1;
        let looks = self.n_awaited() > 0 || !self.pending.is_empty() || self.n_polls >= RARELY;
        if looks {
            self.n_polls = 0;
        }
        looks
    }

    /// Cancels everything that is posted. After `least`, receives and drops the messages of peers for at least as
    /// long again.
    fn give_up(&mut self, least: Duration) {
        self.is_abandoned = true;
        if std::mem::replace(&mut self.has_cancelled, true) {
            return;
        }
        let start = Instant::now();
        let end = start + LAST_WAIT;
        self.matcher.clear();
        self.peers.iter_mut().for_each(MpiPeer::abandon);
        self.n_partial = 0;
        self.pending.clear();
        self.events.clear();
        if self.ring.cancel(end) {
            // SAFETY: `cancel` has returned true, so nothing is posted; an abandoned endpoint does not use the ring.
            unsafe { self.ring.free() };
        }
        self.transfers.abandon(self.rank, [start + least, start + 2 * least, end]);
        self.outbound.finish(end);
    }
}
