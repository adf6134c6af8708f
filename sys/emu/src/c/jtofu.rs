//! jTofu: coordinates of the job. The job id is ignored: a process has one job.
//!
//! A job without a configured shape is a row along y. The return codes are those of jTofu; the text of the last error
//! is uTofu's. Queries before `jtofu_initialize` are allowed here.

use super::{call, load, not_null, store};
use crate::job::current::{Context, current};
use crate::limits::error::{Result, fail};
use crate::limits::ids::ABC;
use crate::sync::Ordering;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::AtomicU32;
use utofu_sys::*;

/// Runs the body of a jTofu function and translates uTofu's return codes into jTofu's.
fn jtofu_call(body: impl FnOnce() -> Result<()>) -> c_int {
    match call(body) {
        UTOFU_SUCCESS => JTOFU_SUCCESS,
        UTOFU_ERR_INVALID_POINTER => JTOFU_ERR_INVALID_POINTER,
        UTOFU_ERR_OUT_OF_MEMORY => JTOFU_ERR_OUT_OF_MEMORY,
        UTOFU_ERR_NOT_SUPPORTED => JTOFU_ERR_NOT_IMPLEMENTED,
        // There is no job.
        UTOFU_ERR_FATAL => JTOFU_ERR_NOT_INITIALIZED,
        UTOFU_ERR_INVALID_ARG | UTOFU_ERR_INVALID_COORDS => JTOFU_ERR_INVALID_ARG,
        _ => JTOFU_ERR_INTERNAL,
    }
}

/// Calls of `jtofu_initialize` in this process minus calls of `jtofu_finalize`.
static INITIALISED: AtomicU32 = AtomicU32::new(0);

fn context_of_rank(rank: jtofu_rank_t) -> Result<Context> {
    let me = current()?;
    if (rank as usize) < me.job.size() {
        return Ok(me);
    }
    fail(UTOFU_ERR_INVALID_ARG, format!("rank {rank}: the job has {} ranks", me.job.size()))
}

/// Begins the use of jTofu. The environment or the thread's job determines this rank; a different `rank` is
/// INVALID_ARG. `mapinfo` is ignored.
pub unsafe extern "C" fn jtofu_initialize(
    _job_id: jtofu_job_id_t,
    rank: jtofu_rank_t,
    _mapinfo: *const c_void,
) -> c_int {
    jtofu_call(|| {
        let me = context_of_rank(rank)?;
        if me.rank == rank as usize {
            // Relaxed: a counter that orders no other memory access.
            INITIALISED.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        fail(UTOFU_ERR_INVALID_ARG, format!("rank {rank}: this is rank {}", me.rank))
    })
}

/// Ends the use of jTofu; has no other effect. EXCESS_FINALIZE if there is no matching `jtofu_initialize`.
pub unsafe extern "C" fn jtofu_finalize() -> c_int {
    let less = |n: u32| n.checked_sub(1);
    match INITIALISED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
        Ok(_) => JTOFU_SUCCESS,
        Err(_) => JTOFU_ERR_EXCESS_FINALIZE,
    }
}

fn one_job() -> Result<()> {
    fail(UTOFU_ERR_NOT_SUPPORTED, "a process of the emulated device knows one job, its own")
}

/// Would announce another job; always NOT_IMPLEMENTED.
pub unsafe extern "C" fn jtofu_add_job(_job_id: jtofu_job_id_t, _mapinfo: *const c_void) -> c_int {
    jtofu_call(one_job)
}

/// Would remove an added job; always NOT_IMPLEMENTED.
pub unsafe extern "C" fn jtofu_delete_job(_job_id: jtofu_job_id_t) -> c_int {
    jtofu_call(one_job)
}

/// First word of a map of a job. This device never reads maps; programs only pass them on.
const MAP_MARK: u64 = u64::from_le_bytes(*b"hopbine\0");

/// Makes a map of this job, which the caller frees with C's `free`. Errors: INVALID_POINTER, OUT_OF_MEMORY.
pub unsafe extern "C" fn jtofu_create_mapinfo_by_envvars(
    mapinfo: *mut *mut c_void,
    mapinfo_size: *mut usize,
    num_proc: *mut c_uint,
) -> c_int {
    jtofu_call(|| {
        not_null(mapinfo, "mapinfo")?;
        not_null(mapinfo_size, "mapinfo_size")?;
        not_null(num_proc, "num_proc")?;
        let map = [MAP_MARK, current()?.job.size() as u64];
        // SAFETY: malloc has no preconditions.
        let place = unsafe { libc::malloc(size_of_val(&map)) }.cast::<[u64; 2]>();
        if place.is_null() {
            return fail(UTOFU_ERR_OUT_OF_MEMORY, "no memory for the map of the job");
        }
        // SAFETY: `place` has room for the map; the other pointers are not null, hence valid by the caller's promise.
        unsafe {
            place.write_unaligned(map);
            store(mapinfo, place.cast(), "mapinfo")?;
            store(mapinfo_size, size_of_val(&map), "mapinfo_size")?;
            store(num_proc, map[1] as c_uint, "num_proc")
        }
    })
}

/// Writes the version of the interface, 0.0; skips null pointers.
pub unsafe extern "C" fn jtofu_query_jtofu_version(major: *mut c_int, minor: *mut c_int) {
    // SAFETY: the caller's promise.
    unsafe { super::query::version(major, minor, JTOFU_VERSION_MAJOR, JTOFU_VERSION_MINOR) }
}

/// Writes the Tofu coordinates of a rank. Errors: INVALID_ARG, INVALID_POINTER.
pub unsafe extern "C" fn jtofu_query_phys_coords(
    _job_id: jtofu_job_id_t,
    rank: jtofu_rank_t,
    coords: *mut jtofu_phys_coords,
) -> c_int {
    jtofu_call(|| {
        let a = context_of_rank(rank)?.job.coords_of(rank as usize);
        // SAFETY: the caller's promise.
        unsafe { store(coords, jtofu_phys_coords { a }, "coords") }
    })
}

/// Writes the logical coordinates of a rank. Errors: INVALID_ARG, INVALID_POINTER.
pub unsafe extern "C" fn jtofu_query_log_coords(
    _job_id: jtofu_job_id_t,
    rank: jtofu_rank_t,
    coords: *mut jtofu_log_coords,
) -> c_int {
    jtofu_call(|| {
        let job = context_of_rank(rank)?.job;
        let a = job.placement.logical(job.node_of(rank as usize));
        // SAFETY: the caller's promise.
        unsafe { store(coords, jtofu_log_coords { a }, "coords") }
    })
}

/// Writes the sizes of the job in Tofu coordinates. Error: INVALID_POINTER.
pub unsafe extern "C" fn jtofu_query_phys_size(size: *mut jtofu_phys_coords) -> c_int {
    jtofu_call(|| {
        // A coordinate is a byte: a size of 256 is reported as 255.
        let a = current()?.job.placement.extent.map(|n| n.min(255) as u8);
        // SAFETY: the caller's promise.
        unsafe { store(size, jtofu_phys_coords { a }, "size") }
    })
}

/// Writes the logical sizes of the job. Error: INVALID_POINTER.
pub unsafe extern "C" fn jtofu_query_log_size(size: *mut jtofu_log_coords) -> c_int {
    jtofu_call(|| {
        let a = current()?.job.placement.shape;
        // SAFETY: the caller's promise.
        unsafe { store(size, jtofu_log_coords { a }, "size") }
    })
}

/// Writes the sizes of the whole system, which are those of the job here. Error: INVALID_POINTER.
pub unsafe extern "C" fn jtofu_query_sys_size(size: *mut jtofu_phys_coords) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { jtofu_query_phys_size(size) }
}

/// Writes which axes of the system are rings: x, y, z and b. Error: INVALID_POINTER.
pub unsafe extern "C" fn jtofu_query_sys_torus(torus: *mut jtofu_phys_coords) -> c_int {
    // SAFETY: the caller's promise.
    jtofu_call(|| unsafe { store(torus, jtofu_phys_coords { a: [1, 1, 1, 0, 1, 0] }, "torus") })
}

/// Writes the least coordinates of the job. Error: INVALID_POINTER.
pub unsafe extern "C" fn jtofu_query_ref_coords(coords: *mut jtofu_phys_coords) -> c_int {
    jtofu_call(|| {
        let me = current()?;
        let least = |i: usize| me.job.nodes().iter().map(|c| c[i]).min().unwrap_or(0);
        let a = std::array::from_fn(least);
        // SAFETY: the caller's promise.
        unsafe { store(coords, jtofu_phys_coords { a }, "coords") }
    })
}

/// Returns the largest number of ranks on one node, or a negative code if there is no job.
pub unsafe extern "C" fn jtofu_query_max_proc_per_node() -> c_int {
    let mut most = 0;
    let code = jtofu_call(|| {
        most = current()?.job.placement.most_per_node as c_int;
        Ok(())
    });
    if code == JTOFU_SUCCESS { most } else { code }
}

/// Writes at most `max` ranks of a node to `to`, and their number to `n`.
unsafe fn ranks(
    me: &Context,
    node: Option<usize>,
    max: usize,
    to: *mut jtofu_rank_t,
    n: *mut usize,
) -> Result<()> {
    let all = node.into_iter().flat_map(|node| me.job.placement.ranks_at(node)).take(max);
    let mut count = 0;
    for rank in all {
        not_null(to, "ranks")?;
        // SAFETY: the index is below `max`, and `to` has room for `max` ranks by the caller's promise.
        unsafe { to.add(count).write(rank as jtofu_rank_t) };
        count += 1;
    }
    // SAFETY: the caller's promise.
    unsafe { store(n, count, "num_ranks") }
}

/// Writes the ranks at Tofu coordinates; no ranks if the job has no node there. Error: INVALID_POINTER.
pub unsafe extern "C" fn jtofu_query_ranks_from_phys_coords(
    _job_id: jtofu_job_id_t,
    coords: *mut jtofu_phys_coords,
    max_ranks: usize,
    ranks_out: *mut jtofu_rank_t,
    num_ranks: *mut usize,
) -> c_int {
    jtofu_call(|| {
        // SAFETY: the caller's promise; every member of the union is six bytes.
        let a = unsafe { load(coords, "coords")?.a };
        let me = current()?;
        let node = me.job.placement.node_at(a);
        // SAFETY: the caller's promise.
        unsafe { ranks(&me, node, max_ranks, ranks_out, num_ranks) }
    })
}

/// Writes the ranks at logical coordinates; no ranks if they are outside the job. Error: INVALID_POINTER.
pub unsafe extern "C" fn jtofu_query_ranks_from_log_coords(
    _job_id: jtofu_job_id_t,
    coords: *mut jtofu_log_coords,
    max_ranks: usize,
    ranks_out: *mut jtofu_rank_t,
    num_ranks: *mut usize,
) -> c_int {
    jtofu_call(|| {
        // SAFETY: the caller's promise; every member of the union is three numbers.
        let c = unsafe { load(coords, "coords")?.a };
        let me = current()?;
        let s = me.job.placement.shape;
        let node = (0..3)
            .all(|i| c[i] < s[i])
            .then(|| ((c[2] * s[1] + c[1]) * s[0] + c[0]) as usize)
            .filter(|n| *n < me.job.nodes().len());
        // SAFETY: the caller's promise.
        unsafe { ranks(&me, node, max_ranks, ranks_out, num_ranks) }
    })
}

/// Writes path coordinates towards a node, the target's own a, b, c first. Errors: INVALID_COORDS, INVALID_POINTER.
pub unsafe extern "C" fn jtofu_query_onesided_paths(
    coords: *mut jtofu_phys_coords,
    max_paths: usize,
    paths: *mut jtofu_path_coords,
    num_paths: *mut usize,
) -> c_int {
    jtofu_call(|| {
        // SAFETY: the caller's promise; every member of the union is six bytes.
        let c = unsafe { load(coords, "coords")?.a };
        node_of(c)?;
        let direct = [c[3], c[4], c[5]];
        let e = current()?.job.placement.extent;
        // A path leads through a node of the job's groups: only a, b and c that occur in the job are offered.
        let exist = |i: usize| 0..e[3 + i].min(ABC[i].into()) as u8;
        let others = exist(0)
            .flat_map(|a| exist(1).map(move |b| (a, b)))
            .flat_map(|(a, b)| exist(2).map(move |c| [a, b, c]))
            .filter(|p| *p != direct);
        let mut count = 0;
        for p in std::iter::once(direct).chain(others).take(max_paths) {
            not_null(paths, "paths")?;
            // SAFETY: the index is below `max_paths`, and `paths` has room for that many by the caller's promise.
            unsafe { paths.add(count).write(jtofu_path_coords { a: p }) };
            count += 1;
        }
        // SAFETY: the caller's promise.
        unsafe { store(num_paths, count, "num_paths") }
    })
}

fn node_of(c: [u8; 6]) -> Result<usize> {
    match current()?.job.placement.node_at(c) {
        Some(node) => Ok(node),
        None => {
            fail(UTOFU_ERR_INVALID_COORDS, format!("coordinates {c:?}: the job has no such node"))
        }
    }
}

/// Writes the number of hops to a node of the job. Errors: INVALID_COORDS, INVALID_POINTER.
pub unsafe extern "C" fn jtofu_query_onesided_hops(
    coords: *mut jtofu_phys_coords,
    num_hops: *mut usize,
) -> c_int {
    jtofu_call(|| {
        // SAFETY: the caller's promise; every member of the union is six bytes.
        let c = unsafe { load(coords, "coords")?.a };
        let (me, to) = (current()?, node_of(c)?);
        let n = me.job.hops(me.job.node_of(me.rank), to);
        // SAFETY: the caller's promise.
        unsafe { store(num_hops, n as usize, "num_hops") }
    })
}

/// Writes the paths of barriers, which are those of one-sided communication.
///
/// # Safety
/// As [`jtofu_query_onesided_paths()`].
pub unsafe extern "C" fn jtofu_query_barrier_paths(
    coords: *mut jtofu_phys_coords,
    max_paths: usize,
    paths: *mut jtofu_path_coords,
    num_paths: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { jtofu_query_onesided_paths(coords, max_paths, paths, num_paths) }
}

/// Writes the number of hops of a barrier's packets, which is that of one-sided communication.
///
/// # Safety
/// As [`jtofu_query_onesided_hops()`].
pub unsafe extern "C" fn jtofu_query_barrier_hops(
    coords: *mut jtofu_phys_coords,
    num_hops: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { jtofu_query_onesided_hops(coords, num_hops) }
}
