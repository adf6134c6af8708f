//! By which copies long messages of a peer go: read in its memory through the kernel, or copied twice, by
//! the peer into staging slots and by this port out of them.
//!
//! The kernel looks up every page of what it reads, whoever's cache holds it. Copies through slots
//! go at the speed at which caches exchange lines: between near cores that is several times faster,
//! between far ones it may be slower, and a host may move its cores while ranks run. So a port goes
//! by what both have cost it lately. It times its own copies only: time that either side spends
//! waiting mostly says nothing about the way. But a peer that computes, or whose core has been taken by
//! another program, sends no pieces: if a message has taken far too long, the next ones are read.

use std::time::{Duration, Instant};

/// Messages that go either way before costs count, and their bytes: the first touch memory that nobody has touched.
const FIRST: (u32, usize) = (16, 16 * 1024 * 1024);
/// Afterwards one in so many goes the other way, so that its cost stays known.
const TRIED: u32 = 128;

/// Copies up to this length are not timed: looking at the clock would take too large a part of them.
const SHORT_BYTES: usize = 16 * 1024;

/// A message in pieces that takes so many times as long as reading it, and those beside it, takes too
/// long. Where ranks share cores it may take as many times as long as ranks share one.
const PATIENCE: f32 = 16.0;
/// So many messages are read after one that took too long, and at most after several.
const SHUNNED: (u32, u32) = (2, 128);

/// Nanoseconds per byte, lately; infinite if unknown.
#[derive(Debug)]
pub(super) struct Cost(f32);

impl Default for Cost {
    fn default() -> Self {
        Cost(f32::INFINITY)
    }
}

impl Cost {
    pub(super) fn per_byte(&self) -> f32 {
        self.0
    }

    fn is_known(&self) -> bool {
        self.0.is_finite()
    }

    pub(super) fn note(&mut self, bytes: usize, time: Duration) {
        let new = time.as_nanos() as f32 / bytes as f32;
        // What disturbs a copy makes it longer, never shorter.
        self.0 = if new < self.0 { new } else { self.0 + (new.min(2.0 * self.0) - self.0) / 8.0 };
    }
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct CopyCosts {
    read: Cost,
    copied: Cost,
    n_messages: u32,
    n_bytes: usize,
    /// So many messages are read before one is asked for in pieces again,
    shunned: u32,
    /// and so many it was the last time, if no message has come in time since.
    last_shunned: u32,
}

impl CopyCosts {
    /// Whether the next message, of `len` bytes, better goes through slots, where that takes the time of so many copies.
    pub(super) fn prefer_slots(&mut self, copies: f32, len: usize) -> bool {
        self.n_messages = self.n_messages.wrapping_add(1);
        self.n_bytes = self.n_bytes.saturating_add(len);
        // Spread, as messages may come in patterns.
        let spread = self.n_messages.wrapping_mul(0x9e37_79b9);
        if self.n_messages <= FIRST.0 {
            match (self.read.is_known(), self.copied.is_known()) {
                (true, true) if self.n_bytes > FIRST.1 => {}
                (is_read, is_copied) if is_read != is_copied => return is_read,
                _ => return spread > u32::MAX / 2,
            }
        }
        (copies * self.copied.0 < self.read.0) != (spread < u32::MAX / TRIED)
    }

    /// Whether the next message is better asked for in pieces than read; see
    /// [`prefer_slots`](CopyCosts::prefer_slots).
    pub(super) fn prefer_pieces(&mut self, copies: f32, len: usize) -> bool {
        let is_shunned = self.shunned > 0;
        self.shunned = self.shunned.saturating_sub(1);
        !is_shunned && self.prefer_slots(copies, len)
    }

    /// A message has come in pieces, in this time, while others came: this many bytes in all.
    pub(super) fn waited(&mut self, bytes: usize, time: Duration) {
        let is_late = time.as_nanos() as f32 > PATIENCE * self.read.0 * bytes as f32;
        self.shunned =
            if is_late { (2 * self.last_shunned).clamp(SHUNNED.0, SHUNNED.1) } else { 0 };
        self.last_shunned = self.shunned;
    }

    /// Reads `bytes` bytes by `read`.
    pub(super) fn reading<R>(&mut self, bytes: usize, read: impl FnOnce() -> R) -> R {
        timed_if_long(&mut self.read, bytes, read)
    }

    /// Copies `bytes` bytes out of a slot by `copy`.
    pub(super) fn copying(&mut self, bytes: usize, copy: impl FnOnce()) {
        timed_if_long(&mut self.copied, bytes, copy);
    }
}

fn timed_if_long<R>(cost: &mut Cost, bytes: usize, copy: impl FnOnce() -> R) -> R {
    if bytes > SHORT_BYTES { timed(cost, bytes, copy) } else { copy() }
}

/// Copies `bytes` bytes by `copy`, and notes what that costs.
pub(super) fn timed<R>(cost: &mut Cost, bytes: usize, copy: impl FnOnce() -> R) -> R {
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
        let (few, many) = (5..=15, 10 * TRIED - 15..=10 * TRIED - 5);
        costs.copied.note(BYTES, us(1));
        costs.read.note(BYTES, us(6));
        assert!(many.contains(&through_slots(&mut costs, 10 * TRIED, 2.0)));
        assert!(few.contains(&through_slots(&mut costs, 10 * TRIED, 7.0)));
        // A time slice of another program's in between proves nothing.
        costs.copied.note(BYTES, us(4000));
        assert!(many.contains(&through_slots(&mut costs, 10 * TRIED, 2.0)));
        // The cores have moved apart, and together again.
        (0..20).for_each(|_| costs.copied.note(BYTES, us(10)));
        assert!(few.contains(&through_slots(&mut costs, 10 * TRIED, 2.0)));
        costs.copied.note(BYTES, us(1));
        assert!(many.contains(&through_slots(&mut costs, 10 * TRIED, 2.0)));
        // Long messages end the trial sooner.
        let mut long = CopyCosts::default();
        long.copied.note(BYTES, us(1));
        long.read.note(BYTES, us(6));
        assert!((0..8).filter(|_| long.prefer_slots(2.0, FIRST.1)).count() >= 6);
        // A peer is slow to send pieces, and slower.
        let read = |costs: &mut CopyCosts| {
            (0..).take_while(|_| !costs.prefer_pieces(2.0, BYTES)).count() as u32
        };
        costs.waited(BYTES, us(50));
        assert!(read(&mut costs) < 2);
        for times in 1..10 {
            costs.waited(BYTES, us(500));
            let least = (1 << times).min(SHUNNED.1);
            assert!((least..least + 2).contains(&read(&mut costs)));
        }
        costs.waited(BYTES, us(50));
        assert!(read(&mut costs) < 2);
    }
}
