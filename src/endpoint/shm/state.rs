//! What a port keeps of long messages under way.

use std::time::Instant;

use crate::endpoint::{Slot, WireRegion};

/// A message that this port has announced for rendezvous.
#[derive(Clone, Copy, Debug)]
pub(super) struct RendezvousSend {
    /// To whom.
    pub(super) peer: usize,
    /// Whether the peer has cleared it to be sent in pieces.
    pub(super) is_cico: bool,
    pub(super) slot: Slot,
    pub(super) region: WireRegion,
}

/// A message that this port gets by rendezvous: read in the sender's memory, or in pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct RendezvousRecv {
    pub(super) peer: usize,
    pub(super) slot: Slot,
    pub(super) region: WireRegion,
    pub(super) from: u64,
    pub(super) id: u32,
    pub(super) done: usize,
}

/// A message that this port gets in pieces (copy-in copy-out).
#[derive(Clone, Copy, Debug)]
pub(super) struct CicoRecv {
    pub(super) recv: RendezvousRecv,
    pub(super) since: Instant,
    /// Messages that were to come then, this one among them.
    pub(super) incoming: usize,
}

/// A message that this port sends in pieces, through staging slots (copy-in copy-out).
#[derive(Clone, Copy, Debug)]
pub(super) struct CicoSend {
    pub(super) peer: usize,
    pub(super) id: u32,
    pub(super) recv: u32,
    pub(super) done: usize,
}
