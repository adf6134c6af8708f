//! Ranks out of step: random pauses between calls, from a seed.

use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The pauses of one rank. A rank alternates between slow and fast periods of random length. In a slow period its
/// pauses are more frequent, so that the other ranks get far ahead of it; in turn it gets ahead of slow ranks.
pub struct Skew {
    rng: SmallRng,
    longest: Duration,
    /// Calls until the period ends.
    calls_left: u32,
    is_slow: bool,
}

impl Skew {
    /// Pauses of at most `longest`; zero for no pauses.
    pub fn new(seed: u64, rank: u32, longest: Duration) -> Self {
        let rng = SmallRng::seed_from_u64(seed.rotate_left(32) ^ u64::from(rank));
        Skew { rng, longest, calls_left: 0, is_slow: false }
    }

    /// Sleeps, spins, yields or continues at once.
    pub fn pause(&mut self) {
        if self.longest.is_zero() {
            return;
        }
        if self.calls_left == 0 {
            self.calls_left = self.rng.random_range(1..300);
            self.is_slow = self.rng.random_bool(0.3);
        }
        self.calls_left -= 1;
        let one_in = if self.is_slow { 8 } else { 200 };
        match self.rng.random_range(0..one_in) {
            0 => std::thread::sleep(self.longest.mul_f64(self.rng.random())),
            1 => {
                let start = Instant::now();
                let spin = self.longest.mul_f64(0.05 * self.rng.random::<f64>());
                while start.elapsed() < spin {
                    std::hint::spin_loop();
                }
            }
            2..=4 => std::thread::yield_now(),
            _ => {}
        }
    }
}
