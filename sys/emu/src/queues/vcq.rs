//! Virtual control queues: a rank's private half of a VCQ.

use crate::job::current::Context;
use crate::job::records::{TniRecord, VcqBlock};
use crate::job::sharing::CqRoles;
use crate::limits::FIRST_EXTRA;
use crate::limits::error::{Code, Result, fail, fatal};
use crate::limits::ids::{TniPlace, VcqPlace};
use crate::mrq::{MrqNotice, MrqReader, RecentChunk};
use crate::queues::late::LateVcq;
use crate::queues::place::{EXCLUSIVE, choose};
use crate::queues::session::VcqSession;
use crate::queues::targets::Targets;
use crate::queues::toq::Toq;
use crate::shared::arena::ArenaRef;
use crate::shared::lock::SpinLock;
use crate::shared::registrations::StagTable;
use crate::sync::{AtomicU64, Ordering};
use crate::timing::model;
use std::cell::UnsafeCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_ulong;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};
use utofu_sys::*;

/// Longest wait of a new VCQ for a notice whose index a sender has taken; after that the sender counts as dead.
const DEAD_PEER_TIMEOUT: Duration = Duration::from_secs(1);

/// A value that one thread at a time uses, by the caller's promise or under a lock.
struct ExclusiveCell<T> {
    lock: Option<SpinLock>,
    value: UnsafeCell<T>,
}

impl<T> ExclusiveCell<T> {
    fn new(thread_safe: bool, value: T) -> ExclusiveCell<T> {
        ExclusiveCell { lock: thread_safe.then(SpinLock::default), value: UnsafeCell::new(value) }
    }

    /// # Safety
    /// Without THREAD_SAFE, no other thread is in this call; `f` does not call this function again.
    #[inline]
    unsafe fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let _guard = self.lock.as_ref().map(SpinLock::lock);
        // SAFETY: exclusive by the lock, or by the caller's promise.
        f(unsafe { &mut *self.value.get() })
    }
}

/// The sending side.
pub(crate) struct Sender {
    pub(crate) toq: Toq,
    pub(crate) targets: Targets,
    /// Chunk of this VCQ's own queue, for local notices.
    pub(crate) own: RecentChunk,
    pub(crate) order: OpOrder,
    pub(crate) session: VcqSession,
}

/// State that orders operations that take time.
pub(crate) struct OpOrder {
    /// Latest times of earlier operations, by target.
    pub(crate) last: HashMap<u64, model::OpTimes>,
    /// Generator of jitter, of the late mode's delays, and of refused posts.
    pub(crate) random: model::Random,
}

/// The receiving side.
pub(crate) struct Receiver {
    pub(crate) reader: MrqReader,
    /// Latency model: notices by the time in ns from which they are visible, and a number of arrival.
    pub(crate) pending: BTreeMap<(u64, u64), MrqNotice>,
    pub(crate) arrivals: u64,
}

/// The part of a VCQ that executing an operation needs on the sending side.
#[derive(Clone)]
pub(crate) struct OpOrigin {
    pub(crate) context: Context,
    pub(crate) place: VcqPlace,
    /// Id of `place`.
    pub(crate) id: utofu_vcq_id_t,
    block: ArenaRef<VcqBlock>,
    table: ArenaRef<StagTable>,
}

impl OpOrigin {
    #[inline]
    pub(crate) fn block(&self) -> &VcqBlock {
        // SAFETY: the block was found in the arena of the job, which `context` keeps.
        unsafe { self.block.get() }
    }

    /// Returns the registrations of the VCQ's CQ.
    #[inline]
    pub(crate) fn table(&self) -> &StagTable {
        // SAFETY: as in `block`.
        unsafe { self.table.get() }
    }

    /// Returns the record of the VCQ's TNI.
    pub(crate) fn tni_record(&self) -> &TniRecord {
        let job = &self.context.job;
        &job.node(job.node_of(self.context.rank)).tnis[usize::from(self.place.tni.number)]
    }
}

/// A rank's private half of a VCQ.
pub(crate) struct Vcq {
    origin: OpOrigin,
    /// Whether posted operations wait for session progress steps from other ranks.
    pub(crate) is_session: bool,
    /// State shared with the device's thread, in the late mode.
    pub(crate) late: Option<Arc<LateVcq>>,
    /// Whether operations are over when their posts return, and posts are refused only for lack of room: no late
    /// mode, no latencies, no session, no random refusals.
    pub(crate) is_immediate: bool,
    /// Whether simultaneous calls are detected: in the checked mode, for a VCQ without THREAD_SAFE or sessions.
    is_guarded: bool,
    /// Numbers of local MRQ entries, with or without a notice: of operations posted here, and those passed by
    /// polling.
    pub(crate) local_posted: AtomicU64,
    pub(crate) local_seen: AtomicU64,
    /// Time in ns until which the processor that drives this VCQ sends and receives (latency model only).
    pub(crate) busy_until: AtomicU64,
    sender: ExclusiveCell<Sender>,
    receiver: ExclusiveCell<Receiver>,
}

impl Deref for Vcq {
    type Target = OpOrigin;

    #[inline]
    fn deref(&self) -> &OpOrigin {
        &self.origin
    }
}

/// Marks a call on a CQ that one thread at a time may use.
struct CallGuard<'a>(&'a AtomicU32);

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

// SAFETY: one thread at a time uses each `ExclusiveCell`, by their contract; the rest is Sync.
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
        let (local_rank, sharing) =
            (job.placement.local_rank_of[context.rank] as usize, job.placement.sharing);
        if !sharing.tnis(local_rank).contains(&usize::from(tni)) {
            return fail(
                UTOFU_ERR_INVALID_TNI_ID,
                format!(
                    "TNI {tni} is for other ranks of the node: this one has {:?}",
                    sharing.tnis(local_rank)
                ),
            );
        }
        let cqs = CqRoles::of(sharing.cqs(local_rank));
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
            start.elapsed() < DEAD_PEER_TIMEOUT
        });
        // Relaxed: published with `alive`.
        shared.overflowed.store(0, Ordering::Relaxed);
        shared.owner.store(context.rank as u32, Ordering::Relaxed);
        // Release pairs with the Acquire in VcqBlock::is_alive: the owner is set.
        shared.alive.store(1, Ordering::Release);
        let thread_safe = flags & UTOFU_VCQ_FLAG_THREAD_SAFE != 0;
        let late = job.device.is_some().then(Arc::default);
        let seed = job.model.late.unwrap_or(0) ^ block.bytes();
        let place = VcqPlace {
            tni: TniPlace { coords: job.coords_of(context.rank), number: tni as u8 },
            cq: cq as u8,
            extra: FIRST_EXTRA + n as u8,
        };
        let is_session = flags & UTOFU_VCQ_FLAG_SESSION_MODE != 0;
        // A session's sending side needs the lock: a thread that polls the MRQ also starts waiting operations.
        let is_locked = thread_safe || is_session;
        Ok(Vcq {
            is_session,
            is_immediate: late.is_none()
                && !job.model.has_latency()
                && !is_session
                && job.model.busy == 0,
            late,
            is_guarded: job.model.checked && !is_locked,
            local_posted: AtomicU64::new(0),
            local_seen: AtomicU64::new(0),
            busy_until: AtomicU64::new(0),
            sender: ExclusiveCell::new(
                is_locked,
                Sender {
                    toq: Toq::default(),
                    targets: Targets::default(),
                    own: RecentChunk::default(),
                    order: OpOrder { last: HashMap::new(), random: model::Random::new(seed) },
                    session: VcqSession::new(shared.steps.load(Ordering::Relaxed)),
                },
            ),
            receiver: ExclusiveCell::new(
                thread_safe,
                Receiver { reader, pending: BTreeMap::new(), arrivals: 0 },
            ),
            origin: OpOrigin {
                id: place.id(),
                place,
                block: shared.into(),
                table: job.arena.at(table).into(),
                context,
            },
        })
    }

    /// Frees the VCQ's place. Memory registered under its user STags is deregistered now; the CQ's other
    /// registrations end with the CQ's last VCQ.
    pub(crate) fn free(self) {
        if let Some(late) = &self.late {
            late.flush(&self.context.job);
        }
        self.block().alive.store(0, Ordering::Release);
        let record = self.tni_record();
        let _guard = record.lock.lock();
        let job = &self.context.job;
        self.table().deregister_user(self.place.extra, &mut job.find_holders());
        let cq = &record.cqs[usize::from(self.place.cq)];
        let left = cq.used.load(Ordering::Relaxed) & !(EXCLUSIVE | 1 << self.place.index());
        if left == 0 {
            self.check_no_registrations();
            self.table().deregister_dynamic(&mut job.find_holders());
        }
        cq.used.store(left, Ordering::Relaxed);
    }

    /// Stepped jobs: reports misuse if the last VCQ of a CQ is freed while memory is registered with the CQ.
    fn check_no_registrations(&self) {
        let Context { job, rank } = &self.context;
        let n = self.table().n_registered();
        if job.stepping.is_some() && job.model.checked && n > 0 && !job.is_exempt(*rank) {
            job.report_misuse(format!("rank {rank} frees a VCQ with {n} registrations"));
        }
    }

    /// Ends the process if another thread is in a call on the same side of the CQ.
    #[cold]
    fn enter_call(&self, side: usize) -> CallGuard<'_> {
        let cq = &self.tni_record().cqs[usize::from(self.place.cq)];
        let busy = &cq.busy[side];
        if busy.swap(1, Ordering::Acquire) != 0 {
            fatal(&format!(
                "rank {}: two threads use CQ {} of TNI {} at once, but its VCQs were created \
                 without THREAD_SAFE",
                self.context.rank, self.place.cq, self.place.tni.number
            ));
        }
        // Lets another thread run: if it misuses the CQ, the misuse is detected here.
        std::thread::yield_now();
        CallGuard(busy)
    }

    /// Calls `f` with the sending side.
    ///
    /// # Safety
    /// As the C interface demands: without THREAD_SAFE no other thread posts or polls the TCQ now.
    #[inline]
    pub(crate) unsafe fn send<R>(&self, f: impl FnOnce(&mut Sender) -> R) -> R {
        let _call = self.is_guarded.then(|| self.enter_call(0));
        // SAFETY: the caller's promise; `f` does not lead back to this function.
        unsafe { self.sender.with(f) }
    }

    /// Calls `f` with the receiving side.
    ///
    /// # Safety
    /// As the C interface demands: without THREAD_SAFE no other thread polls this MRQ now.
    #[inline]
    pub(crate) unsafe fn receive<R>(&self, f: impl FnOnce(&mut Receiver) -> R) -> R {
        let _call = self.is_guarded.then(|| self.enter_call(1));
        // SAFETY: the caller's promise; `f` does not lead back to this function.
        unsafe { self.receiver.with(f) }
    }

    /// Checks that a post of this many entries is accepted; BUSY otherwise.
    #[inline]
    pub(crate) fn room_for(&self, sender: &mut Sender, entries: usize) -> Result<()> {
        if !self.is_immediate && sender.order.random.refuses(self.context.job.model.busy) {
            return Err(Code(UTOFU_ERR_BUSY));
        }
        sender.toq.room_for(entries)
    }

    /// Returns the number of local MRQ entries that polling has not passed.
    pub(crate) fn unread_local(&self) -> usize {
        let posted = self.local_posted.load(Ordering::Relaxed);
        posted.saturating_sub(self.local_seen.load(Ordering::Relaxed)) as usize
    }
}
