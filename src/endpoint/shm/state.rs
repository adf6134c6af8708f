//! What a port keeps of long messages under way.

use std::time::Instant;

use crate::endpoint::{RecvPost, SendPost};

use super::descriptor::Rendezvous;

/// A message that this port has announced for rendezvous.
#[derive(Clone, Copy, Debug)]
pub(super) struct RendezvousSend {
    /// To whom.
    pub(super) peer: usize,
    /// Whether the peer has cleared it to be sent in pieces.
    pub(super) is_cico: bool,
    pub(super) send: SendPost,
}

/// A message that this port gets by rendezvous: read in the sender's memory, or in pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct RendezvousRecv {
    /// The peer, and which of its messages.
    pub(super) of: (usize, Rendezvous),
    pub(super) recv: RecvPost,
    /// Bytes that have come.
    pub(super) done: usize,
}

/// A message that this port gets in pieces (copy-in copy-out).
#[derive(Clone, Copy, Debug)]
pub(super) struct CicoRecv {
    pub(super) rendezvous: RendezvousRecv,
    pub(super) since: Instant,
    /// Messages that were to come then, this one among them.
    pub(super) incoming: usize,
}

/// A message that this port sends in pieces, through staging slots (copy-in copy-out).
#[derive(Clone, Copy, Debug)]
pub(super) struct CicoSend {
    pub(super) id: u32,
    /// The peer, and its number for the receive.
    pub(super) to: (usize, u32),
    /// Bytes that have been sent.
    pub(super) done: usize,
}
