//! A rank's way out of its coroutine: it pauses, and others run.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use corosensei::Yielder;

use crate::Rank;
use crate::endpoint::Clock;

use super::net::{Life, Net, NetState};
use super::trace::TraceStep;

thread_local! {
    /// The clock of the rank whose coroutine runs in this thread; null if none does.
    static RUNNING: Cell<*const RankClock> = const { Cell::new(ptr::null()) };
}

/// The clock of one rank; see the module documentation.
#[derive(Debug)]
pub(super) struct RankClock {
    net: Arc<Net>,
    rank: Rank,
    /// Time 0. Nothing depends on when that was.
    start: Instant,
    /// What gives up the rank's coroutine; valid while that runs.
    yielder: AtomicPtr<Yielder<(), ()>>,
}

impl RankClock {
    pub(super) fn new(net: Arc<Net>, rank: Rank) -> Self {
        RankClock { net, rank, start: Instant::now(), yielder: AtomicPtr::default() }
    }

    /// An operation of this rank on the wire begins: some time passes, in which other things happen,
    /// perhaps also to this rank. Then nothing else happens while the guard lives.
    pub(super) fn enter<'a>(&self, net: &'a Net) -> MutexGuard<'a, NetState> {
        loop {
            let mut core = net.lock();
            core.pass_time();
            core.run_due();
            let is_held = core.life(self.rank) != Life::Alive;
            let away = match core.is_over() {
                true => None,
                false if is_held => Some(0),
                false => core.preempted(),
            };
            let Some(away) = away else { return core };
            drop(core);
            // In the middle of whatever it does.
            self.pause(Duration::from_nanos(away));
            // What has happened meanwhile may be news to it: its next wait does not begin without a look.
            net.lock().wake(self.rank);
        }
    }

    /// Runs the rank's program in its coroutine.
    pub(super) fn within(&self, yielder: &Yielder<(), ()>, program: impl FnOnce()) {
        // Relaxed: one thread alone.
        self.yielder.store(NonNull::from(yielder).as_ptr(), Ordering::Relaxed);
        program();
        self.net.lock().end(self.rank);
    }

    /// Calls `resume`, which runs the rank's coroutine until that pauses or ends, also by a panic.
    pub(super) fn runs_in(&self, resume: impl FnOnce()) {
        struct Restored(*const RankClock);
        impl Drop for Restored {
            fn drop(&mut self) {
                RUNNING.set(self.0);
            }
        }
        // Not always null: a rank's program may run a simulation.
        let _restored = Restored(RUNNING.replace(self));
        resume();
    }
}

impl Clock for RankClock {
    fn now(&self) -> Instant {
        self.start + self.elapsed()
    }

    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.net.lock().now())
    }

    fn pause(&self, longest: Duration) {
        assert!(
            ptr::eq(RUNNING.get(), self),
            "a simulated rank waits only while its own program runs"
        );
        self.net.lock().pause(self.rank, longest.as_nanos() as u64);
        // Relaxed: as above.
        let yielder = self.yielder.load(Ordering::Relaxed);
        // SAFETY: `within` has stored it, and the coroutine that it belongs to runs here, as `RUNNING` says.
        unsafe { (*yielder).suspend(()) };
    }

    fn warn(&self, text: &str) {
        self.net.lock().note(self.rank, TraceStep::Says(text.to_owned()));
    }
}
