//! The longest message that is copied behind headers, and the longest part of such a message: learnt from the first
//! sends. Only the sender needs these lengths; receivers take any.
//!
//! Sending a message without copying it costs a further MPI message and mostly a rendezvous. That takes some times as
//! long as a send, which depends on the network: 2 us by TCP, 0.1 us in memory. So the first sends are timed.
//!
//! Parts pay if MPI sends them eagerly, that is up to a length that depends on the MPI: 64 KiB for Open MPI by TCP
//! and 4 KiB in memory, 8 KiB for MPICH over UCX by TCP. If a part is not complete when MPI returns from its send,
//! and no other send was in flight, MPI has started a rendezvous.

use std::time::Duration;

use super::header::{EAGER_BYTES, HEADER_BYTES, MOST_PARTS, PART_BYTES};

/// Short sends that are timed.
const TIMED: usize = 31;
/// Bytes whose copy takes as long as a separate message, for each nanosecond of a send. (Measured with Open MPI: 16
/// KiB in memory, 256 KiB by TCP.)
const BYTES_PER_NS: usize = 200;
/// The longest message that is copied: before the sends have been timed, and (`LEAST_BYTES`) at least.
const USUAL_BYTES: usize = 32 * 1024;
pub(super) const LEAST_BYTES: usize = 4096 - HEADER_BYTES;
/// Long sends that are watched for a rendezvous.
const OBSERVED: usize = 64;
/// Rendezvous in a row after which parts become shorter.
const RENDEZVOUS_RUN: usize = 4;

/// The lengths that a port has learnt.
#[derive(Debug)]
pub(super) struct Lengths {
    worth_copying: usize,
    part: usize,
    /// Durations of the first short sends.
    times: Vec<Duration>,
    n_observed: usize,
    /// Rendezvous since the last eager send, or since parts became shorter.
    n_rendezvous: usize,
}

impl Default for Lengths {
    fn default() -> Self {
        Lengths {
            worth_copying: USUAL_BYTES,
            part: PART_BYTES,
            times: Vec::with_capacity(TIMED),
            n_observed: 0,
            n_rendezvous: 0,
        }
    }
}

impl Lengths {
    /// The longest message that follows headers.
    #[inline]
    pub(super) fn eager_bytes(&self) -> usize {
        self.worth_copying.min(MOST_PARTS * self.part)
    }

    /// The longest part of such a message.
    #[inline]
    pub(super) fn part_bytes(&self) -> usize {
        self.part
    }

    /// Whether more short sends have to be timed.
    #[inline]
    pub(super) fn is_timing(&self) -> bool {
        self.times.len() < TIMED
    }

    /// Records the duration of a short send.
    #[cold]
    pub(super) fn note_short_send(&mut self, time: Duration) {
        self.times.push(time);
        if self.times.len() == TIMED {
            self.times.sort_unstable();
            self.worth_copying = worth_copying(self.times[TIMED / 2]);
        }
    }

    /// Records whether a long send was complete when MPI returned from it, if it is one of the first.
    pub(super) fn note_long_send(&mut self, is_complete: bool) {
        if self.n_observed == OBSERVED {
            return;
        }
        self.n_observed += 1;
        self.n_rendezvous = if is_complete { 0 } else { self.n_rendezvous + 1 };
        if self.n_rendezvous == RENDEZVOUS_RUN {
            self.n_rendezvous = 0;
            self.part = (self.part / 2).max(LEAST_BYTES);
        }
    }
}

/// The longest message that is worth copying if a send takes MPI this long.
fn worth_copying(send: Duration) -> usize {
    let ns = usize::try_from(send.as_nanos()).unwrap_or(usize::MAX);
    ns.saturating_mul(BYTES_PER_NS).clamp(LEAST_BYTES, EAGER_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_sends_are_worth_more_copies() {
        let by_memory = worth_copying(Duration::from_nanos(100));
        assert!((LEAST_BYTES..USUAL_BYTES).contains(&by_memory));
        assert_eq!(worth_copying(Duration::ZERO), LEAST_BYTES);
        assert_eq!(worth_copying(Duration::from_micros(3)), EAGER_BYTES);
        assert_eq!(worth_copying(Duration::from_secs(1)), EAGER_BYTES);
    }

    /// The lengths learnt from an MPI that sends up to `unasked` bytes eagerly.
    fn learnt(unasked: usize) -> Lengths {
        let mut lengths = Lengths::default();
        (0..TIMED).for_each(|_| lengths.note_short_send(Duration::from_micros(2)));
        assert!(!lengths.is_timing());
        (0..OBSERVED).for_each(|_| lengths.note_long_send(lengths.part <= unasked));
        lengths
    }

    #[test]
    fn parts_become_as_short_as_what_is_sent_without_asking() {
        for (unasked, part) in [
            (1 << 30, PART_BYTES),
            (PART_BYTES, PART_BYTES),
            (8192, PART_BYTES / 8),
            (0, LEAST_BYTES),
        ] {
            let lengths = learnt(unasked);
            assert_eq!(lengths.part_bytes(), part);
            assert_eq!(lengths.eager_bytes(), MOST_PARTS * part);
        }
    }

    #[test]
    fn a_send_that_had_to_wait_now_and_then_shortens_nothing() {
        let mut lengths = Lengths::default();
        for send in 0..OBSERVED {
            lengths.note_long_send(send % RENDEZVOUS_RUN == 0);
        }
        assert_eq!(lengths.part_bytes(), PART_BYTES);
    }
}
