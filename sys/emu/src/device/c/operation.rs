//! From the arguments of a post to operations: what is checked, and how blocks are counted.
//!
//! Fujitsu's library checks nothing here; an argument that does not fit would corrupt the
//! descriptor there. This one answers with the documented code.

use crate::atomic_op::Update;
use crate::desc::{Action, MAX_GAP, MAX_LENGTH, MAX_MTU, MAX_PIGGYBACK, Op};
use crate::error::{Result, fail};
use crate::ids::VcqPlace;
use crate::ops;
use crate::slots;
use crate::vcq::Vcq;
use std::ffi::{c_ulong, c_void};
use utofu_sys::*;

/// One operation, or several that differ by a stride on both sides.
pub(super) struct Blocks {
    op: Op,
    stride: u64,
    left: usize,
}

impl Blocks {
    /// The blocks of a strided operation.
    pub(super) fn stride(mut self, stride: usize, count: usize) -> Result<Blocks> {
        if count == 0 {
            return fail(UTOFU_ERR_INVALID_NUMBER, "num_blocks 0: must be at least 1");
        }
        self.stride = stride as u64;
        self.left = count;
        Ok(self)
    }

    /// Checks the packet size and the gap, which change nothing here.
    pub(super) fn gap(self, mtu: usize, gap: usize) -> Result<Blocks> {
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
    ///
    /// # Safety
    /// As [`crate::c`].
    #[inline]
    pub(super) unsafe fn post(self, handle: utofu_vcq_hdl_t, cbdata: *mut c_void) -> Result<()> {
        // SAFETY: the caller's promise.
        let vcq = unsafe { slots::get(handle)? };
        startable(vcq, c_ulong::from(self.op.flags))?;
        let entries = self.entries();
        // SAFETY: the caller's promise.
        unsafe { ops::post(vcq, self, entries, cbdata as usize) }
    }

    /// Writes the descriptors.
    ///
    /// # Safety
    /// As [`crate::c`].
    pub(super) unsafe fn prepare(
        self,
        handle: utofu_vcq_hdl_t,
        desc: *mut c_void,
        desc_size: *mut usize,
    ) -> Result<()> {
        super::not_null(desc, "desc")?;
        super::not_null(desc_size, "desc_size")?;
        // SAFETY: the caller's promise.
        unsafe { slots::get(handle)? };
        let entry = self.op.entries() * crate::desc::ENTRY;
        let mut size = 0;
        for op in self {
            let words = op.pack();
            // SAFETY: the manual's room for descriptors is 64 bytes for every operation; no more
            // than `entry` bytes of the 64 in `words` are copied.
            unsafe {
                let to = desc.cast::<u8>().add(size);
                std::ptr::copy_nonoverlapping(words.as_ptr().cast(), to, entry);
            }
            size += entry;
        }
        // SAFETY: not null, hence valid by the caller's promise.
        unsafe { super::store(desc_size, size, "desc_size") }
    }
}

impl Iterator for Blocks {
    type Item = Op;

    #[inline]
    fn next(&mut self) -> Option<Op> {
        self.left = self.left.checked_sub(1)?;
        let op = self.op;
        if self.left > 0 {
            self.op.rmt = op.rmt.wrapping_add(self.stride);
            if let Action::Put { lcl, .. } | Action::Get { lcl, .. } = &mut self.op.action {
                *lcl = lcl.wrapping_add(self.stride);
            }
        }
        Some(op)
    }
}

/// Refuses what this device does not start: sessions, and operations that wait for one.
#[inline]
pub(super) fn startable(vcq: &Vcq, flags: c_ulong) -> Result<()> {
    if vcq.session || flags & UTOFU_ONESIDED_FLAG_DELAY_START != 0 {
        return fail(
            UTOFU_ERR_NOT_SUPPORTED,
            "the emulator does not run sessions: post to a VCQ without SESSION_MODE and without DELAY_START",
        );
    }
    Ok(())
}

#[inline]
fn operation(
    action: Action,
    vcq: utofu_vcq_id_t,
    rmt: utofu_stadd_t,
    edata: u64,
    flags: c_ulong,
) -> Result<Blocks> {
    if action != Action::Nop {
        VcqPlace::of(vcq)?;
    }
    let Ok(edata) = u8::try_from(edata) else {
        return fail(UTOFU_ERR_INVALID_EDATA, format!("edata {edata}: must be below 256"));
    };
    Ok(Blocks { op: Op { action, vcq, rmt, edata, flags: flags as u16 }, stride: 0, left: 1 })
}

#[inline]
fn length(length: usize, most: usize) -> Result<u32> {
    if length <= most {
        return Ok(length as u32);
    }
    fail(UTOFU_ERR_INVALID_SIZE, format!("length {length}: must be at most {most}"))
}

#[inline(always)]
pub(super) fn put(
    vcq: u64,
    lcl: u64,
    rmt: u64,
    len: usize,
    edata: u64,
    flags: c_ulong,
) -> Result<Blocks> {
    let len = length(len, MAX_LENGTH)?;
    operation(Action::Put { lcl, len }, vcq, rmt, edata, flags)
}

#[inline]
pub(super) fn get(
    vcq: u64,
    lcl: u64,
    rmt: u64,
    len: usize,
    edata: u64,
    flags: c_ulong,
) -> Result<Blocks> {
    let len = length(len, MAX_LENGTH)?;
    operation(Action::Get { lcl, len }, vcq, rmt, edata, flags)
}

/// # Safety
/// `data` is null or has `len` bytes.
#[inline]
pub(super) unsafe fn piggyback(
    vcq: u64,
    data: *const c_void,
    rmt: u64,
    len: usize,
    edata: u64,
    flags: c_ulong,
) -> Result<Blocks> {
    let short = length(len, MAX_PIGGYBACK)?;
    let mut words = [0u64; 4];
    if len > 0 {
        super::not_null(data, "lcl_data")?;
        // SAFETY: at most 32 bytes, which `data` has by the caller's promise and `words` holds.
        unsafe {
            std::ptr::copy_nonoverlapping(data.cast::<u8>(), words.as_mut_ptr().cast(), len);
        }
    }
    let action = Action::Piggyback { data: words, len: short, entries: 2 };
    operation(action, vcq, rmt, edata, flags)
}

#[inline]
pub(super) fn piggyback8(
    vcq: u64,
    data: u64,
    rmt: u64,
    len: usize,
    edata: u64,
    flags: c_ulong,
) -> Result<Blocks> {
    let action =
        Action::Piggyback { data: [data.to_le(), 0, 0, 0], len: length(len, 8)?, entries: 1 };
    operation(action, vcq, rmt, edata, flags)
}

#[inline]
pub(super) fn armw(
    width: u8,
    vcq: u64,
    op: utofu_armw_op,
    value: u64,
    rmt: u64,
    edata: u64,
    flags: c_ulong,
) -> Result<Blocks> {
    match Update::of(op, value) {
        Some(update) => operation(Action::Atomic { width, update }, vcq, rmt, edata, flags),
        None => fail(UTOFU_ERR_INVALID_OP, format!("atomic operator {op}: must be 1 to 5")),
    }
}

#[inline]
pub(super) fn cswap(
    width: u8,
    vcq: u64,
    (old, new): (u64, u64),
    rmt: u64,
    edata: u64,
    flags: c_ulong,
) -> Result<Blocks> {
    let update = Update::Compare { old, new };
    operation(Action::Atomic { width, update }, vcq, rmt, edata, flags)
}

#[inline]
pub(super) fn nop(flags: c_ulong) -> Result<Blocks> {
    operation(Action::Nop, 0, 0, 0, flags)
}
