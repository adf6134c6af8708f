//! Everyone to everyone in one step. On Tofu's b axis (size 3) both others are neighbours.

use super::{Peers, minus};

/// Largest size: every coordinate posts d - 1 messages at once.
const MAX_SIZE: u32 = 64;

#[derive(Clone, Debug)]
pub(super) struct Direct {
    size: u32,
}

pub(super) fn needs(size: u32) -> Option<String> {
    (size > MAX_SIZE).then(|| format!("at most {MAX_SIZE} coordinates, all met at once"))
}

impl Direct {
    pub fn new(size: u32) -> Self {
        Direct { size }
    }

    /// In the order of the offset, which every shift preserves.
    pub fn targets(&self, a: u32) -> Peers {
        (1..self.size).map(|offset| (a + offset) % self.size).collect()
    }

    pub fn sources(&self, a: u32) -> Peers {
        (1..self.size).map(|offset| minus(a, offset, self.size)).collect()
    }
}
