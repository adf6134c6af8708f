//! jTofu: coordinates of the job. The job id is not looked at: a process knows one job.
//!
//! Without a shape of its own a job is a row along y. Results other than 0 are the codes of uTofu.

use super::{call, load, not_null, store};
use crate::error::{Result, fail};
use crate::ids::ABC;
use crate::job::{self, Context};
use std::ffi::{c_int, c_void};
use utofu_abi::*;

fn ranked(rank: jtofu_rank_t) -> Result<Context> {
    let me = job::current()?;
    if (rank as usize) < me.job.size() {
        return Ok(me);
    }
    fail(UTOFU_ERR_INVALID_ARG, format!("rank {rank}: the job has {} ranks", me.job.size()))
}

/// Announces the process. What it is comes from the environment or from the thread's job; a rank
/// that contradicts that is INVALID_ARG. `mapinfo` is not looked at.
///
/// # Safety
/// As [`crate::c`].
pub unsafe extern "C" fn jtofu_initialize(
    _job_id: jtofu_job_id_t,
    rank: jtofu_rank_t,
    _mapinfo: *const c_void,
) -> c_int {
    call(|| {
        let me = ranked(rank)?;
        if me.rank == rank as usize {
            return Ok(());
        }
        fail(UTOFU_ERR_INVALID_ARG, format!("rank {rank}: this is rank {}", me.rank))
    })
}

/// Ends the use of jTofu; changes nothing.
///
/// # Safety
/// As [`crate::c`].
pub unsafe extern "C" fn jtofu_finalize() -> c_int {
    UTOFU_SUCCESS
}

/// Tofu coordinates of a rank. INVALID_ARG, INVALID_POINTER.
///
/// # Safety
/// As [`crate::c`].
pub unsafe extern "C" fn jtofu_query_phys_coords(
    _job_id: jtofu_job_id_t,
    rank: jtofu_rank_t,
    coords: *mut jtofu_phys_coords,
) -> c_int {
    call(|| {
        let a = ranked(rank)?.job.coords_of(rank as usize);
        // SAFETY: the caller's promise.
        unsafe { store(coords, jtofu_phys_coords { a }, "coords") }
    })
}

/// Logical coordinates of a rank. INVALID_ARG, INVALID_POINTER.
///
/// # Safety
/// As [`crate::c`].
pub unsafe extern "C" fn jtofu_query_log_coords(
    _job_id: jtofu_job_id_t,
    rank: jtofu_rank_t,
    coords: *mut jtofu_log_coords,
) -> c_int {
    call(|| {
        let job = ranked(rank)?.job;
        let a = job.layout.logical(job.node_of(rank as usize));
        // SAFETY: the caller's promise.
        unsafe { store(coords, jtofu_log_coords { a }, "coords") }
    })
}

/// Sizes of the job in Tofu coordinates. INVALID_POINTER.
///
/// # Safety
/// As [`crate::c`].
pub unsafe extern "C" fn jtofu_query_phys_size(size: *mut jtofu_phys_coords) -> c_int {
    call(|| {
        let a = job::current()?.job.layout.extent;
        // SAFETY: the caller's promise.
        unsafe { store(size, jtofu_phys_coords { a }, "size") }
    })
}

/// Logical sizes of the job. INVALID_POINTER.
///
/// # Safety
/// As [`crate::c`].
pub unsafe extern "C" fn jtofu_query_log_size(size: *mut jtofu_log_coords) -> c_int {
    call(|| {
        let a = job::current()?.job.layout.shape;
        // SAFETY: the caller's promise.
        unsafe { store(size, jtofu_log_coords { a }, "size") }
    })
}

/// Sizes of the whole system: those of the job. INVALID_POINTER.
///
/// # Safety
/// As [`crate::c`].
pub unsafe extern "C" fn jtofu_query_sys_size(size: *mut jtofu_phys_coords) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { jtofu_query_phys_size(size) }
}

/// Most ranks on one node; a negative code if there is no job.
///
/// # Safety
/// As [`crate::c`].
pub unsafe extern "C" fn jtofu_query_max_proc_per_node() -> c_int {
    let mut most = 0;
    let code = call(|| {
        most = job::current()?.job.layout.most_per_node() as c_int;
        Ok(())
    });
    if code == UTOFU_SUCCESS { most } else { code }
}

/// Writes the ranks of a node: at most `max`; `n` is how many were written.
///
/// # Safety
/// As [`crate::c`].
unsafe fn ranks(
    me: &Context,
    node: Option<usize>,
    max: usize,
    to: *mut jtofu_rank_t,
    n: *mut usize,
) -> Result<()> {
    let all = node.into_iter().flat_map(|node| me.job.layout.ranks_at(node)).take(max);
    let mut count = 0;
    for rank in all {
        not_null(to, "ranks")?;
        // SAFETY: fewer than `max`, for which there is room by the caller's promise.
        unsafe { to.add(count).write(rank as jtofu_rank_t) };
        count += 1;
    }
    // SAFETY: the caller's promise.
    unsafe { store(n, count, "num_ranks") }
}

/// Ranks at Tofu coordinates; none if there is no node of the job. INVALID_POINTER.
///
/// # Safety
/// As [`crate::c`].
pub unsafe extern "C" fn jtofu_query_ranks_from_phys_coords(
    _job_id: jtofu_job_id_t,
    coords: *mut jtofu_phys_coords,
    max_ranks: usize,
    ranks_out: *mut jtofu_rank_t,
    num_ranks: *mut usize,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise; every member of the union is six bytes.
        let a = unsafe { load(coords, "coords")?.a };
        let me = job::current()?;
        let node = me.job.layout.node_at(a);
        // SAFETY: the caller's promise.
        unsafe { ranks(&me, node, max_ranks, ranks_out, num_ranks) }
    })
}

/// Ranks at logical coordinates; none outside the job. INVALID_POINTER.
///
/// # Safety
/// As [`crate::c`].
pub unsafe extern "C" fn jtofu_query_ranks_from_log_coords(
    _job_id: jtofu_job_id_t,
    coords: *mut jtofu_log_coords,
    max_ranks: usize,
    ranks_out: *mut jtofu_rank_t,
    num_ranks: *mut usize,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise; every member of the union is three numbers.
        let c = unsafe { load(coords, "coords")?.a };
        let me = job::current()?;
        let s = me.job.layout.shape;
        let node = (0..3)
            .all(|i| c[i] < s[i])
            .then(|| ((c[2] * s[1] + c[1]) * s[0] + c[0]) as usize)
            .filter(|n| *n < me.job.nodes().len());
        // SAFETY: the caller's promise.
        unsafe { ranks(&me, node, max_ranks, ranks_out, num_ranks) }
    })
}

/// Path coordinates towards a node, the target's own a, b, c first. INVALID_COORDS,
/// INVALID_POINTER.
///
/// # Safety
/// As [`crate::c`].
pub unsafe extern "C" fn jtofu_query_onesided_paths(
    coords: *mut jtofu_phys_coords,
    max_paths: usize,
    paths: *mut jtofu_path_coords,
    num_paths: *mut usize,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise; every member of the union is six bytes.
        let c = unsafe { load(coords, "coords")?.a };
        node_of(c)?;
        let direct = [c[3], c[4], c[5]];
        let e = job::current()?.job.layout.extent;
        // A path leads through a node of the job's groups: coordinates that occur there.
        let exist = |i: usize| 0..e[3 + i].min(ABC[i]);
        let others = exist(0)
            .flat_map(|a| exist(1).map(move |b| (a, b)))
            .flat_map(|(a, b)| exist(2).map(move |c| [a, b, c]))
            .filter(|p| *p != direct);
        let mut count = 0;
        for p in std::iter::once(direct).chain(others).take(max_paths) {
            not_null(paths, "paths")?;
            // SAFETY: fewer than `max_paths`, for which there is room by the caller's promise.
            unsafe { paths.add(count).write(jtofu_path_coords { a: p }) };
            count += 1;
        }
        // SAFETY: the caller's promise.
        unsafe { store(num_paths, count, "num_paths") }
    })
}

fn node_of(c: [u8; 6]) -> Result<usize> {
    match job::current()?.job.layout.node_at(c) {
        Some(node) => Ok(node),
        None => {
            fail(UTOFU_ERR_INVALID_COORDS, format!("coordinates {c:?}: the job has no such node"))
        }
    }
}

/// Hops to a node of the job. INVALID_COORDS, INVALID_POINTER.
///
/// # Safety
/// As [`crate::c`].
pub unsafe extern "C" fn jtofu_query_onesided_hops(
    coords: *mut jtofu_phys_coords,
    num_hops: *mut usize,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise; every member of the union is six bytes.
        let c = unsafe { load(coords, "coords")?.a };
        node_of(c)?;
        let me = job::current()?;
        let n = crate::coords::hops(me.job.coords_of(me.rank), c, me.job.layout.extent);
        // SAFETY: the caller's promise.
        unsafe { store(num_hops, n as usize, "num_hops") }
    })
}
