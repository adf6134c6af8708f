//! The last records of a port, or of a rank's calls.

use super::ticks::Ticks;
use super::{Record, Sink};

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct Ring {
    ticks: Ticks,
    /// Its capacity is the most that it ever holds.
    records: Vec<Record>,
    most: usize,
    /// Records so far, also those that have given way.
    n_noted: u64,
}

impl Ring {
    /// A ring that keeps the last `most` records.
    pub(super) fn new(ticks: Ticks, most: usize) -> Self {
        let most = most.max(1);
        Ring { ticks, records: Vec::with_capacity(most), most, n_noted: 0 }
    }

    /// Records that have given way to later ones.
    pub(super) fn n_dropped(&self) -> u64 {
        self.n_noted - self.records.len() as u64
    }

    /// The records that are left, in the order in which they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Record> {
        let oldest = if self.n_dropped() > 0 { self.next() } else { 0 };
        self.records[oldest..].iter().chain(&self.records[..oldest])
    }

    /// Where the next record goes.
    fn next(&self) -> usize {
        (self.n_noted % self.most as u64) as usize
    }
}

impl Sink for Ring {
    #[inline]
    fn now(&self) -> u64 {
        self.ticks.now()
    }

    #[inline]
    fn note(&mut self, record: impl FnOnce(u64) -> Record) {
        let (record, next) = (record(self.now()), self.next());
        match self.records.get_mut(next) {
            Some(oldest) => *oldest = record,
            None => self.records.push(record),
        }
        self.n_noted += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_records_give_way_and_are_counted() {
        for (n, most) in [(0, 4), (3, 4), (4, 4), (5, 4), (11, 4), (3, 1)] {
            let mut ring = Ring::new(Ticks::Nanoseconds, most);
            (0..n).for_each(|start| ring.note(|_| Record { start, ..Record::default() }));
            let left: Vec<u64> = ring.iter().map(|record| record.start).collect();
            let first = n.saturating_sub(most as u64);
            assert_eq!((left, ring.n_dropped()), ((first..n).collect(), first), "{n} of {most}");
        }
    }
}
