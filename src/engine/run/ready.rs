//! The tasks that may start: a set of small numbers that gives out the smallest first.

/// A set of task numbers. Never allocates after its creation.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadySet {
    words: Box<[u64]>,
    /// The first word that is not zero; one past the last if all are.
    first: usize,
}

impl ReadySet {
    /// An empty set for numbers below `bound`.
    pub(crate) fn new(bound: usize) -> Self {
        let n_words = bound.div_ceil(64);
        ReadySet { words: vec![0; n_words].into(), first: n_words }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == self.words.len()
    }

    #[inline]
    pub(crate) fn insert(&mut self, task: u32) {
        let word = task as usize / 64;
        let bit = 1u64 << (task % 64);
        debug_assert!(self.words[word] & bit == 0, "task {task} became ready twice");
        self.words[word] |= bit;
        self.first = self.first.min(word);
    }

    /// The smallest number.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        let word = self.words.get(self.first)?;
        Some(self.first as u32 * 64 + word.trailing_zeros())
    }

    /// Takes the smallest number out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        let task = self.first()?;
        let word = &mut self.words[self.first];
        *word &= *word - 1;
        if *word == 0 {
            let rest = self.words[self.first..].iter().position(|&word| word != 0);
            self.first = rest.map_or(self.words.len(), |at| self.first + at);
        }
        Some(task)
    }

    /// Makes this set equal to `other`, which was made for the same bound.
    pub(crate) fn copy_from(&mut self, other: &ReadySet) {
        self.words.copy_from_slice(&other.words);
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
