//! Barrier gates.

use super::vcq::{store_optional, store_optional_tni};
use super::{call, load, not_null};
use crate::gates::gate;
use crate::gates::reduce::{Kind, MAX_DOUBLES, MAX_INTEGERS, Packet};
use crate::job::current::current;
use crate::limits::error::{Result, fail};
use crate::limits::ids::GatePlace;
use std::ffi::{c_int, c_ulong};
use utofu_sys::*;

/// Copies an array of the caller.
///
/// # Safety
/// `from` is null or has `n` elements.
unsafe fn list<T: Copy>(from: *const T, n: usize, what: &str) -> Result<Vec<T>> {
    // SAFETY: within the array by the caller's promise.
    (0..n).map(|i| unsafe { load(from.add(i), what) }).collect()
}

/// Allocates gates: the first can start and end operations, the others relay. Errors: INVALID_POINTER,
/// INVALID_TNI_ID, INVALID_NUMBER, FULL.
pub unsafe extern "C" fn utofu_alloc_vbg(
    tni_id: utofu_tni_id_t,
    num_vbgs: usize,
    _flags: c_ulong,
    vbg_ids: *mut utofu_vbg_id_t,
) -> c_int {
    call(|| {
        not_null(vbg_ids, "vbg_ids")?;
        let ids = gate::alloc(&current()?, tni_id, num_vbgs)?;
        // SAFETY: room for as many ids as were asked for.
        unsafe { std::ptr::copy_nonoverlapping(ids.as_ptr(), vbg_ids, ids.len()) };
        Ok(())
    })
}

/// Frees all of the gates or, with INVALID_VBG_ID, none. Other errors: INVALID_POINTER, INVALID_NUMBER.
pub unsafe extern "C" fn utofu_free_vbg(vbg_ids: *mut utofu_vbg_id_t, num_vbgs: usize) -> c_int {
    // SAFETY: the caller's promise.
    call(|| gate::free(&unsafe { list(vbg_ids, num_vbgs, "vbg_ids")? }))
}

/// Connects gates. The ranks must synchronise between connecting and the first operation. Errors: INVALID_POINTER,
/// INVALID_NUMBER, INVALID_VBG_ID, INVALID_PATH.
pub unsafe extern "C" fn utofu_set_vbg(
    vbg_settings: *mut utofu_vbg_setting,
    num_vbg_settings: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    call(|| gate::set(&unsafe { list(vbg_settings, num_vbg_settings, "vbg_settings")? }))
}

/// Splits a gate id into its parts; skips null pointers. Error: INVALID_VBG_ID.
pub unsafe extern "C" fn utofu_query_vbg_info(
    vbg_id: utofu_vbg_id_t,
    coords: *mut u8,
    tni_id: *mut utofu_tni_id_t,
    bg_id: *mut utofu_bg_id_t,
    extra_val: *mut u16,
) -> c_int {
    call(|| {
        let place = GatePlace::of(vbg_id)?;
        // SAFETY: null is skipped; a pointer that is not null is valid by the caller's promise.
        unsafe {
            store_optional_tni(place.tni, coords, tni_id)?;
            store_optional(bg_id, u16::from(place.gate))?;
            store_optional(extra_val, 0)
        }
    })
}

/// Starts a barrier. Errors: BUSY, INVALID_VBG_ID.
pub unsafe extern "C" fn utofu_barrier(vbg_id: utofu_vbg_id_t, _flags: c_ulong) -> c_int {
    call(|| gate::start(vbg_id, Packet::barrier()))
}

/// Copies the elements of a reduction, at most N. They are on the stack: a reduction allocates nothing.
///
/// # Safety
/// `from` is null or has `n` elements.
unsafe fn elements<T: Copy + Default, const N: usize>(from: *const T, n: usize) -> Result<[T; N]> {
    let mut copied = [T::default(); N];
    let Some(to) = copied.get_mut(..n) else {
        return fail(UTOFU_ERR_INVALID_NUMBER, format!("{n} elements: must be at most {N}"));
    };
    for (i, to) in to.iter_mut().enumerate() {
        // SAFETY: within the array by the caller's promise.
        *to = unsafe { load(from.add(i), "data")? };
    }
    Ok(copied)
}

/// Starts a reduction of integers. Errors: BUSY, INVALID_VBG_ID, INVALID_OP, INVALID_NUMBER, INVALID_POINTER.
pub unsafe extern "C" fn utofu_reduce_uint64(
    vbg_id: utofu_vbg_id_t,
    op: utofu_reduce_op,
    data: *mut u64,
    num_data: usize,
    _flags: c_ulong,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let data = unsafe { elements::<_, MAX_INTEGERS>(data, num_data)? };
        gate::start(vbg_id, Packet::integers(op, &data[..num_data])?)
    })
}

/// Starts a reduction of doubles. Errors: BUSY, INVALID_VBG_ID, INVALID_OP, INVALID_NUMBER, INVALID_POINTER.
pub unsafe extern "C" fn utofu_reduce_double(
    vbg_id: utofu_vbg_id_t,
    op: utofu_reduce_op,
    data: *mut f64,
    num_data: usize,
    _flags: c_ulong,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let data = unsafe { elements::<_, MAX_DOUBLES>(data, num_data)? };
        gate::start(vbg_id, Packet::doubles(op, &data[..num_data])?)
    })
}

/// Polls an operation. At its end `write` writes the result, unless the operation ended with an error code.
fn finish(
    vbg_id: utofu_vbg_id_t,
    kind: Kind,
    write: impl FnOnce(&Packet) -> Result<()>,
) -> Result<()> {
    let packet = gate::poll(vbg_id, kind)?;
    match packet.code() {
        UTOFU_SUCCESS => write(&packet),
        code => fail(code, "the ranks started different operations"),
    }
}

/// Tests whether a barrier is over. Errors: NOT_COMPLETED, BUSY (no operation in flight), BARRIER_MISMATCH,
/// INVALID_VBG_ID, INVALID_OP (a reduction is in flight).
pub unsafe extern "C" fn utofu_poll_barrier(vbg_id: utofu_vbg_id_t, _flags: c_ulong) -> c_int {
    call(|| finish(vbg_id, Kind::Barrier, |_| Ok(())))
}

/// Tests whether a reduction of integers is over, and writes its result. Errors: those of [`utofu_poll_barrier()`],
/// and INVALID_POINTER.
///
/// # Safety
/// As [`crate::c`]; `data` has room for the elements of the reduction.
pub unsafe extern "C" fn utofu_poll_reduce_uint64(
    vbg_id: utofu_vbg_id_t,
    _flags: c_ulong,
    data: *mut u64,
) -> c_int {
    call(|| {
        not_null(data, "data")?;
        finish(vbg_id, Kind::Integers, |packet| {
            for (i, v) in packet.as_integers().iter().enumerate() {
                // SAFETY: room by the caller's promise.
                unsafe { data.add(i).write_unaligned(*v) };
            }
            Ok(())
        })
    })
}

/// Tests whether a reduction of doubles is over, and writes its result. Errors: those of
/// [`utofu_poll_reduce_uint64()`].
///
/// # Safety
/// As [`crate::c`]; `data` has room for the elements of the reduction.
pub unsafe extern "C" fn utofu_poll_reduce_double(
    vbg_id: utofu_vbg_id_t,
    _flags: c_ulong,
    data: *mut f64,
) -> c_int {
    call(|| {
        not_null(data, "data")?;
        finish(vbg_id, Kind::Doubles, |packet| {
            for (i, v) in packet.as_doubles().enumerate() {
                // SAFETY: room by the caller's promise.
                unsafe { data.add(i).write_unaligned(v) };
            }
            Ok(())
        })
    })
}
