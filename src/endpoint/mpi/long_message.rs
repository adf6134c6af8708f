//! The state of a long message in flight, and the pieces in which it is sent.

use std::time::{Duration, Instant};

use super::header::Header;
use crate::Rank;
use crate::endpoint::{Arrival, RecvPost, Slot};

/// Longest piece in bytes: MPI counts bytes in an `int`.
pub(super) const MOST_BYTES: usize = 1 << 30;
/// Time after which a message without a header is announced if its receive is missing; doubled after each
/// announcement.
const FIRST_PATIENCE: Duration = Duration::from_millis(10);

/// A long message in flight.
#[derive(Debug)]
pub(super) struct LongMessage {
    pub(super) role: Role,
    /// Pieces that are not complete.
    pub(super) pieces_left: u32,
}

#[derive(Debug)]
pub(super) enum Role {
    /// A send with a header.
    Send(Slot),
    /// A send without a header.
    HeaderlessSend(HeaderlessSend),
    /// A receive of a message from this rank whose header has arrived.
    Recv(Rank, Slot),
    /// A receive of a message without a header.
    HeaderlessRecv(HeaderlessRecv),
    /// A receive into this memory of a message that is dropped.
    Dropped(#[expect(dead_code, reason = "held for MPI")] Vec<u8>),
}

impl Role {
    /// The rank whose message MPI writes to a region of a posted receive, if it does.
    pub(super) fn sender(&self) -> Option<Rank> {
        match self {
            &Role::Recv(from, _) => Some(from),
            Role::HeaderlessRecv(of) => Some(of.envelope.from),
            Role::Send(_) | Role::HeaderlessSend(_) | Role::Dropped(_) => None,
        }
    }
}

/// A message that is sent without a header.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderlessSend {
    pub(super) slot: Slot,
    to: Rank,
    /// The header that announces the message.
    header: Header,
    since: Instant,
    /// Time from `since` to the next announcement.
    patience: Duration,
}

impl HeaderlessSend {
    pub(super) fn new(slot: Slot, to: Rank, header: Header) -> Self {
        HeaderlessSend { slot, to, header, since: Instant::now(), patience: FIRST_PATIENCE }
    }

    /// The peer to announce the message to and the header, if an announcement is due.
    pub(super) fn announcement(&mut self, now: Instant) -> Option<(Rank, Header)> {
        if now - self.since < self.patience {
            return None;
        }
        self.patience *= 2;
        Some((self.to, self.header))
    }
}

/// The source and tag by which MPI matches a message with a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    pub(super) from: Rank,
    pub(super) mpi_tag: i32,
}

/// A receive of a message without a header.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderlessRecv {
    pub(super) envelope: Envelope,
    pub(super) recv: RecvPost,
}

impl HeaderlessRecv {
    /// The message arrives in the region of `recv`, never as a view: MPI writes to the region.
    pub(super) fn new(envelope: Envelope, recv: RecvPost) -> Self {
        HeaderlessRecv { envelope, recv: RecvPost { arrival: Arrival::InRegion, ..recv } }
    }
}

/// The number of pieces of a message; an empty message has one.
pub(super) fn n_pieces(len: usize) -> u32 {
    len.div_ceil(MOST_BYTES).max(1) as u32
}

/// Offsets and lengths of the pieces of a message.
pub(super) fn pieces(len: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..len.max(1)).step_by(MOST_BYTES).map(move |at| (at, (len - at).min(MOST_BYTES)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_go_in_pieces() {
        assert_eq!(pieces(5).collect::<Vec<_>>(), [(0, 5)]);
        assert_eq!((pieces(0).collect::<Vec<_>>(), n_pieces(0)), (vec![(0, 0)], 1));
        let len = 2 * MOST_BYTES + 3;
        let want = [(0, MOST_BYTES), (MOST_BYTES, MOST_BYTES), (2 * MOST_BYTES, 3)];
        assert_eq!(pieces(len).collect::<Vec<_>>(), want);
        assert_eq!(pieces(MOST_BYTES).count(), 1);
    }
}
