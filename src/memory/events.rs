//! Memory events: how a cache learns that a range loses its pages.
//!
//! An [`EventSource`] announces ranges in [`EventQueue`]s, one per cache. The announcing thread may
//! be in the midst of anything (`free`, a signal handler, a monitor), so it takes no lock, allocates
//! nothing and releases nothing: it appends to a bounded queue and leaves. The next lookup drains
//! the queue. When the queue is full, everything is declared stale, which is correct and slow.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::span::Span;
use crossbeam_queue::ArrayQueue;

/// Set in the word: ranges wait to be drained.
const DIRTY: usize = 1;
/// Set in the word: ranges were lost.
const LOST: usize = 2;
/// Added to the word by each announcement that is under way.
const BUSY: usize = 4;

/// Announces when memory loses its pages: unmapped, moved, replaced or discarded.
///
/// A source must announce a range **before the call that takes the memory away returns** to the
/// thread that made it: either post at once, or call [`EventQueue::begin`] before that thread can go
/// on, and [`EventQueue::end`] once the range is posted.
pub trait EventSource: std::fmt::Debug + Send + Sync {
    /// Name for statistics.
    fn name(&self) -> &'static str;

    /// A queue in which all events from now on are announced, until it is dropped; `None` if the
    /// source serves no more caches.
    fn subscribe(&self) -> Option<Arc<EventQueue>>;

    /// From now on events of this range (whole pages) are announced. The caller vouches that the
    /// memory stays during this call.
    ///
    /// # Errors
    /// What the system says of memory that cannot be watched; its registration is then not kept.
    fn watch(&self, span: Span) -> io::Result<()>;

    /// The caller, who has one queue, needs no more events of this range. The source may go on
    /// announcing them, which is harmless. What others watch stays watched.
    fn unwatch(&self, span: Span);

    /// False while memory has been taken away somewhere and that is not announced yet. A source
    /// that announces *before* the memory goes always says true.
    fn settled(&self) -> bool;
}

/// Bounded queue of ranges that lost their memory; many announce, one drains.
#[derive(Debug)]
pub struct EventQueue {
    /// Zero exactly when no range waits and no announcement is under way. A lookup reads
    /// nothing else.
    word: AtomicUsize,
    ranges: ArrayQueue<Span>,
}

impl EventQueue {
    /// A queue for `capacity` ranges.
    ///
    /// # Panics
    /// When the capacity is zero.
    pub fn new(capacity: usize) -> Self {
        Self { word: AtomicUsize::new(0), ranges: ArrayQueue::new(capacity) }
    }

    /// Announces that an event is about to be posted: lookups wait until
    /// [`EventQueue::end`]. Calls may nest and overlap.
    pub fn begin(&self) {
        // AcqRel: release, so that whatever lets the unmapping thread go on is preceded by this;
        // partner is the acquire in `is_quiet`.
        self.word.fetch_add(BUSY, Ordering::AcqRel);
    }

    /// Ends what [`EventQueue::begin`] began.
    pub fn end(&self) {
        // Release: who sees the word go down sees the posts before; partner is the acquire in
        // `is_quiet`.
        self.word.fetch_sub(BUSY, Ordering::Release);
    }

    /// Posts a range that has lost its memory. Never blocks and never allocates.
    pub fn post(&self, span: Span) {
        let marks = if self.ranges.push(span).is_ok() { DIRTY } else { DIRTY | LOST };
        // Release: publishes the range; partners are the acquires in `is_quiet` and `drain`.
        self.word.fetch_or(marks, Ordering::Release);
    }

    /// Whether no range waits and no announcement is under way. After true the caller sees
    /// the effects of every event that happened before this call.
    pub fn is_quiet(&self) -> bool {
        // Acquire: partner is the release in `end` and `post`.
        self.word.load(Ordering::Acquire) == 0
    }

    /// Whether an announcement is under way: its range may not be posted yet.
    pub(super) fn is_busy(&self) -> bool {
        // Acquire: partner is the release in `end`.
        self.word.load(Ordering::Acquire) >= BUSY
    }

    /// Empties the queue into `apply`: ranges that lost their memory, everything if some were lost
    /// from the queue. One thread at a time: the owner of the cache.
    pub(super) fn drain(&self, mut apply: impl FnMut(Span)) {
        // The marks go before the ranges are taken: a post in between sets them anew.
        // AcqRel: acquire, partner is the release in `post`.
        if self.word.fetch_and(!(DIRTY | LOST), Ordering::AcqRel) & LOST != 0 {
            apply(Span::EVERYTHING);
        }
        while let Some(span) = self.ranges.pop() {
            apply(span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(queue: &EventQueue) -> Vec<Span> {
        let mut events = Vec::new();
        queue.drain(|event| events.push(event));
        events
    }

    #[test]
    fn what_is_posted_is_drained_once_and_announced_is_not_quiet() {
        let queue = EventQueue::new(4);
        assert!(queue.is_quiet());
        queue.begin();
        assert!(queue.is_busy() && !queue.is_quiet());
        let posted = [Span::raw(4096, 8192), Span::raw(16384, 16385)];
        posted.iter().for_each(|span| queue.post(*span));
        queue.end();
        assert!(!queue.is_busy() && !queue.is_quiet());
        assert_eq!(drained(&queue), posted);
        assert!(queue.is_quiet());
        assert_eq!(drained(&queue), []);
    }

    #[test]
    fn overflow_makes_everything_stale() {
        let queue = EventQueue::new(2);
        (1..6).for_each(|at| queue.post(Span::raw(at, at + 1)));
        assert_eq!(drained(&queue)[0], Span::EVERYTHING);
        assert!(queue.is_quiet());
        queue.post(Span::raw(1, 2));
        assert_eq!(drained(&queue), [Span::raw(1, 2)]);
    }
}
