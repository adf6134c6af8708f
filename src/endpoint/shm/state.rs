//! State of long messages under way at a port.

use std::time::Instant;

use crate::endpoint::{RecvPost, SendPost};

use super::descriptor::Rendezvous;

/// A message that this port has announced.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShmRendezvousSend {
    /// The receiver's index.
    pub(super) peer: usize,
    /// Whether the peer has cleared it to be sent in pieces.
    pub(super) is_cico: bool,
    /// Bytes that were sent directly after the announcement.
    pub(super) early: usize,
    pub(super) send: SendPost,
}

/// A message that this port receives by rendezvous: by reading the sender's memory, or in pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShmRendezvousRecv {
    /// The sender's index, and its announcement.
    pub(super) of: (usize, Rendezvous),
    pub(super) recv: RecvPost,
    /// Bytes received so far.
    pub(super) done: usize,
}

/// A message that this port receives in pieces (copy-in copy-out).
#[derive(Clone, Copy, Debug)]
pub(super) struct CicoRecv {
    pub(super) rendezvous: ShmRendezvousRecv,
    pub(super) since: Instant,
    /// Number of messages that this port was to receive at the time `since`, including this one.
    pub(super) incoming: usize,
}

/// The first bytes of a message that a peer has announced, which arrive without request.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlyRecv {
    pub(super) peer: usize,
    /// Their number among the peer's announcements with early bytes.
    pub(super) number: u32,
    /// Bytes that have not arrived.
    pub(super) left: usize,
    /// The destination, `None` until the receive is posted: until then the bytes stay in the peer's slots.
    pub(super) destination: Option<EarlyDestination>,
}

/// The destination of early bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum EarlyDestination {
    /// No destination: the receive does not fit the message.
    Discard,
    /// The receive in pieces with this number.
    Cico(u32),
    /// The region of this receive; the remaining bytes are then read from the sender's memory.
    Cma(ShmRendezvousRecv),
}

/// A message that this port sends in pieces, through staging slots (copy-in copy-out).
#[derive(Clone, Copy, Debug)]
pub(super) struct CicoSend {
    pub(super) id: u32,
    /// The receiver's index, and the receiver's number of the receive.
    pub(super) to: (usize, u32),
    /// Bytes sent so far.
    pub(super) done: usize,
}
