//! The state of a port that threads read without its mutex: its runs, and the threads that drive it or want to.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// See the module documentation.
#[derive(Default)]
pub(crate) struct Hints {
    /// Runs under way. Written under the port's mutex only, so that a load and a store suffice.
    n_active: AtomicU32,
    /// Threads that drive this port while they wait: its worker stands aside.
    n_callers: AtomicU32,
    /// Threads that want the mutex but do not drive: a worker lets them go first, since it would otherwise take the
    /// mutex again right after releasing it.
    n_lock_waiters: AtomicU32,
    /// The worker sleeps.
    is_parked: AtomicBool,
}

impl Hints {
    /// Takes the mutex, by `lock`; meanwhile a worker lets this thread go first.
    pub(super) fn lock_first<G>(&self, lock: impl FnOnce() -> G) -> G {
        // Relaxed: only a hint.
        self.n_lock_waiters.fetch_add(1, Ordering::Relaxed);
        let guard = lock();
        self.n_lock_waiters.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// True if a worker should stay away from the mutex for a moment.
    pub(crate) fn has_lock_waiters(&self) -> bool {
        // Relaxed: see `lock_first`.
        self.n_lock_waiters.load(Ordering::Relaxed) > 0
    }

    /// Notes that another run is under way. Returns whether there were others.
    #[inline]
    pub(super) fn add_run(&self, has_worker: bool) -> bool {
        // The mutex orders the data; this number is for threads without the mutex. SeqCst: a worker that is unparked
        // after this store reads `n_callers`; a caller that stops driving decrements `n_callers` and then reads this
        // number. One of the two must see the other's write, or the worker would park although the caller has
        // stopped.
        let n_others = self.n_active.load(Ordering::Relaxed);
        let ordering = if has_worker { Ordering::SeqCst } else { Ordering::Relaxed };
        self.n_active.store(n_others + 1, ordering);
        n_others > 0
    }

    /// Notes that a run has ended.
    #[inline]
    pub(super) fn remove_run(&self) {
        // Relaxed: a worker that still sees the run takes one more round.
        let n_active = self.n_active.load(Ordering::Relaxed);
        self.n_active.store(n_active - 1, Ordering::Relaxed);
    }

    /// Whether a run is under way.
    pub(crate) fn is_active(&self) -> bool {
        // SeqCst: see `add_run`.
        self.n_active.load(Ordering::SeqCst) > 0
    }

    /// Notes that a thread drives the port, until the value is dropped; the port's worker stands aside.
    pub(crate) fn note_caller(&self) -> CallerGuard<'_> {
        // Relaxed: only makes the worker stand aside; the port's mutex orders the data.
        self.n_callers.fetch_add(1, Ordering::Relaxed);
        CallerGuard(self)
    }

    /// Whether a caller drives the port.
    pub(crate) fn has_caller(&self) -> bool {
        // SeqCst: see `add_run`.
        self.n_callers.load(Ordering::SeqCst) > 0
    }

    /// Notes whether the worker is about to sleep, or awake.
    pub(crate) fn set_parked(&self, is_parked: bool) {
        // Relaxed: only a hint which thread is faster.
        self.is_parked.store(is_parked, Ordering::Relaxed);
    }

    /// Whether the worker sleeps, and so takes long to react.
    pub(crate) fn is_parked(&self) -> bool {
        // Relaxed: see `set_parked`.
        self.is_parked.load(Ordering::Relaxed)
    }
}

/// A thread drives a port while it waits; see [`Hints::note_caller`].
pub(crate) struct CallerGuard<'a>(&'a Hints);

impl Drop for CallerGuard<'_> {
    fn drop(&mut self) {
        // SeqCst: see `Hints::add_run`.
        self.0.n_callers.fetch_sub(1, Ordering::SeqCst);
    }
}
