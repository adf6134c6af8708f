//! Posting: the posting thread executes the operation, or queues it for the late device.

use crate::operations::remote::{
    RemoteOutcome, add_session_steps, execute_remote, length, notify_sender, notify_target, source,
};
use crate::operations::{late, times};
use crate::queues::desc::{Op, OpAction};
use crate::queues::toq;
use crate::queues::vcq::{Sender, Vcq};
use crate::sync::Ordering;
use crate::timing::model::OpTimes;
use std::ffi::c_int;
use utofu_sys::*;

/// Posts an operation for which the TOQ has room.
///
/// # Safety
/// `sender` is the VCQ's; registered memory is mapped.
#[inline]
pub(crate) unsafe fn post(vcq: &Vcq, sender: &mut Sender, op: &Op, cbdata: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if vcq.is_immediate && op.steps == 0 {
            start::<true>(vcq, sender, op, cbdata);
        } else {
            post_slow(vcq, sender, *op, cbdata);
        }
    }
}

/// As [`post`], for sessions, the late mode, latencies, and operations that bring session steps.
///
/// # Safety
/// As [`post`].
#[cold]
unsafe fn post_slow(vcq: &Vcq, sender: &mut Sender, op: Op, cbdata: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if vcq.is_session {
            post_in_session(vcq, sender, op, cbdata);
        } else {
            start::<false>(vcq, sender, &op, cbdata);
        }
    }
}

/// Starts an operation for which the TOQ has room. An immediate operation is over at once: it comes from an immediate
/// VCQ and brings no session steps.
///
/// # Safety
/// As [`post`].
#[inline]
pub(crate) unsafe fn start<const IMMEDIATE: bool>(
    vcq: &Vcq,
    sender: &mut Sender,
    op: &Op,
    cbdata: usize,
) {
    // SAFETY: the caller's promise.
    let (code, sent) = unsafe { execute::<IMMEDIATE>(vcq, sender, op) };
    let tcq_notice = op.has(UTOFU_ONESIDED_FLAG_TCQ_NOTICE);
    sender.toq.push(op.entries(), cbdata, tcq_notice, code, sent);
}

/// Executes one operation. Returns its TCQ code, and the time in ns from which a poll may return the completion.
///
/// # Safety
/// Registered memory is mapped.
#[inline]
unsafe fn execute<const IMMEDIATE: bool>(vcq: &Vcq, sender: &mut Sender, op: &Op) -> (c_int, u64) {
    if matches!(op.action, OpAction::Nop) {
        return (UTOFU_SUCCESS, 0);
    }
    let job = &*vcq.context.job;
    // Relaxed: one poster at a time (THREAD_SAFE: under the sender's lock).
    let order = vcq.local_posted.load(Ordering::Relaxed) + 1;
    if !IMMEDIATE && let (Some(shared), Some(device)) = (&vcq.late, &job.device) {
        vcq.local_posted.store(order, Ordering::Relaxed);
        late::post(device, vcq, shared, &mut sender.order, op);
        return (UTOFU_SUCCESS, toq::LATE);
    }
    let len = length(op);
    // The source of a put is read when it is sent.
    let source = match op.action {
        OpAction::Put { lcl, .. } => match source(vcq, lcl, len) {
            Ok(addr) => addr,
            Err(code) => return (code, 0),
        },
        OpAction::Piggyback { ref data, .. } => data.as_ptr() as u64,
        _ => 0,
    };
    let Sender { targets, own, order: times_before, .. } = sender;
    let mut times = OpTimes::default();
    // SAFETY: a VCQ belongs to one job.
    let outcome = match unsafe { targets.find(job, op.vcq) } {
        Some((target, recent)) => {
            if !IMMEDIATE && job.model.has_latency() {
                times = times::times(vcq, times_before, op, len);
            }
            // SAFETY: the caller's promise; `source` was just looked up or is in `op`.
            let outcome = unsafe { execute_remote(vcq, &target, op, source, len, false) };
            notify_target(vcq, target.block, recent, op, &outcome, times.remote);
            if !IMMEDIATE {
                add_session_steps(target.block, op, &outcome);
            }
            outcome
        }
        None => RemoteOutcome::failed(UTOFU_ERR_MRQ_PEER),
    };
    notify_sender(vcq, own, op, &outcome, order, times.local);
    // Release pairs with the Acquire in poll_mrq: the notice, if any, is in the queue.
    vcq.local_posted.store(order, Ordering::Release);
    (UTOFU_SUCCESS, times.sent)
}

/// Queues an operation of a session for which the TOQ has room, and starts the operations that may start.
///
/// # Safety
/// As [`start_waiting`].
#[cold]
unsafe fn post_in_session(vcq: &Vcq, sender: &mut Sender, op: Op, cbdata: usize) {
    sender.toq.reserve(op.entries());
    sender.session.waiting.push_back((op, cbdata));
    // SAFETY: the caller's promise.
    unsafe { start_waiting(vcq, sender) };
}

/// Starts as many waiting operations as the session has steps left.
///
/// # Safety
/// `sender` is the VCQ's; registered memory is mapped.
#[cold]
pub(crate) unsafe fn start_waiting(vcq: &Vcq, sender: &mut Sender) {
    // Acquire pairs with the Release in `add_session_steps`.
    while vcq.block().steps.load(Ordering::Acquire) != sender.session.used
        && let Some((op, cbdata)) = sender.session.waiting.pop_front()
    {
        sender.session.used = sender.session.used.wrapping_add(1);
        sender.toq.unreserve(op.entries());
        // SAFETY: the caller's promise.
        unsafe { start::<false>(vcq, sender, &op, cbdata) };
    }
}
