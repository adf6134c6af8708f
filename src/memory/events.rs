//! Memory events: how caches learn that a range has lost its pages.
//!
//! An [`EventSource`] appends such ranges to its [`EventLog`], a ring that all caches read, each from its own
//! position. The announcing thread may be inside any code (`free`, a signal handler), so it takes no lock, waits for
//! no thread, allocates nothing and frees nothing. A cache reads the log in its next lookup; if the ring has wrapped
//! since, the cache treats all its regions as stale, which is correct and slow.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::span::Span;
use super::stats::CacheMode;

/// Longest time to wait for the announcement of an unmapping; after that, lookups find nothing.
pub(crate) const PATIENCE: Duration = Duration::from_millis(200);
/// Added to the word during an announcement.
const BUSY: usize = 1;
/// Added to the word for each posted range.
const POSTED: usize = 2;

/// Announces when memory loses its pages: unmapped, moved, replaced or discarded.
///
/// A source must announce a range **before the call that takes the memory away returns** to the thread that made it:
/// it either posts the range at once, or calls [`EventLog::begin`] before that thread can continue, and
/// [`EventLog::end`] once the range is posted.
pub trait EventSource: std::fmt::Debug + Send + Sync {
    /// Name for statistics.
    fn name(&self) -> &'static str;

    /// The mode of caches with this source, for statistics.
    fn mode(&self) -> CacheMode {
        CacheMode::Events { source: self.name() }
    }

    /// The log of all events. The holder of a reference is a listener, until it drops the reference.
    fn log(&self) -> Arc<EventLog>;

    /// Starts announcing events of this range (whole pages). The caller guarantees that the memory stays mapped
    /// during this call.
    ///
    /// # Errors
    /// The system's error for memory that cannot be watched; its registration is then not kept.
    fn watch(&self, span: Span) -> io::Result<()>;

    /// Declares that the caller, which is one listener, needs no more events of this range. The source may still
    /// announce them, which is harmless. Ranges that other listeners watch stay watched.
    fn unwatch(&self, span: Span);

    /// False while memory has been taken away and its range is not announced yet. A source that announces *before*
    /// the memory is taken away always returns true.
    fn settled(&self) -> bool;

    /// Waits a little for an announcement in progress, for a caller that needs all announcements. The first call
    /// stores its time in `began`. False if the wait takes too long.
    fn wait(&self, began: &mut Option<Instant>) -> bool {
        if began.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return false;
        }
        std::thread::yield_now();
        true
    }
}

/// The latest ranges that lost their memory. One thread at a time writes; any number of threads read.
#[derive(Debug)]
pub struct EventLog {
    /// Number of ranges posted so far, and whether an announcement is in progress. A lookup without news reads
    /// nothing else.
    word: AtomicUsize,
    /// Start and end of range `n`, at index `n` modulo the length.
    ring: Box<[[AtomicUsize; 2]]>,
}

/// The position up to which a cache has read the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position(usize);

impl EventLog {
    /// A log that keeps the latest `capacity` ranges.
    pub fn new(capacity: usize) -> Self {
        // One more: the slot that is written next cannot be read.
        let ring = (0..=capacity).map(|_| Default::default()).collect();
        EventLog { word: AtomicUsize::new(0), ring }
    }

    /// Announces that ranges will be posted before [`EventLog::end`]; threads that settle wait for that. One
    /// announcement is in progress at a time, of any number of ranges.
    pub fn begin(&self) {
        // AcqRel: release, so that this precedes the action that lets the unmapping thread continue; pairs with the
        // acquire in `has_news`.
        self.word.fetch_add(BUSY, Ordering::AcqRel);
    }

    /// Ends the announcement that [`EventLog::begin`] began.
    pub fn end(&self) {
        // Release: a thread that sees the new word also sees the posts before; pairs with the acquire in `is_busy`.
        self.word.fetch_sub(BUSY, Ordering::Release);
    }

    /// Posts a range that has lost its memory. Never blocks and never allocates.
    pub fn post(&self, span: Span) {
        let [start, end] = &self.ring[self.n_posted() % self.ring.len()];
        // Release: a reader of the new range also sees that the slot was due to be overwritten; pairs with the
        // acquires in `read`.
        start.store(span.start(), Ordering::Release);
        end.store(span.end(), Ordering::Release);
        // Release: publishes the range; pairs with the acquires in `has_news` and `read`.
        self.word.fetch_add(POSTED, Ordering::Release);
    }

    /// The position after all ranges that have been posted.
    pub(super) fn position(&self) -> Position {
        Position(self.n_posted())
    }

    /// Whether ranges were posted after a position, or are about to be. If false, the caller sees the effects of
    /// every event that happened before this call.
    pub(super) fn has_news(&self, position: Position) -> bool {
        // Acquire: pairs with the release in `begin` and `post`.
        self.word.load(Ordering::Acquire) != position.0 * POSTED
    }

    /// Whether an announcement is in progress, whose range may not be posted yet.
    pub(super) fn is_busy(&self) -> bool {
        // Acquire: pairs with the release in `end`.
        self.word.load(Ordering::Acquire) & BUSY != 0
    }

    /// Calls `apply` with each range posted after `position`, and moves `position` to the end. If some of the ranges
    /// have been overwritten, calls it with [`Span::EVERYTHING`].
    pub(super) fn read(&self, position: &mut Position, mut apply: impl FnMut(Span)) {
        while position.0 != self.n_posted() {
            let slot = &self.ring[position.0 % self.ring.len()];
            // Acquire: if this reads a later range, the number of posts below includes it.
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
        // Acquire: pairs with the release in `post`.
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

    /// Concurrently with the writer, a reader gets whole ranges in order, and learns that it has missed some.
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
