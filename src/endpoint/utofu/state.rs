//! What an endpoint keeps besides its peers.

use utofu::handles::Transfer;
use utofu::{Cookie, Stadd, VcqId};

use crate::endpoint::{Slot, Tag};

use super::channel::MOST_PEERS;

/// Bytes of a mailbox: words for trouble (`observer`), and behind them an area whose content means
/// nothing: a hello, of one byte, says the number of a channel by where it is written there.
pub(super) const MAILBOX_BYTES: usize = HELLOS_AT + MOST_PEERS as usize;
/// Where the hello of channel 0 starts.
pub(super) const HELLOS_AT: usize = 64;
/// Of the puts that tell others of a failure.
pub(super) const NEWS_COOKIE: Cookie = Cookie(usize::MAX);

/// An announced receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct RendezvousRecv {
    /// The peer, and which of its messages.
    pub(super) of: (u32, Tag),
    pub(super) at: Stadd,
    pub(super) len: u64,
    pub(super) puts_left: u32,
}

/// A send whose puts have not all been executed.
#[derive(Clone, Copy, Debug)]
pub(super) struct RendezvousSend {
    pub(super) slot: Slot,
    pub(super) puts_left: u32,
}

/// A put of data that has not been posted yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataPut {
    pub(super) to: VcqId,
    pub(super) what: Transfer,
    pub(super) rendezvous: usize,
}

/// How far the last puts are.
#[derive(Debug, Default)]
pub(super) struct Fence {
    /// Peers that have been put to, in order of first contact.
    pub(super) posted: usize,
    /// Puts whose notice has not come yet.
    pub(super) open: usize,
}

impl Fence {
    /// A notice has come.
    pub(super) fn passed(&mut self) {
        self.open = self.open.saturating_sub(1);
    }
}

/// What is being read.
#[derive(Debug)]
pub(super) enum Viewed {
    /// An eager slot of the peer with this index.
    Slot(u32, u32),
    /// A buffer of the endpoint.
    Buffer(Vec<u8>),
}
