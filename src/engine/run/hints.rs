//! What is known of a port without its mutex: who drives it, and whether anything is under way.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// See the module documentation.
#[derive(Default)]
pub(crate) struct Hints {
    /// Runs under way. Written under the port's mutex only, so that it can be written in two steps.
    n_active: AtomicU32,
    /// Threads that drive this port while they wait: its worker stands aside.
    n_callers: AtomicU32,
    /// Threads that want the mutex but do not drive: a worker lets them go first, since it
    /// would otherwise take the mutex again as soon as it has given it up.
    n_wanted: AtomicU32,
    /// The worker sleeps.
    is_parked: AtomicBool,
}

impl Hints {
    /// Takes the mutex, by `lock`, while a worker lets this thread go first.
    pub(super) fn wanting<G>(&self, lock: impl FnOnce() -> G) -> G {
        // Relaxed: a wish, not a promise.
        self.n_wanted.fetch_add(1, Ordering::Relaxed);
        let guard = lock();
        self.n_wanted.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// True if a worker should stay away from the mutex for a moment.
    pub(crate) fn is_wanted(&self) -> bool {
        // Relaxed: see `wanting`.
        self.n_wanted.load(Ordering::Relaxed) > 0
    }

    /// Another run is under way. Returns whether others were.
    #[inline]
    pub(super) fn add_run(&self, has_worker: bool) -> bool {
        // The mutex orders the data; this is for those who look without it. SeqCst: a worker
        // that is unparked after this looks at `n_callers`, a caller that leaves lowers that
        // and then looks here. One of the two must see what the other has written, or the
        // worker would park and the caller leave.
        let n_others = self.n_active.load(Ordering::Relaxed);
        let ordering = if has_worker { Ordering::SeqCst } else { Ordering::Relaxed };
        self.n_active.store(n_others + 1, ordering);
        n_others > 0
    }

    /// A run has ended.
    #[inline]
    pub(super) fn remove_run(&self) {
        // Relaxed: seeing a run that is gone costs a worker one more round.
        let n_active = self.n_active.load(Ordering::Relaxed);
        self.n_active.store(n_active - 1, Ordering::Relaxed);
    }

    /// Whether a run is under way.
    pub(crate) fn is_active(&self) -> bool {
        // SeqCst: see `add_run`.
        self.n_active.load(Ordering::SeqCst) > 0
    }

    /// A thread drives the port as long as the value lives; its worker stands aside.
    pub(crate) fn attend(&self) -> Attending<'_> {
        // Relaxed: only tells the worker to stand aside; the port's mutex does the rest.
        self.n_callers.fetch_add(1, Ordering::Relaxed);
        Attending(self)
    }

    /// Whether a caller drives the port.
    pub(crate) fn is_attended(&self) -> bool {
        // SeqCst: see `add_run`.
        self.n_callers.load(Ordering::SeqCst) > 0
    }

    /// The worker is about to sleep, or awake again.
    pub(crate) fn set_parked(&self, is_parked: bool) {
        // Relaxed: a hint about who is faster.
        self.is_parked.store(is_parked, Ordering::Relaxed);
    }

    /// Whether it takes the worker long to come.
    pub(crate) fn is_parked(&self) -> bool {
        // Relaxed: see `set_parked`.
        self.is_parked.load(Ordering::Relaxed)
    }
}

/// A thread drives a port while it waits; see [`Hints::attend`].
pub(crate) struct Attending<'a>(&'a Hints);

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        // SeqCst: see `Hints::add_run`.
        self.0.n_callers.fetch_sub(1, Ordering::SeqCst);
    }
}
