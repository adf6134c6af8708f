//! The collectives, persistent: planned and registered once, started many times.

use std::ffi::{c_int, c_void};

use hopbine::torus::collectives::Collective;

use crate::calls::{Arguments, HOPBINE_UINT8};
use crate::failure::entry;
use crate::handles::{self, hopbine_comm_t, hopbine_request_t};
use crate::requests::{give_repeated, out};

/// A buffer that the collective does not have.
const NONE: *const c_void = std::ptr::null();

/// # Safety
/// Each buffer holds what the collective needs of it, and nobody else uses it while the request
/// is under way; it is there until the request is freed. `request` is null or an address to write
/// to.
unsafe fn prepare(
    comm: hopbine_comm_t,
    arguments: &Arguments,
    request: *mut hopbine_request_t,
) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let request = unsafe { out(request, "request") }?;
        let comm = handles::comm(comm)?;
        let call = arguments.call(&comm)?;
        // SAFETY: the caller's promise.
        unsafe { give_repeated(&comm, &call, request) }
    })
}

/// Prepares hopbine_allreduce() on these buffers, to be started with hopbine_start(), again and again.
///
/// # Safety
/// As the blocking call, whenever the request is under way; the buffers are there until it is
/// freed; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_allreduce_init(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    op: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Allreduce, send, recv, count, dtype).op(op);
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, &arguments, request) }
}

/// Prepares hopbine_reduce() on these buffers, to be started with hopbine_start(), again and again.
///
/// # Safety
/// As the blocking call, whenever the request is under way; the buffers are there until it is
/// freed; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_reduce_init(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    op: c_int,
    root: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Reduce, send, recv, count, dtype).op(op).root(root);
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, &arguments, request) }
}

/// Prepares hopbine_reduce_scatter() on these buffers, to be started with hopbine_start(), again and again.
///
/// # Safety
/// As the blocking call, whenever the request is under way; the buffers are there until it is
/// freed; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_reduce_scatter_init(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    op: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::ReduceScatter, send, recv, count, dtype).op(op);
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, &arguments, request) }
}

/// Prepares hopbine_bcast() on these buffers, to be started with hopbine_start(), again and again.
///
/// # Safety
/// As the blocking call, whenever the request is under way; the buffers are there until it is
/// freed; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_bcast_init(
    buffer: *mut c_void,
    count: i64,
    dtype: c_int,
    root: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Bcast, NONE, buffer, count, dtype).root(root);
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, &arguments, request) }
}

/// Prepares hopbine_allgather() on these buffers, to be started with hopbine_start(), again and again.
///
/// # Safety
/// As the blocking call, whenever the request is under way; the buffers are there until it is
/// freed; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_allgather_init(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Allgather, send, recv, count, dtype);
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, &arguments, request) }
}

/// Prepares hopbine_gather() on these buffers, to be started with hopbine_start(), again and again.
///
/// # Safety
/// As the blocking call, whenever the request is under way; the buffers are there until it is
/// freed; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_gather_init(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    root: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Gather, send, recv, count, dtype).root(root);
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, &arguments, request) }
}

/// Prepares hopbine_scatter() on these buffers, to be started with hopbine_start(), again and again.
///
/// # Safety
/// As the blocking call, whenever the request is under way; the buffers are there until it is
/// freed; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_scatter_init(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    root: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Scatter, send, recv, count, dtype).root(root);
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, &arguments, request) }
}

/// Prepares hopbine_alltoall() on these buffers, to be started with hopbine_start(), again and again.
///
/// # Safety
/// As the blocking call, whenever the request is under way; the buffers are there until it is
/// freed; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_alltoall_init(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Alltoall, send, recv, count, dtype);
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, &arguments, request) }
}

/// Prepares hopbine_barrier() on these buffers, to be started with hopbine_start(), again and again.
///
/// # Safety
/// `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_barrier_init(
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Barrier, NONE, NONE.cast_mut(), 0, HOPBINE_UINT8);
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, &arguments, request) }
}

/// Prepares hopbine_scan() on these buffers, to be started with hopbine_start(), again and again.
///
/// # Safety
/// As the blocking call, whenever the request is under way; the buffers are there until it is
/// freed; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_scan_init(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    op: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Scan, send, recv, count, dtype).op(op);
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, &arguments, request) }
}

/// Prepares hopbine_exscan() on these buffers, to be started with hopbine_start(), again and again.
///
/// # Safety
/// As the blocking call, whenever the request is under way; the buffers are there until it is
/// freed; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_exscan_init(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    op: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Exscan, send, recv, count, dtype).op(op);
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, &arguments, request) }
}
