//! The ring: everyone sends to the next coordinate, d - 1 times.
//!
//! In every dimension of a torus in turn this is the bucket algorithm (Swing, section
//! 2.3.4): most steps, fewest hop-bytes (0.98 per vector byte at d = 64), so best for huge
//! vectors. Serves every size up to [`MAX_SIZE`], where d - 1 steps stop making sense.

use super::minus;

/// Longest ring; plans have a step per coordinate and tables cost its square.
const MAX_SIZE: u32 = 4096;

#[derive(Clone, Debug)]
pub(super) struct Ring {
    size: u32,
}

pub(super) fn needs(size: u32) -> Option<String> {
    (size > MAX_SIZE).then(|| format!("at most {MAX_SIZE} coordinates, one step each"))
}

impl Ring {
    pub fn new(size: u32) -> Self {
        Ring { size }
    }

    pub fn n_steps(&self) -> u32 {
        self.size - 1
    }

    pub fn next(&self, a: u32) -> u32 {
        (a + 1) % self.size
    }

    pub fn previous(&self, a: u32) -> u32 {
        minus(a, 1, self.size)
    }
}
