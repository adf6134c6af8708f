//! Virtual control queues: the half of a VCQ that its own rank keeps.

use crate::arena::{Found, Off};
use crate::error::{Code, Result, fail};
use crate::ids::VcqPlace;
use crate::job::{Context, fatal};
use crate::late::LateVcq;
use crate::layout::{CqRecord, FIRST_EXTRA, TniRecord, VcqBlock};
use crate::lock::SpinLock;
use crate::mem::StagTable;
use crate::model;
use crate::mrq::{CAPACITY, Notice, Reader, Recent};
use crate::place::{EXCLUSIVE, choose};
use crate::session::{self, Session};
use crate::share::Kinds;
use crate::sync::{AtomicU64, Ordering};
use crate::targets::Targets;
use crate::toq::Toq;
use std::cell::UnsafeCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_ulong;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};
use utofu_sys::*;

/// How long a sender may take between announcing a notice and writing it, before it counts as dead.
const PATIENCE: Duration = Duration::from_secs(1);

/// A value for one thread at a time, by the caller's promise or by a lock.
struct Turn<T> {
    lock: Option<SpinLock>,
    value: UnsafeCell<T>,
}

impl<T> Turn<T> {
    fn new(thread_safe: bool, value: T) -> Turn<T> {
        Turn { lock: thread_safe.then(SpinLock::default), value: UnsafeCell::new(value) }
    }

    /// # Safety
    /// Without THREAD_SAFE, no other thread is in this call; `f` does not come back here.
    #[inline]
    unsafe fn take<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let _guard = self.lock.as_ref().map(SpinLock::lock);
        // SAFETY: exclusive by the lock, or by the caller's promise.
        f(unsafe { &mut *self.value.get() })
    }
}

/// The sending side.
pub(crate) struct Sender {
    pub(crate) toq: Toq,
    pub(crate) targets: Targets,
    /// This VCQ's own queue, as a target.
    pub(crate) own: Recent,
    pub(crate) order: Order,
    pub(crate) session: Session,
}

/// What orders operations that take time.
pub(crate) struct Order {
    /// The last arrival times per target.
    pub(crate) last: HashMap<u64, model::Times>,
    /// With jitter.
    pub(crate) random: model::Random,
}

/// The receiving side.
struct Receiver {
    reader: Reader,
    /// With a latency model: notices by the time from which they may be seen.
    pending: BTreeMap<(u64, u64), Notice>,
    arrivals: u64,
}

impl Receiver {
    /// The next notice that is due. `until` says when the processor has received a message that has
    /// come; None: at once.
    fn take_due(
        &mut self,
        now: impl Fn() -> u64,
        until: impl Fn(&Notice) -> Option<u64>,
    ) -> Option<Notice> {
        loop {
            let due = self.pending.first_entry().filter(|e| e.key().0 <= now())?;
            let mut n = due.remove();
            // A message takes the processor once: then only the time in its key counts.
            let Some(end) = (if n.ready_at == 0 { None } else { until(&n) }) else {
                return Some(n);
            };
            n.ready_at = 0;
            self.arrivals += 1;
            self.pending.insert((end, self.arrivals), n);
        }
    }
}

/// The side of a VCQ that operations start from.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) context: Context,
    pub(crate) place: VcqPlace,
    /// That of the place.
    pub(crate) id: utofu_vcq_id_t,
    block: Found<VcqBlock>,
    table: Found<StagTable>,
}

impl Origin {
    #[inline]
    pub(crate) fn block(&self) -> &VcqBlock {
        // SAFETY: it was found in the arena of the job, which `context` keeps.
        unsafe { self.block.get() }
    }

    /// Registrations of its CQ.
    #[inline]
    pub(crate) fn table(&self) -> &StagTable {
        // SAFETY: as in `block`.
        unsafe { self.table.get() }
    }

    /// Whether both are on one CQ.
    pub(crate) fn table_is(&self, other: &Origin) -> bool {
        self.table == other.table
    }

    /// The TNI it is on.
    pub(crate) fn tni_record(&self) -> &TniRecord {
        let job = &self.context.job;
        &job.node(job.node_of(self.context.rank)).tnis[usize::from(self.place.tni)]
    }
}

/// A rank's own half of a VCQ.
pub(crate) struct Vcq {
    origin: Origin,
    /// Whether what is posted waits for steps of others.
    pub(crate) is_session: bool,
    /// State shared with the device's thread, in the late mode.
    pub(crate) late: Option<Arc<LateVcq>>,
    /// Whether posts are over when they return, and refused for want of room alone: no late mode, no
    /// latencies, no session.
    pub(crate) is_plain: bool,
    /// Whether calls are watched: the checked mode without THREAD_SAFE allows one thread at a time.
    is_watched: bool,
    /// Local MRQ entries of operations posted here, noticed or not, and how many were passed.
    pub(crate) local_posted: AtomicU64,
    local_seen: AtomicU64,
    /// Until when the processor that drives it sends and receives, in ns (latency model only).
    pub(crate) busy_until: AtomicU64,
    sender: Turn<Sender>,
    receiver: Turn<Receiver>,
}

impl Deref for Vcq {
    type Target = Origin;

    #[inline]
    fn deref(&self) -> &Origin {
        &self.origin
    }
}

/// A thread in a call on a CQ that only one may use at a time.
struct Watch<'a>(&'a AtomicU32);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

// SAFETY: the two `Turn`s are used by one thread at a time, by their contract; the rest is Sync.
unsafe impl Sync for Vcq {}

impl Vcq {
    /// Creates a VCQ for the rank of `context`.
    pub(crate) fn create(
        context: Context,
        tni: u16,
        cmp_id: Option<u16>,
        flags: c_ulong,
    ) -> Result<Vcq> {
        let job = &context.job;
        let node = job.node_of(context.rank);
        let record = job.tni(node, tni)?;
        let (place, sharing) = (job.layout.place_of[context.rank] as usize, job.layout.sharing);
        if !sharing.tnis(place).contains(&usize::from(tni)) {
            return fail(
                UTOFU_ERR_INVALID_TNI_ID,
                format!(
                    "TNI {tni} is for other ranks of the node: this one has {:?}",
                    sharing.tnis(place)
                ),
            );
        }
        let cqs = Kinds::of(sharing.cqs(place));
        let (cq, n, block, table) = {
            let _guard = record.lock.lock();
            let used = std::array::from_fn(|i| record.cqs[i].used.load(Ordering::Relaxed));
            let (cq, n, marks) = choose(&used, &cqs, cmp_id, flags)?;
            let c = &record.cqs[cq];
            let table = job.lazy::<StagTable>(&c.table)?;
            let block = job.lazy::<VcqBlock>(&c.vcqs[n])?;
            c.used.store(used[cq] | marks, Ordering::Relaxed);
            (cq, n, block, table)
        };
        let shared = job.arena.at(block);
        let mut reader = shared.ring.reader();
        let start = Instant::now();
        shared.ring.drain(&**job, &mut reader, || {
            std::thread::yield_now();
            start.elapsed() < PATIENCE
        });
        // Relaxed: published with `alive`.
        shared.overflowed.store(0, Ordering::Relaxed);
        shared.owner.store(context.rank as u32, Ordering::Relaxed);
        // Release pairs with the Acquire in Job::find: the owner is set.
        shared.alive.store(1, Ordering::Release);
        let thread_safe = flags & UTOFU_VCQ_FLAG_THREAD_SAFE != 0;
        let late = job.device.is_some().then(Arc::default);
        let seed = job.model.late.unwrap_or(0) ^ block.bytes();
        let place = VcqPlace {
            coords: job.coords_of(context.rank),
            tni: tni as u8,
            cq: cq as u8,
            extra: FIRST_EXTRA + n as u8,
        };
        let is_session = flags & UTOFU_VCQ_FLAG_SESSION_MODE != 0;
        // Whoever polls starts what waits.
        let is_locked = thread_safe || is_session;
        Ok(Vcq {
            is_session,
            is_plain: late.is_none()
                && !job.model.takes_time()
                && !is_session
                && job.model.busy == 0,
            late,
            is_watched: job.model.checked && !is_locked,
            local_posted: AtomicU64::new(0),
            local_seen: AtomicU64::new(0),
            busy_until: AtomicU64::new(0),
            sender: Turn::new(
                is_locked,
                Sender {
                    toq: Toq::default(),
                    targets: Targets::default(),
                    own: Recent::default(),
                    order: Order { last: HashMap::new(), random: model::Random::new(seed) },
                    session: Session::new(shared.steps.load(Ordering::Relaxed)),
                },
            ),
            receiver: Turn::new(
                thread_safe,
                Receiver { reader, pending: BTreeMap::new(), arrivals: 0 },
            ),
            origin: Origin {
                id: place.id(),
                place,
                block: shared.into(),
                table: job.arena.at(table).into(),
                context,
            },
        })
    }

    /// Gives the place back. Memory registered under its user STags is deregistered; the rest goes
    /// when the CQ's last VCQ does.
    pub(crate) fn free(self) {
        if let Some(late) = &self.late {
            late.flush(&self.context.job);
        }
        self.block().alive.store(0, Ordering::Release);
        let record = self.tni_record();
        let _guard = record.lock.lock();
        let job = &self.context.job;
        self.table().forget_user(self.place.extra, &|| job.is_holding());
        let cq = &record.cqs[usize::from(self.place.cq)];
        let left = cq.used.load(Ordering::Relaxed) & !(EXCLUSIVE | 1 << self.place.index());
        if left == 0 {
            self.table().forget_dynamic(&|| job.is_holding());
        }
        cq.used.store(left, Ordering::Relaxed);
    }

    /// Ends the process if another thread is in a call on the same side of the CQ.
    #[cold]
    fn watch(&self, side: usize) -> Watch<'_> {
        let cq = &self.tni_record().cqs[usize::from(self.place.cq)];
        let busy = &cq.busy[side];
        if busy.swap(1, Ordering::Acquire) != 0 {
            fatal(&format!(
                "rank {}: two threads use CQ {} of TNI {} at once, but its VCQs were created \
                 without THREAD_SAFE",
                self.context.rank, self.place.cq, self.place.tni
            ));
        }
        // Lets another thread run: if it misuses the CQ it is caught here.
        std::thread::yield_now();
        Watch(busy)
    }

    /// Calls `f` with the sending side.
    ///
    /// # Safety
    /// As the C interface demands: without THREAD_SAFE no other thread posts or polls the TCQ now.
    #[inline]
    pub(crate) unsafe fn send<R>(&self, f: impl FnOnce(&mut Sender) -> R) -> R {
        let _watch = self.is_watched.then(|| self.watch(0));
        // SAFETY: the caller's promise; nothing that `f` does comes back here.
        unsafe { self.sender.take(f) }
    }

    /// Whether a post of so many entries is accepted; BUSY if not.
    #[inline]
    pub(crate) fn room_for(&self, sender: &mut Sender, entries: usize) -> Result<()> {
        if !self.is_plain && sender.order.random.refuses(self.context.job.model.busy) {
            return Err(Code(UTOFU_ERR_BUSY));
        }
        sender.toq.room_for(entries)
    }

    /// The next notice that may be seen, if there is one.
    ///
    /// # Safety
    /// As the C interface demands: without THREAD_SAFE no other thread polls this MRQ now.
    #[inline]
    pub(crate) unsafe fn poll_mrq(&self) -> Option<Notice> {
        let block = self.block();
        // Relaxed: it only ends the process.
        if block.overflowed.load(Ordering::Relaxed) != 0 {
            self.overflow();
        }
        let _watch = self.is_watched.then(|| self.watch(1));
        // SAFETY: the caller's promise; the closure does not come back here.
        unsafe {
            self.receiver.take(|r| {
                // Read before the queue: the notices of all operations posted by now are in it.
                let posted = match &self.late {
                    None => self.local_posted.load(Ordering::Acquire),
                    Some(late) => late.local_done.load(Ordering::Acquire),
                };
                let found = if self.is_plain {
                    r.reader.pop(&block.ring, &*self.context.job)
                } else {
                    match self.poll_patiently(r) {
                        None if !r.pending.is_empty() => return None,
                        due => due,
                    }
                };
                // Without a notice silent entries have been walked over as well. With jitter a later
                // one may have been passed before. Relaxed: nobody else writes it meanwhile.
                let seen = found.as_ref().map_or(posted, |n| n.order);
                if seen > self.local_seen.load(Ordering::Relaxed) {
                    self.local_seen.store(seen, Ordering::Relaxed);
                }
                found
            })
        }
    }

    /// The next notice that may be seen, if operations are not over when their post returns.
    #[cold]
    fn poll_patiently(&self, r: &mut Receiver) -> Option<Notice> {
        if self.is_session {
            // SAFETY: a session's sending side is locked; `go_on` does not come back here.
            unsafe { self.send(|sender| session::go_on(self, sender)) };
        }
        // In the late mode notices come late, but can be seen once they are there.
        if self.late.is_some() || !self.context.job.model.takes_time() {
            return r.reader.pop(&self.block().ring, &*self.context.job);
        }
        while let Some(n) = r.reader.pop(&self.block().ring, &*self.context.job) {
            r.arrivals += 1;
            r.pending.insert((n.ready_at, r.arrivals), n);
        }
        r.take_due(|| self.context.job.now(), |n| self.receiving(n))
    }

    /// When the processor has received a message that has come, with a latency model.
    #[cold]
    fn receiving(&self, n: &Notice) -> Option<u64> {
        // Local notices have an order.
        if n.order != 0 {
            return None;
        }
        let job = &*self.context.job;
        let sender = VcqPlace::of(n.vcq).ok()?.coords;
        let cost = job.model.receiving(sender == job.coords_of(self.context.rank));
        (cost > 0).then(|| model::occupy(&self.busy_until, n.ready_at, cost))
    }

    /// Ends the process with a message, as the real device does.
    #[cold]
    fn overflow(&self) -> ! {
        let VcqPlace { tni, cq, extra, .. } = self.place;
        fatal(&format!(
            "MRQ overflow: rank {}, VCQ at TNI {tni} CQ {cq} extra value {extra}, had {CAPACITY} \
             unread notices, or the job has no memory for more; poll more often",
            self.context.rank
        ));
    }

    /// Local MRQ entries not yet passed by polling.
    pub(crate) fn unread_local(&self) -> usize {
        let posted = self.local_posted.load(Ordering::Relaxed);
        posted.saturating_sub(self.local_seen.load(Ordering::Relaxed)) as usize
    }
}

impl CqRecord {
    /// Offsets of the block and the table of the VCQ at index `n`, once both exist.
    #[inline]
    pub(crate) fn vcq(&self, n: usize) -> Option<(Off<VcqBlock>, Off<StagTable>)> {
        // Acquire pairs with the Release in Job::lazy.
        let block = self.vcqs[n].load(Ordering::Acquire);
        let table = self.table.load(Ordering::Acquire);
        (block != 0 && table != 0).then(|| (Off::new(block), Off::new(table)))
    }
}
