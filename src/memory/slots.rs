//! The arena of regions: who uses one, whether it is live, and who releases it.
//! Lock free; knows nothing of searching, limits, registrars or events.
//!
//! Slots are allocated once and never freed, so a thread may look at any slot at
//! any time. What it sees counts only after it has *pinned* the slot.
//!
//! One word holds the state, from the low bits: how many leases use the region,
//! whether it is live, how many lookups it has served.
//! ```text
//! free --publish--> live, n users --kill--> dead, n users --last unpin--> free
//!                   live, 0 users --kill or retire--> free
//! ```
//! Users can only be added while the region is live, so exactly one thread sees
//! the step to "not live, no users"; that thread releases the handle.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::interval::Span;

const USER: u64 = 1;
const USERS: u64 = (1 << 23) - 1;
const LIVE: u64 = 1 << 23;
const HIT: u64 = 1 << 24;

/// Marks the end of a [`Chain`].
const NONE: u32 = u32::MAX;

/// One region. A cache line (two on machines that fetch pairs) of its own, so
/// that users of different regions do not disturb each other.
#[repr(align(128))]
#[derive(Debug)]
pub(super) struct Slot<H> {
    state: AtomicU64,
    start: AtomicUsize,
    end: AtomicUsize,
    /// Clock of the table when the region was last used.
    used: AtomicU64,
    /// Next slot of the chain this one waits in; only its releaser uses it.
    next: AtomicU32,
    handle: UnsafeCell<Option<H>>,
}

// SAFETY: the handle is written by `publish` and `take`, whose callers are sole
// owners of the slot, and read through `handle`, whose callers hold a pin; pins
// exist only between publish and take (see the state diagram). So it is shared
// between threads by reference (Sync) and moved between them (Send).
unsafe impl<H: Send + Sync> Sync for Slot<H> {}

impl<H> Slot<H> {
    pub(super) fn free() -> Self {
        Self {
            state: AtomicU64::new(0),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            used: AtomicU64::new(0),
            next: AtomicU32::new(NONE),
            handle: UnsafeCell::new(None),
        }
    }

    /// Makes a free slot a live region with one user.
    ///
    /// # Safety
    /// The slot is free and belongs to the caller alone (it comes from the
    /// table's list of free slots).
    pub(super) unsafe fn publish(&self, span: Span, handle: H, now: u64) {
        // Relaxed: the release store of the state below publishes all of them.
        self.start.store(span.start(), Ordering::Relaxed);
        self.end.store(span.end(), Ordering::Relaxed);
        self.used.store(now, Ordering::Relaxed);
        // SAFETY: the caller is the only one to reach the handle until the store
        // below makes the region live.
        unsafe { *self.handle.get() = Some(handle) };
        // Release: partner is the acquire in `try_pin`.
        self.state.store(LIVE | USER, Ordering::Release);
    }

    /// The range, as far as it can be trusted: exact while pinned, else a hint.
    pub(super) fn covers(&self, span: Span) -> bool {
        // Relaxed: after a pin its acquire ordered these loads; before, it is a hint.
        self.start.load(Ordering::Relaxed) <= span.start()
            && span.end() <= self.end.load(Ordering::Relaxed)
    }

    /// The exact range of a pinned slot, or of one whose releaser asks.
    pub(super) fn span(&self) -> Span {
        // Relaxed: ordered by the pin, or by the step that made the caller releaser.
        Span::raw(self.start.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed))
    }

    /// Becomes a user of the region; fails when it is not live.
    pub(super) fn try_pin(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state & LIVE == 0 || state & USERS == USERS {
                return false;
            }
            // Acquire: partner is the release store in `publish`. Adding to the
            // counters past 2^40 hits wraps off the top and harms nothing else.
            match self.state.compare_exchange_weak(
                state,
                state.wrapping_add(HIT + USER),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(seen) => state = seen,
            }
        }
    }

    /// Ends one use. True: the caller has become the releaser.
    pub(super) fn unpin(&self) -> bool {
        // Release: what this user did with the handle happens before its release;
        // acquire: the last user sees what the others did. Partner: each other.
        let before = self.state.fetch_sub(USER, Ordering::AcqRel);
        debug_assert!(before & USERS != 0, "unpinned once too often");
        before & (LIVE | USERS) == USER
    }

    /// Ends the region's life. True: nobody uses it and the caller is its releaser.
    pub(super) fn kill(&self) -> bool {
        // AcqRel: partner is `unpin` of the users, for the same reason as there.
        let before = self.state.fetch_and(!LIVE, Ordering::AcqRel);
        debug_assert!(before & LIVE != 0, "killed twice");
        before & USERS == 0
    }

    /// Ends the region's life if nobody uses it. True: the caller is its releaser.
    pub(super) fn retire(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & (LIVE | USERS) == LIVE {
            // AcqRel: as in `kill`.
            match self.state.compare_exchange_weak(
                state,
                state & !LIVE,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(seen) => state = seen,
            }
        }
        false
    }

    /// Is anybody using the region? A hint, as it may change at once.
    pub(super) fn in_use(&self) -> bool {
        self.state.load(Ordering::Relaxed) & USERS != 0
    }

    /// Lookups served without the lock or with it, modulo 2^40.
    pub(super) fn hits(&self) -> u64 {
        self.state.load(Ordering::Relaxed) / HIT
    }

    /// Notes the time of use; writes only when it changed, to keep the line shared.
    pub(super) fn touch(&self, now: u64) {
        // Relaxed: only the order of evictions depends on it.
        if self.used.load(Ordering::Relaxed) != now {
            self.used.store(now, Ordering::Relaxed);
        }
    }

    /// Clock of the last use.
    pub(super) fn last_use(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The handle of a pinned region.
    ///
    /// # Safety
    /// The caller holds a pin for as long as the reference lives.
    pub(super) unsafe fn handle(&self) -> &H {
        // SAFETY: while a pin exists nobody publishes or takes, so there are only
        // readers; publish stored a handle before the pin could succeed.
        unsafe { (*self.handle.get()).as_ref() }.expect("a pinned region has a handle")
    }

    /// Takes the handle out of a region that has come to its end, and how often
    /// it was hit; the slot is free afterwards.
    ///
    /// # Safety
    /// The caller is the region's releaser (`unpin`, `kill` or `retire` said so)
    /// and calls this once.
    pub(super) unsafe fn take(&self) -> (H, u64) {
        let hits = self.hits();
        // Relaxed: nobody changes the state of a slot that is neither live nor used.
        self.state.store(0, Ordering::Relaxed);
        // SAFETY: no pin exists and none can be made, so the caller is alone.
        let handle = unsafe { (*self.handle.get()).take() };
        (handle.expect("a region has a handle until it is released"), hits)
    }
}

/// Regions that wait to be released, linked through their slots: collecting them
/// under the lock allocates nothing.
#[derive(Debug)]
#[must_use = "the regions in a chain are to be released outside the lock"]
pub(super) struct Chain {
    first: u32,
}

impl Chain {
    pub(super) fn new() -> Self {
        Self { first: NONE }
    }

    /// Adds a region whose releaser the caller is.
    pub(super) fn push<H>(&mut self, slots: &[Slot<H>], id: u32) {
        // Relaxed: the chain stays with one thread.
        slots[id as usize].next.store(self.first, Ordering::Relaxed);
        self.first = id;
    }

    /// Removes one region.
    pub(super) fn pop<H>(&mut self, slots: &[Slot<H>]) -> Option<u32> {
        let id = self.first;
        if id == NONE {
            return None;
        }
        self.first = slots[id as usize].next.load(Ordering::Relaxed);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_only_becomes_the_releaser() {
        for _ in 0..200 {
            let slot = Slot::free();
            // SAFETY: the slot is new and ours.
            unsafe { slot.publish(Span::raw(1, 2), 7_u64, 0) };
            let releasers = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        while slot.try_pin() {
                            // SAFETY: pinned by the line above, until the next.
                            assert_eq!(unsafe { *slot.handle() }, 7);
                            if slot.unpin() {
                                releasers.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    });
                }
                if slot.unpin() {
                    releasers.fetch_add(1, Ordering::Relaxed);
                }
                if slot.kill() {
                    releasers.fetch_add(1, Ordering::Relaxed);
                }
            });
            assert_eq!(releasers.into_inner(), 1);
        }
    }

    #[test]
    fn a_used_region_is_not_retired() {
        let slot = Slot::free();
        // SAFETY: the slot is new and ours.
        unsafe { slot.publish(Span::raw(1, 2), (), 0) };
        assert!(!slot.retire());
        assert!(!slot.unpin());
        assert!(slot.retire());
        assert!(!slot.try_pin());
    }
}
