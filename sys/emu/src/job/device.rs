//! The late device of a job: operations under way, whose stages are done when they are due, by a thread or as
//! the owner of the job steps them.

use crate::job::stepping::Stepped;
use crate::shared::registrations::StagTable;
use crate::timing::host_now;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An operation under way.
pub(crate) trait Flight: Send {
    /// The rank that has posted it.
    fn rank(&self) -> usize;

    /// What its next stage is, which is due `at` this time.
    fn next_stage(&self, at: u64) -> Stepped;

    /// Does the next stage; when the one after it is due, if there is one.
    fn go_on(self: Box<Self>) -> Option<(u64, Box<dyn Flight>)>;

    /// It ends without a trace.
    fn forget(&self);

    /// Checked mode: what it has still to write to its target.
    fn writing(&self) -> Option<&Writing>;

    /// Checked mode: whether it needs what is registered under `stadd` in `table`.
    fn needs(&self, table: &StagTable, stadd: u64) -> bool;
}

/// Checked mode: what a put writes, and where.
pub(crate) struct Writing {
    /// The rank that has posted it.
    pub(crate) rank: usize,
    /// Ids of the VCQs that it goes from and to.
    pub(crate) vcqs: (u64, u64),
    /// Whether it keeps its order behind others between the same VCQs.
    pub(crate) is_strong: bool,
    /// The rank whose memory it is.
    pub(crate) owner: u32,
    pub(crate) addr: u64,
    pub(crate) len: u64,
    /// The STADD that it names.
    pub(crate) stadd: u64,
    /// A number that changes with its bytes.
    pub(crate) sum: Option<u64>,
}

#[derive(Default)]
struct Queue {
    /// By the time of their next stage, and in the order in which they came.
    flights: BTreeMap<(u64, u64), Box<dyn Flight>>,
    count: u64,
    is_over: bool,
}

impl Queue {
    fn insert(&mut self, due: u64, flight: Box<dyn Flight>) {
        self.count += 1;
        self.flights.insert((due, self.count), flight);
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device of a job; of one process if the ranks are processes.
pub(crate) struct Device {
    shared: Arc<(Mutex<Queue>, Condvar)>,
}

impl Device {
    /// A device with a thread, or one that is [stepped](Device::step).
    pub(crate) fn new(has_thread: bool) -> std::io::Result<Device> {
        let shared = Arc::<(Mutex<Queue>, Condvar)>::default();
        if has_thread {
            let queue = shared.clone();
            std::thread::Builder::new().name("late device".into()).spawn(move || run(&queue))?;
        }
        Ok(Device { shared })
    }

    /// When the next stage is due.
    pub(crate) fn due(&self) -> Option<u64> {
        held(&self.shared.0).flights.first_key_value().map(|((due, _), _)| *due)
    }

    /// Does the next stage, if it is due by `now`.
    pub(crate) fn step(&self, now: u64) -> Option<Stepped> {
        let mut queue = held(&self.shared.0);
        let entry = queue.flights.first_entry().filter(|entry| entry.key().0 <= now)?;
        let (at, flight) = (entry.key().0, entry.remove());
        drop(queue);
        let stepped = flight.next_stage(at);
        if let Some((due, flight)) = flight.go_on() {
            held(&self.shared.0).insert(due, flight);
        }
        Some(stepped)
    }

    /// What a rank has under way ends without a trace.
    pub(crate) fn forget(&self, rank: usize) {
        held(&self.shared.0).flights.retain(|_, flight| {
            let stays = flight.rank() != rank;
            if !stays {
                flight.forget();
            }
            stays
        });
    }

    /// Queues an operation whose first stage is due then; before that calls `check` with each that is under
    /// way.
    pub(crate) fn post(
        &self,
        due: u64,
        flight: Box<dyn Flight>,
        check: impl Fn(&dyn Flight, &dyn Flight),
    ) {
        let mut queue = held(&self.shared.0);
        queue.flights.values().for_each(|old| check(&**old, &*flight));
        queue.insert(due, flight);
        drop(queue);
        self.shared.1.notify_one();
    }

    /// Calls `f` with each operation under way.
    pub(crate) fn for_each(&self, f: impl FnMut(&dyn Flight)) {
        held(&self.shared.0).flights.values().map(|flight| &**flight).for_each(f);
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        held(&self.shared.0).is_over = true;
        self.shared.1.notify_one();
    }
}

/// The device's thread: takes operations that are due and puts them back for their next stage.
fn run((mutex, wake): &(Mutex<Queue>, Condvar)) {
    let mut queue = held(mutex);
    while !queue.is_over {
        let Some(entry) = queue.flights.first_entry() else {
            queue = wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let wait = entry.key().0.saturating_sub(host_now());
        if wait > 0 {
            let wait = Duration::from_nanos(wait);
            queue = wake.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        let flight = entry.remove();
        drop(queue);
        let next = flight.go_on();
        queue = held(mutex);
        if let Some((due, flight)) = next {
            queue.insert(due, flight);
        }
    }
}
