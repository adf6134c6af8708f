//! The late device of a job: it keeps the operations under way and performs each stage when it is due, on a thread of
//! its own or when the owner of the job steps it.

use crate::job::stepping::StepEvent;
use crate::shared::registrations::StagTable;
use crate::timing::host_now;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hopbine_meet::without_signals;

/// An operation under way.
pub(crate) trait PendingOp: Send {
    /// Returns the rank that has posted the operation.
    fn rank(&self) -> usize;

    /// Returns the next stage, which is due at time `at`, in ns.
    fn next_stage(&self, at: u64) -> StepEvent;

    /// Performs the next stage. Returns the operation, and the time in ns at which the stage after it is due; `None`
    /// after the last stage.
    fn advance(self: Box<Self>) -> Option<(u64, Box<dyn PendingOp>)>;

    /// Drops the operation, which leaves no completion and no notice.
    fn retire(&self);

    /// Checked mode: returns the write that the operation has still to perform at its target.
    fn pending_write(&self) -> Option<&PendingWrite>;

    /// Checked mode: returns whether the operation needs the registration of `stadd` in `table`.
    fn needs(&self, table: &StagTable, stadd: u64) -> bool;
}

/// Checked mode: the data that a put writes, and their destination.
pub(crate) struct PendingWrite {
    /// The rank that has posted the put.
    pub(crate) rank: usize,
    /// Ids of the source's and the target's VCQ.
    pub(crate) vcqs: (u64, u64),
    /// Whether the put is strongly ordered behind others between the same VCQs.
    pub(crate) is_strong: bool,
    /// Rank that owns the memory.
    pub(crate) owner: u32,
    pub(crate) addr: u64,
    pub(crate) len: u64,
    /// STADD in the put.
    pub(crate) stadd: u64,
    /// Checksum of the bytes.
    pub(crate) sum: Option<u64>,
}

#[derive(Default)]
struct Queue {
    /// Keys: the time in ns of an operation's next stage, and the number of its insertion.
    pending: BTreeMap<(u64, u64), Box<dyn PendingOp>>,
    count: u64,
    is_over: bool,
}

impl Queue {
    fn insert(&mut self, due: u64, op: Box<dyn PendingOp>) {
        self.count += 1;
        self.pending.insert((due, self.count), op);
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device of a job; if the ranks are processes, of one process.
pub(crate) struct Device {
    shared: Arc<(Mutex<Queue>, Condvar)>,
}

impl Device {
    /// Creates a device with a thread, or one that is [stepped](Device::step).
    pub(crate) fn new(has_thread: bool) -> std::io::Result<Device> {
        let shared = Arc::<(Mutex<Queue>, Condvar)>::default();
        if has_thread {
            let queue = shared.clone();
            let thread = std::thread::Builder::new().name("late device".into());
            without_signals(|| thread.spawn(move || run(&queue)))?;
        }
        Ok(Device { shared })
    }

    /// Returns the time in ns at which the next stage is due.
    pub(crate) fn due(&self) -> Option<u64> {
        held(&self.shared.0).pending.first_key_value().map(|((due, _), _)| *due)
    }

    /// Performs the next stage, if it is due by `now`.
    pub(crate) fn step(&self, now: u64) -> Option<StepEvent> {
        let mut queue = held(&self.shared.0);
        let entry = queue.pending.first_entry().filter(|entry| entry.key().0 <= now)?;
        let (at, op) = (entry.key().0, entry.remove());
        drop(queue);
        let stepped = op.next_stage(at);
        if let Some((due, op)) = op.advance() {
            held(&self.shared.0).insert(due, op);
        }
        Some(stepped)
    }

    /// Drops the operations under way that a rank has posted.
    pub(crate) fn cancel(&self, rank: usize) {
        held(&self.shared.0).pending.retain(|_, op| {
            let keep = op.rank() != rank;
            if !keep {
                op.retire();
            }
            keep
        });
    }

    /// Queues an operation whose first stage is due at time `due`. First calls `check` for each operation under way,
    /// with that operation and the new one.
    pub(crate) fn post(
        &self,
        due: u64,
        op: Box<dyn PendingOp>,
        check: impl Fn(&dyn PendingOp, &dyn PendingOp),
    ) {
        let mut queue = held(&self.shared.0);
        queue.pending.values().for_each(|old| check(&**old, &*op));
        queue.insert(due, op);
        drop(queue);
        self.shared.1.notify_one();
    }

    /// Calls `f` for each operation under way.
    pub(crate) fn for_each(&self, f: impl FnMut(&dyn PendingOp)) {
        held(&self.shared.0).pending.values().map(|op| &**op).for_each(f);
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        held(&self.shared.0).is_over = true;
        self.shared.1.notify_one();
    }
}

/// Body of the device's thread: takes operations that are due, performs a stage and queues them for their next one.
fn run((mutex, wake): &(Mutex<Queue>, Condvar)) {
    let mut queue = held(mutex);
    while !queue.is_over {
        let Some(entry) = queue.pending.first_entry() else {
            queue = wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let wait = entry.key().0.saturating_sub(host_now());
        if wait > 0 {
            let wait = Duration::from_nanos(wait);
            queue = wake.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        let op = entry.remove();
        drop(queue);
        let next = op.advance();
        queue = held(mutex);
        if let Some((due, op)) = next {
            queue.insert(due, op);
        }
    }
}
