//! A rank's way out of its coroutine: it pauses, and others run.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use corosensei::Yielder;

use crate::Rank;
use crate::endpoint::Clock;

use super::net::{Core, Life, Net};
use super::trace::TraceStep;

/// The clock of one rank; see the module documentation.
#[derive(Debug)]
pub(super) struct RankClock {
    net: Arc<Net>,
    rank: Rank,
    /// Time 0. Nothing depends on when that was.
    start: Instant,
    /// What gives up the rank's coroutine, as long as that runs.
    yielder: AtomicPtr<Yielder<(), ()>>,
    thread: OnceLock<ThreadId>,
}

impl RankClock {
    pub(super) fn new(net: Arc<Net>, rank: Rank) -> Self {
        let yielder = AtomicPtr::new(std::ptr::null_mut());
        RankClock { net, rank, start: Instant::now(), yielder, thread: OnceLock::new() }
    }

    /// An operation of this rank on the wire begins: some time passes, in which other things happen,
    /// perhaps also to this rank. Then nothing else happens while the guard lives.
    pub(super) fn enter<'a>(&self, net: &'a Net) -> MutexGuard<'a, Core> {
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
        let _ = self.thread.set(std::thread::current().id());
        program();
        self.yielder.store(std::ptr::null_mut(), Ordering::Relaxed);
        self.net.lock().end(self.rank);
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
        // Relaxed: as above.
        let yielder = self.yielder.load(Ordering::Relaxed);
        let is_here = self.thread.get() == Some(&std::thread::current().id());
        assert!(
            !yielder.is_null() && is_here,
            "a simulated rank waits in its own thread only, while its program runs"
        );
        self.net.lock().pause(self.rank, longest.as_nanos() as u64);
        // SAFETY: `within` has stored it, and takes it back before it is gone; whoever runs here runs in
        // the coroutine that it belongs to, as only that calls into this rank.
        unsafe { (*yielder).suspend(()) };
    }

    fn warn(&self, text: &str) {
        self.net.lock().note(self.rank, TraceStep::Says(text.to_owned()));
    }
}
