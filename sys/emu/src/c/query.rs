//! Queries: TNIs, their capabilities, versions, coordinates, the last error.

use super::{call, not_null, store};
use crate::gates::reduce::{MAX_DOUBLES, MAX_INTEGERS};
use crate::job::current::current;
use crate::limits::error::{self, Result, fail};
use crate::limits::ids::{CMP_IDS, USER_STAGS};
use crate::limits::{MAX_GAP, MAX_LENGTH, MAX_MTU, MAX_PIGGYBACK, TNIS};
use crate::queues::desc::ENTRY;
use std::ffi::{c_char, c_int};
use std::ops::Range;
use utofu_sys::*;

static ONESIDED: utofu_onesided_caps = utofu_onesided_caps {
    flags: UTOFU_ONESIDED_CAP_FLAG_SESSION_MODE | UTOFU_ONESIDED_CAP_FLAG_ARMW,
    armw_ops: UTOFU_ONESIDED_CAP_ARMW_OP_CSWAP
        | UTOFU_ONESIDED_CAP_ARMW_OP_SWAP
        | UTOFU_ONESIDED_CAP_ARMW_OP_ADD
        | UTOFU_ONESIDED_CAP_ARMW_OP_XOR
        | UTOFU_ONESIDED_CAP_ARMW_OP_AND
        | UTOFU_ONESIDED_CAP_ARMW_OP_OR,
    num_cmp_ids: CMP_IDS as u32,
    num_reserved_stags: USER_STAGS,
    cache_line_size: 256,
    stag_address_alignment: 256,
    max_toq_desc_size: 2 * ENTRY,
    max_putget_size: MAX_LENGTH,
    max_piggyback_size: MAX_PIGGYBACK,
    max_edata_size: 1,
    max_mtu: MAX_MTU,
    max_gap: MAX_GAP,
};

static BARRIER: utofu_barrier_caps = utofu_barrier_caps {
    flags: 0,
    reduce_ops: UTOFU_BARRIER_CAP_REDUCE_OP_BARRIER
        | UTOFU_BARRIER_CAP_REDUCE_OP_BAND
        | UTOFU_BARRIER_CAP_REDUCE_OP_BOR
        | UTOFU_BARRIER_CAP_REDUCE_OP_BXOR
        | UTOFU_BARRIER_CAP_REDUCE_OP_MAX
        | UTOFU_BARRIER_CAP_REDUCE_OP_MAXLOC
        | UTOFU_BARRIER_CAP_REDUCE_OP_SUM
        | UTOFU_BARRIER_CAP_REDUCE_OP_BFPSUM,
    max_uint64_reduction: MAX_INTEGERS,
    max_double_reduction: MAX_DOUBLES,
};

/// Writes a new array of the TNI ids `tnis`, which the caller frees with C's `free`.
unsafe fn list(tnis: Range<usize>, ids: *mut *mut utofu_tni_id_t, n: *mut usize) -> Result<()> {
    not_null(ids, "tni_ids")?;
    not_null(n, "num_tnis")?;
    let count = tnis.len();
    // SAFETY: malloc has no preconditions.
    let list =
        unsafe { libc::malloc(count * size_of::<utofu_tni_id_t>()) }.cast::<utofu_tni_id_t>();
    if list.is_null() {
        return fail(UTOFU_ERR_OUT_OF_MEMORY, "no memory for the list of TNIs");
    }
    for (i, tni) in tnis.enumerate() {
        // SAFETY: the list has room for `count` ids.
        unsafe { list.add(i).write(tni as utofu_tni_id_t) };
    }
    // SAFETY: not null, hence valid by the caller's promise.
    unsafe {
        store(ids, list, "tni_ids")?;
        store(n, count, "num_tnis")
    }
}

/// Lists the rank's TNIs for one-sided communication: all of them, or a part if many ranks share the node. The caller
/// frees the list. Error: INVALID_POINTER.
pub unsafe extern "C" fn utofu_get_onesided_tnis(
    tni_ids: *mut *mut utofu_tni_id_t,
    num_tnis: *mut usize,
) -> c_int {
    call(|| {
        let me = current()?;
        let placement = &me.job.placement;
        let mine = placement.sharing.tnis(placement.local_rank_of[me.rank] as usize);
        // SAFETY: the caller's promise.
        unsafe { list(mine, tni_ids, num_tnis) }
    })
}

/// Lists the TNIs for barriers; the caller frees the list. Error: INVALID_POINTER.
pub unsafe extern "C" fn utofu_get_barrier_tnis(
    tni_ids: *mut *mut utofu_tni_id_t,
    num_tnis: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    call(|| unsafe { list(0..TNIS, tni_ids, num_tnis) })
}

/// Writes a pointer to a record of a TNI's capabilities.
///
/// # Safety
/// As [`store`].
unsafe fn caps<T>(tni: utofu_tni_id_t, record: *const T, to: *mut *mut T) -> c_int {
    call(|| {
        if usize::from(tni) >= TNIS {
            let what = format!("TNI {tni}: must be below {TNIS}");
            return fail(UTOFU_ERR_INVALID_TNI_ID, what);
        }
        // SAFETY: the caller's promise.
        unsafe { store(to, record.cast_mut(), "tni_caps") }
    })
}

/// Writes a pointer to the library's record of a TNI's capabilities. Errors: INVALID_TNI_ID, INVALID_POINTER.
///
/// # Safety
/// As [`crate::c`]; the record must not be written.
pub unsafe extern "C" fn utofu_query_onesided_caps(
    tni_id: utofu_tni_id_t,
    tni_caps: *mut *mut utofu_onesided_caps,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { caps(tni_id, &raw const ONESIDED, tni_caps) }
}

/// Writes a pointer to the library's record of the capabilities of a TNI's gates. Errors: INVALID_TNI_ID,
/// INVALID_POINTER.
///
/// # Safety
/// As [`crate::c`]; the record must not be written.
pub unsafe extern "C" fn utofu_query_barrier_caps(
    tni_id: utofu_tni_id_t,
    tni_caps: *mut *mut utofu_barrier_caps,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { caps(tni_id, &raw const BARRIER, tni_caps) }
}

/// Writes the version of the interconnect, 3.0; skips null pointers.
pub unsafe extern "C" fn utofu_query_tofu_version(major: *mut c_int, minor: *mut c_int) {
    // SAFETY: the caller's promise.
    unsafe { version(major, minor, 3, 0) }
}

/// Writes the version of the interface, 1.0; skips null pointers.
pub unsafe extern "C" fn utofu_query_utofu_version(major: *mut c_int, minor: *mut c_int) {
    // SAFETY: the caller's promise.
    unsafe { version(major, minor, UTOFU_VERSION_MAJOR, UTOFU_VERSION_MINOR) }
}

/// # Safety
/// As [`crate::c`].
pub(super) unsafe fn version(
    to_major: *mut c_int,
    to_minor: *mut c_int,
    major: c_int,
    minor: c_int,
) {
    for (to, value) in [(to_major, major), (to_minor, minor)] {
        if !to.is_null() {
            // SAFETY: not null, hence valid by the caller's promise.
            unsafe { to.write_unaligned(value) };
        }
    }
}

/// Writes the coordinates of the rank's node, six bytes. Error: INVALID_POINTER.
pub unsafe extern "C" fn utofu_query_my_coords(coords: *mut u8) -> c_int {
    call(|| {
        let me = current()?;
        // SAFETY: the caller's promise: room for six bytes.
        unsafe { store(coords.cast(), me.job.coords_of(me.rank), "coords") }
    })
}

/// Copies the text of the thread's last error, at most 1023 bytes and a zero; no effect if `message` is null.
///
/// # Safety
/// As [`crate::c`]; `message` has room for 1024 bytes. The function writes them although the type says `const`:
/// programs declare the function with that type.
pub unsafe extern "C" fn utofu_get_last_error(message: *const c_char) {
    if message.is_null() {
        return;
    }
    let text = error::last();
    let mut ends = (0..=text.len().min(1023)).rev();
    let end = ends.find(|n| text.is_char_boundary(*n)).unwrap_or(0);
    let bytes = &text.as_bytes()[..end];
    // SAFETY: room for 1024 bytes by the caller's promise.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), message.cast_mut().cast(), bytes.len());
        message.cast_mut().add(bytes.len()).write(0);
    }
}
