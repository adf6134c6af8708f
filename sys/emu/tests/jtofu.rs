//! Coordinates of a job from jTofu.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use utofu_emu::{Job, Model, c};
use utofu_sys::*;

/// Held by tests that initialise and finalise jTofu, whose state belongs to the process.
static USE: Mutex<()> = Mutex::new(());

fn physical(rank: u32) -> [u8; 6] {
    let mut at = jtofu_phys_coords { a: [0; 6] };
    // SAFETY: a valid address; all members of the union are six bytes.
    unsafe {
        assert_eq!(c::jtofu_query_phys_coords(0, rank, &mut at), 0);
        at.a
    }
}

fn logical(rank: u32) -> [u32; 3] {
    let mut at = jtofu_log_coords { a: [0; 3] };
    // SAFETY: a valid address; all members of the union are three numbers.
    unsafe {
        assert_eq!(c::jtofu_query_log_coords(0, rank, &mut at), 0);
        at.a
    }
}

fn hops(to: [u8; 6]) -> usize {
    let (mut at, mut n) = (jtofu_phys_coords { a: to }, 99);
    // SAFETY: valid addresses.
    assert_eq!(unsafe { c::jtofu_query_onesided_hops(&mut at, &mut n) }, 0);
    n
}

#[test]
fn ranks_and_coordinates_match() {
    let _using = USE.lock().unwrap_or_else(PoisonError::into_inner);
    let job = Job::on_torus(&[4, 3, 2], 2, Model::default()).unwrap();
    let _me = job.enter(5);
    let mut size = jtofu_log_coords { a: [0; 3] };
    // SAFETY: valid addresses.
    unsafe {
        assert_eq!(c::jtofu_initialize(0, 5, std::ptr::null()), 0);
        assert_eq!(c::jtofu_initialize(0, 6, std::ptr::null()), JTOFU_ERR_INVALID_ARG);
        assert_eq!(c::jtofu_query_log_size(&mut size), 0);
        assert_eq!(size.a, [4, 3, 2]);
        assert_eq!(c::jtofu_query_max_proc_per_node(), 2);
    }
    let mut seen = HashSet::new();
    for rank in 0..48u32 {
        let (p, l) = (physical(rank), logical(rank));
        assert_eq!(seen.insert(p), rank % 2 == 0, "two ranks on each node");
        assert_eq!(l[0] + 4 * (l[1] + 3 * l[2]), rank / 2);
        let mut ranks = [99u32; 4];
        let mut n = 0;
        // SAFETY: valid addresses, room for four ranks.
        unsafe {
            let mut at = jtofu_phys_coords { a: p };
            let to = ranks.as_mut_ptr();
            assert_eq!(c::jtofu_query_ranks_from_phys_coords(0, &mut at, 4, to, &mut n), 0);
            assert_eq!((n, ranks), (2, [rank & !1, rank | 1, 99, 99]));
            let mut at = jtofu_log_coords { a: l };
            assert_eq!(c::jtofu_query_ranks_from_log_coords(0, &mut at, 1, to, &mut n), 0);
            assert_eq!((n, ranks[0]), (1, rank & !1));
            let mut at = jtofu_log_coords { a: [4, 0, 0] };
            assert_eq!(c::jtofu_query_ranks_from_log_coords(0, &mut at, 4, to, &mut n), 0);
            assert_eq!(n, 0, "outside");
        }
        let axes = l.iter().zip(logical(5)).filter(|(a, b)| **a != *b).count();
        assert!(hops(p) >= axes);
    }
    assert_eq!(hops(physical(5)), 0);
    assert_eq!(hops(physical(4)), 0, "the other rank of the node");
    assert_eq!(hops(physical(7)), 1, "the neighbour along x");
    // SAFETY: the function has no arguments.
    assert_eq!(unsafe { c::jtofu_finalize() }, 0);
}

#[test]
fn paths_begin_with_the_direct_one() {
    let job = Job::on_torus(&[4, 6, 4], 1, Model::default()).unwrap();
    let _me = job.enter(0);
    let target = physical(17);
    let mut paths = [jtofu_path_coords { a: [9; 3] }; 12];
    let mut n = 0;
    // SAFETY: valid addresses, room for twelve paths; all members of the union are three bytes.
    let found: Vec<[u8; 3]> = unsafe {
        let mut at = jtofu_phys_coords { a: target };
        let rc = c::jtofu_query_onesided_paths(&mut at, 12, paths.as_mut_ptr(), &mut n);
        assert_eq!((rc, n), (0, 12));
        paths.iter().map(|p| p.a).collect()
    };
    assert_eq!(found[0], target[3..]);
    assert_eq!(found.iter().collect::<HashSet<_>>().len(), 12);
    let mut nowhere = jtofu_phys_coords { a: [77; 6] };
    // SAFETY: valid addresses.
    let rc = unsafe { c::jtofu_query_onesided_paths(&mut nowhere, 12, paths.as_mut_ptr(), &mut n) };
    assert_eq!(rc, JTOFU_ERR_INVALID_ARG);
}

/// Queries besides coordinates of programs that start with jTofu.
#[test]
fn the_job_describes_itself() {
    let _using = USE.lock().unwrap_or_else(PoisonError::into_inner);
    let job = Job::with_model(vec![[3, 4, 5, 1, 2, 1], [3, 6, 5, 0, 2, 1]], Model::default());
    let job = job.unwrap();
    let _me = job.enter(1);
    let (mut map, mut bytes, mut n) = (std::ptr::null_mut(), 0usize, 0u32);
    let (mut major, mut minor) = (-1, -1);
    let mut at = jtofu_phys_coords { a: [9; 6] };
    // SAFETY: valid addresses; the map is freed once, with `free`; members are six bytes.
    unsafe {
        assert_eq!(c::jtofu_finalize(), JTOFU_ERR_EXCESS_FINALIZE);
        assert_eq!(c::jtofu_create_mapinfo_by_envvars(&mut map, &mut bytes, &mut n), 0);
        assert!(!map.is_null() && bytes > 0);
        assert_eq!(n, 2);
        assert_eq!(c::jtofu_initialize(77, 1, map), 0);
        assert_eq!(c::jtofu_add_job(78, map), JTOFU_ERR_NOT_IMPLEMENTED);
        assert_eq!(c::jtofu_delete_job(78), JTOFU_ERR_NOT_IMPLEMENTED);
        libc::free(map);
        c::jtofu_query_jtofu_version(&mut major, &mut minor);
        assert_eq!((major, minor), (JTOFU_VERSION_MAJOR, JTOFU_VERSION_MINOR));
        assert_eq!(c::jtofu_query_sys_torus(&mut at), 0);
        assert_eq!(at.a, [1, 1, 1, 0, 1, 0]);
        assert_eq!(c::jtofu_query_ref_coords(&mut at), 0);
        assert_eq!(at.a, [3, 4, 5, 0, 2, 1]);
        assert_eq!(c::jtofu_query_ref_coords(std::ptr::null_mut()), JTOFU_ERR_INVALID_POINTER);
        let mut paths = [jtofu_path_coords { a: [9; 3] }; 12];
        let (mut ways, mut hops) = (0, 0);
        let mut to = jtofu_phys_coords { a: [3, 4, 5, 1, 2, 1] };
        let (p, q) = (paths.as_mut_ptr(), &mut to as *mut _);
        assert_eq!(c::jtofu_query_barrier_paths(q, 12, p, &mut ways), 0);
        assert_eq!((ways > 0, paths[0].a), (true, [1, 2, 1]));
        assert_eq!(c::jtofu_query_barrier_hops(q, &mut hops), 0);
        assert_eq!(hops, 3);
        assert_eq!(c::jtofu_finalize(), 0);
    }
}
