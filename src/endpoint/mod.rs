//! The wire, as the engine sees it: one [`Endpoint`] per port.
//!
//! An endpoint moves messages between regions of memory on two ranks. It knows ranks, tags and
//! bytes; it knows nothing of plans, steps, element types or requests.
//!
//! # Contract
//! - Sends and receives match by peer and [`Tag`]; both sides give the same length. Either may
//!   be posted first, any time apart: ranks may be skewed arbitrarily.
//! - A receive that is posted is taken note of, and the message it meets arrives, without any
//!   other receive or send being posted or finished: there are no hidden waits between
//!   messages. [`Posted::Later`] is only for conditions that pass by themselves while this
//!   rank polls.
//! - [`Event::Sent`] means that the region may be changed. It does not mean that the message
//!   has arrived.
//! - While [`Endpoint::is_flushed`] is false a peer may depend on this rank's polling.

mod status;
pub mod utofu;

pub use status::Status;
pub(crate) use status::confidants;

use std::time::Duration;

use crate::Rank;

use crate::error::Blame;

use crate::memory::Settled;

pub use crate::error::WireError;

/// Names a message between two ranks, uniquely among those under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// The operation: the same on all ranks, different for each.
    pub operation: u32,
    /// Number of the message within the operation, from this sender to this receiver through
    /// this port.
    pub message: u32,
    /// Stands for the call that the operation is, and is the same on all ranks if they make the
    /// same call. Wires need not look at it; one that does can tell ranks that disagree.
    pub call: u16,
}

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
    /// The registration of the first byte: what [`Endpoint::register`] returned plus the
    /// distance from the start of the registered memory.
    pub key: u64,
}

// SAFETY: an address; the contract of the posts says who may use it until when, on any thread.
unsafe impl Send for WireRegion {}

/// Whose memory is registered, and so what may be kept of it after its release.
#[derive(Debug)]
pub enum Owner<'a> {
    /// The library's own: it stays valid until the release, and nothing is kept after it.
    Library,
    /// The user's: it may be freed at any time after the release, and come again before. What
    /// is kept must be given up when the memory goes. The proof that all that went before this
    /// call has been announced is made by whoever needs it first.
    User(&'a mut Option<Settled>),
    /// The user's, and nothing is to be kept.
    UserOnce,
}

/// Whether a post was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Posted {
    /// Yes; an event will follow.
    Accepted,
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
}

/// One port's access to the wire; see the module documentation for the contract.
pub trait Endpoint: Send {
    /// Makes memory known to the wire and returns the key of its first byte. `owner` says for
    /// how long the wire may remember it.
    ///
    /// # Safety
    /// The memory must stay valid until it is released with the key.
    ///
    /// # Errors
    /// [`WireError`] if the wire has no room for another registration.
    unsafe fn register(
        &mut self,
        ptr: *mut u8,
        len: usize,
        owner: Owner<'_>,
    ) -> Result<u64, WireError>;

    /// Takes back one [`register`](Endpoint::register) that returned `key`.
    ///
    /// # Errors
    /// [`WireError`] if `key` is not registered.
    fn release(&mut self, key: u64) -> Result<(), WireError>;

    /// Whether messages of up to `len` bytes use the key of their region.
    fn needs_key(&self, len: u64) -> bool;

    /// Is ready to receive the message `tag` of rank `from` into `region`.
    ///
    /// # Safety
    /// Until the event, or the end of the endpoint, the region must stay valid for writes and
    /// nobody may read or write it.
    ///
    /// # Errors
    /// [`WireError`] if the wire fails.
    unsafe fn post_recv(
        &mut self,
        slot: Slot,
        from: Rank,
        tag: Tag,
        region: WireRegion,
    ) -> Result<Posted, WireError>;

    /// Sends `region` as message `tag` to rank `to`.
    ///
    /// # Safety
    /// Until the event, or the end of the endpoint, the region must stay valid for reads and
    /// nobody may write it.
    ///
    /// # Errors
    /// [`WireError`] if the wire fails.
    unsafe fn post_send(
        &mut self,
        slot: Slot,
        to: Rank,
        tag: Tag,
        region: WireRegion,
    ) -> Result<Posted, WireError>;

    /// Moves things on and appends what has happened to `events`.
    ///
    /// # Errors
    /// [`WireError`] if the wire reports a failure.
    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError>;

    /// True if no peer waits for anything that only this rank's polling can bring about.
    fn is_flushed(&self) -> bool;

    /// A rank whose answer [`fence`](Endpoint::fence) waits for.
    fn unfenced(&self) -> Option<Rank> {
        None
    }

    /// After a failure, when nothing more is posted: peers may still know memory of users that
    /// was registered, and nothing of that may be kept. What is in use is given up by its
    /// release at the latest.
    fn forget_users(&mut self) {}

    /// From now on shows `status` to whoever asks.
    fn show(&mut self, _status: Status) {}

    /// Asks what `rank` is doing, for which that rank need not do anything, and waits for the
    /// answer at most for `patience`.
    ///
    /// # Errors
    /// [`WireError`] if the wire reports a failure that has nothing to do with the question.
    fn ask(&mut self, _rank: Rank, _patience: Duration) -> Result<Status, WireError> {
        Ok(Status::Unknown)
    }

    /// Tells some ranks, who will tell others, that and why this one gives up. As good as it
    /// can: nothing tells whether they hear it.
    fn tell(&mut self, _blame: Blame) {}

    /// What another rank has told.
    fn told(&self) -> Option<Blame> {
        None
    }

    /// True if everything that was ever written to peers has arrived there, so that they may
    /// free what was written to. To be called again and again, with polls in between, until it
    /// is; only when nothing is posted, by any rank that was communicated with, and nothing is
    /// posted meanwhile.
    ///
    /// This default is for wires whose writes have arrived when the post, or the poll, that
    /// makes them returns.
    ///
    /// # Errors
    /// [`WireError`] if the wire fails.
    fn fence(&mut self) -> Result<bool, WireError> {
        Ok(true)
    }
}
