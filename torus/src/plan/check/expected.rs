//! What must have been combined in the end.

use super::scramble::number;
use crate::names::Rank;

/// What all ranks below some number are in the representations of sets.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) set: Vec<u64>,
    base: u32,
    pub(super) sum: u64,
    /// That number.
    end: u32,
}

impl Expected {
    /// Of `n_ranks` ranks, for sets of `words` words from `base` on.
    pub(super) fn new(n_ranks: u32, words: usize, base: u32) -> Self {
        let mut expected = Expected { set: vec![0; words], base, sum: 0, end: 0 };
        expected.extend(n_ranks);
        expected
    }

    /// Of no ranks, for the same sets.
    pub(super) fn nobody(&self) -> Self {
        Expected::new(0, self.set.len(), self.base)
    }

    /// Adds the ranks that are not there yet, below `end`.
    pub(super) fn extend(&mut self, end: u32) {
        for rank in self.end..end {
            self.sum = self.sum.wrapping_add(number(Rank(rank)));
            let bit = rank.checked_sub(self.base).map(|bit| bit as usize);
            if let Some(bit) = bit.filter(|bit| bit / 64 < self.set.len()) {
                self.set[bit / 64] |= 1 << (bit % 64);
            }
        }
        self.end = self.end.max(end);
    }
}
