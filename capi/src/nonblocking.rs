//! The collectives, non-blocking: each starts and gives a request to wait for.

use std::ffi::{c_int, c_void};

use hopbine::torus::collectives::Collective;

use crate::calls::{Arguments, HOPBINE_UINT8};
use crate::failure::entry;
use crate::handles::{hopbine_comm_t, hopbine_request_t};
use crate::known;
use crate::requests::out;

/// A buffer that the collective does not have.
const NONE: *const c_void = std::ptr::null();

/// # Safety
/// Each buffer holds what the collective needs of it, and nobody else uses it until the request
/// is done; `request` is null or an address to write to.
unsafe fn start(
    comm: hopbine_comm_t,
    arguments: &Arguments,
    request: *mut hopbine_request_t,
) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let request = unsafe { out(request, "request") }?;
        // SAFETY: the caller's promise.
        unsafe { known::start(comm, arguments, request) }
    })
}

/// Starts hopbine_allreduce(). The buffers must be left alone until the request is done.
///
/// # Safety
/// As the blocking call, until the request is done; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_iallreduce(
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
    unsafe { start(comm, &arguments, request) }
}

/// Starts hopbine_reduce(). The buffers must be left alone until the request is done.
///
/// # Safety
/// As the blocking call, until the request is done; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_ireduce(
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
    unsafe { start(comm, &arguments, request) }
}

/// Starts hopbine_reduce_scatter(). The buffers must be left alone until the request is done.
///
/// # Safety
/// As the blocking call, until the request is done; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_ireduce_scatter(
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
    unsafe { start(comm, &arguments, request) }
}

/// Starts hopbine_bcast(). The buffers must be left alone until the request is done.
///
/// # Safety
/// As the blocking call, until the request is done; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_ibcast(
    buffer: *mut c_void,
    count: i64,
    dtype: c_int,
    root: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Bcast, NONE, buffer, count, dtype).root(root);
    // SAFETY: the caller's promise.
    unsafe { start(comm, &arguments, request) }
}

/// Starts hopbine_allgather(). The buffers must be left alone until the request is done.
///
/// # Safety
/// As the blocking call, until the request is done; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_iallgather(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Allgather, send, recv, count, dtype);
    // SAFETY: the caller's promise.
    unsafe { start(comm, &arguments, request) }
}

/// Starts hopbine_gather(). The buffers must be left alone until the request is done.
///
/// # Safety
/// As the blocking call, until the request is done; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_igather(
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
    unsafe { start(comm, &arguments, request) }
}

/// Starts hopbine_scatter(). The buffers must be left alone until the request is done.
///
/// # Safety
/// As the blocking call, until the request is done; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_iscatter(
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
    unsafe { start(comm, &arguments, request) }
}

/// Starts hopbine_alltoall(). The buffers must be left alone until the request is done.
///
/// # Safety
/// As the blocking call, until the request is done; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_ialltoall(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Alltoall, send, recv, count, dtype);
    // SAFETY: the caller's promise.
    unsafe { start(comm, &arguments, request) }
}

/// Starts hopbine_barrier(). The buffers must be left alone until the request is done.
///
/// # Safety
/// `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_ibarrier(
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Barrier, NONE, NONE.cast_mut(), 0, HOPBINE_UINT8);
    // SAFETY: the caller's promise.
    unsafe { start(comm, &arguments, request) }
}

/// Starts hopbine_scan(). The buffers must be left alone until the request is done.
///
/// # Safety
/// As the blocking call, until the request is done; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_iscan(
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
    unsafe { start(comm, &arguments, request) }
}

/// Starts hopbine_exscan(). The buffers must be left alone until the request is done.
///
/// # Safety
/// As the blocking call, until the request is done; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_iexscan(
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
    unsafe { start(comm, &arguments, request) }
}
