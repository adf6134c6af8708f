//! Bells: threads sleep until peers write something for their rank, and peers wake them.
//!
//! Each rank has a bell in the segment: the number of its threads that sleep or are about to, and a counter that
//! changes when the bell rings. A writer reads only one word, the number of all sleepers of the segment. That word
//! stays in its cache, so the check costs one load as long as no thread sleeps.
//!
//! A sleeper increments the numbers of sleepers, executes a memory barrier on all processors of the segment's
//! processes (`membarrier`), polls once more, and sleeps if the counter has not changed. So writers need no barrier.
//! If the system lacks `membarrier`, a sleeper may rarely miss its bell; sleeps are always short.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use rustix::thread::futex::{self, Timespec};
use rustix::thread::{MembarrierCommand, membarrier};

use super::layout::{APART, ShmLayout};
use super::segment::Segment;
use crate::endpoint::Bell;

/// Offsets of the words in a rank's line.
const NUMBER: usize = 0;
const SLEEPERS: usize = 4;

/// The bell of one rank.
#[derive(Clone, Debug)]
pub(super) struct Doorbell {
    /// Keeps the words mapped.
    segment: Arc<Segment>,
    /// The number of sleepers of the whole segment.
    all: *const AtomicU32,
    line: usize,
    n_ranks: usize,
}

// SAFETY: the pointer is to a word of the segment, accessed as an atomic only.
unsafe impl Send for Doorbell {}
// SAFETY: as above.
unsafe impl Sync for Doorbell {}

impl Doorbell {
    pub(super) fn new(segment: &Arc<Segment>, layout: ShmLayout, rank: usize) -> Self {
        let (all, line) = (segment.word32(layout.sleepers()), layout.rank(rank) + 2 * APART);
        Doorbell { all, segment: segment.clone(), line, n_ranks: layout.n_ranks }
    }

    fn all(&self) -> &AtomicU32 {
        // SAFETY: the segment keeps the word mapped.
        unsafe { &*self.all }
    }

    fn word(&self, word: usize) -> &AtomicU32 {
        self.segment.word32(self.line + word)
    }

    /// Wakes the rank's sleeping threads, after something has been written for the rank.
    #[inline]
    pub(super) fn ring(&self) {
        if self.has_sleepers() {
            self.wake();
        }
    }

    /// Whether any thread in the segment sleeps.
    #[inline]
    pub(super) fn has_sleepers(&self) -> bool {
        // Relaxed: the sleeper's barrier orders this load after the writes before it.
        self.all().load(Ordering::Relaxed) != 0
    }

    #[cold]
    fn wake(&self) {
        // SeqCst: stronger than `membarrier` needs; wake-ups are rare.
        if self.word(SLEEPERS).load(Ordering::SeqCst) == 0 {
            return;
        }
        let number = self.word(NUMBER);
        number.fetch_add(1, Ordering::SeqCst);
        // A failed call has woken no thread; sleeps are short.
        let _ = futex::wake(number, futex::Flags::empty(), i32::MAX as u32);
    }
}

impl Bell for Doorbell {
    fn arm(&self) -> u32 {
        self.all().fetch_add(1, Ordering::SeqCst);
        self.word(SLEEPERS).fetch_add(1, Ordering::SeqCst);
        let number = self.number();
        barrier_everywhere();
        number
    }

    fn number(&self) -> u32 {
        self.word(NUMBER).load(Ordering::SeqCst)
    }

    fn sleep(&self, number: u32, longest: Duration) {
        // A duration out of range means no time limit.
        let longest = Timespec::try_from(longest).ok();
        // The caller polls again, however the wait ends.
        let _ = futex::wait(self.word(NUMBER), futex::Flags::empty(), number, longest.as_ref());
    }

    fn disarm(&self) {
        self.word(SLEEPERS).fetch_sub(1, Ordering::SeqCst);
        self.all().fetch_sub(1, Ordering::SeqCst);
    }

    fn n_ranks(&self) -> usize {
        self.n_ranks
    }

    fn ring(&self) {
        Doorbell::ring(self);
    }
}

/// Registers this process for the barriers of other processes. False if the system has no such barriers: then a
/// sleeper may miss its bell.
pub(super) fn register_barriers() -> bool {
    membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
}

fn barrier_everywhere() {
    if membarrier(MembarrierCommand::GlobalExpedited).is_err() {
        fence(Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Ten thousand round trips; each side sleeps whenever it waits.
    #[test]
    fn nobody_sleeps_through_its_bell() {
        // Without barriers a bell may be missed, and only short sleeps help.
        let has_barriers = register_barriers();
        let layout = ShmLayout { n_ranks: 2, n_ports: 0, flats_per_rank: 0 };
        let (segment, _file) = Segment::create(layout.len(), 1).unwrap();
        let turn = AtomicU64::new(0);
        let patience = Duration::from_secs(20);
        let longest = if has_barriers { patience } else { Duration::from_millis(1) };
        let play = |me: u64| {
            let (own, other) = (
                Doorbell::new(&segment, layout, me as usize),
                Doorbell::new(&segment, layout, 1 - me as usize),
            );
            let start = std::time::Instant::now();
            for round in 0..10_000 {
                let awaited = 2 * round + me;
                if turn.load(Ordering::Acquire) != awaited {
                    let mut number = own.arm();
                    while turn.load(Ordering::Acquire) != awaited {
                        own.sleep(number, longest);
                        number = own.number();
                    }
                    own.disarm();
                }
                turn.store(awaited + 1, Ordering::Release);
                other.ring();
            }
            // A single missed bell would exceed this time.
            assert!(start.elapsed() < patience);
        };
        std::thread::scope(|threads| {
            threads.spawn(|| play(0));
            threads.spawn(|| play(1));
        });
        assert_eq!(turn.load(Ordering::Relaxed), 20_000);
        assert_eq!(Doorbell::new(&segment, layout, 0).all().load(Ordering::Relaxed), 0);
    }
}
