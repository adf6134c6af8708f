//! The one-sided operations, posted at once or prepared as descriptors: one table.
//!
//! Common errors: INVALID_VCQ_HDL, INVALID_VCQ_ID, INVALID_SIZE, INVALID_EDATA, INVALID_NUMBER,
//! INVALID_OP, INVALID_ARG (mtu, gap), INVALID_POINTER, NOT_SUPPORTED (sessions); posting also BUSY:
//! the queue is full, poll the TCQ.

use super::{call, load, not_null, operation};
use crate::desc::{ENTRY, Op};
use crate::error::fail;
use crate::{ops, slots};
use std::ffi::{c_int, c_ulong, c_void};
use utofu_sys::*;

/// Makes the two functions of each operation from its parameters and how they become blocks.
macro_rules! operations {
    ($(#[doc = $doc:literal] $post:ident, $prepare:ident
       ($($arg:ident: $ty:ty),+) $blocks:expr;)+) => {$(
        #[doc = $doc]
        ///
        /// # Safety
        /// As [`crate::c`].
        // The parameters are those of the C interface.
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $post(
            vcq_hdl: utofu_vcq_hdl_t,
            $($arg: $ty,)+
            cbdata: *mut c_void,
        ) -> c_int {
            // SAFETY: the caller's promise.
            call(|| unsafe { ($blocks)?.post(vcq_hdl, cbdata) })
        }

        #[doc = concat!("Writes the descriptors of [`", stringify!($post), "`] for `utofu_post_toq`.")]
        ///
        /// # Safety
        /// As [`crate::c`]; `desc` has room for the descriptors.
        // The parameters are those of the C interface.
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $prepare(
            vcq_hdl: utofu_vcq_hdl_t,
            $($arg: $ty,)+
            desc: *mut c_void,
            desc_size: *mut usize,
        ) -> c_int {
            // SAFETY: the caller's promise.
            call(|| unsafe { ($blocks)?.prepare(vcq_hdl, desc, desc_size) })
        }
    )+};
}

operations! {
    #[doc = "Writes `length` bytes of local memory to the target."]
    utofu_put, utofu_prepare_put
    (rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong)
    operation::put(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags);

    #[doc = "Put with a packet size and a gap between packets, which change nothing here."]
    utofu_put_gap, utofu_prepare_put_gap
    (rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong, mtu: usize, gap: usize)
    operation::put(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags)?.gap(mtu, gap);

    #[doc = "Puts blocks that lie `stride` bytes apart on both sides; each counts as a put of its own."]
    utofu_put_stride, utofu_prepare_put_stride
    (rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, stride: usize, num_blocks: usize, edata: u64, flags: c_ulong)
    operation::put(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags)?.stride(stride, num_blocks);

    #[doc = "Strided put with a packet size and a gap."]
    utofu_put_stride_gap, utofu_prepare_put_stride_gap
    (rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, stride: usize, num_blocks: usize, edata: u64, flags: c_ulong, mtu: usize, gap: usize)
    operation::put(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags)?.gap(mtu, gap)?.stride(stride, num_blocks);

    #[doc = "Put of at most 32 bytes that travel in the descriptor; `lcl_data` may be changed at once."]
    utofu_put_piggyback, utofu_prepare_put_piggyback
    (rmt_vcq_id: utofu_vcq_id_t, lcl_data: *mut c_void, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong)
    operation::piggyback(rmt_vcq_id, lcl_data, rmt_stadd, length, edata, flags);

    #[doc = "Put of the low `length` bytes (at most 8) of a value."]
    utofu_put_piggyback8, utofu_prepare_put_piggyback8
    (rmt_vcq_id: utofu_vcq_id_t, lcl_data: u64, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong)
    operation::piggyback8(rmt_vcq_id, lcl_data, rmt_stadd, length, edata, flags);

    #[doc = "Reads `length` bytes of the target's memory."]
    utofu_get, utofu_prepare_get
    (rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong)
    operation::get(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags);

    #[doc = "Get with a packet size and a gap between packets, which change nothing here."]
    utofu_get_gap, utofu_prepare_get_gap
    (rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, edata: u64, flags: c_ulong, mtu: usize, gap: usize)
    operation::get(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags)?.gap(mtu, gap);

    #[doc = "Gets blocks that lie `stride` bytes apart on both sides; each counts as a get of its own."]
    utofu_get_stride, utofu_prepare_get_stride
    (rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, stride: usize, num_blocks: usize, edata: u64, flags: c_ulong)
    operation::get(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags)?.stride(stride, num_blocks);

    #[doc = "Strided get with a packet size and a gap."]
    utofu_get_stride_gap, utofu_prepare_get_stride_gap
    (rmt_vcq_id: utofu_vcq_id_t, lcl_stadd: utofu_stadd_t, rmt_stadd: utofu_stadd_t, length: usize, stride: usize, num_blocks: usize, edata: u64, flags: c_ulong, mtu: usize, gap: usize)
    operation::get(rmt_vcq_id, lcl_stadd, rmt_stadd, length, edata, flags)?.gap(mtu, gap)?.stride(stride, num_blocks);

    #[doc = "Atomic operation on 4 bytes of the target."]
    utofu_armw4, utofu_prepare_armw4
    (rmt_vcq_id: utofu_vcq_id_t, armw_op: utofu_armw_op, op_value: u32, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong)
    operation::armw(4, rmt_vcq_id, armw_op, op_value.into(), rmt_stadd, edata, flags);

    #[doc = "Atomic operation on 8 bytes of the target."]
    utofu_armw8, utofu_prepare_armw8
    (rmt_vcq_id: utofu_vcq_id_t, armw_op: utofu_armw_op, op_value: u64, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong)
    operation::armw(8, rmt_vcq_id, armw_op, op_value, rmt_stadd, edata, flags);

    #[doc = "Stores `new_value` in 4 bytes of the target if they hold `old_value`."]
    utofu_cswap4, utofu_prepare_cswap4
    (rmt_vcq_id: utofu_vcq_id_t, old_value: u32, new_value: u32, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong)
    operation::cswap(4, rmt_vcq_id, (old_value.into(), new_value.into()), rmt_stadd, edata, flags);

    #[doc = "Stores `new_value` in 8 bytes of the target if they hold `old_value`."]
    utofu_cswap8, utofu_prepare_cswap8
    (rmt_vcq_id: utofu_vcq_id_t, old_value: u64, new_value: u64, rmt_stadd: utofu_stadd_t, edata: u64, flags: c_ulong)
    operation::cswap(8, rmt_vcq_id, (old_value, new_value), rmt_stadd, edata, flags);

    #[doc = "Occupies an entry of the queue and does nothing else."]
    utofu_nop, utofu_prepare_nop
    (flags: c_ulong)
    operation::nop(flags);
}

/// Posts prepared descriptors: all of them, or none with BUSY. Every completion gives `cbdata`.
/// INVALID_VCQ_HDL, INVALID_POINTER, INVALID_DESC, NOT_SUPPORTED, BUSY.
///
/// # Safety
/// As [`crate::c`].
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
        // SAFETY: the caller's promise: `desc_size` bytes, of which the n-th eight are read.
        let word = |n: usize| unsafe { load(desc.cast::<u64>().add(n), "desc") };
        let words = (0..desc_size / 8).map(word).collect::<crate::error::Result<Vec<u64>>>()?;
        let mut parsed = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let op = Op::unpack(&words[at..])?;
            operation::startable(vcq, c_ulong::from(op.flags))?;
            at += op.entries() * ENTRY / 8;
            parsed.push(op);
        }
        // SAFETY: the caller's promise.
        unsafe { ops::post(vcq, parsed.into_iter(), at * 8 / ENTRY, cbdata as usize) }
    })
}
