//! Messages of all ranks of a job, the result of an exchange.

use std::ops::{Index, Range};

/// A record of each rank, by rank, in one buffer: for 158,976 ranks that is one allocation instead of as many.
#[derive(Clone, Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
    ends: Ends,
    n_ranks: usize,
    /// Bytes at the start of each record that do not belong to it.
    skipped: usize,
}

/// Ends of the records in the buffer.
#[derive(Clone, Debug)]
enum Ends {
    /// All records have this length.
    Equal(usize),
    Each(Vec<usize>),
}

impl Default for Ends {
    fn default() -> Self {
        Ends::Equal(0)
    }
}

impl Records {
    /// Creates records of equal length from their concatenation; as many as there are ranks.
    ///
    /// # Panics
    /// If the number of bytes is not a multiple of the number of ranks.
    pub fn of_equal_length(bytes: Vec<u8>, n_ranks: usize) -> Self {
        assert!(n_ranks > 0 && bytes.len().is_multiple_of(n_ranks), "records of one length");
        Records { ends: Ends::Equal(bytes.len() / n_ranks), bytes, n_ranks, skipped: 0 }
    }

    /// Appends the next rank's record.
    pub fn push(&mut self, record: &[u8]) {
        match &mut self.ends {
            Ends::Equal(len) if self.n_ranks == 0 || *len == record.len() => *len = record.len(),
            Ends::Equal(len) => {
                let (len, end) = (*len, self.bytes.len() + record.len());
                self.ends = Ends::Each((1..=self.n_ranks).map(|n| n * len).chain([end]).collect());
            }
            Ends::Each(ends) => ends.push(self.bytes.len() + record.len()),
        }
        self.bytes.extend_from_slice(record);
        self.n_ranks += 1;
    }

    /// Returns the number of ranks.
    pub fn len(&self) -> usize {
        self.n_ranks
    }

    /// Returns whether there are no ranks.
    pub fn is_empty(&self) -> bool {
        self.n_ranks == 0
    }

    /// Iterates over the records by rank.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.n_ranks).map(|rank| &self[rank])
    }

    /// Removes the first `n` bytes of each record, which must be at least that long.
    pub(crate) fn without_first(self, n: usize) -> Self {
        Records { skipped: self.skipped + n, ..self }
    }

    fn range(&self, rank: usize) -> Range<usize> {
        match &self.ends {
            Ends::Equal(len) => rank * len..(rank + 1) * len,
            Ends::Each(ends) => rank.checked_sub(1).map_or(0, |before| ends[before])..ends[rank],
        }
    }
}

impl Index<usize> for Records {
    type Output = [u8];

    fn index(&self, rank: usize) -> &[u8] {
        assert!(rank < self.n_ranks, "rank {rank} of {}", self.n_ranks);
        &self.bytes[self.range(rank)][self.skipped..]
    }
}

impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<R: AsRef<[u8]>> FromIterator<R> for Records {
    fn from_iter<I: IntoIterator<Item = R>>(records: I) -> Self {
        let mut records = records.into_iter();
        let mut all = Records::default();
        if let Some(first) = records.next() {
            let first = first.as_ref();
            // Mostly all records have one length.
            all.bytes.reserve_exact((records.size_hint().0 + 1) * first.len());
            all.push(first);
        }
        records.for_each(|record| all.push(record.as_ref()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[&[u8]]) {
        let records: Records = given.iter().collect();
        assert_eq!(records.iter().collect::<Vec<_>>(), given);
        assert_eq!(records.len(), given.len());
    }

    #[test]
    fn records_are_what_was_given() {
        check(&[]);
        check(&[b"", b""]);
        check(&[b"ab", b"cd", b"ef"]);
        check(&[b"", b"", b"a"]);
        check(&[b"ab", b"c", b"", b"def"]);
        assert_eq!(
            Records::of_equal_length(b"abcd".to_vec(), 2),
            [b"ab", b"cd"].iter().collect::<Records>()
        );
    }

    #[test]
    fn what_is_before_each_can_be_left_out() {
        let marked: Records = [&b"1ab"[..], b"1"].into_iter().collect();
        assert_eq!(marked.without_first(1).iter().collect::<Vec<_>>(), [&b"ab"[..], b""]);
    }
}
