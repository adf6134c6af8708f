//! Memory events: how caches learn that a range loses its pages.
//!
//! An [`EventSource`] appends the ranges to its [`EventLog`], a ring that all caches read, each from
//! where it stopped last. The announcing thread may be in the midst of anything (`free`, a signal
//! handler), so it takes no lock, waits for nobody, allocates nothing and releases nothing. A cache
//! reads the log in its next lookup; if the ring has gone round since, it takes everything for stale,
//! which is correct and slow.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::span::Span;
use super::stats::CacheMode;

/// How long the announcement of an unmapping may take. After that lookups find nothing.
pub(crate) const PATIENCE: Duration = Duration::from_millis(200);
/// Added to the word while an announcement is under way.
const BUSY: usize = 1;
/// Added to the word by each posted range.
const POSTED: usize = 2;

/// Announces when memory loses its pages: unmapped, moved, replaced or discarded.
///
/// A source must announce a range **before the call that takes the memory away returns** to the
/// thread that made it: either post at once, or call [`EventLog::begin`] before that thread can go
/// on, and [`EventLog::end`] once the range is posted.
pub trait EventSource: std::fmt::Debug + Send + Sync {
    /// Name for statistics.
    fn name(&self) -> &'static str;

    /// How caches are said to keep what they keep.
    fn mode(&self) -> CacheMode {
        CacheMode::Events { source: self.name() }
    }

    /// The log of all events. Who has it is a listener, until it is dropped.
    fn log(&self) -> Arc<EventLog>;

    /// From now on events of this range (whole pages) are announced. The caller vouches that the
    /// memory stays during this call.
    ///
    /// # Errors
    /// What the system says of memory that cannot be watched; its registration is then not kept.
    fn watch(&self, span: Span) -> io::Result<()>;

    /// The caller, who is one listener, needs no more events of this range. The source may go on
    /// announcing them, which is harmless. What others watch stays watched.
    fn unwatch(&self, span: Span);

    /// False while memory has been taken away somewhere and that is not announced yet. A source
    /// that announces *before* the memory goes always says true.
    fn settled(&self) -> bool;

    /// Whoever needs all announcements waits a little for one that is under way; `began` says since when, once it
    /// does. False if that takes too long.
    fn wait(&self, began: &mut Option<Instant>) -> bool {
        if began.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return false;
        }
        std::thread::yield_now();
        true
    }
}

/// The latest ranges that lost their memory. One thread at a time writes, any number read.
#[derive(Debug)]
pub struct EventLog {
    /// How many ranges were posted so far, and whether an announcement is under way. A lookup that
    /// finds nothing new reads nothing else.
    word: AtomicUsize,
    /// Start and end of range `n` are at `n` modulo the length.
    ring: Box<[[AtomicUsize; 2]]>,
}

/// How far a cache has read the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position(usize);

impl EventLog {
    /// A log of which the latest `capacity` ranges can be read.
    pub fn new(capacity: usize) -> Self {
        // One more: the slot that is written next cannot be read.
        let ring = (0..=capacity).map(|_| Default::default()).collect();
        EventLog { word: AtomicUsize::new(0), ring }
    }

    /// Announces that ranges are about to be posted, until [`EventLog::end`]: who settles waits. One announcement is
    /// under way at a time, of any number of ranges.
    pub fn begin(&self) {
        // AcqRel: release, so that this precedes whatever lets the unmapping thread go on; partner
        // is the acquire in `has_news`.
        self.word.fetch_add(BUSY, Ordering::AcqRel);
    }

    /// Ends what [`EventLog::begin`] began.
    pub fn end(&self) {
        // Release: who sees the word go down sees the posts before; partner is the acquire in
        // `is_busy`.
        self.word.fetch_sub(BUSY, Ordering::Release);
    }

    /// Posts a range that has lost its memory. Never blocks and never allocates.
    pub fn post(&self, span: Span) {
        let [start, end] = &self.ring[self.n_posted() % self.ring.len()];
        // Release: who reads the new range sees that its place was due; partners are the acquires
        // in `read`.
        start.store(span.start(), Ordering::Release);
        end.store(span.end(), Ordering::Release);
        // Release: publishes the range; partners are the acquires in `has_news` and `read`.
        self.word.fetch_add(POSTED, Ordering::Release);
    }

    /// Where those read on who want only what comes from now on.
    pub(super) fn position(&self) -> Position {
        Position(self.n_posted())
    }

    /// Whether ranges were posted behind a position, or are about to be. After false the caller
    /// sees the effects of every event that happened before this call.
    pub(super) fn has_news(&self, position: Position) -> bool {
        // Acquire: partner is the release in `begin` and `post`.
        self.word.load(Ordering::Acquire) != position.0 * POSTED
    }

    /// Whether an announcement is under way: its range may not be posted yet.
    pub(super) fn is_busy(&self) -> bool {
        // Acquire: partner is the release in `end`.
        self.word.load(Ordering::Acquire) & BUSY != 0
    }

    /// Gives `apply` the ranges posted behind a position, and moves that to their end. Everything,
    /// if some of them have been overwritten.
    pub(super) fn read(&self, position: &mut Position, mut apply: impl FnMut(Span)) {
        while position.0 != self.n_posted() {
            let slot = &self.ring[position.0 % self.ring.len()];
            // Acquire: if a later range is read here, its turn is seen below.
            let [start, end] = slot.each_ref().map(|at| at.load(Ordering::Acquire));
            let n_posted = self.n_posted();
            if n_posted - position.0 >= self.ring.len() {
                position.0 = n_posted;
                apply(Span::EVERYTHING);
            } else {
                position.0 += 1;
                apply(Span::raw(start, end));
            }
        }
    }

    fn n_posted(&self) -> usize {
        // Acquire: partner is the release in `post`.
        self.word.load(Ordering::Acquire) / POSTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(log: &EventLog, position: &mut Position) -> Vec<Span> {
        let mut events = Vec::new();
        log.read(position, |event| events.push(event));
        events
    }

    #[test]
    fn every_reader_gets_what_is_posted_once() {
        let log = EventLog::new(4);
        let mut readers = [log.position(); 2];
        assert!(!log.has_news(readers[0]));
        log.begin();
        assert!(log.is_busy() && log.has_news(readers[0]));
        assert_eq!(read(&log, &mut readers[0]), []);
        let posted = [1, 2, 3, 4].map(|page| Span::raw(page << 12, page << 13));
        posted.iter().for_each(|span| log.post(*span));
        log.end();
        for reader in &mut readers {
            assert!(!log.is_busy() && log.has_news(*reader));
            assert_eq!(read(&log, reader), posted);
            assert!(!log.has_news(*reader));
        }
        assert!(!log.has_news(log.position()));
    }

    #[test]
    fn overwritten_ranges_make_everything_stale() {
        let log = EventLog::new(2);
        let mut position = log.position();
        (1..4).for_each(|at| log.post(Span::raw(at, at + 1)));
        assert_eq!(read(&log, &mut position), [Span::EVERYTHING]);
        assert!(!log.has_news(position));
        log.post(Span::raw(1, 2));
        assert_eq!(read(&log, &mut position), [Span::raw(1, 2)]);
    }

    /// Beside the writer, a reader gets whole ranges in order, and learns that it missed some.
    #[test]
    fn nothing_is_torn_or_lost_beside_the_writer() {
        const N: usize = 50_000;
        let log = EventLog::new(3);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let mut position = log.position();
                let log = &log;
                scope.spawn(move || {
                    let (mut last, mut missed) = (0, false);
                    while position.0 < N {
                        log.read(&mut position, |span| {
                            if span == Span::EVERYTHING {
                                missed = true;
                                return;
                            }
                            assert_eq!(span.end(), 2 * span.start());
                            assert!(span.start() == last + 1 || missed && span.start() > last);
                            (last, missed) = (span.start(), false);
                        });
                        std::thread::yield_now();
                    }
                    assert!(missed || last == N);
                });
            }
            (1..=N).for_each(|n| log.post(Span::raw(n, 2 * n)));
        });
    }
}
