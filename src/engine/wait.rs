//! How to wait: spin, yield, or nap.
//!
//! Spinning is fastest, but only for a waiter with a core of its own; where ranks outnumber
//! cores it keeps the awaited rank from running, and yielding at once is four to twelve times
//! faster than sleeping in the kernel. A wait that has become long ends in naps that grow, so
//! that idle ranks leave the cores to busy ones.

use std::time::{Duration, Instant};

/// Rounds of polling, some 20 microseconds, before a waiter with its own core first gives it away.
/// Longer would not help it much (a yield on a core of its own costs a microsecond) and hurt a
/// rank whose core is busy with something else after all.
const SPIN_ROUNDS: u32 = 300;
/// After this long without progress, nap.
const YIELD_TIME: Duration = Duration::from_millis(2);
/// The first and the longest nap.
const NAPS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));
/// How many yields pass between two looks at the clock.
const YIELDS_PER_LOOK: u32 = 8;
/// The most that counts as idle between two looks: in a longer time this process was stopped, or
/// had no core, and has not seen what came meanwhile.
const LONGEST_GAP: Duration = Duration::from_millis(100);

/// One wait: keeps track of how long nothing has happened.
#[derive(Debug)]
pub struct Waiter {
    own_core: bool,
    rounds: u32,
    last_look: Option<Instant>,
    idle: Duration,
    nap: Option<Duration>,
}

impl Waiter {
    /// A waiter; `own_core` says whether it may keep its core busy.
    pub fn new(own_core: bool) -> Self {
        Waiter { own_core, rounds: 0, last_look: None, idle: Duration::ZERO, nap: None }
    }

    /// Something has happened.
    pub fn progress(&mut self) {
        if self.rounds != 0 {
            *self = Waiter::new(self.own_core);
        }
    }

    /// Nothing has happened that was waited for, but there was something else to do. Returns as
    /// [`idle`](Waiter::idle).
    pub fn busy(&mut self) -> Duration {
        self.nap = None;
        self.rounds = self.rounds.saturating_add(1);
        self.look()
    }

    /// Adds up the time in which nothing has happened.
    fn look(&mut self) -> Duration {
        let now = Instant::now();
        if let Some(last) = self.last_look.replace(now) {
            self.idle += (now - last).min(LONGEST_GAP);
        }
        self.idle
    }

    /// Nothing has happened: waits a little, as long as seems right. Returns for how long
    /// nothing has happened, as far as this is known without looking at the clock each time.
    pub fn idle(&mut self) -> Duration {
        self.rounds = self.rounds.saturating_add(1);
        if self.own_core && self.rounds < SPIN_ROUNDS {
            std::hint::spin_loop();
            return Duration::ZERO;
        }
        if let Some(nap) = self.nap {
            std::thread::sleep(nap);
            self.nap = Some((nap * 2).min(NAPS.1));
            return self.look();
        }
        std::thread::yield_now();
        if !self.rounds.is_multiple_of(YIELDS_PER_LOOK) {
            return Duration::ZERO;
        }
        let idle = self.look();
        if idle > YIELD_TIME {
            self.nap = Some(NAPS.0);
        }
        idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idleness_adds_up_until_there_is_progress() {
        let mut waiter = Waiter::new(false);
        while waiter.idle() < YIELD_TIME * 2 {}
        assert!(waiter.nap.is_some());
        waiter.progress();
        assert!(waiter.nap.is_none() && waiter.idle.is_zero());
    }
}
