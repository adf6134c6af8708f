//! Creating VCQs; their ids and paths.

use super::{call, load, not_null, store};
use crate::job::current::{current, try_current};
use crate::limits::error::{Result, fail};
use crate::limits::ids::{self, CMP_IDS, Coords, TniPlace, VcqPlace, coords_ok};
use crate::limits::{CQS, FIRST_EXTRA, TNIS};
use crate::queues::slots;
use crate::queues::vcq::Vcq;
use std::ffi::{c_int, c_ulong};
use utofu_sys::*;

fn create(
    tni: utofu_tni_id_t,
    cmp_id: Option<utofu_cmp_id_t>,
    flags: c_ulong,
    handle: *mut utofu_vcq_hdl_t,
) -> c_int {
    call(|| {
        not_null(handle, "vcq_hdl")?;
        let vcq = Vcq::create(current()?, tni, cmp_id, flags)?;
        let made = slots::insert(vcq)?;
        // SAFETY: not null, hence valid by the caller's promise.
        unsafe { store(handle, made, "vcq_hdl") }
    })
}

/// Creates a VCQ. Errors: INVALID_POINTER, INVALID_TNI_ID, FULL.
pub unsafe extern "C" fn utofu_create_vcq(
    tni_id: utofu_tni_id_t,
    flags: c_ulong,
    vcq_hdl: *mut utofu_vcq_hdl_t,
) -> c_int {
    create(tni_id, None, flags, vcq_hdl)
}

/// Creates the VCQ with a component id. Errors: INVALID_POINTER, INVALID_TNI_ID, INVALID_CMP_ID, NOT_SUPPORTED, USED.
pub unsafe extern "C" fn utofu_create_vcq_with_cmp_id(
    tni_id: utofu_tni_id_t,
    cmp_id: utofu_cmp_id_t,
    flags: c_ulong,
    vcq_hdl: *mut utofu_vcq_hdl_t,
) -> c_int {
    create(tni_id, Some(cmp_id), flags, vcq_hdl)
}

/// Frees a VCQ. Error: INVALID_VCQ_HDL.
///
/// # Safety
/// As [`crate::c`]; no other thread uses the VCQ.
pub unsafe extern "C" fn utofu_free_vcq(vcq_hdl: utofu_vcq_hdl_t) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        unsafe { slots::remove(vcq_hdl)? }.free();
        Ok(())
    })
}

/// Writes the VCQ's id, without a path. Errors: INVALID_VCQ_HDL, INVALID_POINTER.
pub unsafe extern "C" fn utofu_query_vcq_id(
    vcq_hdl: utofu_vcq_hdl_t,
    vcq_id: *mut utofu_vcq_id_t,
) -> c_int {
    // SAFETY: the caller's promise.
    call(|| unsafe { store(vcq_id, slots::get(vcq_hdl)?.id, "vcq_id") })
}

fn construct(coords: Coords, tni: u16, cq: u16, cmp: u16) -> Result<utofu_vcq_id_t> {
    let wrong = |code, what: &str, value, below| {
        fail(code, format!("{what} {value}: must be below {below}"))
    };
    if usize::from(tni) >= TNIS {
        return wrong(UTOFU_ERR_INVALID_TNI_ID, "TNI", tni, TNIS);
    }
    if usize::from(cq) >= CQS {
        return wrong(UTOFU_ERR_INVALID_CQ_ID, "CQ", cq, CQS);
    }
    if cmp >= CMP_IDS {
        return wrong(UTOFU_ERR_INVALID_CMP_ID, "component id", cmp, CMP_IDS.into());
    }
    if !coords_ok(coords) {
        return fail(
            UTOFU_ERR_INVALID_COORDS,
            format!("coordinates {coords:?}: a, b, c must be below 2, 3, 2"),
        );
    }
    let tni = TniPlace { coords, number: tni as u8 };
    let place = VcqPlace { tni, cq: cq as u8, extra: FIRST_EXTRA + cmp as u8 };
    Ok(place.id())
}

/// Computes a VCQ's id; the VCQ need not exist. Errors: INVALID_POINTER, INVALID_TNI_ID, INVALID_CQ_ID,
/// INVALID_CMP_ID, INVALID_COORDS.
pub unsafe extern "C" fn utofu_construct_vcq_id(
    coords: *mut u8,
    tni_id: utofu_tni_id_t,
    cq_id: utofu_cq_id_t,
    cmp_id: utofu_cmp_id_t,
    vcq_id: *mut utofu_vcq_id_t,
) -> c_int {
    call(|| {
        not_null(vcq_id, "vcq_id")?;
        // SAFETY: the caller's promise: six bytes.
        let coords = unsafe { load::<Coords>(coords.cast(), "coords")? };
        let id = construct(coords, tni_id, cq_id, cmp_id)?;
        // SAFETY: not null, hence valid by the caller's promise.
        unsafe { store(vcq_id, id, "vcq_id") }
    })
}

/// Sets the path in a VCQ id; NULL chooses the default path. Errors: INVALID_POINTER, INVALID_VCQ_ID, INVALID_PATH.
///
/// As with Fujitsu's library, the default path towards another node of the job changes the id. Compare only ids that
/// their owners have queried.
pub unsafe extern "C" fn utofu_set_vcq_id_path(
    vcq_id: *mut utofu_vcq_id_t,
    path_coords: *mut u8,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let id = unsafe { load(vcq_id, "vcq_id")? };
        let place = VcqPlace::of(id)?;
        let new = if path_coords.is_null() {
            // A thread that is not a rank may call this function as well: the id then stays as it is.
            let elsewhere = try_current().is_some_and(|me| {
                let node = me.job.placement.node_at(place.tni.coords);
                node.is_some_and(|n| n != me.job.node_of(me.rank))
            });
            if elsewhere { ids::with_default_path(id) } else { id }
        } else {
            // SAFETY: the caller's promise: three bytes.
            let path = unsafe { load::<[u8; 3]>(path_coords.cast(), "path_coords")? };
            ids::with_path(id, ids::path_id(place.tni.coords, path)?)
        };
        // SAFETY: the id was read through this pointer above.
        unsafe { store(vcq_id, new, "vcq_id") }
    })
}

/// Splits a VCQ id into its parts; skips null pointers. Error: INVALID_VCQ_ID.
pub unsafe extern "C" fn utofu_query_vcq_info(
    vcq_id: utofu_vcq_id_t,
    coords: *mut u8,
    tni_id: *mut utofu_tni_id_t,
    cq_id: *mut utofu_cq_id_t,
    extra_val: *mut u16,
) -> c_int {
    call(|| {
        let place = VcqPlace::of(vcq_id)?;
        // SAFETY: null is skipped; a pointer that is not null is valid by the caller's promise.
        unsafe {
            store_optional_tni(place.tni, coords, tni_id)?;
            store_optional(cq_id, u16::from(place.cq))?;
            store_optional(extra_val, u16::from(place.extra))
        }
    })
}

/// Writes a result unless the caller's pointer is null.
///
/// # Safety
/// As [`store`].
pub(super) unsafe fn store_optional<T>(to: *mut T, value: T) -> Result<()> {
    if to.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { store(to, value, "result") }
}

/// Writes the position of a TNI: the six coordinates of its node, and its number.
///
/// # Safety
/// As [`store_optional`].
pub(super) unsafe fn store_optional_tni(
    at: TniPlace,
    coords: *mut u8,
    id: *mut utofu_tni_id_t,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        store_optional(coords.cast(), at.coords)?;
        store_optional(id, u16::from(at.number))
    }
}

/// Writes the path id of path coordinates towards a VCQ; with NULL, the path id in the VCQ id. Errors:
/// INVALID_POINTER, INVALID_VCQ_ID, INVALID_PATH.
pub unsafe extern "C" fn utofu_get_path_id(
    vcq_id: utofu_vcq_id_t,
    path_coords: *mut u8,
    path_id: *mut utofu_path_id_t,
) -> c_int {
    call(|| {
        not_null(path_id, "path_id")?;
        let place = VcqPlace::of(vcq_id)?;
        let id = if path_coords.is_null() {
            ids::path_in(vcq_id)
        } else {
            // SAFETY: the caller's promise: three bytes.
            let path = unsafe { load::<[u8; 3]>(path_coords.cast(), "path_coords")? };
            ids::path_id(place.tni.coords, path)?
        };
        // SAFETY: not null, hence valid by the caller's promise.
        unsafe { store(path_id, id, "path_id") }
    })
}

/// Writes the path coordinates of a path id towards a VCQ. Errors: INVALID_POINTER, INVALID_VCQ_ID.
pub unsafe extern "C" fn utofu_get_path_coords(
    vcq_id: utofu_vcq_id_t,
    path_id: utofu_path_id_t,
    path_coords: *mut u8,
) -> c_int {
    call(|| {
        let place = VcqPlace::of(vcq_id)?;
        let path = ids::path_coords(place.tni.coords, path_id);
        // SAFETY: the caller's promise: room for three bytes.
        unsafe { store(path_coords.cast(), path, "path_coords") }
    })
}
