//! How to wait: spin, yield, or nap.
//!
//! A waiter with a core of its own spins, then yields, and never naps: a nap costs more than
//! most waits. Where ranks outnumber cores, spinning keeps the awaited rank from running, and
//! yielding at once is four to twelve times faster than sleeping in the kernel; only a wait that
//! has become long ends in naps that grow, so that idle ranks leave the cores to busy ones.

use std::time::{Duration, Instant};

/// Rounds of polling before a waiter with its own core first gives it away. Longer would not
/// help it much (a yield on a core of its own costs a microsecond) and hurt a rank whose core is
/// busy with something else after all.
const SPIN_ROUNDS: u32 = 300;
/// After this long without progress, nap.
const YIELD_TIME: Duration = Duration::from_millis(10);
/// The first and the longest nap.
const NAPS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));
/// Rounds of waiting between two calls to whoever else wants to move on meanwhile; the first comes
/// later, so that short waits cost nothing.
const ROUNDS_PER_CALL: (u32, u32) = (32, 8);
/// How many yields pass between two looks at the clock.
const YIELDS_PER_LOOK: u32 = 8;

/// One wait.
#[derive(Debug)]
pub struct Backoff {
    own_core: bool,
    rounds: u32,
    /// When this wait first looked at the clock.
    start: Option<Instant>,
    nap: Option<Duration>,
}

impl Backoff {
    /// A wait; `own_core` says whether it may keep its core busy.
    pub fn new(own_core: bool) -> Self {
        Backoff { own_core, rounds: 0, start: None, nap: None }
    }

    /// Something has happened.
    pub fn reset(&mut self) {
        if self.rounds != 0 {
            *self = Backoff::new(self.own_core);
        }
    }

    /// Whether others who want to move on while this rank waits are to be called now.
    pub fn is_time_for_others(&self) -> bool {
        let (first, every) = ROUNDS_PER_CALL;
        self.rounds >= first && self.rounds.is_multiple_of(every)
    }

    /// Nothing has happened: waits a little, as long as seems right. Returns whether it is time
    /// to look at the clock: not each time.
    pub fn idle(&mut self) -> bool {
        self.rounds = self.rounds.wrapping_add(1).max(1);
        if self.own_core && self.rounds < SPIN_ROUNDS {
            std::hint::spin_loop();
            return false;
        }
        if let Some(nap) = self.nap {
            std::thread::sleep(nap);
            self.nap = Some((nap * 2).min(NAPS.1));
            return true;
        }
        std::thread::yield_now();
        if !self.rounds.is_multiple_of(YIELDS_PER_LOOK) {
            return false;
        }
        let start = *self.start.get_or_insert_with(Instant::now);
        if !self.own_core && start.elapsed() > YIELD_TIME {
            self.nap = Some(NAPS.0);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_waits_nap_without_a_core_until_there_is_progress() {
        let mut backoff = Backoff::new(false);
        while backoff.nap.is_none() {
            backoff.idle();
        }
        backoff.reset();
        assert!(backoff.nap.is_none() && backoff.start.is_none());
        let (mut backoff, start) = (Backoff::new(true), Instant::now());
        while start.elapsed() < YIELD_TIME * 2 {
            backoff.idle();
        }
        assert!(backoff.nap.is_none());
    }
}
