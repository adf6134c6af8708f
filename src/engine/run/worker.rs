//! A thread that drives one or several ports while something is under way on them, and is parked otherwise.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use hopbine_meet::without_signals;

use super::backoff::{Backoff, Waits};
use super::port::Port;
use crate::sync::lock;

/// How long a worker with its own core looks for the next operation before it sleeps: about the time of a wake-up.
const POLL_TIME: Duration = Duration::from_micros(40);

/// A worker thread; dropping the value stops and joins it.
pub(crate) struct Worker {
    stop: Arc<AtomicBool>,
    thread: Thread,
    /// `None` after [`stop`](Worker::stop).
    running: Mutex<Option<JoinHandle<()>>>,
}

impl Worker {
    /// Starts a worker for `ports`, pinned to `core` if one is given. `own_core` says that it may keep its core busy.
    pub(crate) fn spawn(
        name: String,
        ports: Box<[Arc<Port>]>,
        core: Option<usize>,
        own_core: bool,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let run = move || {
            if let Some(id) = core {
                // A core that does not exist is no error: the worker then runs wherever the system puts it.
                core_affinity::set_for_current(core_affinity::CoreId { id });
            }
            // After a panic the ports are given up, with any state that is half updated.
            if catch_unwind(AssertUnwindSafe(|| drive_ports(&ports, &stopped, own_core))).is_err() {
                ports.iter().for_each(|port| port.worker_panicked());
            }
        };
        let running = without_signals(|| std::thread::Builder::new().name(name).spawn(run))?;
        Ok(Worker { stop, thread: running.thread().clone(), running: Mutex::new(Some(running)) })
    }

    /// Wakes the worker: there may be something to do.
    pub(crate) fn wake(&self) {
        self.thread.unpark();
    }

    /// Stops the worker, and returns when its thread has ended.
    pub(crate) fn stop(&self) {
        // Release: pairs with the Acquire in `drive_ports`.
        self.stop.store(true, Ordering::Release);
        self.wake();
        // A worker that panicked has already printed its message.
        let _ = lock(&self.running).take().map(JoinHandle::join);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Whether a worker has to drive a port: something is under way, and no caller drives it.
fn has_work(port: &Port) -> bool {
    port.hints.is_active() && !port.hints.has_caller()
}

fn drive_ports(ports: &[Arc<Port>], stop: &AtomicBool, own_core: bool) {
    let (mut backoff, waits) = (Backoff::new(own_core), Waits::default());
    // Acquire: pairs with the Release in `Worker::stop`.
    while !stop.load(Ordering::Acquire) {
        let (mut has_any, mut has_moved, mut is_lock_wanted) = (false, false, false);
        for port in ports.iter().filter(|port| has_work(port)) {
            has_any = true;
            if port.hints.has_lock_waiters() {
                is_lock_wanted = true;
            } else {
                has_moved |= port.drive();
            }
        }
        if !has_any {
            if !(own_core && polls_for_work(ports, stop)) {
                sleep(ports);
            }
            backoff.reset();
        } else if has_moved {
            backoff.reset();
        } else if is_lock_wanted {
            std::thread::yield_now();
        } else {
            backoff.idle(&waits);
        }
    }
}

/// Parks until another thread wakes the worker: a thread that has started a run, or stops driving with runs left.
fn sleep(ports: &[Arc<Port>]) {
    ports.iter().for_each(|port| port.hints.set_parked(true));
    // Check again, now that other threads can see that they must wake this one.
    if !ports.iter().any(|port| has_work(port)) {
        std::thread::park();
    }
    ports.iter().for_each(|port| port.hints.set_parked(false));
}

/// Polls for work for [`POLL_TIME`]; returns true if there is some, or if the worker must stop.
fn polls_for_work(ports: &[Arc<Port>], stop: &AtomicBool) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..64 {
            // Acquire: see `drive_ports`.
            if ports.iter().any(|port| has_work(port)) || stop.load(Ordering::Acquire) {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > POLL_TIME {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use hopbine_torus::PortId;

    use super::*;
    use crate::engine::Failure;
    use crate::engine::run::polled::Polled;
    use crate::error::Error;

    /// A wire that counts polls of threads that may run on several cores and of threads pinned to one, and panics at
    /// poll number `panics_at`.
    #[derive(Clone)]
    struct Wire {
        polls: Arc<[AtomicUsize; 2]>,
        panics_at: usize,
    }

    impl Wire {
        fn n_polls(&self) -> [usize; 2] {
            [0, 1].map(|which| self.polls[which].load(Ordering::Relaxed))
        }

        fn poll(&self) {
            let is_pinned = core_affinity::get_core_ids().is_some_and(|cores| cores.len() == 1);
            self.polls[usize::from(is_pinned)].fetch_add(1, Ordering::Relaxed);
            assert!(self.n_polls().iter().sum::<usize>() < self.panics_at, "on purpose");
        }
    }

    fn port(panics_at: usize) -> (Arc<Port>, Wire) {
        let wire = Wire { polls: Arc::default(), panics_at };
        let failure = Arc::new(Failure::default());
        let polled = wire.clone();
        let poll = Box::new(move || {
            polled.poll();
            Ok(())
        });
        let endpoint = Box::new(Polled { poll, registry: None });
        (Port::new(3, PortId(1), endpoint, failure, true, None), wire)
    }

    #[track_caller]
    fn wait_until(is_so: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < end, "never");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_worker_polls_on_its_core_while_something_is_under_way_and_else_sleeps() {
        let core = core_affinity::get_core_ids().and_then(|cores| cores.last().copied()).unwrap();
        for own_core in [false, true] {
            let (port, wire) = port(usize::MAX);
            let ports = Box::new([port.clone()]);
            let worker =
                Worker::spawn("worker".to_owned(), ports, Some(core.id), own_core).unwrap();
            for _ in 0..3 {
                wait_until(|| port.hints.is_parked());
                let [_, before] = wire.n_polls();
                port.hints.add_run(true);
                worker.wake();
                wait_until(|| wire.n_polls()[1] > before + 100);
                assert!(!port.hints.is_parked());
                port.hints.remove_run();
            }
            drop(worker);
            let ended = wire.n_polls();
            assert_eq!((ended[0], Arc::strong_count(&port)), (0, 1), "of a thread that has ended");
        }
    }

    #[test]
    fn a_panic_fails_the_rank() {
        let (port, _) = port(5);
        port.hints.add_run(true);
        let worker = Worker::spawn("worker".to_owned(), Box::new([port.clone()]), None, false);
        wait_until(|| port.failure.is_set());
        drop(worker);
        let reason = port.failure.reason();
        assert!(
            matches!(&reason, Some(Error::RankPanicked { rank: 3, message }) if message.contains("port 1")),
            "{reason:?}"
        );
        // Other threads can still take the mutex, which was held during the panic.
        assert!(!port.try_drive() && port.lock_state().has_given_up);
    }
}
