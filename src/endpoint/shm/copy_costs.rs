//! Choice of the path of a peer's long messages: read from its memory by the kernel (CMA), or copied by the peer into
//! staging slots and by this port out of them (CICO).
//!
//! The kernel looks up every page that it reads, independent of the caches. Copies through slots run at the speed at
//! which caches exchange lines: between near cores they are several times faster than the kernel, between distant
//! ones they may be slower, and a host may move ranks to other cores while they run. So a port uses the recent cost
//! of both ways. It times only its own copies, since the time that either side waits says little about the way. But a
//! peer that computes, or whose core runs another program, sends no pieces: after a message that took far too long,
//! the next ones are read.

use std::time::{Duration, Instant};

/// Messages, and their bytes, that go either way before costs decide: the first ones touch memory for the first time.
const FIRST: (u32, usize) = (16, 16 * 1024 * 1024);
/// Afterwards one in this many messages goes the other way, so that its cost stays known.
const EXPLORE_INTERVAL: u32 = 128;

/// The longest copy that is not timed: reading the clock would take too large a part of a short one.
const SHORT_BYTES: usize = 16 * 1024;

/// A message in pieces takes too long if it takes this many times the time of reading it and the messages received
/// beside it. If ranks share a core, the time may grow by the number of these ranks.
const PATIENCE: f32 = 16.0;
/// Messages that are read after one that took too long: the first time, and at most after several such messages.
const FORCED_READS: (u32, u32) = (2, 128);

/// Recent cost in nanoseconds per byte; infinite if unknown.
#[derive(Debug)]
pub(super) struct CopyCost(f32);

impl Default for CopyCost {
    fn default() -> Self {
        CopyCost(f32::INFINITY)
    }
}

impl CopyCost {
    pub(super) fn per_byte(&self) -> f32 {
        self.0
    }

    fn is_known(&self) -> bool {
        self.0.is_finite()
    }

    pub(super) fn note(&mut self, bytes: usize, time: Duration) {
        let new = time.as_nanos() as f32 / bytes as f32;
        // Disturbances make a copy slower, never faster.
        self.0 = if new < self.0 { new } else { self.0 + (new.min(2.0 * self.0) - self.0) / 8.0 };
    }
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct CopyCosts {
    read: CopyCost,
    copied: CopyCost,
    n_messages: u32,
    n_bytes: usize,
    /// Messages to be read before one is requested in pieces again.
    forced_reads: u32,
    /// The last value that `forced_reads` was set to; 0 after a message in pieces that came in time.
    last_forced_reads: u32,
}

impl CopyCosts {
    /// Whether the next message, of `len` bytes, should go through slots, if that takes the time of `copies` copies.
    pub(super) fn prefer_slots(&mut self, copies: f32, len: usize) -> bool {
        self.n_messages = self.n_messages.wrapping_add(1);
        self.n_bytes = self.n_bytes.saturating_add(len);
        // Pseudo-random, as messages may come in patterns.
        let spread = self.n_messages.wrapping_mul(0x9e37_79b9);
        if self.n_messages <= FIRST.0 {
            match (self.read.is_known(), self.copied.is_known()) {
                (true, true) if self.n_bytes > FIRST.1 => {}
                (is_read, is_copied) if is_read != is_copied => return is_read,
                _ => return spread > u32::MAX / 2,
            }
        }
        (copies * self.copied.0 < self.read.0) != (spread < u32::MAX / EXPLORE_INTERVAL)
    }

    /// Whether the next message should be requested in pieces rather than read; see
    /// [`prefer_slots`](CopyCosts::prefer_slots).
    pub(super) fn prefer_pieces(&mut self, copies: f32, len: usize) -> bool {
        let is_forced = self.forced_reads > 0;
        self.forced_reads = self.forced_reads.saturating_sub(1);
        !is_forced && self.prefer_slots(copies, len)
    }

    /// Records that a message in pieces took `time`, in which messages of `bytes` in all were received.
    pub(super) fn waited(&mut self, bytes: usize, time: Duration) {
        let is_late = time.as_nanos() as f32 > PATIENCE * self.read.0 * bytes as f32;
        self.forced_reads = if is_late {
            (2 * self.last_forced_reads).clamp(FORCED_READS.0, FORCED_READS.1)
        } else {
            0
        };
        self.last_forced_reads = self.forced_reads;
    }

    /// Runs `read`, which reads `bytes` bytes from the peer's memory.
    pub(super) fn reading<R>(&mut self, bytes: usize, read: impl FnOnce() -> R) -> R {
        timed_if_long(&mut self.read, bytes, read)
    }

    /// Runs `copy`, which copies `bytes` bytes out of a slot.
    pub(super) fn copying(&mut self, bytes: usize, copy: impl FnOnce()) {
        timed_if_long(&mut self.copied, bytes, copy);
    }
}

fn timed_if_long<R>(cost: &mut CopyCost, bytes: usize, copy: impl FnOnce() -> R) -> R {
    if bytes > SHORT_BYTES { timed(cost, bytes, copy) } else { copy() }
}

/// Runs `copy`, which copies `bytes` bytes, and records its cost.
pub(super) fn timed<R>(cost: &mut CopyCost, bytes: usize, copy: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = copy();
    cost.note(bytes, start.elapsed());
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 64 * 1024;

    #[test]
    fn both_ways_are_tried_and_the_cheaper_one_is_kept() {
        let mut costs = CopyCosts::default();
        let us = Duration::from_micros;
        let through_slots = |costs: &mut CopyCosts, n_messages, copies| {
            (0..n_messages).filter(|_| costs.prefer_slots(copies, BYTES)).count() as u32
        };
        assert!((4..=12).contains(&through_slots(&mut costs, FIRST.0, 2.0)));
        let (few, many) = (5..=15, 10 * EXPLORE_INTERVAL - 15..=10 * EXPLORE_INTERVAL - 5);
        costs.copied.note(BYTES, us(1));
        costs.read.note(BYTES, us(6));
        assert!(many.contains(&through_slots(&mut costs, 10 * EXPLORE_INTERVAL, 2.0)));
        assert!(few.contains(&through_slots(&mut costs, 10 * EXPLORE_INTERVAL, 7.0)));
        // A time slice of another program during a copy does not change the choice.
        costs.copied.note(BYTES, us(4000));
        assert!(many.contains(&through_slots(&mut costs, 10 * EXPLORE_INTERVAL, 2.0)));
        // The cores have moved apart, and then together again.
        (0..20).for_each(|_| costs.copied.note(BYTES, us(10)));
        assert!(few.contains(&through_slots(&mut costs, 10 * EXPLORE_INTERVAL, 2.0)));
        costs.copied.note(BYTES, us(1));
        assert!(many.contains(&through_slots(&mut costs, 10 * EXPLORE_INTERVAL, 2.0)));
        // Long messages end the trial sooner.
        let mut long = CopyCosts::default();
        long.copied.note(BYTES, us(1));
        long.read.note(BYTES, us(6));
        assert!((0..8).filter(|_| long.prefer_slots(2.0, FIRST.1)).count() >= 6);
        // A peer that becomes slower and slower at sending pieces.
        let read = |costs: &mut CopyCosts| {
            (0..).take_while(|_| !costs.prefer_pieces(2.0, BYTES)).count() as u32
        };
        costs.waited(BYTES, us(50));
        assert!(read(&mut costs) < 2);
        for times in 1..10 {
            costs.waited(BYTES, us(500));
            let least = (1 << times).min(FORCED_READS.1);
            assert!((least..least + 2).contains(&read(&mut costs)));
        }
        costs.waited(BYTES, us(50));
        assert!(read(&mut costs) < 2);
    }
}
