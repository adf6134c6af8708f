//! A thread that drives one port whenever something is under way on it, and is parked
//! otherwise.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::backoff::{Backoff, Waits};
use super::port::Port;

/// How long a worker with a core of its own looks out for the next operation before it sleeps:
/// about what waking it up takes.
const LOOK_OUT: Duration = Duration::from_micros(40);

/// Ends with the value: dropping it waits for the thread.
pub(crate) struct Worker {
    stop: Arc<AtomicBool>,
    /// `None` only while being dropped.
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a worker for `port`, on `core` if one is given. `own_core` says that it may keep
    /// its core busy.
    pub(crate) fn spawn(
        name: String,
        port: Arc<Port>,
        core: Option<usize>,
        own_core: bool,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            if let Some(id) = core {
                // A core that is not there is no reason to fail: the worker then runs
                // wherever the system puts it.
                core_affinity::set_for_current(core_affinity::CoreId { id });
            }
            // Whatever a panic leaves half done is given up together with the port.
            if catch_unwind(AssertUnwindSafe(|| work(&port, &stopped, own_core))).is_err() {
                port.worker_panicked();
            }
        })?;
        Ok(Worker { stop, thread: Some(thread) })
    }

    /// There may be something to do.
    pub(crate) fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `work`.
        self.stop.store(true, Ordering::Release);
        self.wake();
        // A worker that panicked has already printed its message.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn work(port: &Port, stop: &AtomicBool, own_core: bool) {
    let (mut backoff, waits) = (Backoff::new(own_core), Waits::default());
    // Acquire: pairs with the Release in `Worker::drop`.
    while !stop.load(Ordering::Acquire) {
        if !port.hints.is_active() || port.hints.is_attended() {
            if !(own_core && looks_out(port, stop)) {
                sleep(port);
            }
            backoff.reset();
        } else if port.hints.is_wanted() {
            std::thread::yield_now();
        } else if port.drive() {
            backoff.reset();
        } else {
            backoff.idle(&waits);
        }
    }
}

/// Sleeps until somebody wakes it. Whoever puts something under way, or leaves something
/// behind, does.
fn sleep(port: &Port) {
    port.hints.set_parked(true);
    // Again, now that others may have seen that they have to wake this thread.
    if !port.hints.is_active() || port.hints.is_attended() {
        std::thread::park();
    }
    port.hints.set_parked(false);
}

/// Waits a moment for something to do; returns whether something has come.
fn looks_out(port: &Port, stop: &AtomicBool) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..64 {
            // Acquire: see `work`.
            if (port.hints.is_active() && !port.hints.is_attended()) || stop.load(Ordering::Acquire)
            {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > LOOK_OUT {
            return false;
        }
    }
}
