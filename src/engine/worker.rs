//! A thread that drives one port whenever something is under way on it, and is parked
//! otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::port::Port;
use super::wait::Waiter;

/// Ends with the value: dropping it waits for the thread.
pub(super) struct Worker {
    stop: Arc<AtomicBool>,
    /// `None` only while being dropped.
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a worker for `port`, on `core` if one is given. `own_core` says that it may keep
    /// its core busy.
    pub(super) fn spawn(
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
            work(&port, &stopped, own_core);
        })?;
        Ok(Worker { stop, thread: Some(thread) })
    }

    /// There may be something to do.
    pub(super) fn wake(&self) {
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
    let mut waiter = Waiter::new(own_core);
    // Acquire: pairs with the Release in `Worker::drop`.
    while !stop.load(Ordering::Acquire) {
        // SeqCst: see `Port::launch`.
        if !port.is_active() || port.n_callers.load(Ordering::SeqCst) > 0 {
            // Whoever puts something under way, or leaves something behind, unparks.
            std::thread::park();
            waiter.progress();
        } else if port.is_wanted() {
            std::thread::yield_now();
        } else if port.drive() {
            waiter.progress();
        } else {
            waiter.idle();
        }
    }
}
