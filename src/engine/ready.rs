//! The tasks that may start: a set of small numbers that gives out the smallest first.

/// A set of task numbers. Never allocates after its creation.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadySet {
    words: Box<[u64]>,
    len: u32,
    /// All words before this one are zero.
    first: usize,
}

impl ReadySet {
    /// An empty set for numbers below `bound`.
    pub(super) fn new(bound: usize) -> Self {
        ReadySet { words: vec![0; bound.div_ceil(64)].into(), len: 0, first: 0 }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn insert(&mut self, task: u32) {
        let word = task as usize / 64;
        let bit = 1u64 << (task % 64);
        debug_assert!(self.words[word] & bit == 0, "task {task} became ready twice");
        self.words[word] |= bit;
        self.len += 1;
        self.first = self.first.min(word);
    }

    /// Takes the smallest number out.
    pub(super) fn pop(&mut self) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        while self.words[self.first] == 0 {
            self.first += 1;
        }
        let bit = self.words[self.first].trailing_zeros();
        self.words[self.first] &= self.words[self.first] - 1;
        self.len -= 1;
        Some(self.first as u32 * 64 + bit)
    }

    /// Makes this set equal to `other`, which was made for the same bound.
    pub(super) fn copy_from(&mut self, other: &ReadySet) {
        self.words.copy_from_slice(&other.words);
        self.len = other.len;
        self.first = other.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_smallest_first() {
        let mut set = ReadySet::new(200);
        for task in [130, 5, 64, 199] {
            set.insert(task);
        }
        assert_eq!(set.pop(), Some(5));
        set.insert(3);
        assert_eq!(
            [set.pop(), set.pop(), set.pop(), set.pop()],
            [Some(3), Some(64), Some(130), Some(199)]
        );
        assert_eq!(set.pop(), None);
    }
}
