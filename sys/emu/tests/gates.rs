//! Barrier gates under load: many operations in sequence, with several connections.

use std::sync::Barrier;
use utofu_emu::{Job, c};
use utofu_sys::*;

const NONE: utofu_vbg_id_t = UTOFU_VBG_ID_NULL;

fn alloc(n: usize) -> Vec<utofu_vbg_id_t> {
    let mut ids = vec![0; n];
    // SAFETY: room for n ids.
    assert_eq!(unsafe { c::utofu_alloc_vbg(0, n, 0, ids.as_mut_ptr()) }, 0);
    ids
}

fn connect(id: u64, from: [u64; 2], to: [u64; 2]) -> utofu_vbg_setting {
    utofu_vbg_setting {
        vbg_id: id,
        src_lcl_vbg_id: from[0],
        src_rmt_vbg_id: from[1],
        dst_lcl_vbg_id: to[0],
        dst_rmt_vbg_id: to[1],
        dst_path_coords: [UTOFU_PATH_COORD_NULL; 3],
    }
}

/// Connects the gates of all ranks of a butterfly over 2^levels ranks.
fn butterfly(all: &[Vec<u64>]) {
    let levels = all[0].len();
    for (r, mine) in all.iter().enumerate() {
        let mut settings: Vec<_> = (0..levels)
            .map(|i| {
                let (prev, next) = ((i + levels - 1) % levels, (i + 1) % levels);
                let from = [mine[prev], all[r ^ 1 << prev][prev]];
                connect(mine[i], from, [mine[next], all[r ^ 1 << i][next]])
            })
            .collect();
        // SAFETY: the array has `levels` settings.
        let rc = unsafe { c::utofu_set_vbg(settings.as_mut_ptr(), levels) };
        assert_eq!(rc, 0);
    }
}

fn wait(mut poll: impl FnMut() -> i32) -> i32 {
    loop {
        match poll() {
            UTOFU_ERR_NOT_COMPLETED => std::thread::yield_now(),
            rc => return rc,
        }
    }
}

fn on_ranks(levels: usize, body: impl Fn(usize, u64, &Barrier) + Sync) {
    let n = 1 << levels;
    let job = Job::threads(Job::coords_for_shape(&[1, n as u32]).unwrap());
    let all: Vec<Vec<u64>> = (0..n)
        .map(|r| {
            let _me = job.enter(r);
            alloc(levels)
        })
        .collect();
    butterfly(&all);
    let barrier = Barrier::new(n);
    // No thread enters the job: gate ids are enough.
    hopbine_testing::ranks::ranks(&all, |r, mine| body(r, mine[0], &barrier));
}

#[test]
fn sums_follow_each_other_without_mixing() {
    on_ranks(3, |r, gate, _| {
        for round in 0..2_000u64 {
            let mut data = [round * 8 + r as u64, 1];
            let mut out = [0u64; 6];
            // SAFETY: arrays of the sizes given.
            let rc = unsafe {
                let op = UTOFU_REDUCE_OP_SUM;
                assert_eq!(c::utofu_reduce_uint64(gate, op, data.as_mut_ptr(), 2, 0), 0);
                wait(|| c::utofu_poll_reduce_uint64(gate, 0, out.as_mut_ptr()))
            };
            assert_eq!((rc, out), (0, [round * 64 + 28, 8, 0, 0, 0, 0]));
        }
    });
}

#[test]
fn doubles_are_summed_exactly() {
    on_ranks(2, |r, gate, _| {
        let addend = [1e30, 1.0, -1e30, 2f64.powi(-40)][r];
        let mut data = [addend, r as f64];
        let mut out = [0.0f64; 3];
        // SAFETY: arrays of the sizes given.
        let rc = unsafe {
            let op = UTOFU_REDUCE_OP_BFPSUM;
            assert_eq!(c::utofu_reduce_double(gate, op, data.as_mut_ptr(), 2, 0), 0);
            wait(|| c::utofu_poll_reduce_double(gate, 0, out.as_mut_ptr()))
        };
        // 1e30 is near 2^99: bits from 2^0 up are kept, so 1 survives and 2^-40 does not.
        assert_eq!((rc, out), (0, [1.0, 6.0, 0.0]));
    });
}

#[test]
fn different_operations_are_told_to_all_and_forgotten() {
    on_ranks(2, |r, gate, barrier| {
        let mut data = [r as u64];
        let op = if r == 3 { UTOFU_REDUCE_OP_BOR } else { UTOFU_REDUCE_OP_MAX };
        let mut out = [77u64; 6];
        // SAFETY: arrays of the sizes given.
        unsafe {
            assert_eq!(c::utofu_poll_barrier(gate, 0), UTOFU_ERR_BUSY);
            assert_eq!(c::utofu_reduce_uint64(gate, op, data.as_mut_ptr(), 1, 0), 0);
            assert_eq!(c::utofu_barrier(gate, 0), UTOFU_ERR_BUSY);
            let rc = wait(|| c::utofu_poll_reduce_uint64(gate, 0, out.as_mut_ptr()));
            assert_eq!((rc, out), (UTOFU_ERR_BARRIER_MISMATCH, [77; 6]));
            barrier.wait();
            let op = UTOFU_REDUCE_OP_MAX;
            assert_eq!(c::utofu_reduce_uint64(gate, op, data.as_mut_ptr(), 1, 0), 0);
            let rc = wait(|| c::utofu_poll_reduce_uint64(gate, 0, out.as_mut_ptr()));
            assert_eq!((rc, out[0], out[1]), (0, 3, 77));
        }
    });
}

#[test]
fn misuse_is_refused() {
    let job = Job::threads(vec![[0; 6]]);
    let _me = job.enter(0);
    let v = alloc(2);
    let mut data = [0u64; 7];
    // SAFETY: arrays of the sizes given.
    unsafe {
        assert_eq!(c::utofu_barrier(v[0], 0), UTOFU_ERR_INVALID_VBG_ID, "not connected");
        let mut s = [connect(v[0], [v[0], NONE], [v[0], NONE])];
        assert_eq!(c::utofu_set_vbg(s.as_mut_ptr(), 1), 0);
        assert_eq!(c::utofu_barrier(v[1], 0), UTOFU_ERR_INVALID_VBG_ID, "a relay gate");
        let d = data.as_mut_ptr();
        let reduce = |op, n| c::utofu_reduce_uint64(v[0], op, d, n, 0);
        assert_eq!(reduce(UTOFU_REDUCE_OP_SUM, 7), UTOFU_ERR_INVALID_NUMBER);
        assert_eq!(reduce(UTOFU_REDUCE_OP_BFPSUM, 1), UTOFU_ERR_INVALID_OP);
        assert_eq!(reduce(UTOFU_REDUCE_OP_MAXLOC, 3), UTOFU_ERR_INVALID_NUMBER);
        assert_eq!(c::utofu_barrier(v[0], 0), 0);
        let wrong = c::utofu_poll_reduce_uint64(v[0], 0, d);
        assert_eq!(wrong, UTOFU_ERR_INVALID_OP, "a barrier is in flight");
        assert_eq!(c::utofu_poll_barrier(v[0], 0), 0);
        let mut listed = [v[0], v[0], NONE, v[1]];
        assert_eq!(c::utofu_free_vbg(listed.as_mut_ptr(), 4), UTOFU_ERR_INVALID_VBG_ID);
        assert_eq!(job.n_gates(), 2, "none is freed");
        listed[2] = v[1];
        assert_eq!(c::utofu_free_vbg(listed.as_mut_ptr(), 4), 0);
        assert_eq!(job.n_gates(), 0, "all are freed, also if one is named twice");
        assert_eq!(c::utofu_barrier(v[0], 0), UTOFU_ERR_INVALID_VBG_ID);
    }
}

/// Each rank's gate gets only the other rank's packet: no gate compares the two ranks' operations.
#[test]
fn results_of_another_length_are_not_written() {
    let job = Job::threads(Job::coords_for_shape(&[1, 2]).unwrap());
    let [a, b] = [0, 1].map(|rank| {
        let _me = job.enter(rank);
        alloc(1)[0]
    });
    let mut settings = [connect(a, [NONE, b], [NONE, b]), connect(b, [NONE, a], [NONE, a])];
    let sum = UTOFU_REDUCE_OP_SUM;
    // SAFETY: arrays of the sizes given; the gates are connected.
    unsafe {
        assert_eq!(c::utofu_set_vbg(settings.as_mut_ptr(), 2), 0);
        for is_double in [false, true] {
            let (mut short, mut long) = ([1], [1; 6]);
            let started = match is_double {
                true => c::utofu_reduce_double(a, UTOFU_REDUCE_OP_BFPSUM, [1.0].as_mut_ptr(), 1, 0),
                false => c::utofu_reduce_uint64(a, sum, short.as_mut_ptr(), 1, 0),
            };
            assert_eq!(started, 0);
            assert_eq!(c::utofu_reduce_uint64(b, sum, long.as_mut_ptr(), 6, 0), 0);
            let (mut doubles, mut integers) = ([7.0; 6], [7; 6]);
            let code = match is_double {
                true => c::utofu_poll_reduce_double(a, 0, doubles.as_mut_ptr()),
                false => c::utofu_poll_reduce_uint64(a, 0, integers.as_mut_ptr()),
            };
            let mismatch = UTOFU_ERR_BARRIER_MISMATCH;
            assert_eq!((code, doubles, integers), (mismatch, [7.0; 6], [7; 6]));
            let code = c::utofu_poll_reduce_uint64(b, 0, integers.as_mut_ptr());
            assert_eq!((code, integers), (mismatch, [7; 6]));
        }
    }
}

/// Programs construct the ids of other ranks' gates from the ids of their own.
#[test]
fn ids_that_a_program_built_are_as_good() {
    let job = Job::threads(Job::coords_for_shape(&[1, 2]).unwrap());
    let all: Vec<_> = (0..2)
        .map(|r| {
            let _me = job.enter(r);
            alloc(1)
        })
        .collect();
    let node = |id: u64| id >> 32;
    for (r, mine) in all.iter().enumerate() {
        let _me = job.enter(r);
        // Gate 0 of the other node, and the rank's own gate 0 without the device's marks.
        let (own, other) = (node(mine[0]) << 32, node(all[1 - r][0]) << 32);
        let mut setting = connect(own, [own, other], [own, other]);
        // Only the first path coordinate says whether there is a path.
        setting.dst_path_coords = [UTOFU_PATH_COORD_NULL, 77, 99];
        // SAFETY: one setting.
        assert_eq!(unsafe { c::utofu_set_vbg(&mut setting, 1) }, 0);
        setting.dst_path_coords = [0, 77, 99];
        // SAFETY: one setting.
        assert_eq!(unsafe { c::utofu_set_vbg(&mut setting, 1) }, UTOFU_ERR_INVALID_PATH);
    }
    // SAFETY: gates by their numbers.
    unsafe {
        for mine in &all {
            assert_eq!(c::utofu_barrier(mine[0], 0), 0);
        }
        for mine in &all {
            assert_eq!(c::utofu_poll_barrier(mine[0], 0), 0);
        }
    }
}
