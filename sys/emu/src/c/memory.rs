//! Registering memory.

use super::{call, not_null, store};
use crate::limits::error::{Result, fail};
use crate::limits::ids::{self, VcqPlace};
use crate::operations::checked::check_deregister;
use crate::queues::slots;
use crate::queues::vcq::Vcq;
use crate::shared::registrations::Range;
use crate::timing::busy_wait;
use std::ffi::{c_int, c_uint, c_ulong, c_void};
use utofu_sys::*;

fn range(vcq: &Vcq, addr: *mut c_void, size: usize, flags: c_ulong) -> Range {
    Range {
        addr: addr as u64,
        size: size as u64,
        owner: vcq.context.rank as u32,
        flags: (flags & UTOFU_REG_MEM_FLAG_READ_ONLY) as u32,
        unmap_epoch: vcq.context.job.unmap_epoch(),
    }
}

/// Registers memory with a VCQ and writes its STADD.
///
/// # Safety
/// As [`utofu_reg_mem()`].
unsafe fn register_with(
    vcq_hdl: utofu_vcq_hdl_t,
    stadd: *mut utofu_stadd_t,
    register: impl FnOnce(&Vcq) -> Result<utofu_stadd_t>,
) -> c_int {
    call(|| {
        not_null(stadd, "stadd")?;
        // SAFETY: the caller's promise.
        let vcq = unsafe { slots::get(vcq_hdl)? };
        busy_wait(vcq.context.job.model.reg_ns);
        if vcq.context.job.refuses_registration(vcq.context.rank) {
            return fail(UTOFU_ERR_FULL, "the owner of the job refuses this registration");
        }
        let made = register(vcq)?;
        // SAFETY: not null, hence valid by the caller's promise.
        unsafe { store(stadd, made, "stadd") }
    })
}

/// Registers memory, in whole pages, with the VCQ's CQ. Errors: INVALID_VCQ_HDL, INVALID_POINTER, INVALID_SIZE, FULL.
///
/// # Safety
/// As [`crate::c`]: the memory stays mapped until no operation uses it any more.
pub unsafe extern "C" fn utofu_reg_mem(
    vcq_hdl: utofu_vcq_hdl_t,
    addr: *mut c_void,
    size: usize,
    flags: c_ulong,
    stadd: *mut utofu_stadd_t,
) -> c_int {
    let register =
        |vcq: &Vcq| vcq.table().register(range(vcq, addr, size, flags), vcq.context.job.page);
    // SAFETY: the caller's promise.
    unsafe { register_with(vcq_hdl, stadd, register) }
}

/// Registers memory under a STag of the caller's choice. Errors: INVALID_VCQ_HDL, INVALID_POINTER, INVALID_STAG.
///
/// # Safety
/// As [`utofu_reg_mem()`].
pub unsafe extern "C" fn utofu_reg_mem_with_stag(
    vcq_hdl: utofu_vcq_hdl_t,
    addr: *mut c_void,
    size: usize,
    stag: c_uint,
    flags: c_ulong,
    stadd: *mut utofu_stadd_t,
) -> c_int {
    let register = |vcq: &Vcq| {
        let name = ids::user_stadd(vcq.place.extra, stag)?;
        vcq.table().register_user(range(vcq, addr, size, flags), name)?;
        Ok(name)
    };
    // SAFETY: the caller's promise.
    unsafe { register_with(vcq_hdl, stadd, register) }
}

/// Writes the STADD of memory that the owner of a VCQ registers under a STag. Errors: INVALID_VCQ_ID, INVALID_STAG,
/// INVALID_POINTER.
pub unsafe extern "C" fn utofu_query_stadd(
    vcq_id: utofu_vcq_id_t,
    stag: c_uint,
    stadd: *mut utofu_stadd_t,
) -> c_int {
    call(|| {
        let name: Result<u64> = ids::user_stadd(VcqPlace::of(vcq_id)?.extra, stag);
        // SAFETY: the caller's promise.
        unsafe { store(stadd, name?, "stadd") }
    })
}

/// Ends one registration. Errors: INVALID_VCQ_HDL, INVALID_STADD.
pub unsafe extern "C" fn utofu_dereg_mem(
    vcq_hdl: utofu_vcq_hdl_t,
    stadd: utofu_stadd_t,
    _flags: c_ulong,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let vcq = unsafe { slots::get(vcq_hdl)? };
        let job = &vcq.context.job;
        busy_wait(job.model.dereg_ns);
        if let Some(device) = &job.device
            && job.model.checked
            && vcq.table().is_last(stadd)
        {
            check_deregister(device, vcq, stadd);
        }
        vcq.table().deregister(stadd, &mut job.find_holders())
    })
}
