//! What is kept of a long message under way, and the pieces in which it goes.

use std::time::{Duration, Instant};

use super::header::Header;
use crate::Rank;
use crate::endpoint::{Arrival, RecvPost, Slot};

/// The longest piece: MPI counts bytes in an `int`.
pub(super) const MOST_BYTES: usize = 1 << 30;
/// A message without a header that is not met is announced after this time, twice, four times it and so on.
const FIRST_PATIENCE: Duration = Duration::from_millis(10);

/// A message under way.
#[derive(Debug)]
pub(super) struct Move {
    pub(super) what: What,
    /// Pieces that are not complete.
    pub(super) left: u32,
}

#[derive(Debug)]
pub(super) enum What {
    /// Sent, behind a header.
    Sent(Slot),
    /// Sent without one.
    Bare(Bare),
    /// Received, as a header has said.
    Received(Slot),
    /// Awaited without a header.
    Awaited(Awaited),
    /// Received for nobody, into this memory.
    Dropped(#[expect(dead_code, reason = "held for MPI")] Vec<u8>),
}

/// A message that is sent without a header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bare {
    pub(super) slot: Slot,
    to: Rank,
    /// What announces it.
    header: Header,
    since: Instant,
    /// How long after that it is announced next.
    patience: Duration,
}

impl Bare {
    pub(super) fn new(slot: Slot, to: Rank, header: Header) -> Self {
        Bare { slot, to, header, since: Instant::now(), patience: FIRST_PATIENCE }
    }

    /// Whom to announce it to, and with what, if it is time.
    pub(super) fn announcement(&mut self, now: Instant) -> Option<(Rank, Header)> {
        if now - self.since < self.patience {
            return None;
        }
        self.patience *= 2;
        Some((self.to, self.header))
    }
}

/// By what MPI matches a message with a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    pub(super) from: Rank,
    pub(super) mpi_tag: i32,
}

/// A receive that awaits a message without a header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaited {
    pub(super) envelope: Envelope,
    pub(super) recv: RecvPost,
}

impl Awaited {
    /// MPI writes to the region of `recv`, and nowhere else.
    pub(super) fn new(envelope: Envelope, recv: RecvPost) -> Self {
        Awaited { envelope, recv: RecvPost { arrival: Arrival::InRegion, ..recv } }
    }
}

/// How many pieces a message has: an empty one, too, has one.
pub(super) fn n_pieces(len: usize) -> u32 {
    len.div_ceil(MOST_BYTES).max(1) as u32
}

/// Where the pieces of a message begin, and their lengths.
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
