//! The wire, as the engine sees it: one [`Endpoint`] per port.
//!
//! An endpoint moves messages between regions of memory on two ranks. It knows ranks, tags and
//! bytes; it knows nothing of plans, steps, element types, communicators or requests. Ranks are
//! those of the world: one endpoint serves all communicators, whose messages their context
//! tells apart.
//!
//! # Contract
//! - Sends and receives match by peer and [`Tag`]. Both sides give the same length; a wire says
//!   the length with every message, and reports a difference ([`Event::Differs`]). Either side may
//!   post first, any time apart: ranks may be skewed arbitrarily.
//! - A posted receive gets its message whatever other sends and receives are posted or finished:
//!   messages do not wait for each other. [`Posted::Later`] is only for conditions that pass by
//!   themselves while this rank polls.
//! - [`Event::Sent`], or [`Posted::Done`], means that the region may be changed. It does not mean
//!   that the message has arrived.
//! - A receive may be answered by a [`View`], if its post allows that ([`Arrival`]).
//! - Operations of one communicator whose numbers are far apart are not posted at once: see
//!   [`Tag::WINDOW`].
//! - What is kept of messages that come before their receives is bounded: see [`unexpected`].
//! - While [`Endpoint::is_flushed`] is false a peer may depend on this rank's polling.
//! - After [`Endpoint::abandon`] the endpoint touches no memory that was posted.
//!
//! A wire that reads or writes only registered memory has a [`Registry`]; one by which ranks can
//! learn why messages do not come has an [`Observer`].

mod calls;
mod clock;
mod garbled;
mod lists;
mod matcher;
mod meeting;
#[cfg(feature = "mpi")]
pub mod mpi;
/// What needs no MPI of it.
#[cfg(all(feature = "fuzzing", not(feature = "mpi")))]
#[allow(dead_code, reason = "headers are written and used by what needs an MPI")]
#[path = "mpi/header.rs"]
mod mpi_header;
pub mod router;
pub mod shm;
#[cfg(feature = "sim")]
pub mod sim;
mod status;
mod tag;
mod time;
pub mod unexpected;
pub mod utofu;

/// What takes any bytes of other processes, for fuzzing.
#[cfg(feature = "fuzzing")]
pub(crate) mod hostile {
    #[cfg(feature = "mpi")]
    pub(crate) use super::mpi::play_headers;
    #[cfg(not(feature = "mpi"))]
    pub(crate) use super::mpi_header::play as play_headers;
    pub(crate) use super::shm::{check_card, hostile::play as play_lines};
    pub(crate) use super::status::check_word;
    pub(crate) use super::utofu::hostile::play as play_slots;
}

pub use clock::Clock;
pub(crate) use meeting::{lost, stamped, unstamped};
pub(crate) use status::gossip_peers;
pub use status::{Beat, Status};
pub use tag::Tag;
pub use time::Time;
pub use unexpected::UnexpectedBytes;

use std::sync::Arc;
use std::time::Duration;

use crate::Rank;

use crate::error::Blame;
use crate::memory::Settled;

pub use crate::error::WireError;

/// Names a posted message to its owner; given back in its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The run it belongs to.
    pub run: u32,
    /// The task within the run.
    pub task: u32,
}

/// Memory to send from or to receive into.
#[derive(Clone, Copy, Debug)]
pub struct WireRegion {
    /// First byte.
    pub ptr: *mut u8,
    /// Number of bytes.
    pub len: usize,
    /// The registration of the first byte: what [`Registry::register`] returned plus the
    /// distance from the start of the registered memory.
    pub key: u64,
}

// SAFETY: an address; the contract of the posts says who may use it until when, on any thread.
unsafe impl Send for WireRegion {}

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub struct SendPost {
    /// Its owner's name for it.
    pub slot: Slot,
    /// Its name.
    pub tag: Tag,
    /// Its bytes.
    pub region: WireRegion,
}

/// A message to be received.
#[derive(Clone, Copy, Debug)]
pub struct RecvPost {
    /// Its owner's name for it.
    pub slot: Slot,
    /// Its name.
    pub tag: Tag,
    /// Where its bytes go, and how many they are.
    pub region: WireRegion,
    /// Where they may be instead.
    pub arrival: Arrival,
}

/// Where a received message may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// In the region of the receive.
    InRegion,
    /// There, or wherever a [`View`] says.
    Anywhere,
}

/// A message that has arrived and is not in the region of its receive: whoever has posted that
/// may read it here until the next poll, and writes nothing. It must not be longer: a peer may
/// wait for its memory, or for the room that the message takes, and whoever reads may wait for
/// that peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// First byte; may have any alignment.
    pub ptr: *const u8,
    /// Number of bytes: the region's.
    pub len: usize,
}

// SAFETY: an address; the contract says who may read it until when, on any thread.
unsafe impl Send for View {}

/// Whose memory is registered, and so what may be kept of it after its release.
#[derive(Debug)]
pub enum Owner<'a> {
    /// The library's own: it stays valid until the release, and nothing is kept after it.
    Library,
    /// The user's. After the release it may be freed at any time, and other memory may then get its
    /// address: what is kept must be given up when the memory goes. Whoever first needs the proof
    /// that all earlier unmappings have been announced makes it and leaves it here.
    User(&'a mut Option<Settled>),
    /// The user's, and nothing is to be kept.
    UserOnce,
    /// The user's, who promises that it stays valid until the release. Until then other calls find
    /// the registration, even where the system does not report unmapped memory.
    Explicit,
}

/// What memory is registered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Messages are sent from it: it may be read-only.
    Read,
    /// Messages are received into it, and perhaps sent from it.
    Write,
}

/// Memory to be registered.
#[derive(Clone, Copy, Debug)]
pub struct MemoryRange {
    /// First byte.
    pub ptr: *mut u8,
    /// Number of bytes.
    pub len: usize,
    /// What for.
    pub access: Access,
}

/// Whether a post was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Posted {
    /// Yes; an event will follow.
    Accepted,
    /// Yes, and it is done: sent, or received into its region. No event follows.
    Done,
    /// Not now; post again after polling.
    Later,
}

/// What a poll reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The send is done with its region.
    Sent(Slot),
    /// The message is in its region.
    Received(Slot),
    /// The message can be read in the view.
    Viewed(Slot, View),
    /// The message that this rank sent or awaited belongs to another call, or has another length.
    /// It is dropped, its region is as it was, and both sides are done with it.
    Differs(Slot, Rank),
    /// Another rank has given up, or has found out that one has to.
    News(Blame),
}

/// One port's access to the wire; see the module documentation for the contract.
pub trait Endpoint: Send {
    /// Sends a message to rank `to`.
    ///
    /// # Safety
    /// Until it is done, or [`abandon`](Endpoint::abandon), or the end of the endpoint, the
    /// region must stay valid for reads and nobody may write it.
    ///
    /// # Errors
    /// [`WireError`] if the wire fails, or was abandoned.
    unsafe fn post_send(&mut self, to: Rank, send: SendPost) -> Result<Posted, WireError>;

    /// Awaits a message of rank `from`, into its region or as a view.
    ///
    /// # Safety
    /// Until it is done, or [`abandon`](Endpoint::abandon), or the end of the endpoint, the
    /// region must stay valid for writes and nobody may read or write it.
    ///
    /// # Errors
    /// [`WireError`] if the wire fails, or was abandoned.
    unsafe fn post_recv(&mut self, from: Rank, recv: RecvPost) -> Result<Posted, WireError>;

    /// Makes progress, ends the views of the last poll, and appends what has happened to `events`.
    ///
    /// # Errors
    /// [`WireError`] if the wire reports a failure.
    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError>;

    /// Sends the posts that are held back: a wire may hold posts, to send several at once, until
    /// this call or the end of the next poll.
    ///
    /// # Errors
    /// [`WireError`] if the wire fails.
    fn flush(&mut self) -> Result<(), WireError> {
        Ok(())
    }

    /// True if no peer waits for anything that only this rank's polling can bring about.
    fn is_flushed(&self) -> bool;

    /// After a failure: forgets all posts, and all registrations of users' memory that are kept.
    /// When this returns, nothing reads or writes that memory through this endpoint, as far as the
    /// device allows, and what was told before ([`Observer::tell`]) has been sent. It takes 100 ms
    /// at most, unless threads of this process are longer about reading that memory. Later posts are
    /// errors, and later polls report nothing.
    fn abandon(&mut self);

    /// The world has ended on all ranks: releases what belongs to other ranks, which may end now.
    fn end(&mut self) {}

    /// Sets how many bytes of messages may be kept that come before their receives; before the first
    /// message. A wire that keeps none has no use for it.
    fn limit_unexpected(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// What is kept of messages that came before their receives, and the most that ever was.
    fn unexpected(&self) -> UnexpectedBytes {
        UnexpectedBytes::default()
    }

    /// The registry, if messages need registered memory.
    fn registry(&mut self) -> Option<&mut dyn Registry> {
        None
    }

    /// What ranks can learn of each other besides messages, if they can.
    fn observer(&mut self) -> Option<&mut dyn Observer> {
        None
    }

    /// What rings when there may be something to poll for, if there is such a thing: one for all
    /// ports of a rank.
    fn bell(&self) -> Option<Arc<dyn Bell>> {
        None
    }

    /// The clock by which whoever waits for messages goes, if it is not the machine's: one for all
    /// ports of a rank.
    fn clock(&self) -> Option<Arc<dyn Clock>> {
        None
    }
}

/// Lets threads of a rank sleep until peers have something for it. A thread
/// [`arm`](Bell::arm)s it, polls once more, and sleeps if that brought nothing.
pub trait Bell: Send + Sync + std::fmt::Debug {
    /// From now on peers ring. Returns the bell's number.
    fn arm(&self) -> u32;

    /// A number that changes whenever the bell rings.
    fn number(&self) -> u32;

    /// Sleeps until the bell rings, but not if its number is no longer `number`; for that time at
    /// most.
    fn sleep(&self, number: u32, longest: Duration);

    /// Takes back one [`arm`](Bell::arm).
    fn disarm(&self);

    /// Ranks that this one rings for, and itself.
    fn n_ranks(&self) -> usize;

    /// Wakes those threads of this rank that sleep: one of them has got something for another.
    fn ring(&self);
}

/// Memory that the device, and so peers, read and write by themselves.
pub trait Registry {
    /// Makes memory known to the wire and returns the key of its first byte. `owner` says for
    /// how long the wire may remember it.
    ///
    /// # Safety
    /// The memory must stay valid until it is released with the key.
    ///
    /// # Errors
    /// [`WireError`] if the wire has no room for another registration.
    unsafe fn register(&mut self, range: MemoryRange, owner: Owner<'_>) -> Result<u64, WireError>;

    /// Takes back one [`register`](Registry::register) that returned `key`.
    ///
    /// # Errors
    /// [`WireError`] if `key` is not registered.
    fn release(&mut self, key: u64) -> Result<(), WireError>;

    /// Messages of up to this many bytes do not use the key of their region. Never changes.
    fn keyless_bytes(&self) -> u64;

    /// Calls whose data have up to this many bytes for each two registrations do better with copies in memory
    /// that stays registered than with their own: `None` where registrations of the user's memory serve later calls,
    /// or cost next to nothing. Never changes.
    fn stage_bytes(&self) -> Option<u64> {
        None
    }

    /// True if everything that was ever written to peers has arrived there, so that they may
    /// free what was written to. To be called again and again, with polls in between, until it
    /// is; only when nothing is posted, by any rank that was communicated with, and nothing is
    /// posted meanwhile.
    ///
    /// # Errors
    /// [`WireError`] if the wire fails.
    fn fence(&mut self) -> Result<bool, WireError>;

    /// A rank whose answer [`fence`](Registry::fence) waits for.
    fn unfenced(&self) -> Option<Rank>;
}

/// What ranks can learn of each other besides messages, for the case that none come.
pub trait Observer {
    /// From now on shows `status` to whoever asks.
    fn show(&mut self, status: Status);

    /// Asks what `rank` is doing, for which that rank need not do anything; the answer comes
    /// while this rank polls. False if nothing can be asked now, an earlier question for
    /// instance being open.
    ///
    /// # Errors
    /// [`WireError`] if the wire reports a failure that has nothing to do with the question.
    fn ask(&mut self, rank: Rank) -> Result<bool, WireError>;

    /// The answer to the question asked, once it has come.
    fn answer(&mut self) -> Option<Status>;

    /// Tells some ranks, who will tell others, that and why this one gives up. As good as it
    /// can: nothing tells whether they hear it.
    fn tell(&mut self, blame: Blame);

    /// What another rank has told.
    fn told(&mut self) -> Option<Blame>;
}

/// How long an endpoint that is abandoned waits for what it has posted.
const LAST_WAIT: Duration = Duration::from_millis(100);

/// The error of a post after [`Endpoint::abandon`].
#[cold]
fn given_up() -> WireError {
    let reason = "the port has been given up".to_owned();
    WireError::new("posting", reason)
}
