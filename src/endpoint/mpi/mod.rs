//! Messages over MPI: for clusters, and wherever else there is an MPI.
//!
//! # Protocol
//! A message has a header of 32 bytes, which has one fixed tag of MPI's and meets one of the receives
//! that each port keeps posted, its ring; or it needs none.
//!
//! | bytes | way |
//! | --- | --- |
//! | few: up to [`EAGER_BYTES`] if MPI takes long for a send, less if it does not | behind the header, copied on both sides; in parts, each behind a header, if it is longer than what MPI sends without asking the receiver |
//! | more | in a message of MPI's of its own, from region to region, without a header: by a tag that both sides know (`lanes`) |
//! | more, where there is no lane | in a message of its own, right behind its header |
//!
//! A message without a header goes at once, and its receive is posted at once: as MPI programs do it. A
//! message that its receiver does not expect so, because it makes another call or expects another
//! length, is met by nothing. So whatever waits for long is announced by a header after all: its receiver
//! then learns that they differ, and drops the message.
//!
//! Where there is no lane (for the first messages, where MPI has few tags, where more communicators are in
//! use at a time than there are lanes, for all but the first of many messages of an operation, and for
//! operations that keep no order), the header of a long message names
//! a tag of MPI's that no other with a header has on its way from that port. It is sent at once,
//! whether or not its receive is posted there: the receiver posts one of MPI's, with that tag, when the
//! header has met its receive. The send is synchronous (`MPI_Issend`): it ends when the message has been
//! met, and only then another message may have its tag. Lengths are cut where `int` ends.
//!
//! A message that comes long before its receive is posted stays with its sender, but for what MPI sends
//! ahead: MPIs ask for most messages of such a length.
//!
//! What comes while a rank does not look is kept by MPI: messages with a header are under credits, 32
//! for each sender and port. Whatever has been taken from the ring gives its credit back, also if it has
//! met no receive, so no message waits for another. But once a port has kept enough of short messages
//! that came too early, these hold their credits until they meet their receives
//! ([`unexpected`](super::unexpected)). A short message that waits for credits for some polls then
//! goes like a long one: for headers of these the last credits are kept.
//!
//! The receiver sees, when the header meets the receive, whether both have one length and belong to one
//! call. A long message that does not fit is received into memory of the port's and dropped.
//!
//! # Trouble
//! News of a failure and questions are messages as well: a rank answers while it polls. One that
//! does not is not called lost, since it may compute; the launchers of MPI end a job of which a
//! rank has died.
//!
//! # The end
//! [`abandon`](Endpoint::abandon) takes posted receives back. MPI cannot take back a send: long messages
//! are waited for, for 100 ms at most. Ranks give up at about the same time, so each one also receives, for
//! nobody, what has come to it (`drain`): the sends of others end so. One whose receiver does not look by
//! then, since it computes, stays with MPI, which may read that memory again: what it sends ahead, and all of
//! it if the receiver, who has not heard of the failure yet, posts a receive for it, or gives up. It may get
//! anything then. This
//! is what the contract of endpoints cannot be kept in. [`end`](Endpoint::end) gives everything back to
//! MPI, which may be finalised then, when all ranks are done. Neither Open MPI nor MPICH waits there for
//! sends that nobody has met (`unmet` in sys/mpi/tests/mpi; MPICH over UCX says that some are
//! left).

mod drain;
pub mod ffi;
mod header;
mod inbound;
mod lanes;
mod lengths;
mod library;
mod moves;
mod observer;
mod opening;
mod outbound;
mod peer;
mod posting;
mod requests;
mod ring;
mod transfers;

use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "internals")]
pub use header::EAGER_BYTES;
#[cfg(feature = "fuzzing")]
pub(crate) use header::play as play_headers;
pub use library::{Comm, Library, check, is_running};

use super::calls::CALLS;
use super::lists::hand_over;
use super::matcher::Matcher;
use super::{
    Endpoint, Event, LAST_WAIT, Observer, Posted as Taken, RecvPost, SendPost, Status,
    UnexpectedBytes, WireError,
};
use crate::Rank;
use crate::error::Blame;
use lanes::Tags;
use observer::Question;
use outbound::Outbound;
use peer::{Body, Peer};
use ring::Ring;
use transfers::Transfers;

/// MPI's tag of everything with a header.
const HEADERS: i32 = 0;
/// Messages taken in one poll: bounds how long a poll takes.
const MESSAGES_PER_POLL: usize = 64;
/// A port that awaits no message looks for some in one of so many polls: for questions, news, and
/// what others have sent ahead.
const RARELY: u32 = 8;
/// While polls find no message, one in so many asks MPI about those that are sent.
const QUIET_POLLS: u32 = 4;
/// How long peers have to hear that it gives up, before it takes their messages, which ends their sends; and
/// for how long it takes them then, at least.
const LEAST_DRAIN: Duration = Duration::from_millis(20);
/// Stands for no peer.
const NOBODY: u32 = u32::MAX;

/// One port of a rank.
#[derive(Debug)]
pub struct MpiEndpoint {
    library: Arc<Library>,
    state: State,
}

#[derive(Debug)]
struct State {
    rank: Rank,
    n_ranks: u32,
    peers: Vec<Peer>,
    peer_of_rank: Vec<u32>,
    ring: Ring,
    outbound: Outbound,
    transfers: Transfers,
    tags: Tags,
    /// Peers whose outbox holds something.
    listed: Vec<u32>,
    /// To be reported by the next poll.
    events: Vec<Event>,
    matcher: Matcher<Body>,
    unexpected: UnexpectedBytes,
    /// Receives that have met a short message of which parts have not come.
    n_partial: usize,
    /// Polls since the last look at the ring.
    n_polls: u32,
    /// Looks in a row that have found none.
    n_quiet: u32,
    status: Status,
    news: Option<Blame>,
    has_reported: bool,
    question: Question,
    is_abandoned: bool,
    /// True after `abandon`: nothing is posted any more.
    has_let_go: bool,
}

// SAFETY: handles of MPI's, which any thread may use that `Library` lets in, and memory.
unsafe impl Send for State {}

impl MpiEndpoint {
    /// A port of this rank over `comm`, which nothing else sends messages on; all ranks of `comm`
    /// make theirs. Ranks are those of `comm`.
    ///
    /// # Safety
    /// `comm` must be an intracommunicator with `MPI_ERRORS_RETURN`, and live until the
    /// [`end`](Endpoint::end) or for ever.
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
        // SAFETY: the caller's promise.
        let tags = Tags::up_to(unsafe { last_tag(comm) }?);
        let state = State {
            rank: rank as Rank,
            n_ranks: size as u32,
            peers: Vec::new(),
            peer_of_rank: vec![NOBODY; size as usize],
            ring: Ring::new(comm)?,
            outbound: Outbound::new(comm),
            transfers: Transfers::new(comm, tags.last_numbered()),
            tags,
            listed: Vec::new(),
            events: Vec::with_capacity(64),
            matcher: Matcher::new(CALLS),
            unexpected: UnexpectedBytes::default(),
            n_partial: 0,
            n_polls: 0,
            n_quiet: 0,
            status: Status::Busy,
            news: None,
            has_reported: false,
            question: Question::default(),
            is_abandoned: false,
            has_let_go: false,
        };
        drop(inside);
        Ok(MpiEndpoint { library, state })
    }

    /// Posts the receives of long messages that are due.
    #[cold]
    fn begin(&mut self) -> Result<(), WireError> {
        let _inside = self.library.enter()?;
        self.state.transfers.begin()
    }
}

/// The value of `MPI_TAG_UB`.
///
/// # Safety
/// `comm` must be a communicator.
unsafe fn last_tag(comm: Comm) -> Result<i32, WireError> {
    let (mut value, mut is_set) = (std::ptr::null_mut::<i32>(), 0);
    // SAFETY: the caller's promise. The attribute is a pointer to the number.
    unsafe {
        let at = (&raw mut value).cast();
        let key = ffi::tag_ub();
        check("MPI_Comm_get_attr", ffi::PMPI_Comm_get_attr(comm.0, key, at, &mut is_set))?;
        // The least that the standard allows.
        Ok(if is_set == 0 || value.is_null() { 32_767 } else { *value })
    }
}

impl Endpoint for MpiEndpoint {
    #[inline]
    unsafe fn post_send(&mut self, to: Rank, send: SendPost) -> Result<Taken, WireError> {
        let _inside = self.library.enter()?;
        // SAFETY: the caller's promise.
        unsafe { self.state.post_send(to, send) }
    }

    #[inline]
    unsafe fn post_recv(&mut self, from: Rank, recv: RecvPost) -> Result<Taken, WireError> {
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
        if self.state.transfers.has_due() { self.begin() } else { Ok(()) }
    }

    fn is_flushed(&self) -> bool {
        // What waits for credits is part of an operation that has not ended.
        let State { outbound, transfers, .. } = &self.state;
        outbound.is_empty() && !transfers.is_dropping()
    }

    fn abandon(&mut self) {
        // A thread that may not call MPI leaves it to the world's end.
        match self.library.enter() {
            Ok(_inside) => self.state.give_up(LEAST_DRAIN),
            Err(_) => self.state.is_abandoned = true,
        }
    }

    fn end(&mut self) {
        match self.library.enter() {
            // Nothing is under way, unless the endpoint was abandoned.
            Ok(_inside) => self.state.give_up(Duration::ZERO),
            Err(_) => self.state.is_abandoned = true,
        }
    }

    fn limit_unexpected(&mut self, bytes: usize) {
        self.state.unexpected.set_limit(bytes);
    }

    fn unexpected(&self) -> UnexpectedBytes {
        self.state.unexpected
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }
}

impl Drop for MpiEndpoint {
    fn drop(&mut self) {
        // If MPI has ended first, `end` has given everything back.
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
        // Of headers that the last poll has found: what it reported has been answered by sends, which
        // come first.
        self.transfers.begin()?;
        let mut is_quiet = false;
        if self.is_time_for_ring() {
            // What the last poll has shown nobody reads any more.
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
        while let Some(envelope) = self.transfers.next_bare() {
            self.bare_arrived(envelope)?;
        }
        if self.transfers.is_time_to_announce() {
            for (rank, header) in self.transfers.unmet() {
                // SAFETY: no message.
                unsafe { self.outbound.send(rank, &header, None) }?;
            }
        }
        // MPI has just been moved on, and most of those who wait do so for a message.
        self.n_quiet = if is_quiet { self.n_quiet.wrapping_add(1) } else { 0 };
        if !self.outbound.is_empty() && self.n_quiet.is_multiple_of(QUIET_POLLS) {
            self.outbound.collect()?;
        }
        if !self.listed.is_empty() {
            for index in std::mem::take(&mut self.listed) {
                self.peers[index as usize].is_listed = false;
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

    /// Receives whose message has not come, or not all of it.
    #[inline]
    fn n_awaited(&self) -> usize {
        self.matcher.n_posted() + self.n_partial
    }

    /// Whether to look for messages. A look that finds nothing costs as much as one that does, and
    /// what comes before its receive is posted has to be copied.
    #[inline]
    fn is_time_for_ring(&mut self) -> bool {
        self.n_polls += 1;
        let looks = self.n_awaited() > 0 || !self.listed.is_empty() || self.n_polls >= RARELY;
        if looks {
            self.n_polls = 0;
        }
        looks
    }

    /// Takes back everything that is posted, and takes the messages of peers after `least`, for at least so
    /// long.
    fn give_up(&mut self, least: Duration) {
        self.is_abandoned = true;
        if std::mem::replace(&mut self.has_let_go, true) {
            return;
        }
        let start = Instant::now();
        let end = start + LAST_WAIT;
        self.matcher.clear();
        self.peers.iter_mut().for_each(Peer::abandon);
        self.n_partial = 0;
        self.unexpected.clear();
        self.listed.clear();
        self.events.clear();
        if self.ring.cancel(end) {
            // SAFETY: as `cancel` says; an endpoint that is abandoned does not use it.
            unsafe { self.ring.free() };
        }
        self.transfers.abandon([start + least, start + 2 * least, end]);
        self.outbound.finish(end);
    }
}
