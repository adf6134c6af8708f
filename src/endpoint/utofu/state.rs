//! The state of an endpoint that does not belong to one peer.

use utofu::handles::Transfer;
use utofu::{Cookie, Stadd, VcqId};

use crate::endpoint::{Slot, Tag};

use super::channel::MOST_PEERS;

/// Bytes of a mailbox: the words for failure detection (`observer`), then an area whose content is never read. A
/// hello is a put of one byte to this area; its offset encodes the number of a channel.
pub(super) const MAILBOX_BYTES: usize = HELLOS_AT + MOST_PEERS as usize;
/// Offset in the mailbox of the hello of channel 0.
pub(super) const HELLOS_AT: usize = 64;
/// Cookie of the puts that tell other ranks of a failure.
pub(super) const NEWS_COOKIE: Cookie = Cookie(usize::MAX);

/// An announced receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct UtofuRendezvousRecv {
    /// The peer's index, and the tag of the message.
    pub(super) of: (u32, Tag),
    pub(super) at: Stadd,
    pub(super) len: u64,
    pub(super) puts_left: u32,
}

/// A rendezvous send with puts that have not completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct UtofuRendezvousSend {
    pub(super) slot: Slot,
    pub(super) puts_left: u32,
}

/// A put of data that has not been posted.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataPut {
    pub(super) to: VcqId,
    pub(super) what: Transfer,
    pub(super) rendezvous: u32,
}

/// Progress of the puts of a fence.
#[derive(Debug, Default)]
pub(super) struct Fence {
    /// Peers that a last put has been posted to, in order of first contact.
    pub(super) posted: usize,
    /// Last puts whose notice has not arrived.
    pub(super) open: usize,
}

impl Fence {
    /// Accounts for the notice of a last put.
    pub(super) fn passed(&mut self) {
        self.open = self.open.saturating_sub(1);
    }
}

/// A message that the engine reads in place.
#[derive(Debug)]
pub(super) enum UtofuOpenView {
    /// The index of a peer, and an eager slot of its channel.
    Slot(u32, u32),
    /// A buffer of the endpoint.
    Buffer(Vec<u8>),
}
