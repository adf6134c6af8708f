//! Executing operations: the posting thread is the device.
//!
//! Errors come where the device's documentation puts them: what is wrong with the local side of a
//! put is found when it is sent and shows in the TCQ; what is wrong with the target, or with the
//! local side of a get, shows in the local MRQ. Both are shown even if no notice was asked for. A
//! failed operation leaves no notice at the target.

use crate::atomic_op;
use crate::copy::{self, CopyError};
use crate::desc::{Action, Op};
use crate::ids::{VcqPlace, without_path};
use crate::layout::VcqBlock;
use crate::mem::Region;
use crate::model::{Route, Times};
use crate::mrq::{Lost, Notice, Recent};
use crate::session;
use crate::sync::Ordering;
use crate::targets::{self, Target};
use crate::toq;
use crate::vcq::{Order, Origin, Sender, Vcq};
use crate::watched::{LINE, Sequence};
use std::ffi::c_int;
use utofu_sys::*;

/// Notice type, edata and return code in one word.
pub(crate) fn pack_meta(kind: utofu_mrq_notice_type, edata: u8, code: c_int) -> u64 {
    u64::from(kind as u8) | u64::from(edata) << 8 | u64::from(code as i16 as u16) << 16
}

/// The inverse of [`pack_meta`].
pub(crate) fn unpack_meta(meta: u64) -> (u8, u8, c_int) {
    (meta as u8, (meta >> 8) as u8, c_int::from((meta >> 16) as u16 as i16))
}

/// Posts an operation for which the TOQ has room.
///
/// # Safety
/// `sender` is the VCQ's; registered memory is mapped.
#[inline]
pub(crate) unsafe fn post(vcq: &Vcq, sender: &mut Sender, op: &Op, cbdata: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if vcq.is_plain && op.steps == 0 {
            start::<true>(vcq, sender, op, cbdata);
        } else {
            post_patiently(vcq, sender, *op, cbdata);
        }
    }
}

/// The same with all that is unusual.
///
/// # Safety
/// As [`post`].
#[cold]
unsafe fn post_patiently(vcq: &Vcq, sender: &mut Sender, op: Op, cbdata: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if vcq.is_session {
            session::post(vcq, sender, op, cbdata);
        } else {
            start::<false>(vcq, sender, &op, cbdata);
        }
    }
}

/// Starts an operation for which the TOQ has room. A plain one, which brings no steps and goes from
/// a plain VCQ, is over at once.
///
/// # Safety
/// As [`post`].
#[inline]
pub(crate) unsafe fn start<const PLAIN: bool>(
    vcq: &Vcq,
    sender: &mut Sender,
    op: &Op,
    cbdata: usize,
) {
    // SAFETY: the caller's promise.
    let (code, sent) = unsafe { execute::<PLAIN>(vcq, sender, op) };
    let noticed = op.has(UTOFU_ONESIDED_FLAG_TCQ_NOTICE);
    sender.toq.push(op.entries(), cbdata, noticed, code, sent);
}

/// The result of the remote part of an operation.
#[derive(Clone, Copy)]
pub(crate) struct Outcome {
    /// 0 or a MRQ code.
    pub(crate) code: c_int,
    /// Old value of an atomic operation.
    pub(crate) value: u64,
}

impl Outcome {
    pub(crate) fn failed(code: c_int) -> Outcome {
        Outcome { code, value: 0 }
    }
}

/// Bytes that an operation moves.
#[inline]
pub(crate) fn length(op: &Op) -> u32 {
    match op.action {
        Action::Nop => 0,
        Action::Put { len, .. } | Action::Piggyback { len, .. } | Action::Get { len, .. } => len,
        Action::Atomic { width, .. } => width.into(),
    }
}

/// Types of an operation's notices, here and at the target.
#[inline]
fn kinds(op: &Op) -> (utofu_mrq_notice_type, utofu_mrq_notice_type) {
    match op.action {
        Action::Nop | Action::Put { .. } | Action::Piggyback { .. } => {
            (UTOFU_MRQ_TYPE_LCL_PUT, UTOFU_MRQ_TYPE_RMT_PUT)
        }
        Action::Get { .. } => (UTOFU_MRQ_TYPE_LCL_GET, UTOFU_MRQ_TYPE_RMT_GET),
        Action::Atomic { .. } => (UTOFU_MRQ_TYPE_LCL_ARMW, UTOFU_MRQ_TYPE_RMT_ARMW),
    }
}

/// The STADD that notices name: behind the last byte, or of the word of an atomic operation.
#[inline]
fn end(op: &Op) -> u64 {
    match op.action {
        Action::Atomic { .. } => op.rmt,
        _ => op.rmt.wrapping_add(length(op).into()),
    }
}

/// Executes one operation. Returns its TCQ code, and when a poll may show it.
///
/// # Safety
/// Registered memory is mapped.
#[inline]
unsafe fn execute<const PLAIN: bool>(vcq: &Vcq, sender: &mut Sender, op: &Op) -> (c_int, u64) {
    if matches!(op.action, Action::Nop) {
        return (UTOFU_SUCCESS, 0);
    }
    let job = &*vcq.context.job;
    // Relaxed: one poster at a time (THREAD_SAFE: under the sender's lock).
    let order = vcq.local_posted.load(Ordering::Relaxed) + 1;
    if !PLAIN && let (Some(late), Some(device)) = (&vcq.late, &job.device) {
        vcq.local_posted.store(order, Ordering::Relaxed);
        device.post(vcq, late, &mut sender.order, op);
        return (UTOFU_SUCCESS, toq::LATE);
    }
    let len = length(op);
    // The source of a put is read when it is sent.
    let source = match op.action {
        Action::Put { lcl, .. } => match source(vcq, lcl, len) {
            Ok(addr) => addr,
            Err(code) => return (code, 0),
        },
        Action::Piggyback { ref data, .. } => data.as_ptr() as u64,
        _ => 0,
    };
    let Sender { targets, own, order: times_before, .. } = sender;
    let mut times = Times::default();
    // SAFETY: a VCQ belongs to one job.
    let outcome = match unsafe { targets.find(job, op.vcq) } {
        Some((target, recent)) => {
            if !PLAIN && job.model.takes_time() {
                times = self::times(vcq, times_before, op, len);
            }
            // SAFETY: the caller's promise; `source` was just looked up or is in `op`.
            let outcome = unsafe { act(vcq, &target, op, source, len, false) };
            notify_target(vcq, target.block, recent, op, &outcome, times.remote);
            if !PLAIN {
                session::bring_steps(target.block, op, &outcome);
            }
            outcome
        }
        None => Outcome::failed(UTOFU_ERR_MRQ_PEER),
    };
    notify_sender(vcq, own, op, &outcome, order, times.local);
    // Release pairs with the Acquire in poll_mrq: the notice, if any, is in the queue.
    vcq.local_posted.store(order, Ordering::Release);
    (UTOFU_SUCCESS, times.sent)
}

/// The notice at the target, if the operation went well and asks for one.
#[inline]
pub(crate) fn notify_target(
    origin: &Origin,
    target: &VcqBlock,
    recent: &mut Recent,
    op: &Op,
    outcome: &Outcome,
    ready_at: u64,
) {
    if outcome.code != UTOFU_SUCCESS || !op.has(UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE) {
        return;
    }
    let notice = Notice {
        meta: pack_meta(kinds(op).1, op.edata, UTOFU_SUCCESS),
        vcq: origin.id,
        rmt: end(op),
        // As Fujitsu's library fills what the manual leaves open.
        value: end(op),
        ready_at,
        ..Notice::default()
    };
    deliver(origin, target, recent, &notice);
}

/// The sender's own notice, if the operation failed or asks for one.
#[inline]
pub(crate) fn notify_sender(
    origin: &Origin,
    recent: &mut Recent,
    op: &Op,
    outcome: &Outcome,
    order: u64,
    ready_at: u64,
) {
    if outcome.code == UTOFU_SUCCESS && !op.has(UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE) {
        return;
    }
    // As Fujitsu's library fills what the manual leaves open: a get's and an atomic operation's
    // notices have the same in both places.
    let both = match op.action {
        Action::Get { lcl, len } => lcl.wrapping_add(len.into()),
        Action::Atomic { .. } => outcome.value,
        _ => 0,
    };
    let notice = Notice {
        meta: pack_meta(kinds(op).0, op.edata, outcome.code),
        vcq: without_path(op.vcq),
        rmt: end(op),
        lcl: both,
        value: both,
        order,
        ready_at,
    };
    deliver(origin, origin.block(), recent, &notice);
}

enum Missing {
    Stadd,
    Length,
}

/// `len` bytes of the posting rank's own memory, registered on the sending CQ.
#[inline]
fn own_region(origin: &Origin, stadd: u64, len: u32) -> std::result::Result<Region, Missing> {
    match origin.table().lookup(stadd) {
        Some(r) if r.owner as usize != origin.context.rank => Err(Missing::Stadd),
        Some(r) if r.room < i64::from(len) => Err(Missing::Length),
        Some(r) => Ok(r),
        None => Err(Missing::Stadd),
    }
}

/// The address of what a put sends; else a TCQ code.
#[inline]
pub(crate) fn source(origin: &Origin, stadd: u64, len: u32) -> std::result::Result<u64, c_int> {
    match own_region(origin, stadd, len) {
        Ok(region) => Ok(region.addr),
        Err(Missing::Stadd) => Err(UTOFU_ERR_TCQ_STADD),
        Err(Missing::Length) => Err(UTOFU_ERR_TCQ_LENGTH),
    }
}

/// The address where a get puts what it brings; else a MRQ code.
#[inline]
pub(crate) fn own_place(origin: &Origin, stadd: u64, len: u32) -> std::result::Result<u64, c_int> {
    match own_region(origin, stadd, len) {
        Ok(region) if region.read_only => Err(UTOFU_ERR_MRQ_LCL_MEMORY),
        Ok(region) => Ok(region.addr),
        Err(Missing::Stadd) => Err(UTOFU_ERR_MRQ_LCL_STADD),
        Err(Missing::Length) => Err(UTOFU_ERR_MRQ_LCL_LENGTH),
    }
}

/// Does the remote part of an operation. A get that `stays` brings its bytes to `here` only, and
/// not yet to where they belong.
///
/// # Safety
/// Registered memory is mapped; `here` has `len` readable bytes if this is a put, and `len` writable
/// ones if this is a get that stays.
#[inline]
pub(crate) unsafe fn act(
    origin: &Origin,
    target: &Target<'_>,
    op: &Op,
    here: u64,
    len: u32,
    stays: bool,
) -> Outcome {
    let job = &*origin.context.job;
    let mut value = 0;
    let entry = target.table.entry(op.rmt);
    // A thread can lose its processor in the midst of any copy, but of a long one it is likely.
    let process = job.me.map(|me| &job.rank_record(me).holding);
    let _held = entry.filter(|_| u64::from(len) > LINE).map(|entry| entry.hold(process));
    let code = match entry.and_then(|entry| entry.get(op.rmt)) {
        None => UTOFU_ERR_MRQ_RMT_STADD,
        Some(r) if r.room < i64::from(len) => UTOFU_ERR_MRQ_RMT_LENGTH,
        Some(r) if r.read_only && !matches!(op.action, Action::Get { .. }) => {
            UTOFU_ERR_MRQ_RMT_MEMORY
        }
        Some(r) => {
            let space = job.space_of(r.owner);
            let done = match op.action {
                Action::Nop => Ok(()),
                Action::Put { .. } | Action::Piggyback { .. } => {
                    // A program that gets a notice watches one line at most.
                    let is_told = op.has(UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE);
                    let is_watched = !is_told || u64::from(len) <= LINE;
                    let sequence = match is_watched {
                        true => {
                            let is_strong = op.has(UTOFU_ONESIDED_FLAG_STRONG_ORDER);
                            job.model.watched.sequence(r.addr, u64::from(len), is_strong)
                        }
                        false => Sequence::Any,
                    };
                    // SAFETY: the caller's promise, and the range lies in the registration.
                    unsafe { copy::write(space, here, r.addr, len as usize, sequence) }
                }
                Action::Get { lcl, .. } => match own_place(origin, lcl, len) {
                    Ok(own) => {
                        let to = if stays { here } else { own };
                        // SAFETY: both ranges lie in registrations, or `here` has the room.
                        unsafe { copy::read(space, r.addr, to, len as usize) }
                    }
                    Err(code) => return Outcome::failed(code),
                },
                Action::Atomic { width, update } => {
                    let lock = &job.rank_record(r.owner as usize).atomics;
                    let alone = job.me.is_none();
                    // SAFETY: the range lies in the registration.
                    let old =
                        unsafe { atomic_op::run(space, alone, lock, r.addr, width.into(), update) };
                    old.map(|v| value = v)
                }
            };
            match done {
                Ok(()) => UTOFU_SUCCESS,
                Err(CopyError::Memory) => UTOFU_ERR_MRQ_RMT_MEMORY,
                Err(CopyError::Peer) => UTOFU_ERR_MRQ_PEER,
            }
        }
    };
    Outcome { code, value }
}

/// Puts a notice into a queue. If there is no room it is lost, and the queue's owner will end.
#[inline(always)]
fn deliver(origin: &Origin, block: &VcqBlock, recent: &mut Recent, notice: &Notice) {
    if block.ring.push(&*origin.context.job, recent, notice) == Err(Lost::Overflow) {
        // Relaxed: says only that it is so.
        block.overflowed.store(1, Ordering::Relaxed);
    }
}

/// When the parts of an operation may be seen.
#[cold]
fn times(vcq: &Vcq, order: &mut Order, op: &Op, len: u32) -> Times {
    let job = &*vcq.context.job;
    let node = job.node_of(vcq.context.rank);
    let there = VcqPlace::of(op.vcq).ok().and_then(|place| job.tni_of(op.vcq, place));
    let Some((target, other)) = there else { return Times::default() };
    let own = vcq.tni_record();
    let inside = node == target;
    let is_get = matches!(op.action, Action::Get { .. });
    let len = u64::from(len);
    let mut route = Route {
        now: job.now(),
        inside,
        hops: job.hops(node, target),
        processor: &vcq.busy_until,
        from: &own.busy_until,
        to: &other.arriving_until,
        path: job.model.meets(len, inside).then(|| match is_get {
            false => (&job.header().links, job.path(node, target, &other.arriving)),
            true => (&job.header().links, job.path(target, node, &own.arriving)),
        }),
    };
    let times = if is_get {
        (route.from, route.to) = (&other.busy_until, &own.arriving_until);
        job.model.get(len, &route)
    } else {
        job.model.put(len, &route)
    };
    let earlier = order.last.entry(without_path(op.vcq)).or_default();
    let strong = op.has(UTOFU_ONESIDED_FLAG_STRONG_ORDER);
    job.model.queue(times, earlier, strong, &mut order.random)
}

/// When the late device executes the parts of an operation. It sends in the order of the posts; the
/// other parts are ordered only for strongly ordered operations.
#[cold]
pub(crate) fn late_times(vcq: &Vcq, order: &mut Order, op: &Op) -> Times {
    let job = &vcq.context.job;
    let start = match targets::find(job, op.vcq) {
        Some(_) if job.model.takes_time() => times(vcq, order, op, length(op)),
        _ => Times { sent: job.now(), remote: 0, local: 0 },
    };
    // The sends of the VCQ to all targets, under an id that no target has.
    let sends = order.last.entry(UTOFU_VBG_ID_NULL).or_default();
    let sent = (start.sent + order.random.late()).max(sends.sent);
    sends.sent = sent;
    let earlier = order.last.entry(without_path(op.vcq)).or_default();
    let mut remote = start.remote.max(sent) + order.random.late();
    if op.has(UTOFU_ONESIDED_FLAG_STRONG_ORDER) {
        remote = remote.max(earlier.remote);
    }
    let mut local = start.local.max(remote) + order.random.late();
    if op.has(UTOFU_ONESIDED_FLAG_STRONG_ORDER) {
        local = local.max(earlier.local);
    }
    earlier.remote = earlier.remote.max(remote);
    earlier.local = earlier.local.max(local);
    Times { sent, remote, local }
}
