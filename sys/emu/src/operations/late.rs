//! The late mode: a device that performs every part of an operation as late as it may, on a thread of its own or when
//! its owner steps it ([`Job::stepped`]).
//!
//! A post only queues an operation. Later, at times drawn from a seeded generator, the device reads the source and
//! enters the completion in the TCQ; then it writes to the target and enters the target's notice; then it enters the
//! sender's own notice. A program therefore fails here as on Tofu if it reuses a source before the completion, reads
//! a target before the notice, deregisters too early, or relies on an order that only STRONG_ORDER promises.
//!
//! [`Job::stepped`]: crate::Job::stepped

use crate::job::current::Context;
use crate::job::device::{Device, PendingOp, PendingWrite};
use crate::job::stepping::{self, StepEvent};
use crate::limits::ids::STAG_AT;
use crate::mrq::RecentChunk;
use crate::operations::checked::{self, check_overlap, pending_write, sum_of};
use crate::operations::remote::{
    RemoteOutcome, add_session_steps, execute_remote, get_destination, hold, length, notify_sender,
    notify_target, source,
};
use crate::operations::times::late_times;
use crate::queues::desc::{Op, OpAction};
use crate::queues::late::LateVcq;
use crate::queues::targets::{self, Target};
use crate::queues::vcq::{OpOrder, OpOrigin, Vcq};
use crate::shared::copy::{self, AddressSpace};
use crate::shared::registrations::{Hold, RegisteredRegion, StagTable};
use crate::shared::watched::WriteOrder;
use crate::sync::Ordering;
use crate::timing::model::OpTimes;
use std::sync::Arc;
use utofu_sys::*;

/// The next stage of an operation.
enum Stage {
    Send,
    Arrive,
    Finish(RemoteOutcome),
}

/// An operation under way.
struct LateOp {
    origin: OpOrigin,
    shared: Arc<LateVcq>,
    op: Op,
    times: OpTimes,
    stage: Stage,
    /// Bytes that were read and not yet written.
    data: Vec<u8>,
    /// Checked mode: checksum of a put's source when the put was posted.
    sum: Option<u64>,
    /// Checked mode: destination of a put.
    pending_write: Option<PendingWrite>,
}

/// Queues an operation of a VCQ.
pub(crate) fn post(
    device: &Device,
    vcq: &Vcq,
    shared: &Arc<LateVcq>,
    order: &mut OpOrder,
    op: &Op,
) {
    let times = late_times(vcq, order, op);
    let job = &vcq.context.job;
    let origin: &OpOrigin = vcq;
    let sum = if job.model.checked { checked::source_sum(origin, op) } else { None };
    let posted = LateOp {
        pending_write: if job.model.checked { pending_write(origin, op, sum) } else { None },
        origin: origin.clone(),
        shared: shared.clone(),
        op: *op,
        times,
        stage: Stage::Send,
        data: Vec::new(),
        sum,
    };
    shared.in_flight.fetch_add(1, Ordering::Relaxed);
    device.post(times.sent, Box::new(posted), |old, new| {
        if let (Some(old), Some(new)) = (old.pending_write(), new.pending_write()) {
            check_overlap(job, old, new);
        }
    });
}

impl PendingOp for LateOp {
    fn rank(&self) -> usize {
        self.origin.context.rank
    }

    fn next_stage(&self, at: u64) -> StepEvent {
        let LateOp { origin, op, .. } = self;
        let (stage, addr) = match (&self.stage, op.action) {
            (Stage::Send, OpAction::Put { lcl, len }) => {
                (stepping::Stage::Send, source(origin, lcl, len).ok())
            }
            (Stage::Send, _) => (stepping::Stage::Send, None),
            (Stage::Arrive, _) => {
                (stepping::Stage::Arrive, checked::region_of(origin, op).map(|region| region.addr))
            }
            (Stage::Finish(_), OpAction::Get { lcl, len }) => {
                (stepping::Stage::Finish, get_destination(origin, lcl, len).ok())
            }
            (Stage::Finish(_), _) => (stepping::Stage::Finish, None),
        };
        let owner = targets::find(&origin.context.job, op.vcq)
            // Relaxed: one thread.
            .map(|target| target.block.owner.load(Ordering::Relaxed) as usize);
        let memory = addr.map(|addr| addr as usize..addr as usize + length(op) as usize);
        let is_get = matches!(op.action, OpAction::Get { .. });
        let writes = match stage {
            stepping::Stage::Send | stepping::Stage::Packet => false,
            stepping::Stage::Arrive => !is_get,
            stepping::Stage::Finish => is_get,
        };
        StepEvent { at, stage, from: origin.context.rank, to: owner, memory, writes }
    }

    fn advance(mut self: Box<Self>) -> Option<(u64, Box<dyn PendingOp>)> {
        let due = match std::mem::replace(&mut self.stage, Stage::Send) {
            Stage::Send => self.send(),
            Stage::Arrive => Some(self.arrive()),
            Stage::Finish(outcome) => {
                self.finish(&outcome);
                None
            }
        };
        Some((due?, self))
    }

    /// Counts the operation as over. The caller has put its notice, if any, into the queue before.
    fn retire(&self) {
        // Release pairs with the Acquire in poll_mrq and in flush.
        self.shared.local_done.fetch_add(1, Ordering::Release);
        self.shared.in_flight.fetch_sub(1, Ordering::Release);
    }

    fn pending_write(&self) -> Option<&PendingWrite> {
        self.pending_write.as_ref().filter(|_| !matches!(self.stage, Stage::Finish(_)))
    }

    fn needs(&self, table: &StagTable, stadd: u64) -> bool {
        let same = |other: u64| other >> STAG_AT == stadd >> STAG_AT;
        let local = match (self.op.action, &self.stage) {
            (OpAction::Put { lcl, .. }, Stage::Send) | (OpAction::Get { lcl, .. }, _) => {
                std::ptr::eq(self.origin.table(), table) && same(lcl)
            }
            _ => false,
        };
        let is_there = |target: Target<'_>| std::ptr::eq(target.table, table) && same(self.op.rmt);
        local
            || !matches!(self.stage, Stage::Finish(_))
                && targets::find(&self.origin.context.job, self.op.vcq).is_some_and(is_there)
    }
}

/// As [`hold`], for memory of the posting rank.
fn hold_local(origin: &OpOrigin, stadd: u64, len: u32) -> Option<Hold<'_>> {
    hold(&origin.context.job, origin.table().entry(stadd), len)
}

impl LateOp {
    /// Reports misuse if the operation is about to use `len` bytes of this region that were unmapped.
    fn check_region(&self, region: Option<RegisteredRegion>, len: u32) {
        let Context { job, rank } = &self.origin.context;
        checked::check_unmapped(job, *rank, region, len);
    }

    /// Reads the source. Returns the time in ns at which the next stage is due; `None` after an error.
    fn send(&mut self) -> Option<u64> {
        let _held = match self.op.action {
            OpAction::Put { lcl, len } => hold_local(&self.origin, lcl, len),
            _ => None,
        };
        let code = match self.op.action {
            OpAction::Put { lcl, len } => match source(&self.origin, lcl, len) {
                Ok(from) => {
                    self.check_region(self.origin.table().lookup(lcl), len);
                    self.data = vec![0; len as usize];
                    // SAFETY: the range lies in a registration; the vector has the room.
                    let read = unsafe {
                        copy::read(
                            AddressSpace::Local,
                            from,
                            self.data.as_mut_ptr() as u64,
                            len as usize,
                        )
                    };
                    debug_assert!(read.is_ok());
                    let Context { job, rank } = &self.origin.context;
                    let is_changed = self.sum.is_some_and(|sum| sum != sum_of(&self.data));
                    if is_changed && !job.is_exempt(*rank) {
                        job.report_misuse(format!(
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
        self.shared.complete(code);
        if code != UTOFU_SUCCESS {
            self.retire();
            return None;
        }
        self.stage = Stage::Arrive;
        Some(self.times.remote)
    }

    /// Reads or writes at the target. Returns the time in ns at which the next stage is due.
    fn arrive(&mut self) -> u64 {
        let len = length(&self.op);
        let job = &self.origin.context.job;
        // Relaxed: ranks can fail only in a stepped job, which has one thread.
        let is_left =
            |target: &Target<'_>| !job.is_failed(target.block.owner.load(Ordering::Relaxed));
        let outcome = match targets::find(job, self.op.vcq).filter(is_left) {
            None => RemoteOutcome::failed(UTOFU_ERR_MRQ_PEER),
            Some(target) => {
                self.check_region(target.table.lookup(self.op.rmt), len);
                let source = match &self.op.action {
                    OpAction::Piggyback { data, .. } => data.as_ptr() as u64,
                    OpAction::Get { .. } => {
                        self.data = vec![0; len as usize];
                        self.data.as_mut_ptr() as u64
                    }
                    _ => self.data.as_ptr() as u64,
                };
                // SAFETY: `source` has `len` bytes; registered memory is mapped.
                let outcome =
                    unsafe { execute_remote(&self.origin, &target, &self.op, source, len, true) };
                let recent = &mut RecentChunk::default();
                notify_target(&self.origin, target.block, recent, &self.op, &outcome, 0);
                add_session_steps(target.block, &self.op, &outcome);
                outcome
            }
        };
        self.stage = Stage::Finish(outcome);
        self.times.local
    }

    /// Writes the data of a get to local memory, and notifies the sender.
    fn finish(&mut self, outcome: &RemoteOutcome) {
        let mut code = outcome.code;
        if let (OpAction::Get { lcl, len }, UTOFU_SUCCESS) = (self.op.action, code) {
            let _held = hold_local(&self.origin, lcl, len);
            code = match get_destination(&self.origin, lcl, len) {
                Ok(to) => {
                    self.check_region(self.origin.table().lookup(lcl), len);
                    let from = self.data.as_ptr() as u64;
                    // SAFETY: the range lies in a registration; the vector has the bytes.
                    let written = unsafe {
                        copy::write(
                            AddressSpace::Local,
                            from,
                            to,
                            len as usize,
                            WriteOrder::HeadLast,
                        )
                    };
                    debug_assert!(written.is_ok());
                    UTOFU_SUCCESS
                }
                Err(code) => code,
            };
        }
        // Relaxed: only this thread writes the counter.
        let order = self.shared.local_done.load(Ordering::Relaxed) + 1;
        let outcome = RemoteOutcome { code, value: outcome.value };
        notify_sender(&self.origin, &mut RecentChunk::default(), &self.op, &outcome, order, 0);
        self.retire();
    }
}
