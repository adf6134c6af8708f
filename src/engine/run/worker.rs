//! A thread that drives one port or several whenever something is under way on them, and is parked
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
    /// Starts a worker for `ports`, on `core` if one is given. `own_core` says that it may keep
    /// its core busy.
    pub(crate) fn spawn(
        name: String,
        ports: Box<[Arc<Port>]>,
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
            // Whatever a panic leaves half done is given up together with the ports.
            if catch_unwind(AssertUnwindSafe(|| work(&ports, &stopped, own_core))).is_err() {
                ports.iter().for_each(|port| port.worker_panicked());
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

/// Whether a worker has to drive a port: something is under way, and no caller drives it.
fn has_work(port: &Port) -> bool {
    port.hints.is_active() && !port.hints.is_attended()
}

fn work(ports: &[Arc<Port>], stop: &AtomicBool, own_core: bool) {
    let (mut backoff, waits) = (Backoff::new(own_core), Waits::default());
    // Acquire: pairs with the Release in `Worker::drop`.
    while !stop.load(Ordering::Acquire) {
        let (mut has_any, mut has_moved, mut is_wanted) = (false, false, false);
        for port in ports.iter().filter(|port| has_work(port)) {
            has_any = true;
            if port.hints.is_wanted() {
                is_wanted = true;
            } else {
                has_moved |= port.drive();
            }
        }
        if !has_any {
            if !(own_core && looks_out(ports, stop)) {
                sleep(ports);
            }
            backoff.reset();
        } else if has_moved {
            backoff.reset();
        } else if is_wanted {
            std::thread::yield_now();
        } else {
            backoff.idle(&waits);
        }
    }
}

/// Sleeps until somebody wakes it. Whoever puts something under way, or leaves something
/// behind, does.
fn sleep(ports: &[Arc<Port>]) {
    ports.iter().for_each(|port| port.hints.set_parked(true));
    // Again, now that others may have seen that they have to wake this thread.
    if !ports.iter().any(|port| has_work(port)) {
        std::thread::park();
    }
    ports.iter().for_each(|port| port.hints.set_parked(false));
}

/// Waits a moment for something to do; returns whether something has come.
fn looks_out(ports: &[Arc<Port>], stop: &AtomicBool) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..64 {
            // Acquire: see `work`.
            if ports.iter().any(|port| has_work(port)) || stop.load(Ordering::Acquire) {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > LOOK_OUT {
            return false;
        }
    }
}
