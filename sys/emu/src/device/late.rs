//! The late mode: a device that does everything as late as it may, by a thread of its own, or as its
//! owner steps it ([`crate::stepped`]).
//!
//! A post only queues an operation. Later, at times drawn from a seed, the device reads the source,
//! and the completion shows in the TCQ; later still it writes to the target, and the notice shows
//! there; and then the sender's own notice. So whoever reuses a source before its completion, reads
//! a target before its notice, deregisters too early, or leans on an order that only STRONG_ORDER
//! promises, fails here as on Tofu.
//!
//! The checked mode ([`crate::checked`]) ends the process with a message when puts overlap, a source
//! changes before it is read, or memory is deregistered while an operation still needs it. It knows only
//! the operations of its own process.

use crate::checked::{self, Place, source_sum, sum_of, target_of};
use crate::copy::{self, Space};
use crate::desc::{Action, Op};
use crate::ids::{STAG_AT, without_path};
use crate::job::{Context, Job};
use crate::model::Times;
use crate::mrq::Recent;
use crate::ops::{self, Outcome};
use crate::session;
use crate::stepped::{self, Stepped, host_now};
use crate::sync::{AtomicU64, Ordering};
use crate::targets::{self, Target};
use crate::vcq::{Order, Origin, Vcq};
use crate::watched::Sequence;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_int;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use utofu_sys::*;

/// What a VCQ and the device's thread share.
#[derive(Default)]
pub(crate) struct LateVcq {
    /// Codes of operations that were sent, in the order of their posts.
    completions: Mutex<VecDeque<c_int>>,
    in_flight: AtomicUsize,
    /// Operations whose local notice, if any, is in the queue.
    pub(crate) local_done: AtomicU64,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LateVcq {
    /// The code of the next operation that was sent.
    pub(crate) fn completion(&self) -> Option<c_int> {
        held(&self.completions).pop_front()
    }

    /// Waits until nothing that was posted is under way.
    pub(crate) fn flush(&self, job: &Job) {
        // Acquire pairs with the Release of the thread: what it did is over.
        while self.in_flight.load(Ordering::Acquire) > 0 {
            match &job.stepping {
                None => std::thread::sleep(Duration::from_micros(50)),
                Some(_) => drop(job.due().and_then(|due| job.step(due))),
            }
        }
    }
}

/// The next stage of an operation.
enum Stage {
    Send,
    Arrive,
    Finish(Outcome),
}

/// An operation under way.
struct Flight {
    origin: Origin,
    shared: Arc<LateVcq>,
    op: Op,
    times: Times,
    stage: Stage,
    /// The bytes that were read and not yet written.
    data: Vec<u8>,
    /// Checked mode: what a put's source held when it was posted.
    posted: Option<u64>,
    /// Checked mode: where a put writes.
    place: Option<Place>,
}

#[derive(Default)]
struct Queue {
    /// By the time of their next stage, and in the order in which they came.
    flights: BTreeMap<(u64, u64), Flight>,
    count: u64,
    is_over: bool,
}

impl Queue {
    fn insert(&mut self, due: u64, flight: Flight) {
        self.count += 1;
        self.flights.insert((due, self.count), flight);
    }
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
        let stepped = flight.told(at);
        if let Some((due, flight)) = flight.go_on() {
            held(&self.shared.0).insert(due, flight);
        }
        Some(stepped)
    }

    /// What a rank has under way ends without a trace.
    pub(crate) fn forget(&self, rank: usize) {
        held(&self.shared.0).flights.retain(|_, flight| {
            let stays = flight.origin.context.rank != rank;
            if !stays {
                flight.over();
            }
            stays
        });
    }

    /// Queues an operation of a VCQ.
    pub(crate) fn post(&self, vcq: &Vcq, shared: &Arc<LateVcq>, order: &mut Order, op: &Op) {
        let times = ops::late_times(vcq, order, op);
        let is_checked = vcq.context.job.model.checked;
        let origin: &Origin = vcq;
        let flight = Flight {
            posted: if is_checked { source_sum(origin, op) } else { None },
            place: if is_checked { target_of(origin, op) } else { None },
            origin: origin.clone(),
            shared: shared.clone(),
            op: *op,
            times,
            stage: Stage::Send,
            data: Vec::new(),
        };
        shared.in_flight.fetch_add(1, Ordering::Relaxed);
        let mut queue = held(&self.shared.0);
        if let Some(place) = flight.place {
            no_overlap(&queue, &flight, place);
        }
        queue.insert(times.sent, flight);
        drop(queue);
        self.shared.1.notify_one();
    }

    /// Checked mode: it is misuse if an operation still needs what was registered under `stadd` with the
    /// CQ of `origin`.
    pub(crate) fn not_in_use(&self, origin: &Origin, stadd: u64) {
        let job = &origin.context.job;
        if job.is_excused(origin.context.rank) {
            return;
        }
        let same = |other: u64| other >> STAG_AT == stadd >> STAG_AT;
        let queue = held(&self.shared.0);
        for flight in queue.flights.values() {
            let op = &flight.op;
            let local = match (op.action, &flight.stage) {
                (Action::Put { lcl, .. }, Stage::Send) | (Action::Get { lcl, .. }, _) => {
                    flight.origin.table_is(origin) && same(lcl)
                }
                _ => false,
            };
            let is_there =
                |target: &Target<'_>| std::ptr::eq(target.table, origin.table()) && same(op.rmt);
            let remote = !matches!(flight.stage, Stage::Finish(_))
                && targets::find(job, op.vcq).is_some_and(|target| is_there(&target));
            if local || remote {
                job.misused(format!(
                    "rank {} deregisters STADD {stadd:#x} while an operation of rank {} needs it",
                    origin.context.rank, flight.origin.context.rank
                ));
            }
        }
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

impl Flight {
    /// What the next stage is.
    fn told(&self, at: u64) -> Stepped {
        let Flight { origin, op, .. } = self;
        let (stage, addr) = match (&self.stage, op.action) {
            (Stage::Send, Action::Put { lcl, len }) => {
                (stepped::Stage::Send, ops::source(origin, lcl, len).ok())
            }
            (Stage::Send, _) => (stepped::Stage::Send, None),
            (Stage::Arrive, _) => {
                (stepped::Stage::Arrive, checked::region_of(origin, op).map(|region| region.addr))
            }
            (Stage::Finish(_), Action::Get { lcl, len }) => {
                (stepped::Stage::Finish, ops::own_place(origin, lcl, len).ok())
            }
            (Stage::Finish(_), _) => (stepped::Stage::Finish, None),
        };
        let owner = targets::find(&origin.context.job, op.vcq)
            // Relaxed: one thread.
            .map(|target| target.block.owner.load(Ordering::Relaxed) as usize);
        let memory = addr.map(|addr| addr as usize..addr as usize + ops::length(op) as usize);
        let is_get = matches!(op.action, Action::Get { .. });
        let writes = match stage {
            stepped::Stage::Send => false,
            stepped::Stage::Arrive => !is_get,
            stepped::Stage::Finish => is_get,
        };
        Stepped { at, stage, from: origin.context.rank, to: owner, memory, writes }
    }

    /// Does the next stage; when the one after it is due, if there is one.
    fn go_on(mut self) -> Option<(u64, Flight)> {
        match std::mem::replace(&mut self.stage, Stage::Send) {
            Stage::Send => self.send(),
            Stage::Arrive => self.arrive(),
            Stage::Finish(outcome) => {
                self.finish(&outcome);
                None
            }
        }
    }

    fn send(mut self) -> Option<(u64, Flight)> {
        let code = match self.op.action {
            Action::Put { lcl, len } => match ops::source(&self.origin, lcl, len) {
                Ok(from) => {
                    self.data = vec![0; len as usize];
                    // SAFETY: the range lies in a registration; the vector has the room.
                    let read = unsafe {
                        copy::read(Space::Here, from, self.data.as_mut_ptr() as u64, len as usize)
                    };
                    debug_assert!(read.is_ok());
                    let Context { job, rank } = &self.origin.context;
                    let is_changed = self.posted.is_some_and(|sum| sum != sum_of(&self.data));
                    if is_changed && !job.is_excused(*rank) {
                        job.misused(format!(
                            "rank {rank} has changed the source of a put of {len} bytes (STADD \
                             {lcl:#x}) before its completion"
                        ));
                    }
                    UTOFU_SUCCESS
                }
                Err(code) => code,
            },
            _ => UTOFU_SUCCESS,
        };
        held(&self.shared.completions).push_back(code);
        if code != UTOFU_SUCCESS {
            self.over();
            return None;
        }
        self.stage = Stage::Arrive;
        Some((self.times.remote, self))
    }

    fn arrive(mut self) -> Option<(u64, Flight)> {
        let len = ops::length(&self.op);
        let job = &self.origin.context.job;
        // Relaxed: one thread, if ranks can be lost.
        let is_left =
            |target: &Target<'_>| !job.is_lost(target.block.owner.load(Ordering::Relaxed));
        let outcome = match targets::find(job, self.op.vcq).filter(is_left) {
            None => Outcome::failed(UTOFU_ERR_MRQ_PEER),
            Some(target) => {
                let source = match &self.op.action {
                    Action::Piggyback { data, .. } => data.as_ptr() as u64,
                    Action::Get { .. } => {
                        self.data = vec![0; len as usize];
                        self.data.as_mut_ptr() as u64
                    }
                    _ => self.data.as_ptr() as u64,
                };
                // SAFETY: `source` has `len` bytes; registered memory is mapped.
                let outcome =
                    unsafe { ops::act(&self.origin, &target, &self.op, source, len, true) };
                let recent = &mut Recent::default();
                ops::notify_target(&self.origin, target.block, recent, &self.op, &outcome, 0);
                session::bring_steps(target.block, &self.op, &outcome);
                outcome
            }
        };
        self.stage = Stage::Finish(outcome);
        Some((self.times.local, self))
    }

    fn finish(&mut self, outcome: &Outcome) {
        let mut code = outcome.code;
        if let (Action::Get { lcl, len }, UTOFU_SUCCESS) = (self.op.action, code) {
            code = match ops::own_place(&self.origin, lcl, len) {
                Ok(to) => {
                    let from = self.data.as_ptr() as u64;
                    // SAFETY: the range lies in a registration; the vector has the bytes.
                    let written = unsafe {
                        copy::write(Space::Here, from, to, len as usize, Sequence::HeadLast)
                    };
                    debug_assert!(written.is_ok());
                    UTOFU_SUCCESS
                }
                Err(code) => code,
            };
        }
        // Relaxed: only this thread writes it.
        let order = self.shared.local_done.load(Ordering::Relaxed) + 1;
        let outcome = Outcome { code, value: outcome.value };
        ops::notify_sender(&self.origin, &mut Recent::default(), &self.op, &outcome, order, 0);
        self.over();
    }

    /// Counts an operation as over, once its notice, if any, is in the queue.
    fn over(&self) {
        // Release pairs with the Acquire in poll_mrq and in flush.
        self.shared.local_done.fetch_add(1, Ordering::Release);
        self.shared.in_flight.fetch_sub(1, Ordering::Release);
    }
}

/// It is misuse if another put that is under way writes to some of the same bytes, unless the new one
/// stays in order behind it.
fn no_overlap(queue: &Queue, new: &Flight, place: Place) {
    let job = &new.origin.context.job;
    let vcq = |flight: &Flight| (flight.origin.id, without_path(flight.op.vcq));
    for old in queue.flights.values() {
        let is_open = !matches!(old.stage, Stage::Finish(_));
        let is_ordered = new.op.has(UTOFU_ONESIDED_FLAG_STRONG_ORDER) && vcq(new) == vcq(old);
        // Putting the same bytes twice changes nothing: programs do so for the notice alone.
        let is_same = old.place == Some(place) && old.posted == new.posted;
        let overlaps = old.place.is_some_and(|other| other.overlaps(&place));
        let ranks = [new.origin.context.rank, old.origin.context.rank, place.owner as usize];
        let is_excused = || ranks.iter().any(|&rank| job.is_excused(rank));
        if is_open && !is_ordered && !is_same && overlaps && !is_excused() {
            job.misused(format!(
                "puts of ranks {} and {} to rank {} overlap: {} bytes to STADD {:#x} while {} \
                 bytes to {:#x} are under way",
                new.origin.context.rank,
                old.origin.context.rank,
                place.owner,
                place.len,
                new.op.rmt,
                ops::length(&old.op),
                old.op.rmt
            ));
        }
    }
}
