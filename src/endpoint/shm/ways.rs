//! Which way long messages of a peer take: read in its memory through the kernel, or pulled, that is
//! copied twice, by the peer into staging slots and by this port out of them.
//!
//! The kernel looks up every page of what it reads, whoever's cache holds it. Copies through slots
//! go at the speed at which caches exchange lines. Between near cores that is several times faster,
//! between far ones several times slower, and a host may move its cores while ranks run. So a port
//! goes by what both have cost it lately. It times its own copies only: time that either side spends
//! waiting says nothing about the way.

use std::time::{Duration, Instant};

/// One in so many messages goes the other way, so that its cost stays known.
const TRIED: u32 = 128;
/// Pulled bytes are copied twice.
const COPIES: f32 = 2.0;

/// Nanoseconds per byte, lately; `None` until the first copy.
#[derive(Debug, Default)]
struct Cost(Option<f32>);

impl Cost {
    fn note(&mut self, bytes: usize, time: Duration) {
        let new = time.as_nanos() as f32 / bytes as f32;
        self.0 = Some(match self.0 {
            None => new,
            // A copy that was interrupted counts little.
            Some(old) => old + (new.min(2.0 * old) - old) / 4.0,
        });
    }
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Ways {
    read: Cost,
    copied: Cost,
    n_messages: u32,
}

impl Ways {
    /// Whether the next message is better pulled than read.
    pub(super) fn pulls(&mut self) -> bool {
        self.n_messages = self.n_messages.wrapping_add(1);
        let (Some(read), Some(copied)) = (self.read.0, self.copied.0) else {
            return self.copied.0.is_none();
        };
        (COPIES * copied < read) != self.n_messages.is_multiple_of(TRIED)
    }

    /// Reads `bytes` bytes by `read`.
    pub(super) fn reading<R>(&mut self, bytes: usize, read: impl FnOnce() -> R) -> R {
        timed(&mut self.read, bytes, read)
    }

    /// Copies `bytes` bytes out of a slot by `copy`.
    pub(super) fn copying(&mut self, bytes: usize, copy: impl FnOnce()) {
        timed(&mut self.copied, bytes, copy);
    }
}

fn timed<R>(cost: &mut Cost, bytes: usize, copy: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = copy();
    cost.note(bytes, start.elapsed());
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 64 * 1024;

    fn pulled_of(ways: &mut Ways, n_messages: u32) -> u32 {
        (0..n_messages).map(|_| u32::from(ways.pulls())).sum()
    }

    #[test]
    fn both_ways_are_tried_and_the_cheaper_one_is_kept() {
        let mut ways = Ways::default();
        let us = Duration::from_micros;
        assert!(ways.pulls(), "nothing is known of slots");
        ways.copied.note(BYTES, us(1));
        assert!(!ways.pulls(), "nothing is known of reading");
        ways.read.note(BYTES, us(6));
        assert_eq!(pulled_of(&mut ways, 10 * TRIED), 10 * (TRIED - 1));
        // A time slice of another program's in between proves nothing.
        ways.copied.note(BYTES, us(4000));
        assert_eq!(pulled_of(&mut ways, 10 * TRIED), 10 * (TRIED - 1));
        // The cores have moved apart.
        (0..10).for_each(|_| ways.copied.note(BYTES, us(10)));
        assert_eq!(pulled_of(&mut ways, 10 * TRIED), 10);
        (0..10).for_each(|_| ways.copied.note(BYTES, us(1)));
        assert_eq!(pulled_of(&mut ways, 10 * TRIED), 10 * (TRIED - 1));
    }
}
