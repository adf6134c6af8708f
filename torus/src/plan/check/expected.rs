//! The contributions that a result must contain.

use super::splitmix64::number;
use crate::names::Rank;

/// The set of the ranks below `end`, in each representation of [`Values`](super::values::Values).
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) set: Vec<u64>,
    base: u32,
    pub(super) sum: u64,
    pub(super) end: u32,
}

impl Expected {
    /// The set of `n_ranks` ranks. As bits: the ranks from `base` on, in `words` words.
    pub(super) fn new(n_ranks: u32, words: usize, base: u32) -> Self {
        let mut expected = Expected { set: vec![0; words], base, sum: 0, end: 0 };
        expected.extend(n_ranks);
        expected
    }

    /// The empty set, in the same representations.
    pub(super) fn nobody(&self) -> Self {
        Expected::new(0, self.set.len(), self.base)
    }

    /// Adds the ranks up to `end` that are not in the set yet.
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
