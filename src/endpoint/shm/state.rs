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
    /// Bytes that have been sent right after the announcement.
    pub(super) early: usize,
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

/// The first bytes of a message that a peer has announced: they come unasked.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlyRecv {
    pub(super) peer: usize,
    /// Their number among the peer's.
    pub(super) number: u32,
    /// How many there are still to come.
    pub(super) left: usize,
    /// Unknown until the receive is posted: so long they stay in the peer's slots.
    pub(super) goal: Option<Goal>,
}

/// Where early bytes go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// The receive was for something else.
    Nowhere,
    /// To the receive with this number, whose other bytes come in pieces.
    Pieces(u32),
    /// There, and then the other bytes are read.
    Read(RendezvousRecv),
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
