//! Messages over MPI: for clusters, and wherever else there is an MPI.
//!
//! # Protocol
//! A message that no receive has asked for begins with a header of 32 bytes and has one fixed MPI
//! tag. It meets one of the receives that each port keeps posted, its ring.
//!
//! | bytes | way |
//! | --- | --- |
//! | up to [`EAGER_BYTES`] | behind the header; the receiver matches it with its receive |
//! | more | the receiver posts a receive of MPI's into the region and announces it, with a tag of MPI's that nothing else on its way to that port has; the sender then sends from region to region |
//!
//! So long messages never come unexpected, and MPI neither keeps nor copies them; tags stay below
//! `MPI_TAG_UB` because there are never more receives than tags; and a peer that has given up sends
//! nothing into memory that is gone. What comes while a rank does not look is kept by MPI: short
//! messages and announcements are under credits, 32 for each
//! sender and port. Whatever has been taken from the ring gives its credit back at once, also if it has
//! met no receive, so no message waits for another. Lengths are cut where `int` ends.
//!
//! # Trouble
//! News of a failure and questions are messages as well: a rank answers while it polls. One that
//! does not is not called lost, since it may compute; the launchers of MPI end a job of which a
//! rank has died.
//!
//! # The end
//! [`abandon`](Endpoint::abandon) takes posted receives back. MPI cannot take back a send, but sends
//! of users' memory only begin when their receive has been posted: they are waited for, for 100 ms
//! at most. One whose receiver is gone then stays with MPI, which may still read that memory: this
//! is what the contract of endpoints cannot be kept in. [`end`](Endpoint::end) gives everything back to
//! MPI, which may be finalised then, when all ranks are done.

mod header;
mod inbound;
mod library;
mod observer;
mod outbound;
mod peer;
mod posting;
mod ring;
mod transfers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use mpi::ffi;

pub use library::{Comm, Library, check, is_running};

use super::calls::Calls;
use super::lists::hand_over;
use super::{
    Arrival, Endpoint, Event, Observer, Posted as Taken, Slot, Status, Tag, WireError, WireRegion,
};
use crate::Rank;
use crate::error::Blame;
use observer::Question;
use outbound::Outbound;
use peer::Peer;
use ring::Ring;
use transfers::Transfers;

/// The longest message that goes behind its header. To ask for it first would take a network longer
/// than the two copies take.
pub const EAGER_BYTES: usize = 32 * 1024;
/// MPI's tag of everything with a header.
const HEADERS: i32 = 0;
/// MPI's tag of the first long message; those of others follow.
const FIRST_DATA: i32 = 1;
/// Messages taken in one poll: bounds how long a poll takes.
const MESSAGES_PER_POLL: usize = 64;
/// A port that awaits no message looks for some in one of so many polls: for questions, news, and
/// what others have sent ahead.
const RARELY: u32 = 8;
/// While polls find no message, one in so many asks MPI about those that are sent.
const QUIET_POLLS: u32 = 4;
/// How long an endpoint that is abandoned waits for what it has sent.
const LAST_WAIT: Duration = Duration::from_millis(100);
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
    /// The last tag that MPI allows.
    last_tag: i32,
    peers: Vec<Peer>,
    peer_of_rank: Vec<u32>,
    ring: Ring,
    outbound: Outbound,
    transfers: Transfers,
    /// Peers whose outbox holds something.
    listed: Vec<u32>,
    /// To be reported by the next poll.
    events: Vec<Event>,
    calls: Calls,
    /// Messages and announcements that have come before this rank asked for them.
    n_early: usize,
    /// Receives of short messages whose message has not come.
    n_awaited: usize,
    /// Sends of long messages whose receive has not been announced. Both wait for the ring.
    n_waiting: usize,
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
        let last_tag = unsafe { last_tag(comm) }?;
        let state = State {
            rank: rank as Rank,
            n_ranks: size as u32,
            last_tag,
            peers: Vec::new(),
            peer_of_rank: vec![NOBODY; size as usize],
            ring: Ring::new(comm)?,
            outbound: Outbound::new(comm),
            transfers: Transfers::new(comm),
            listed: Vec::new(),
            events: Vec::with_capacity(64),
            calls: Calls::new(),
            n_early: 0,
            n_awaited: 0,
            n_waiting: 0,
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
        let key = ffi::MPI_TAG_UB as i32;
        check("MPI_Comm_get_attr", ffi::PMPI_Comm_get_attr(comm.0, key, at, &mut is_set))?;
        // The least that the standard allows.
        Ok(if is_set == 0 || value.is_null() { 32_767 } else { *value })
    }
}

impl Endpoint for MpiEndpoint {
    #[inline]
    unsafe fn post_send(
        &mut self,
        slot: Slot,
        to: Rank,
        tag: Tag,
        region: WireRegion,
    ) -> Result<Taken, WireError> {
        let _inside = self.library.enter()?;
        // SAFETY: the caller's promise.
        unsafe { self.state.post_send(slot, to, tag, region) }
    }

    #[inline]
    unsafe fn post_recv(
        &mut self,
        slot: Slot,
        from: Rank,
        tag: Tag,
        region: WireRegion,
        arrival: Arrival,
    ) -> Result<Taken, WireError> {
        let _inside = self.library.enter()?;
        // SAFETY: the caller's promise.
        unsafe { self.state.post_recv(slot, from, tag, region, arrival) }
    }

    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        let _inside = self.library.enter()?;
        self.state.poll(events)
    }

    fn is_flushed(&self) -> bool {
        self.state.listed.is_empty() && self.state.outbound.is_empty()
    }

    fn abandon(&mut self) {
        // A thread that may not call MPI leaves it to the world's end.
        match self.library.enter() {
            Ok(_inside) => self.state.give_up(),
            Err(_) => self.state.is_abandoned = true,
        }
    }

    fn end(&mut self) {
        self.abandon();
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
                if self.n_awaited + self.n_waiting == 0 {
                    break;
                }
            }
        }
        self.transfers.post_due(self.n_waiting > 0)?;
        self.transfers.advance(&mut self.events)?;
        // MPI has just been moved on, and most of those who wait do so for a message.
        self.n_quiet = if is_quiet { self.n_quiet.wrapping_add(1) } else { 0 };
        if self.n_quiet.is_multiple_of(QUIET_POLLS) {
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

    /// Whether to look for messages. A look that finds nothing costs as much as one that does, and
    /// what comes before its receive is posted has to be copied.
    #[inline]
    fn is_time_for_ring(&mut self) -> bool {
        self.n_polls += 1;
        let looks = self.n_awaited + self.n_waiting > 0
            || !self.listed.is_empty()
            || self.n_polls >= RARELY;
        if looks {
            self.n_polls = 0;
        }
        looks
    }

    /// Takes back everything that is posted.
    fn give_up(&mut self) {
        self.is_abandoned = true;
        if std::mem::replace(&mut self.has_let_go, true) {
            return;
        }
        let end = Instant::now() + LAST_WAIT;
        self.peers.iter_mut().for_each(Peer::abandon);
        self.listed.clear();
        self.events.clear();
        self.transfers.abandon(end);
        self.outbound.finish(end);
        if self.ring.cancel(end) {
            // SAFETY: as `cancel` says; an endpoint that is abandoned does not use it.
            unsafe { self.ring.free() };
        }
    }
}
