//! The wire as the engine sees it: one [`Endpoint`] per port.
//!
//! An endpoint moves messages between memory regions of two ranks. It knows ranks, tags and bytes; it knows nothing
//! of plans, steps, element types, communicators or requests. Its ranks are those of the world: one endpoint serves
//! all communicators, and the context in the tag distinguishes their messages.
//!
//! # Contract
//! - Sends and receives match by peer and [`Tag`]. Both sides give the same length; a wire transmits the length with
//!   every message, and reports a difference ([`Event::Differs`]). Either side may post first, any time before the
//!   other.
//! - A posted receive gets its message regardless of other sends and receives: messages do not wait for each other.
//!   [`Posted::Later`] is only for conditions that end by themselves while this rank polls.
//! - After [`Event::Sent`], or [`Posted::Done`] of a send, the region may be changed. The message need not have
//!   arrived.
//! - A receive may complete with a [`View`], if its post allows that ([`Arrival`]).
//! - Operations of one communicator whose numbers are far apart are not posted at the same time: see [`Tag::WINDOW`].
//! - The memory for unexpected messages is bounded: see [`unexpected`].
//! - While [`Endpoint::is_flushed`] is false, a peer may depend on this rank's polling.
//! - After [`Endpoint::abandon`] the endpoint does not access posted memory.
//!
//! A wire that matches messages by itself has a [`Matching`], a wire that reads or writes only registered memory a
//! [`Registry`], a wire with failure detection an [`Observer`].

mod calls;
mod clock;
mod ended;
mod lists;
mod matcher;
mod meeting;
pub mod mpi;
pub mod router;
pub mod shm;
#[cfg(feature = "sim")]
pub mod sim;
mod status;
mod tag;
mod time;
pub mod unexpected;
pub mod utofu;
mod validation;

/// Functions that accept arbitrary bytes of other processes, for fuzzing.
#[cfg(feature = "fuzzing")]
pub(crate) mod hostile {
    pub(crate) use super::mpi::play_headers;
    pub(crate) use super::shm::{check_startup_record, hostile::play as play_lines};
    pub(crate) use super::status::check_word;
    pub(crate) use super::utofu::hostile::play as play_slots;
}

pub use clock::Clock;
pub(crate) use ended::Ended;
pub(crate) use meeting::{check_protocol, exchange_error, with_protocol};
pub(crate) use status::gossip_peers;
pub use status::{Beat, Status};
pub use tag::Tag;
pub use time::Time;
pub use unexpected::UnexpectedStats;

use std::sync::Arc;
use std::time::Duration;

use crate::Rank;

use crate::error::Blame;
use crate::memory::Settled;

pub use crate::error::WireError;

/// The owner's identifier of a posted message, returned in its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The run to which the message belongs.
    pub run: u32,
    /// The task within the run.
    pub task: u32,
}

/// Memory to send from or to receive into.
#[derive(Clone, Copy, Debug)]
pub struct WireRegion {
    /// Address of the first byte.
    pub ptr: *mut u8,
    /// Number of bytes.
    pub len: usize,
    /// Registration key of the first byte: the key that [`Registry::register`] returned plus the offset from the
    /// start of the registered memory.
    pub key: u64,
}

// SAFETY: an address; the contract of the posts says who may access it when, from any thread.
unsafe impl Send for WireRegion {}

/// A send to be posted.
#[derive(Clone, Copy, Debug)]
pub struct SendPost {
    /// The owner's identifier.
    pub slot: Slot,
    /// Tag of the message.
    pub tag: Tag,
    /// Bytes of the message.
    pub region: WireRegion,
}

/// A receive to be posted.
#[derive(Clone, Copy, Debug)]
pub struct RecvPost {
    /// The owner's identifier.
    pub slot: Slot,
    /// Tag of the message.
    pub tag: Tag,
    /// Destination and length of the message.
    pub region: WireRegion,
    /// Where else the received bytes may be.
    pub arrival: Arrival,
}

/// Where a received message may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// In the region of the receive.
    InRegion,
    /// In the region of the receive, or where a [`View`] says.
    Anywhere,
    /// In the region of the receive, better not in this core's caches: no task of the call reads it, and the call's
    /// data do not fit into the caches.
    PastCaches,
}

/// A received message that is not in the region of its receive. The poster of the receive may read it here until the
/// next poll, and must not write it. A view does not live longer, because a peer may wait for its memory, or for the
/// room that the message takes, and the reader may wait for that peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Address of the first byte, with any alignment.
    pub ptr: *const u8,
    /// Number of bytes, equal to the region's length.
    pub len: usize,
}

// SAFETY: an address; the contract says who may read it when, from any thread.
unsafe impl Send for View {}

/// The owner of registered memory, which determines whether the registration may be cached after its release.
#[derive(Debug)]
pub enum Owner<'a> {
    /// The library: the memory is valid until the release, and the registration is not cached.
    Library,
    /// The user. After the release, the user may free the memory, and other memory may get its address: a cached
    /// registration must end when the memory is unmapped. The first user of the proof that all earlier unmappings
    /// have been announced creates the proof and stores it here.
    User(&'a mut Option<Settled>),
    /// The user, for one use: the registration is not cached.
    UserOnce,
    /// The user, who guarantees that the memory stays valid until the release. Until then other calls find the
    /// registration, even if the system does not report unmapped memory.
    Explicit,
}

/// The access that memory is registered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The source of messages; it may be read-only.
    Read,
    /// The destination of messages, and possibly their source.
    Write,
}

/// Memory to be registered.
#[derive(Clone, Copy, Debug)]
pub struct MemoryRange {
    /// Address of the first byte.
    pub ptr: *mut u8,
    /// Number of bytes.
    pub len: usize,
    /// Access that the wire needs.
    pub access: Access,
}

/// Result of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Posted {
    /// The post was taken; an event will follow.
    Accepted,
    /// The post was taken and is complete: sent, or received into its region. No event follows.
    Done,
    /// The post was not taken; the caller must post it again after a poll.
    Later,
}

/// What a poll reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The endpoint does not need the region of the send any more.
    Sent(Slot),
    /// The message is in its region.
    Received(Slot),
    /// The message can be read in the view.
    Viewed(Slot, View),
    /// The message that this rank sent or awaited belongs to another call, or has another length. The message is
    /// dropped, the receive's region is unchanged, and both posts are complete.
    Differs(Slot, Rank),
    /// Another rank has given up, or has found that a rank must give up.
    News(Blame),
}

/// One port's access to the wire; see the module documentation for the contract.
pub trait Endpoint: Send {
    /// Sends a message to rank `to`.
    ///
    /// # Safety
    /// Until the send is complete, or [`abandon`](Endpoint::abandon) returns, or the endpoint is dropped, the region
    /// must stay valid for reads, and no thread may write it.
    ///
    /// # Errors
    /// [`WireError`] if the wire fails, or after [`abandon`](Endpoint::abandon).
    unsafe fn post_send(&mut self, to: Rank, send: SendPost) -> Result<Posted, WireError>;

    /// Receives a message of rank `from`, into its region or as a view.
    ///
    /// # Safety
    /// Until the receive is complete, or [`abandon`](Endpoint::abandon) returns, or the endpoint is dropped, the
    /// region must stay valid for writes, and no thread may read or write it.
    ///
    /// # Errors
    /// [`WireError`] if the wire fails, or after [`abandon`](Endpoint::abandon).
    unsafe fn post_recv(&mut self, from: Rank, recv: RecvPost) -> Result<Posted, WireError>;

    /// Makes progress, ends the views of the last poll, and appends new events to `events`.
    ///
    /// # Errors
    /// [`WireError`] if the wire reports a failure.
    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError>;

    /// Sends delayed posts: a wire may delay posts until this call or the end of the next poll, to send several at
    /// once.
    ///
    /// # Errors
    /// [`WireError`] if the wire fails.
    fn flush(&mut self) -> Result<(), WireError> {
        Ok(())
    }

    /// Whether no peer depends on further polling of this rank.
    fn is_flushed(&self) -> bool;

    /// Aborts after a failure: drops all posts, and ends all registrations of memory, also those that are in use
    /// otherwise. After this call nothing reads or writes that memory through this endpoint, as far as the device
    /// allows, and earlier news ([`Observer::send_news`]) have been sent. The call takes at most 100 ms for each wire,
    /// unless threads of this process take longer to read that memory, or MPI to write it. Later posts are errors, and
    /// later polls report nothing.
    fn abandon(&mut self);

    /// Tears down after the world has ended on all ranks: releases resources of other ranks, which may end now.
    fn end(&mut self) {}

    /// What the wire remembers of messages, if it matches them by itself.
    fn matching(&mut self) -> Option<&mut dyn Matching> {
        None
    }

    /// A number that changes when a part of a long message has moved, on a wire that moves messages in parts.
    fn n_parts(&self) -> u64 {
        0
    }

    /// The registry, if messages need registered memory.
    fn registry(&mut self) -> Option<&mut dyn Registry> {
        None
    }

    /// The interface for failure detection, if the wire has one.
    fn observer(&mut self) -> Option<&mut dyn Observer> {
        None
    }

    /// The bell that rings when there may be something to poll for, if the wire has one: the same for all ports of a
    /// rank.
    fn bell(&self) -> Option<Arc<dyn Bell>> {
        None
    }

    /// The clock that waits for messages use, if it is not the machine's: the same for all ports of a rank.
    fn clock(&self) -> Option<Arc<dyn Clock>> {
        None
    }
}

/// Matching by the wire: the calls that it compares, and the unexpected messages that it stores.
pub trait Matching {
    /// Forgets the calls of operations with this context that are [`Tag::REMEMBERED`] or more before number `newest`,
    /// before their numbers are used again; all of them without `newest`, before the context is used again.
    fn forget_calls(&mut self, context: u64, newest: Option<u32>);

    /// Sets the limit for unexpected messages in bytes; to be called before the first message.
    fn limit_unexpected(&mut self, bytes: usize);

    /// Statistics of unexpected messages.
    fn unexpected(&mut self) -> UnexpectedStats;
}

/// Lets threads of a rank sleep until peers have something for the rank. A thread [`arm`](Bell::arm)s the bell, polls
/// once more, and sleeps if the poll returned nothing.
pub trait Bell: Send + Sync + std::fmt::Debug {
    /// Makes peers ring from now on. Returns the bell's number.
    fn arm(&self) -> u32;

    /// A number that changes whenever the bell rings.
    fn number(&self) -> u32;

    /// Sleeps until the bell rings, at most for `longest`. Returns at once if the bell's number is not `number`.
    fn sleep(&self, number: u32, longest: Duration);

    /// Reverts one [`arm`](Bell::arm).
    fn disarm(&self);

    /// Number of ranks that this rank rings for, including itself.
    fn n_ranks(&self) -> usize;

    /// Wakes the sleeping threads of this rank: a thread of the rank has something for another one.
    fn ring(&self);
}

/// Registration of memory that the device, and so peers, access by RDMA.
pub trait Registry {
    /// Registers memory and returns the key of its first byte. `owner` says whether the wire may cache the
    /// registration.
    ///
    /// # Safety
    /// The memory must stay valid until it is released with the key.
    ///
    /// # Errors
    /// [`WireError`] if the wire has no room for another registration, or after [`abandon`](Endpoint::abandon).
    unsafe fn register(&mut self, range: MemoryRange, owner: Owner<'_>) -> Result<u64, WireError>;

    /// Reverts one [`register`](Registry::register) that returned `key`, unless [`abandon`](Endpoint::abandon) has
    /// done so.
    ///
    /// # Errors
    /// [`WireError`] if `key` is not registered.
    fn release(&mut self, key: u64) -> Result<(), WireError>;

    /// Messages of up to this many bytes do not use the key of their region. Constant.
    fn keyless_bytes(&self) -> u64;

    /// Largest number of data bytes per two registrations for which copies through permanently registered memory are
    /// faster than registration of the user's memory; `None` if such registrations serve later calls, or cost almost
    /// nothing. Constant.
    fn stage_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether all writes to peers have arrived, so that the peers may free that memory. The caller repeats the call,
    /// with polls in between, until it returns true. While it does so, neither this rank nor any rank that it has
    /// communicated with may have anything posted.
    ///
    /// # Errors
    /// [`WireError`] if the wire fails.
    fn fence(&mut self) -> Result<bool, WireError>;

    /// A rank whose answer [`fence`](Registry::fence) waits for.
    fn unfenced(&self) -> Option<Rank>;
}

/// Failure detection: information of ranks about each other besides messages.
pub trait Observer {
    /// Publishes `status` for other ranks to read.
    fn publish(&mut self, status: Status);

    /// Requests the status of `rank`, without help of that rank; the answer arrives while this rank polls. False if
    /// no request is possible now, for instance because an earlier one is pending.
    ///
    /// # Errors
    /// [`WireError`] for a failure of the wire that is unrelated to the request.
    fn request_status(&mut self, rank: Rank) -> Result<bool, WireError>;

    /// The answer to the last request, once it has arrived.
    fn answer(&mut self) -> Option<Status>;

    /// Tells some ranks, which forward the news, that this rank gives up and why. Best effort: arrival is not
    /// confirmed.
    fn send_news(&mut self, blame: Blame);

    /// The news that another rank has sent.
    fn received_news(&mut self) -> Option<Blame>;
}

/// How long an abandoned endpoint waits for its posts.
const LAST_WAIT: Duration = Duration::from_millis(100);

/// The error of a post after [`Endpoint::abandon`].
#[cold]
fn given_up() -> WireError {
    let reason = "the port has been given up".to_owned();
    WireError::new("posting", reason)
}
