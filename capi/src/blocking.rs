//! The collectives, blocking: each returns when its buffers are the caller's again.

use std::ffi::{c_int, c_void};

use hopbine::torus::collectives::Collective;

use crate::calls::{Arguments, HOPBINE_UINT8};
use crate::failure::entry;
use crate::handles::hopbine_comm_t;
use crate::known;

/// A buffer that the collective does not have.
const NONE: *const c_void = std::ptr::null();

/// # Safety
/// Each buffer holds what the collective needs of it, and nobody else uses it meanwhile.
unsafe fn perform(comm: hopbine_comm_t, arguments: &Arguments) -> c_int {
    // SAFETY: the caller's promise.
    entry(|| unsafe { known::perform(comm, arguments) })
}

/// Combines the vectors of `count` elements of all ranks; everyone gets the result, bit for bit the
/// same.
///
/// # Safety
/// Each buffer holds what the collective needs of it, and nobody else uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_allreduce(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    op: c_int,
    comm: hopbine_comm_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Allreduce, send, recv, count, dtype).op(op);
    // SAFETY: the caller's promise.
    unsafe { perform(comm, &arguments) }
}

/// Combines the vectors of `count` elements of all ranks; the root gets the result. `recv` matters on
/// the root only, HOPBINE_IN_PLACE there only.
///
/// # Safety
/// Each buffer holds what the collective needs of it, and nobody else uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_reduce(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    op: c_int,
    root: c_int,
    comm: hopbine_comm_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Reduce, send, recv, count, dtype).op(op).root(root);
    // SAFETY: the caller's promise.
    unsafe { perform(comm, &arguments) }
}

/// Combines blocks of `count` elements, one for each rank; rank x gets block x of the result
/// (MPI_Reduce_scatter_block). In place, the blocks are in `recv`, and the result at its start.
///
/// # Safety
/// Each buffer holds what the collective needs of it, and nobody else uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_reduce_scatter(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    op: c_int,
    comm: hopbine_comm_t,
) -> c_int {
    let arguments = Arguments::new(Collective::ReduceScatter, send, recv, count, dtype).op(op);
    // SAFETY: the caller's promise.
    unsafe { perform(comm, &arguments) }
}

/// Gives everyone the root's vector of `count` elements.
///
/// # Safety
/// Each buffer holds what the collective needs of it, and nobody else uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_bcast(
    buffer: *mut c_void,
    count: i64,
    dtype: c_int,
    root: c_int,
    comm: hopbine_comm_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Bcast, NONE, buffer, count, dtype).root(root);
    // SAFETY: the caller's promise.
    unsafe { perform(comm, &arguments) }
}

/// Gives everyone the blocks of `count` elements of all ranks, in rank order. In place, a rank's own
/// block is where it belongs in `recv`.
///
/// # Safety
/// Each buffer holds what the collective needs of it, and nobody else uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_allgather(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    comm: hopbine_comm_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Allgather, send, recv, count, dtype);
    // SAFETY: the caller's promise.
    unsafe { perform(comm, &arguments) }
}

/// Gives the root the blocks of `count` elements of all ranks, in rank order. `recv` matters on the
/// root only, HOPBINE_IN_PLACE there only.
///
/// # Safety
/// Each buffer holds what the collective needs of it, and nobody else uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_gather(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    root: c_int,
    comm: hopbine_comm_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Gather, send, recv, count, dtype).root(root);
    // SAFETY: the caller's promise.
    unsafe { perform(comm, &arguments) }
}

/// Gives rank x the root's block x of `count` elements. `send` matters on the root only, which may
/// have HOPBINE_IN_PLACE for `recv`: its own block then stays where it is.
///
/// # Safety
/// Each buffer holds what the collective needs of it, and nobody else uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_scatter(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    root: c_int,
    comm: hopbine_comm_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Scatter, send, recv, count, dtype).root(root);
    // SAFETY: the caller's promise.
    unsafe { perform(comm, &arguments) }
}

/// Gives rank x the block x of `count` elements of all ranks, in rank order. In place, the blocks to
/// send are in `recv`; then on all ranks.
///
/// # Safety
/// Each buffer holds what the collective needs of it, and nobody else uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_alltoall(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    comm: hopbine_comm_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Alltoall, send, recv, count, dtype);
    // SAFETY: the caller's promise.
    unsafe { perform(comm, &arguments) }
}

/// Ends when all ranks have called it.
#[unsafe(no_mangle)]
pub extern "C" fn hopbine_barrier(comm: hopbine_comm_t) -> c_int {
    let arguments = Arguments::new(Collective::Barrier, NONE, NONE.cast_mut(), 0, HOPBINE_UINT8);
    // SAFETY: there are no buffers.
    unsafe { perform(comm, &arguments) }
}

/// Combines vectors of `count` elements: rank x gets the combination of those of ranks 0 to x.
///
/// # Safety
/// Each buffer holds what the collective needs of it, and nobody else uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_scan(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    op: c_int,
    comm: hopbine_comm_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Scan, send, recv, count, dtype).op(op);
    // SAFETY: the caller's promise.
    unsafe { perform(comm, &arguments) }
}

/// As hopbine_scan(), without the rank's own vector: rank x gets the combination of those of ranks 0 to
/// x - 1, and `recv` of rank 0 stays as it is.
///
/// # Safety
/// Each buffer holds what the collective needs of it, and nobody else uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_exscan(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    dtype: c_int,
    op: c_int,
    comm: hopbine_comm_t,
) -> c_int {
    let arguments = Arguments::new(Collective::Exscan, send, recv, count, dtype).op(op);
    // SAFETY: the caller's promise.
    unsafe { perform(comm, &arguments) }
}
