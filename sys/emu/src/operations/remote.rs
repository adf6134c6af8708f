//! Execution of operations by the posting thread, which acts as the device.
//!
//! Errors appear where the device's documentation puts them. An error on the local side of a put is detected when the
//! put is sent, and appears in the TCQ. An error at the target, or on the local side of a get, appears in the local
//! MRQ. Both appear even if no notice was requested. A failed operation leaves no notice at the target.

use crate::job::core::Job;
use crate::job::records::VcqBlock;
use crate::limits::ids::without_path;
use crate::mrq::{MrqNotice, PushError, RecentChunk};
use crate::queues::atomic_op;
use crate::queues::desc::{Op, OpAction};
use crate::queues::targets::Target;
use crate::queues::vcq::OpOrigin;
use crate::shared::copy::{self, CopyError};
use crate::shared::registrations::{Hold, RegisteredRegion, RegistrationEntry};
use crate::shared::watched::{LINE, WriteOrder};
use crate::sync::Ordering;
use std::ffi::c_int;
use utofu_sys::*;

/// Packs notice type, edata and return code into one word.
pub(crate) fn pack_meta(kind: utofu_mrq_notice_type, edata: u8, code: c_int) -> u64 {
    u64::from(kind as u8) | u64::from(edata) << 8 | u64::from(code as i16 as u16) << 16
}

/// Inverse of [`pack_meta`].
pub(crate) fn unpack_meta(meta: u64) -> (u8, u8, c_int) {
    (meta as u8, (meta >> 8) as u8, c_int::from((meta >> 16) as u16 as i16))
}

/// The result of the remote part of an operation.
#[derive(Clone, Copy)]
pub(crate) struct RemoteOutcome {
    /// 0 or a MRQ code.
    pub(crate) code: c_int,
    /// Old value of an atomic operation.
    pub(crate) value: u64,
}

impl RemoteOutcome {
    pub(crate) fn failed(code: c_int) -> RemoteOutcome {
        RemoteOutcome { code, value: 0 }
    }
}

/// Returns the number of bytes that an operation moves.
#[inline]
pub(crate) fn length(op: &Op) -> u32 {
    match op.action {
        OpAction::Nop => 0,
        OpAction::Put { len, .. } | OpAction::Piggyback { len, .. } | OpAction::Get { len, .. } => {
            len
        }
        OpAction::Atomic { width, .. } => width.into(),
    }
}

/// Returns the types of an operation's notices, at the sender and at the target.
#[inline]
fn kinds(op: &Op) -> (utofu_mrq_notice_type, utofu_mrq_notice_type) {
    match op.action {
        OpAction::Nop | OpAction::Put { .. } | OpAction::Piggyback { .. } => {
            (UTOFU_MRQ_TYPE_LCL_PUT, UTOFU_MRQ_TYPE_RMT_PUT)
        }
        OpAction::Get { .. } => (UTOFU_MRQ_TYPE_LCL_GET, UTOFU_MRQ_TYPE_RMT_GET),
        OpAction::Atomic { .. } => (UTOFU_MRQ_TYPE_LCL_ARMW, UTOFU_MRQ_TYPE_RMT_ARMW),
    }
}

/// Returns the STADD in an operation's notices: behind the last byte, or of the word of an atomic operation.
#[inline]
fn notice_stadd(op: &Op) -> u64 {
    match op.action {
        OpAction::Atomic { .. } => op.rmt,
        _ => op.rmt.wrapping_add(length(op).into()),
    }
}

/// Delivers the notice at the target, if the operation succeeded and requests one.
#[inline]
pub(crate) fn notify_target(
    origin: &OpOrigin,
    target: &VcqBlock,
    recent: &mut RecentChunk,
    op: &Op,
    outcome: &RemoteOutcome,
    ready_at: u64,
) {
    if outcome.code != UTOFU_SUCCESS || !op.has(UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE) {
        return;
    }
    let notice = MrqNotice {
        meta: pack_meta(kinds(op).1, op.edata, UTOFU_SUCCESS),
        vcq: origin.id,
        rmt: notice_stadd(op),
        // The manual leaves this field open; the value is that of Fujitsu's library.
        value: notice_stadd(op),
        ready_at,
        ..MrqNotice::default()
    };
    deliver(origin, target, recent, &notice);
}

/// Delivers the sender's own notice, if the operation failed or requests one.
#[inline]
pub(crate) fn notify_sender(
    origin: &OpOrigin,
    recent: &mut RecentChunk,
    op: &Op,
    outcome: &RemoteOutcome,
    order: u64,
    ready_at: u64,
) {
    if outcome.code == UTOFU_SUCCESS && !op.has(UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE) {
        return;
    }
    let value = match op.action {
        OpAction::Get { lcl, len } => lcl.wrapping_add(len.into()),
        OpAction::Atomic { .. } => outcome.value,
        _ => 0,
    };
    let notice = MrqNotice {
        meta: pack_meta(kinds(op).0, op.edata, outcome.code),
        vcq: without_path(op.vcq),
        rmt: notice_stadd(op),
        value,
        order,
        ready_at,
    };
    deliver(origin, origin.block(), recent, &notice);
}

/// Holds the registration whose memory the calling thread is about to look up and to copy `len` bytes of, if these are
/// more than a line: a thread can lose its processor during any copy; during a long copy this is likely.
#[inline]
pub(crate) fn hold<'a>(
    job: &'a Job,
    entry: Option<&'a RegistrationEntry>,
    len: u32,
) -> Option<Hold<'a>> {
    let process = job.me.map(|me| &job.rank_record(me).holding);
    entry.filter(|_| u64::from(len) > LINE).map(|entry| entry.hold(process))
}

/// Returns the region of `len` bytes of the posting rank's own memory, registered on the sending CQ, or one of the codes
/// for a wrong STADD and a wrong length.
#[inline]
fn local_region(
    origin: &OpOrigin,
    stadd: u64,
    len: u32,
    [stadd_code, length_code]: [c_int; 2],
) -> std::result::Result<RegisteredRegion, c_int> {
    match origin.table().lookup(stadd) {
        Some(r) if r.owner as usize != origin.context.rank => Err(stadd_code),
        Some(r) if r.bytes_left < i64::from(len) => Err(length_code),
        Some(r) => Ok(r),
        None => Err(stadd_code),
    }
}

/// Returns the address of a put's source, or a TCQ code.
#[inline]
pub(crate) fn source(origin: &OpOrigin, stadd: u64, len: u32) -> std::result::Result<u64, c_int> {
    let codes = [UTOFU_ERR_TCQ_STADD, UTOFU_ERR_TCQ_LENGTH];
    local_region(origin, stadd, len, codes).map(|region| region.addr)
}

/// Returns the address of a get's destination, or a MRQ code.
#[inline]
pub(crate) fn get_destination(
    origin: &OpOrigin,
    stadd: u64,
    len: u32,
) -> std::result::Result<u64, c_int> {
    let codes = [UTOFU_ERR_MRQ_LCL_STADD, UTOFU_ERR_MRQ_LCL_LENGTH];
    let region = local_region(origin, stadd, len, codes)?;
    if region.read_only { Err(UTOFU_ERR_MRQ_LCL_MEMORY) } else { Ok(region.addr) }
}

/// Executes the remote part of an operation. With `buffer_only` a get copies its bytes only to `buffer`, not yet to
/// their destination.
///
/// # Safety
/// Registered memory is mapped; `buffer` has `len` readable bytes for a put, and `len` writable bytes for a get with
/// `buffer_only`.
#[inline]
pub(crate) unsafe fn execute_remote(
    origin: &OpOrigin,
    target: &Target<'_>,
    op: &Op,
    buffer: u64,
    len: u32,
    buffer_only: bool,
) -> RemoteOutcome {
    let job = &*origin.context.job;
    let mut value = 0;
    let entry = target.table.entry(op.rmt);
    let _held = hold(job, entry, len);
    let code = match entry.and_then(|entry| entry.get(op.rmt)) {
        None => UTOFU_ERR_MRQ_RMT_STADD,
        Some(r) if r.bytes_left < i64::from(len) => UTOFU_ERR_MRQ_RMT_LENGTH,
        Some(r) if r.read_only && !matches!(op.action, OpAction::Get { .. }) => {
            UTOFU_ERR_MRQ_RMT_MEMORY
        }
        Some(r) => {
            let space = job.address_space(r.owner);
            let done = match op.action {
                OpAction::Nop => Ok(()),
                OpAction::Put { .. } | OpAction::Piggyback { .. } => {
                    // A program that requests a notice watches one line at most.
                    let has_notice = op.has(UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE);
                    let is_watched = !has_notice || u64::from(len) <= LINE;
                    let write_order = match is_watched {
                        true => {
                            let is_strong = op.has(UTOFU_ONESIDED_FLAG_STRONG_ORDER);
                            job.model.watched.write_order(r.addr, u64::from(len), is_strong)
                        }
                        false => WriteOrder::Any,
                    };
                    // SAFETY: the caller's promise, and the range lies in the registration.
                    unsafe { copy::write(space, buffer, r.addr, len as usize, write_order) }
                }
                OpAction::Get { lcl, .. } => match get_destination(origin, lcl, len) {
                    Ok(own) => {
                        let to = if buffer_only { buffer } else { own };
                        // SAFETY: both ranges lie in registrations, or `buffer` has the room.
                        unsafe { copy::read(space, r.addr, to, len as usize) }
                    }
                    Err(code) => return RemoteOutcome::failed(code),
                },
                OpAction::Atomic { width, update } => {
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
    RemoteOutcome { code, value }
}

/// Adds the session steps of a successful operation to its target's VCQ.
#[cold]
pub(crate) fn add_session_steps(target: &VcqBlock, op: &Op, outcome: &RemoteOutcome) {
    if outcome.code == UTOFU_SUCCESS && op.steps > 0 {
        // Release pairs with the Acquire in `start_waiting`: the data that the operation has written are visible.
        target.steps.fetch_add(op.steps.into(), Ordering::Release);
    }
}

/// Appends a notice to a queue. If the queue is full the notice is lost, and the queue's owner will end.
#[inline(always)]
fn deliver(origin: &OpOrigin, block: &VcqBlock, recent: &mut RecentChunk, notice: &MrqNotice) {
    if block.ring.push(&*origin.context.job, recent, notice) == Err(PushError::Overflow) {
        // Relaxed: the flag orders no other memory access.
        block.overflowed.store(1, Ordering::Relaxed);
    }
}
