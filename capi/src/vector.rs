//! The vector forms, whose blocks may differ in size: blocking, non-blocking and persistent.

use std::ffi::{c_int, c_void};

use hopbine::torus::collectives::Collective;

use crate::calls::Arguments;
use crate::handles::{hopbine_comm_t, hopbine_request_t};
use crate::lists::{VectorLists, perform, prepare, start};

/// Gives everyone the blocks of all ranks, which may differ in size: `count` elements from this one,
/// `counts[x]` from rank x, to `displs[x]` in `recv`. Counts are the same on all ranks; displacements
/// need not be, and are one block after the other if null. Those of blocks without elements do not matter.
///
/// # Safety
/// The lists have a place for each rank; each buffer holds what they say, and nobody else uses it
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_allgatherv(
    send: *const c_void,
    count: i64,
    recv: *mut c_void,
    counts: *const i64,
    displs: *const i64,
    dtype: c_int,
    comm: hopbine_comm_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Allgather, send, recv, count, dtype);
    let lists = VectorLists { recv: Some((counts, displs)), ..VectorLists::default() };
    // SAFETY: the caller's promise.
    unsafe { perform(comm, arguments, lists) }
}

/// Starts hopbine_allgatherv(). The buffers must be left alone until the request is done; the lists need not.
///
/// # Safety
/// As the blocking call, until the request is done; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_iallgatherv(
    send: *const c_void,
    count: i64,
    recv: *mut c_void,
    counts: *const i64,
    displs: *const i64,
    dtype: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Allgather, send, recv, count, dtype);
    let lists = VectorLists { recv: Some((counts, displs)), ..VectorLists::default() };
    // SAFETY: the caller's promise.
    unsafe { start(comm, arguments, lists, request) }
}

/// Prepares hopbine_allgatherv() on these buffers, with these lists, to be started with hopbine_start().
///
/// # Safety
/// As the blocking call, whenever the request is under way; the buffers are there until it is
/// freed; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_allgatherv_init(
    send: *const c_void,
    count: i64,
    recv: *mut c_void,
    counts: *const i64,
    displs: *const i64,
    dtype: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Allgather, send, recv, count, dtype);
    let lists = VectorLists { recv: Some((counts, displs)), ..VectorLists::default() };
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, arguments, lists, request) }
}

/// Gives the root the blocks of all ranks: `count` elements from this one. `recv`, `counts` and `displs`
/// matter on the root only.
///
/// # Safety
/// The lists have a place for each rank; each buffer holds what they say, and nobody else uses it
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_gatherv(
    send: *const c_void,
    count: i64,
    recv: *mut c_void,
    counts: *const i64,
    displs: *const i64,
    dtype: c_int,
    root: c_int,
    comm: hopbine_comm_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Gather, send, recv, count, dtype).root(root);
    let lists = VectorLists { recv: Some((counts, displs)), ..VectorLists::default() };
    // SAFETY: the caller's promise.
    unsafe { perform(comm, arguments, lists) }
}

/// Starts hopbine_gatherv(). The buffers must be left alone until the request is done; the lists need not.
///
/// # Safety
/// As the blocking call, until the request is done; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_igatherv(
    send: *const c_void,
    count: i64,
    recv: *mut c_void,
    counts: *const i64,
    displs: *const i64,
    dtype: c_int,
    root: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Gather, send, recv, count, dtype).root(root);
    let lists = VectorLists { recv: Some((counts, displs)), ..VectorLists::default() };
    // SAFETY: the caller's promise.
    unsafe { start(comm, arguments, lists, request) }
}

/// Prepares hopbine_gatherv() on these buffers, with these lists, to be started with hopbine_start().
///
/// # Safety
/// As the blocking call, whenever the request is under way; the buffers are there until it is
/// freed; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_gatherv_init(
    send: *const c_void,
    count: i64,
    recv: *mut c_void,
    counts: *const i64,
    displs: *const i64,
    dtype: c_int,
    root: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Gather, send, recv, count, dtype).root(root);
    let lists = VectorLists { recv: Some((counts, displs)), ..VectorLists::default() };
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, arguments, lists, request) }
}

/// Gives rank x the root's block x, of `counts[x]` elements at `displs[x]` of `send`; `count` elements to
/// this one. `send`, `counts` and `displs` matter on the root only.
///
/// # Safety
/// The lists have a place for each rank; each buffer holds what they say, and nobody else uses it
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_scatterv(
    send: *const c_void,
    counts: *const i64,
    displs: *const i64,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    root: c_int,
    comm: hopbine_comm_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Scatter, send, recv, count, dtype).root(root);
    let lists = VectorLists { send: Some((counts, displs)), ..VectorLists::default() };
    // SAFETY: the caller's promise.
    unsafe { perform(comm, arguments, lists) }
}

/// Starts hopbine_scatterv(). The buffers must be left alone until the request is done; the lists need not.
///
/// # Safety
/// As the blocking call, until the request is done; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_iscatterv(
    send: *const c_void,
    counts: *const i64,
    displs: *const i64,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    root: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Scatter, send, recv, count, dtype).root(root);
    let lists = VectorLists { send: Some((counts, displs)), ..VectorLists::default() };
    // SAFETY: the caller's promise.
    unsafe { start(comm, arguments, lists, request) }
}

/// Prepares hopbine_scatterv() on these buffers, with these lists, to be started with hopbine_start().
///
/// # Safety
/// As the blocking call, whenever the request is under way; the buffers are there until it is
/// freed; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_scatterv_init(
    send: *const c_void,
    counts: *const i64,
    displs: *const i64,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    root: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Scatter, send, recv, count, dtype).root(root);
    let lists = VectorLists { send: Some((counts, displs)), ..VectorLists::default() };
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, arguments, lists, request) }
}

/// Combines vectors of blocks, of `counts[x]` elements for rank x, which gets block x of the result
/// (MPI_Reduce_scatter). In place, the vector is in `recv`, and the result at its start.
///
/// # Safety
/// The lists have a place for each rank; each buffer holds what they say, and nobody else uses it
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_reduce_scatterv(
    send: *const c_void,
    recv: *mut c_void,
    counts: *const i64,
    dtype: c_int,
    op: c_int,
    comm: hopbine_comm_t,
) -> c_int {
    let arguments = Arguments::new(Collective::ReduceScatter, send, recv, 0, dtype).op(op);
    let lists = VectorLists { send: Some((counts, std::ptr::null())), ..VectorLists::default() };
    // SAFETY: the caller's promise.
    unsafe { perform(comm, arguments, lists) }
}

/// Starts hopbine_reduce_scatterv(). The buffers must be left alone until the request is done; the lists need not.
///
/// # Safety
/// As the blocking call, until the request is done; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_ireduce_scatterv(
    send: *const c_void,
    recv: *mut c_void,
    counts: *const i64,
    dtype: c_int,
    op: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::ReduceScatter, send, recv, 0, dtype).op(op);
    let lists = VectorLists { send: Some((counts, std::ptr::null())), ..VectorLists::default() };
    // SAFETY: the caller's promise.
    unsafe { start(comm, arguments, lists, request) }
}

/// Prepares hopbine_reduce_scatterv() on these buffers, with these lists, to be started with hopbine_start().
///
/// # Safety
/// As the blocking call, whenever the request is under way; the buffers are there until it is
/// freed; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_reduce_scatterv_init(
    send: *const c_void,
    recv: *mut c_void,
    counts: *const i64,
    dtype: c_int,
    op: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::ReduceScatter, send, recv, 0, dtype).op(op);
    let lists = VectorLists { send: Some((counts, std::ptr::null())), ..VectorLists::default() };
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, arguments, lists, request) }
}

/// Gives rank x `send_counts[x]` elements at `send_displs[x]` of `send`, and gets `recv_counts[x]`
/// elements from it to `recv_displs[x]` of `recv`. In place (on all ranks), the second lists count for
/// both.
///
/// # Safety
/// The lists have a place for each rank; each buffer holds what they say, and nobody else uses it
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_alltoallv(
    send: *const c_void,
    send_counts: *const i64,
    send_displs: *const i64,
    recv: *mut c_void,
    recv_counts: *const i64,
    recv_displs: *const i64,
    dtype: c_int,
    comm: hopbine_comm_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Alltoall, send, recv, 0, dtype);
    let lists = VectorLists {
        send: Some((send_counts, send_displs)),
        recv: Some((recv_counts, recv_displs)),
    };
    // SAFETY: the caller's promise.
    unsafe { perform(comm, arguments, lists) }
}

/// Starts hopbine_alltoallv(). The buffers must be left alone until the request is done; the lists need not.
///
/// # Safety
/// As the blocking call, until the request is done; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_ialltoallv(
    send: *const c_void,
    send_counts: *const i64,
    send_displs: *const i64,
    recv: *mut c_void,
    recv_counts: *const i64,
    recv_displs: *const i64,
    dtype: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Alltoall, send, recv, 0, dtype);
    let lists = VectorLists {
        send: Some((send_counts, send_displs)),
        recv: Some((recv_counts, recv_displs)),
    };
    // SAFETY: the caller's promise.
    unsafe { start(comm, arguments, lists, request) }
}

/// Prepares hopbine_alltoallv() on these buffers, with these lists, to be started with hopbine_start().
///
/// # Safety
/// As the blocking call, whenever the request is under way; the buffers are there until it is
/// freed; `request` is an address to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_alltoallv_init(
    send: *const c_void,
    send_counts: *const i64,
    send_displs: *const i64,
    recv: *mut c_void,
    recv_counts: *const i64,
    recv_displs: *const i64,
    dtype: c_int,
    comm: hopbine_comm_t,
    request: *mut hopbine_request_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Alltoall, send, recv, 0, dtype);
    let lists = VectorLists {
        send: Some((send_counts, send_displs)),
        recv: Some((recv_counts, recv_displs)),
    };
    // SAFETY: the caller's promise.
    unsafe { prepare(comm, arguments, lists, request) }
}
