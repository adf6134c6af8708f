//! Executing operations: the posting thread is the device.
//!
//! Errors come where the device's documentation puts them: what is wrong with the local side of a
//! put is found when it is sent and shows in the TCQ; what is wrong with the target, or with the
//! local side of a get, shows in the local MRQ. Both are shown even if no notice was asked for. A
//! failed operation leaves no notice at the target.

use crate::atomic_op;
use crate::copy::{self, CopyError};
use crate::desc::{Action, Op};
use crate::error::Result;
use crate::ids::{VcqPlace, without_path};
use crate::layout::VcqBlock;
use crate::mem::Region;
use crate::model::Times;
use crate::mrq::{Lost, Notice};
use crate::sync::Ordering;
use crate::vcq::{Sender, Target, Vcq};
use std::ffi::c_int;
use utofu_abi::*;

/// Notice type, edata and return code in one word.
pub(crate) fn pack_meta(kind: utofu_mrq_notice_type, edata: u8, code: c_int) -> u64 {
    u64::from(kind as u8) | u64::from(edata) << 8 | u64::from(code as i16 as u16) << 16
}

/// The inverse of [`pack_meta`].
pub(crate) fn unpack_meta(meta: u64) -> (u8, u8, c_int) {
    (meta as u8, (meta >> 8) as u8, c_int::from((meta >> 16) as u16 as i16))
}

/// Posts operations that together take `entries` TOQ entries: all, or none with BUSY.
///
/// # Safety
/// As [`Vcq::send`]; registered memory is mapped.
#[inline]
pub(crate) unsafe fn post(
    vcq: &Vcq,
    ops: impl Iterator<Item = Op>,
    entries: usize,
    cbdata: usize,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        vcq.send(|sender| {
            sender.toq.room_for(entries)?;
            for op in ops {
                let (code, sent) = execute(vcq, sender, &op);
                let noticed = op.has(UTOFU_ONESIDED_FLAG_TCQ_NOTICE);
                sender.toq.push(op.entries(), cbdata, noticed, code, sent);
            }
            Ok(())
        })
    }
}

/// What the remote side came to.
struct Outcome {
    /// 0 or a MRQ code.
    code: c_int,
    /// Old value of an atomic operation.
    value: u64,
}

/// Does one operation; its TCQ code and when that may be seen.
///
/// # Safety
/// Registered memory is mapped.
#[inline]
unsafe fn execute(vcq: &Vcq, sender: &mut Sender, op: &Op) -> (c_int, u64) {
    let (len, local, remote) = match op.action {
        Action::Nop => return (UTOFU_SUCCESS, 0),
        Action::Put { len, .. } | Action::Piggyback { len, .. } => {
            (len, UTOFU_MRQ_TYPE_LCL_PUT, UTOFU_MRQ_TYPE_RMT_PUT)
        }
        Action::Get { len, .. } => (len, UTOFU_MRQ_TYPE_LCL_GET, UTOFU_MRQ_TYPE_RMT_GET),
        Action::Atomic { width, .. } => {
            (u32::from(width), UTOFU_MRQ_TYPE_LCL_ARMW, UTOFU_MRQ_TYPE_RMT_ARMW)
        }
    };
    let job = &*vcq.context.job;
    // The source of a put is read when it is sent.
    let source = match op.action {
        Action::Put { lcl, .. } => match own_region(vcq, lcl, len) {
            Ok(region) => region.addr,
            Err(Missing::Stadd) => return (UTOFU_ERR_TCQ_STADD, 0),
            Err(Missing::Length) => return (UTOFU_ERR_TCQ_LENGTH, 0),
        },
        Action::Piggyback { ref data, .. } => data.as_ptr() as u64,
        _ => 0,
    };
    let target = VcqPlace::of(op.vcq).ok().and_then(|place| job.find(op.vcq, place));
    let times = match &target {
        Some(t) if !job.model.is_off() => times(vcq, sender, op, len, t),
        _ => Times::default(),
    };
    let outcome = match &target {
        // SAFETY: the caller's promise; `source` was just looked up or is in `op`.
        Some(t) => unsafe { act(vcq, t, op, source, len) },
        None => Outcome { code: UTOFU_ERR_MRQ_PEER, value: 0 },
    };
    let atomic = matches!(op.action, Action::Atomic { .. });
    let end = op.rmt.wrapping_add(if atomic { 0 } else { u64::from(len) });
    if let Some(t) = &target
        && outcome.code == UTOFU_SUCCESS
        && op.has(UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE)
    {
        let notice = Notice {
            meta: pack_meta(remote, op.edata, UTOFU_SUCCESS),
            vcq: vcq.place.id(),
            rmt: end,
            // As Fujitsu's library fills what the manual leaves open.
            value: end,
            ready_at: times.remote,
            ..Notice::default()
        };
        deliver(vcq, t.block, &notice);
    }
    // Relaxed: one poster at a time (THREAD_SAFE: under the sender's lock).
    let order = vcq.local_posted.load(Ordering::Relaxed) + 1;
    if outcome.code != UTOFU_SUCCESS || op.has(UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE) {
        // As Fujitsu's library fills what the manual leaves open: a get's and an atomic operation's
        // notices have the same in both places.
        let (lcl, value) = match op.action {
            Action::Get { lcl, .. } => {
                let end = lcl.wrapping_add(u64::from(len));
                (end, end)
            }
            Action::Atomic { .. } => (outcome.value, outcome.value),
            _ => (0, 0),
        };
        let notice = Notice {
            meta: pack_meta(local, op.edata, outcome.code),
            vcq: without_path(op.vcq),
            rmt: end,
            lcl,
            value,
            order,
            ready_at: times.local,
        };
        deliver(vcq, vcq.block(), &notice);
    }
    // Release pairs with the Acquire in poll_mrq: the notice, if any, is in the queue.
    vcq.local_posted.store(order, Ordering::Release);
    (UTOFU_SUCCESS, times.sent)
}

enum Missing {
    Stadd,
    Length,
}

/// `len` bytes of the posting rank's own memory, registered on the sending CQ.
#[inline]
fn own_region(vcq: &Vcq, stadd: u64, len: u32) -> std::result::Result<Region, Missing> {
    match vcq.table().lookup(stadd) {
        Some(r) if r.owner as usize != vcq.context.rank => Err(Missing::Stadd),
        Some(r) if r.room < i64::from(len) => Err(Missing::Length),
        Some(r) => Ok(r),
        None => Err(Missing::Stadd),
    }
}

/// Does the remote part of an operation.
///
/// # Safety
/// Registered memory is mapped; `source` has `len` readable bytes if this is a put.
#[inline]
unsafe fn act(vcq: &Vcq, target: &Target<'_>, op: &Op, source: u64, len: u32) -> Outcome {
    let job = &*vcq.context.job;
    let mut value = 0;
    let code = match target.table.lookup(op.rmt) {
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
                    // SAFETY: the caller's promise, and the range lies in the registration.
                    unsafe { copy::write(space, source, r.addr, len as usize) }
                }
                Action::Get { lcl, .. } => match own_region(vcq, lcl, len) {
                    Ok(own) if own.read_only => return failed(UTOFU_ERR_MRQ_LCL_MEMORY),
                    // SAFETY: both ranges lie in registrations.
                    Ok(own) => unsafe { copy::read(space, r.addr, own.addr, len as usize) },
                    Err(Missing::Stadd) => return failed(UTOFU_ERR_MRQ_LCL_STADD),
                    Err(Missing::Length) => return failed(UTOFU_ERR_MRQ_LCL_LENGTH),
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

fn failed(code: c_int) -> Outcome {
    Outcome { code, value: 0 }
}

/// Puts a notice into a queue. If there is no room it is lost, and the queue's owner will end.
#[inline]
fn deliver(vcq: &Vcq, block: &VcqBlock, notice: &Notice) {
    if block.ring.push(&*vcq.context.job, notice) == Err(Lost::Overflow) {
        // Relaxed: says only that it is so.
        block.overflowed.store(1, Ordering::Relaxed);
    }
}

/// When the parts of an operation may be seen.
#[cold]
fn times(vcq: &Vcq, sender: &mut Sender, op: &Op, len: u32, target: &Target<'_>) -> Times {
    let job = &*vcq.context.job;
    let hops = job.hops(job.node_of(vcq.context.rank), target.node);
    let len = u64::from(len);
    let times = match op.action {
        Action::Get { .. } => job.model.get(len, hops, &target.tni.busy_until),
        _ => job.model.put(len, hops, &vcq.tni_record().busy_until),
    };
    let earlier = sender.last.entry(without_path(op.vcq)).or_default();
    let strong = op.has(UTOFU_ONESIDED_FLAG_STRONG_ORDER);
    job.model.queue(times, earlier, strong, &mut sender.random)
}
