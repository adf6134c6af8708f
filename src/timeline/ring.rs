//! A ring of the latest records of a port, or of a rank's calls.

use super::ticks::Ticks;
use super::{Record, Sink};
use crate::memory::stores::prefetch_write;

/// Distance of the prefetch in records. In a ring larger than the caches a store waits for its cache line, and so do
/// the stores behind it, among them stores that peers wait for.
const AHEAD: usize = 8;

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct RecordRing {
    ticks: Ticks,
    /// All records are written when the ring is made, so that a later write causes no page fault.
    records: Vec<Record>,
    /// Index of the next record.
    next: usize,
    /// Records noted so far, including overwritten ones.
    n_noted: u64,
    /// The last stamp; `None` if the port has waited since then.
    last: Option<u64>,
}

impl RecordRing {
    /// A ring that keeps the last `most` records.
    pub(super) fn new(ticks: Ticks, most: usize) -> Self {
        let records = vec![Record::default(); most.max(1)];
        RecordRing { ticks, records, next: 0, n_noted: 0, last: None }
    }

    /// Number of records that later ones have overwritten.
    pub(super) fn n_dropped(&self) -> u64 {
        self.n_noted.saturating_sub(self.records.len() as u64)
    }

    /// The records in the ring, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Record> {
        let (late, early) = self.records.split_at(self.next);
        let is_full = self.n_noted >= self.records.len() as u64;
        let early = if is_full { early } else { &[] };
        early.iter().chain(late)
    }

    /// Appends a record whose times are set.
    #[inline]
    pub(crate) fn push(&mut self, record: Record) {
        if let Some(later) = self.records.get(self.next + AHEAD) {
            prefetch_write(later);
        }
        self.records[self.next] = record;
        self.next = if self.next + 1 == self.records.len() { 0 } else { self.next + 1 };
        self.n_noted += 1;
    }

    /// A poll of the port has found nothing: the next record does not start at the end of the last one.
    #[inline]
    pub(crate) fn waited(&mut self) {
        self.last = None;
    }
}

impl Sink for RecordRing {
    #[inline]
    fn since(&mut self) -> u64 {
        *self.last.get_or_insert_with(|| self.ticks.now())
    }

    #[inline]
    fn note(&mut self, record: impl FnOnce(u64) -> Record) {
        let now = self.ticks.now();
        self.last = Some(now);
        self.push(record(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_at_once_begins_when_the_last_has_ended() {
        let mut ring = RecordRing::new(Ticks::Nanoseconds, 4);
        let first = ring.since();
        assert_eq!(ring.since(), first);
        ring.note(|start| Record { start, ..Record::default() });
        let noted = ring.iter().next().unwrap().start;
        assert_eq!(ring.since(), noted);
        ring.waited();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(ring.since() > noted);
    }

    #[test]
    fn the_oldest_records_give_way_and_are_counted() {
        for (n, most) in [(0, 4), (3, 4), (4, 4), (5, 4), (11, 4), (3, 1)] {
            let mut ring = RecordRing::new(Ticks::Nanoseconds, most);
            (0..n).for_each(|start| ring.push(Record { start, ..Record::default() }));
            let left: Vec<u64> = ring.iter().map(|record| record.start).collect();
            let first = n.saturating_sub(most as u64);
            assert_eq!((left, ring.n_dropped()), ((first..n).collect(), first), "{n} of {most}");
        }
    }
}
