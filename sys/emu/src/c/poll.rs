//! Polling of completions and notices.

use super::{call, not_null, store};
use crate::limits::error::{Code, fail};
use crate::operations::remote::unpack_meta;
use crate::queues::slots;
use std::ffi::{c_int, c_ulong, c_void};
use utofu_sys::*;

/// Takes the next completion that was requested, and writes its cbdata. Returns 0 or the completion's TCQ code.
/// Errors: NOT_FOUND, INVALID_VCQ_HDL, INVALID_POINTER, TCQ_*.
pub unsafe extern "C" fn utofu_poll_tcq(
    vcq_hdl: utofu_vcq_hdl_t,
    _flags: c_ulong,
    cbdata: *mut *mut c_void,
) -> c_int {
    call(|| {
        not_null(cbdata, "cbdata")?;
        // SAFETY: the caller's promise.
        let vcq = unsafe { slots::get(vcq_hdl)? };
        // SAFETY: as above.
        let polled = unsafe { vcq.poll_tcq() };
        let (code, data) = polled.ok_or(Code(UTOFU_ERR_NOT_FOUND))?;
        // SAFETY: not null, hence valid by the caller's promise.
        unsafe { store(cbdata, data as *mut c_void, "cbdata")? };
        if code == UTOFU_SUCCESS {
            return Ok(());
        }
        let what = match code {
            UTOFU_ERR_TCQ_STADD => "its local STADD is not registered by this rank on the VCQ's CQ",
            _ => "it leaves the local registered range",
        };
        fail(code, format!("a put was not sent: {what}"))
    })
}

/// Takes the next notice. Returns 0 or the notice's MRQ code; with a code, the notice's type, VCQ id of the other
/// side and edata identify the operation that failed. Errors: NOT_FOUND, INVALID_VCQ_HDL, INVALID_POINTER, MRQ_*.
pub unsafe extern "C" fn utofu_poll_mrq(
    vcq_hdl: utofu_vcq_hdl_t,
    _flags: c_ulong,
    notice: *mut utofu_mrq_notice,
) -> c_int {
    call(|| {
        not_null(notice, "notice")?;
        // SAFETY: the caller's promise.
        let vcq = unsafe { slots::get(vcq_hdl)? };
        // SAFETY: as above.
        let polled = unsafe { vcq.poll_mrq() };
        vcq.context.job.count_poll(polled.is_some());
        let n = polled.ok_or(Code(UTOFU_ERR_NOT_FOUND))?;
        let (kind, edata, code) = unpack_meta(n.meta);
        let out = utofu_mrq_notice {
            notice_type: kind,
            padding: [0; 7],
            vcq_id: n.vcq,
            edata: edata.into(),
            rmt_value: n.value,
            // As in Fujitsu's library: the manual leaves the field open in local notices, which have an order other
            // than 0.
            lcl_stadd: if n.order == 0 { 0 } else { n.value },
            rmt_stadd: n.rmt,
            reserved: [0; 2],
        };
        // SAFETY: not null, hence valid by the caller's promise.
        unsafe { store(notice, out, "notice")? };
        if code == UTOFU_SUCCESS {
            return Ok(());
        }
        let what = match code {
            UTOFU_ERR_MRQ_PEER => "there is no such VCQ, or its process is gone",
            UTOFU_ERR_MRQ_RMT_STADD => "the remote STADD is not registered on the target's CQ",
            UTOFU_ERR_MRQ_RMT_LENGTH => "it leaves the remote registered range",
            UTOFU_ERR_MRQ_RMT_MEMORY => "the remote memory is read-only or not mapped",
            UTOFU_ERR_MRQ_LCL_STADD => "the local STADD is not registered by this rank",
            UTOFU_ERR_MRQ_LCL_LENGTH => "it leaves the local registered range",
            _ => "the local memory is read-only",
        };
        fail(
            code,
            format!(
                "an operation on VCQ {:#x} that ends at STADD {:#x} failed: {what}",
                n.vcq, n.rmt
            ),
        )
    })
}

/// Writes the number of posted operations that polling the TCQ has not passed. Errors: INVALID_VCQ_HDL,
/// INVALID_POINTER.
pub unsafe extern "C" fn utofu_query_num_unread_tcq(
    vcq_hdl: utofu_vcq_hdl_t,
    count: *mut usize,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        unsafe {
            let n = slots::get(vcq_hdl)?.send(|s| s.toq.unread());
            store(count, n, "count")
        }
    })
}

/// Writes the number of local MRQ entries, with or without a notice, of operations posted here that polling the MRQ
/// has not passed. Errors: INVALID_VCQ_HDL, INVALID_POINTER.
pub unsafe extern "C" fn utofu_query_num_unread_mrq(
    vcq_hdl: utofu_vcq_hdl_t,
    count: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    call(|| unsafe { store(count, slots::get(vcq_hdl)?.unread_local(), "count") })
}
