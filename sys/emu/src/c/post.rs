//! The one-sided operations as one table. Each has a function that posts it at once and one that prepares
//! descriptors. Fujitsu's library checks no argument: a value that is too large corrupts the descriptor. This device
//! returns the documented code.
//!
//! Common errors: INVALID_VCQ_HDL, INVALID_VCQ_ID, INVALID_SIZE, INVALID_EDATA, INVALID_NUMBER, INVALID_OP,
//! INVALID_ARG (mtu, gap), INVALID_POINTER, NOT_SUPPORTED (DELAY_START, sessions with latencies). Posting also
//! returns BUSY if the queue is full; poll the TCQ then.

use super::{call, not_null, store};
use crate::limits::{MAX_GAP, MAX_LENGTH, MAX_MTU, MAX_PIGGYBACK};
use crate::limits::{error::Result, error::fail, ids::VcqPlace};
use crate::operations::post;
use crate::queues::desc::{ENTRY, Entry, Op, OpAction};
use crate::queues::{atomic_op::Update, slots, vcq::Vcq};
use std::ffi::{c_int, c_ulong, c_void};
use utofu_sys::*;

/// Defines the two functions of each operation from its parameters and an expression that makes the [`StridedOp`].
macro_rules! operations {
    ($(#[doc = $doc:literal] $post:ident, $prepare:ident
       ($($arg:ident: $ty:ty),+) $op:expr;)+) => {$(
        #[doc = $doc]
        // The C interface fixes the parameters.
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $post(
            vcq_hdl: utofu_vcq_hdl_t,
            $($arg: $ty,)+
            cbdata: *mut c_void,
        ) -> c_int {
            // SAFETY: the caller's promise.
            call(|| unsafe { ($op)?.post(vcq_hdl, cbdata) })
        }

        #[doc = concat!("Writes the descriptors of [`", stringify!($post), "()`] for `utofu_post_toq`.")]
        ///
        /// # Safety
        /// As [`crate::c`]; `desc` has room for the descriptors.
        // The C interface fixes the parameters.
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $prepare(
            vcq_hdl: utofu_vcq_hdl_t,
            $($arg: $ty,)+
            desc: *mut c_void,
            desc_size: *mut usize,
        ) -> c_int {
            // SAFETY: the caller's promise.
            call(|| unsafe { ($op)?.prepare(vcq_hdl, desc, desc_size) })
        }
    )+};
}

/// [`operations`] between memory on both sides, optionally strided, optionally with a packet size and a gap.
macro_rules! transfers {
    ($(#[doc = $doc:literal] $post:ident, $prepare:ident: $action:ident
       $(stride($stride:ident, $blocks:ident))? $(gap($mtu:ident, $gap:ident))?;)+) => {
        operations! {$(
            #[doc = $doc]
            $post, $prepare
            (rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize,
             $($stride: usize, $blocks: usize,)? edata: u64, flags: c_ulong $(, $mtu: usize, $gap: usize)?)
            op_to(rmt_vcq_id, $action(lcl_stadd, length)?, rmt_stadd, edata, flags)
                $(?.gap($mtu, $gap))? $(?.stride($stride, $blocks))?;
        )+}
    };
}

transfers! {
    /// Writes `length` bytes of local memory to the target.
    utofu_put, utofu_prepare_put: put;
    /// Put with a packet size and a gap between packets, both of which have no effect here.
    utofu_put_gap, utofu_prepare_put_gap: put gap(mtu, gap);
    /// Puts blocks that lie `stride` bytes apart on both sides; each counts as a put of its own.
    utofu_put_stride, utofu_prepare_put_stride: put stride(stride, num_blocks);
    /// Strided put with a packet size and a gap.
    utofu_put_stride_gap, utofu_prepare_put_stride_gap: put stride(stride, num_blocks) gap(mtu, gap);
    /// Reads `length` bytes of the target's memory.
    utofu_get, utofu_prepare_get: get;
    /// Get with a packet size and a gap between packets, both of which have no effect here.
    utofu_get_gap, utofu_prepare_get_gap: get gap(mtu, gap);
    /// Gets blocks that lie `stride` bytes apart on both sides; each counts as a get of its own.
    utofu_get_stride, utofu_prepare_get_stride: get stride(stride, num_blocks);
    /// Strided get with a packet size and a gap.
    utofu_get_stride_gap, utofu_prepare_get_stride_gap: get stride(stride, num_blocks) gap(mtu, gap);
}

operations! {
    /// Put of at most 32 bytes, which the descriptor carries; `lcl_data` may be changed after the call.
    utofu_put_piggyback, utofu_prepare_put_piggyback
    (rmt_vcq_id: utofu_vcq_id_t, lcl_data: *mut c_void, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong)
    op_to(rmt_vcq_id, piggyback(lcl_data, length)?, rmt_stadd, edata, flags);

    /// Put of the low `length` bytes (at most 8) of a value.
    utofu_put_piggyback8, utofu_prepare_put_piggyback8
    (rmt_vcq_id: utofu_vcq_id_t, lcl_data: u64, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong)
    op_to(rmt_vcq_id, piggyback8(lcl_data, length)?, rmt_stadd, edata, flags);

    /// Atomic operation on 4 bytes of the target.
    utofu_armw4, utofu_prepare_armw4
    (rmt_vcq_id: utofu_vcq_id_t, armw_op: utofu_armw_op, op_value: u32, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong)
    op_to(rmt_vcq_id, armw(4, armw_op, op_value.into())?, rmt_stadd, edata, flags);

    /// Atomic operation on 8 bytes of the target.
    utofu_armw8, utofu_prepare_armw8
    (rmt_vcq_id: utofu_vcq_id_t, armw_op: utofu_armw_op, op_value: u64, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong)
    op_to(rmt_vcq_id, armw(8, armw_op, op_value)?, rmt_stadd, edata, flags);

    /// Stores `new_value` in 4 bytes of the target if they hold `old_value`.
    utofu_cswap4, utofu_prepare_cswap4
    (rmt_vcq_id: utofu_vcq_id_t, old_value: u32, new_value: u32, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong)
    op_to(rmt_vcq_id, cswap(4, old_value.into(), new_value.into()), rmt_stadd, edata, flags);

    /// Stores `new_value` in 8 bytes of the target if they hold `old_value`.
    utofu_cswap8, utofu_prepare_cswap8
    (rmt_vcq_id: utofu_vcq_id_t, old_value: u64, new_value: u64, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong)
    op_to(rmt_vcq_id, cswap(8, old_value, new_value), rmt_stadd, edata, flags);

    /// Occupies an entry of the queue and does nothing else.
    utofu_nop, utofu_prepare_nop
    (flags: c_ulong)
    op_to(0, OpAction::Nop, 0, 0, flags);
}

/// Posts prepared descriptors: all of them, or none with BUSY. The completion of each carries `cbdata`. Errors:
/// INVALID_VCQ_HDL, INVALID_POINTER, INVALID_DESC, NOT_SUPPORTED, BUSY.
pub unsafe extern "C" fn utofu_post_toq(
    vcq_hdl: utofu_vcq_hdl_t,
    desc: *mut c_void,
    desc_size: usize,
    cbdata: *mut c_void,
) -> c_int {
    call(|| {
        not_null(desc, "desc")?;
        // SAFETY: the caller's promise.
        let vcq = unsafe { slots::get(vcq_hdl)? };
        if desc_size == 0 || !desc_size.is_multiple_of(ENTRY) {
            return fail(
                UTOFU_ERR_INVALID_DESC,
                format!("{desc_size} bytes: descriptors are multiples of {ENTRY} bytes"),
            );
        }
        // SAFETY: `desc_size` bytes that no thread writes meanwhile, by the caller's promise.
        let entries = unsafe { std::slice::from_raw_parts(desc.cast(), desc_size / ENTRY) };
        // All descriptors are checked before the first is posted.
        for_each_op(entries, |op| check_startable(vcq, op))?;
        // SAFETY: the caller's promise.
        unsafe {
            vcq.send(|sender| {
                vcq.room_for(sender, entries.len())?;
                for_each_op(entries, |op| {
                    post::post(vcq, sender, op, cbdata as usize);
                    Ok(())
                })
            })
        }
    })
}

/// Decodes descriptors one by one and calls `f` for each.
#[inline]
fn for_each_op(mut entries: &[Entry], mut f: impl FnMut(&Op) -> Result<()>) -> Result<()> {
    while !entries.is_empty() {
        let op = Op::unpack(entries)?;
        f(&op)?;
        entries = &entries[op.entries()..];
    }
    Ok(())
}

/// One operation, or several whose addresses on both sides advance by a stride.
struct StridedOp {
    op: Op,
    stride: u64,
    left: usize,
}

impl StridedOp {
    /// The blocks of a strided operation.
    fn stride(mut self, stride: usize, count: usize) -> Result<StridedOp> {
        if count == 0 {
            return fail(UTOFU_ERR_INVALID_NUMBER, "num_blocks 0: must be at least 1");
        }
        self.stride = stride as u64;
        self.left = count;
        Ok(self)
    }

    /// Checks the packet size and the gap, both of which have no effect here.
    fn gap(self, mtu: usize, gap: usize) -> Result<StridedOp> {
        if mtu > MAX_MTU || gap > MAX_GAP {
            return fail(
                UTOFU_ERR_INVALID_ARG,
                format!("mtu {mtu}, gap {gap}: must be at most {MAX_MTU} and {MAX_GAP}"),
            );
        }
        Ok(self)
    }

    /// TOQ entries of all blocks.
    fn entries(&self) -> usize {
        self.op.entries().saturating_mul(self.left)
    }

    /// Posts to a VCQ.
    #[inline]
    unsafe fn post(mut self, handle: utofu_vcq_hdl_t, cbdata: *mut c_void) -> Result<()> {
        // SAFETY: the caller's promise.
        let vcq = unsafe { slots::get(handle)? };
        check_startable(vcq, &self.op)?;
        // SAFETY: the caller's promise.
        unsafe {
            vcq.send(|sender| {
                if let Some(id) = self.target() {
                    sender.targets.check(id)?;
                }
                vcq.room_for(sender, self.entries())?;
                loop {
                    post::post(vcq, sender, &self.op, cbdata as usize);
                    if !self.advance() {
                        return Ok(());
                    }
                }
            })
        }
    }

    /// Writes the descriptors.
    #[inline]
    unsafe fn prepare(
        mut self,
        handle: utofu_vcq_hdl_t,
        desc: *mut c_void,
        desc_size: *mut usize,
    ) -> Result<()> {
        not_null(desc, "desc")?;
        not_null(desc_size, "desc_size")?;
        // SAFETY: the caller's promise.
        unsafe { slots::get(handle)? };
        if let Some(id) = self.target() {
            VcqPlace::of(id)?;
        }
        let mut size = 0;
        loop {
            let [first, second] = self.op.pack();
            // SAFETY: room for the descriptors of all blocks by the caller's promise.
            unsafe {
                let to = desc.byte_add(size).cast::<Entry>();
                to.write(first);
                if self.op.entries() == 2 {
                    to.add(1).write(second);
                }
            }
            size += self.op.entries() * ENTRY;
            if !self.advance() {
                break;
            }
        }
        // SAFETY: not null, hence valid by the caller's promise.
        unsafe { store(desc_size, size, "desc_size") }
    }

    /// Returns the id of the target VCQ; `None` for a no-op.
    #[inline]
    fn target(&self) -> Option<utofu_vcq_id_t> {
        (!matches!(self.op.action, OpAction::Nop)).then_some(self.op.vcq)
    }

    /// Advances to the next block; false after the last one.
    #[inline]
    fn advance(&mut self) -> bool {
        self.left -= 1;
        if self.left == 0 {
            return false;
        }
        self.op.rmt = self.op.rmt.wrapping_add(self.stride);
        if let OpAction::Put { lcl, .. } | OpAction::Get { lcl, .. } = &mut self.op.action {
            *lcl = lcl.wrapping_add(self.stride);
        }
        true
    }
}

/// Refuses operations that this device would never start, or not in time.
#[inline]
fn check_startable(vcq: &Vcq, op: &Op) -> Result<()> {
    let is_delayed = op.has(UTOFU_ONESIDED_FLAG_DELAY_START);
    if vcq.is_session || is_delayed { check_session_start(vcq) } else { Ok(()) }
}

#[cold]
fn check_session_start(vcq: &Vcq) -> Result<()> {
    if !vcq.is_session {
        return fail(
            UTOFU_ERR_NOT_SUPPORTED,
            "nothing would start it: post to a VCQ with SESSION_MODE, or without DELAY_START",
        );
    }
    if vcq.context.job.model.has_latency() {
        return fail(
            UTOFU_ERR_NOT_SUPPORTED,
            "the emulator runs no sessions where operations take time (HOPBINE_EMU_MACHINE, \
             HOPBINE_EMU_JITTER_NS)",
        );
    }
    Ok(())
}

/// One operation on a VCQ.
#[inline]
fn op_to(
    vcq: utofu_vcq_id_t,
    action: OpAction,
    rmt: utofu_stadd_t,
    edata: u64,
    flags: c_ulong,
) -> Result<StridedOp> {
    let Ok(edata) = u8::try_from(edata) else {
        return fail(UTOFU_ERR_INVALID_EDATA, format!("edata {edata}: must be below 256"));
    };
    let steps = Op::steps_in(flags);
    Ok(StridedOp {
        op: Op { action, vcq, rmt, edata, flags: flags as u16, steps },
        stride: 0,
        left: 1,
    })
}

#[inline]
fn length(length: usize, most: usize) -> Result<u32> {
    if length <= most {
        return Ok(length as u32);
    }
    fail(UTOFU_ERR_INVALID_SIZE, format!("length {length}: must be at most {most}"))
}

#[inline(always)]
fn put(lcl: utofu_stadd_t, len: usize) -> Result<OpAction> {
    Ok(OpAction::Put { lcl, len: length(len, MAX_LENGTH)? })
}

#[inline]
fn get(lcl: utofu_stadd_t, len: usize) -> Result<OpAction> {
    Ok(OpAction::Get { lcl, len: length(len, MAX_LENGTH)? })
}

/// # Safety
/// `data` is null or has `len` bytes.
#[inline]
unsafe fn piggyback(data: *const c_void, len: usize) -> Result<OpAction> {
    let short = length(len, MAX_PIGGYBACK)?;
    let mut words = [0u64; 4];
    if len > 0 {
        not_null(data, "lcl_data")?;
        // SAFETY: at most 32 bytes, which `data` has by the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) };
        // Most lengths are multiples of a word: a call of a copy of any length would take longer.
        let (whole, rest) = bytes.as_chunks::<8>();
        words.iter_mut().zip(whole).for_each(|(word, bytes)| *word = u64::from_ne_bytes(*bytes));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            words[whole.len()] = u64::from_ne_bytes(last);
        }
    }
    Ok(OpAction::Piggyback { data: words, len: short, entries: 2 })
}

#[inline]
fn piggyback8(data: u64, len: usize) -> Result<OpAction> {
    Ok(OpAction::Piggyback { data: [data.to_le(), 0, 0, 0], len: length(len, 8)?, entries: 1 })
}

#[inline]
fn armw(width: u8, op: utofu_armw_op, value: u64) -> Result<OpAction> {
    match Update::of(op, value) {
        Some(update) => Ok(OpAction::Atomic { width, update }),
        None => fail(UTOFU_ERR_INVALID_OP, format!("atomic operator {op}: must be 1 to 5")),
    }
}

#[inline]
fn cswap(width: u8, old: u64, new: u64) -> OpAction {
    OpAction::Atomic { width, update: Update::Compare { old, new } }
}
