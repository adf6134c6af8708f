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
/// How many yields pass between two looks at the clock.
const YIELDS_PER_LOOK: u32 = 8;
/// The most that counts as idle between two looks: in a longer time this process was stopped, or
/// had no core, and has not seen what came meanwhile.
const LONGEST_GAP: Duration = Duration::from_millis(100);

/// One wait: keeps track of how long nothing has happened.
#[derive(Debug)]
pub struct Backoff {
    own_core: bool,
    rounds: u32,
    last_look: Option<Instant>,
    idle: Duration,
    nap: Option<Duration>,
}

impl Backoff {
    /// A wait; `own_core` says whether it may keep its core busy.
    pub fn new(own_core: bool) -> Self {
        Backoff { own_core, rounds: 0, last_look: None, idle: Duration::ZERO, nap: None }
    }

    /// Something has happened.
    pub fn reset(&mut self) {
        if self.rounds != 0 {
            *self = Backoff::new(self.own_core);
        }
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
        self.rounds = self.rounds.wrapping_add(1).max(1);
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
        if idle > YIELD_TIME && !self.own_core {
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
        for own_core in [false, true] {
            let mut backoff = Backoff::new(own_core);
            while backoff.idle() < YIELD_TIME * 2 {}
            assert!(backoff.nap.is_some() != own_core);
            backoff.reset();
            assert!(backoff.nap.is_none() && backoff.idle.is_zero());
        }
    }
}
