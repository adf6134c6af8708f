//! Atomic operations of several ranks on one word.

mod common;

use common::*;
use hopbine_testing::ranks::ranks;
use std::sync::atomic::{AtomicU64, Ordering};
use utofu_emu::{Job, c};
use utofu_sys::*;

/// Adds from all ranks, and from the owner's code at the same time, are all counted.
#[test]
fn adds_are_atomic_towards_ranks_and_code() {
    const EACH: u64 = 20_000;
    let job = Job::threads(Job::coords_for_shape(&[2, 2]).unwrap());
    let ends = Exchange::new(4);
    ranks(0..4usize, |rank, _| {
        let _me = job.enter(rank);
        let mut buf = vec![0u64; 16];
        // SAFETY: the buffer outlives the reference, and is only used through it and
        // through atomic operations until the end.
        let word = unsafe { AtomicU64::from_ptr(buf.as_mut_ptr()) };
        let ep = EndPoint::open(&mut buf);
        let (to, stadd) = ends.gather(rank, (ep.id, ep.stadd))[0];
        for _ in 0..EACH {
            if rank == 0 {
                word.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            // SAFETY: rank 0's buffer lives until all have come to the next gather.
            let rc = unsafe {
                let (op, null) = (UTOFU_ARMW_OP_ADD, std::ptr::null_mut());
                c::utofu_armw8(ep.handle, to, op, 1, stadd, 0, 0, null)
            };
            assert_eq!(rc, 0);
            assert_eq!(ep.poll_tcq(), Err(UTOFU_ERR_NOT_FOUND));
        }
        ends.gather(rank, (0, 0));
        if rank == 0 {
            assert_eq!(word.load(Ordering::Relaxed), 4 * EACH);
        }
        ep.close();
    });
}

/// A lock made of compare-and-swap on misaligned bytes still excludes.
#[test]
fn misaligned_targets_are_atomic_towards_each_other() {
    const EACH: u64 = 3_000;
    let job = Job::threads(Job::coords_for_shape(&[1, 3]).unwrap());
    let ends = Exchange::new(3);
    ranks(0..3usize, |rank, _| {
        let _me = job.enter(rank);
        let mut buf = vec![0u64; 16];
        let ep = EndPoint::open(&mut buf);
        let (to, stadd) = ends.gather(rank, (ep.id, ep.stadd))[0];
        for _ in 0..EACH {
            // SAFETY: rank 0's buffer lives until all have come to the next gather.
            let rc = unsafe {
                let (op, null) = (UTOFU_ARMW_OP_ADD, std::ptr::null_mut());
                c::utofu_armw4(ep.handle, to, op, 1, stadd + 3, 0, 0, null)
            };
            assert_eq!(rc, 0);
            assert_eq!(ep.poll_tcq(), Err(UTOFU_ERR_NOT_FOUND));
        }
        ends.gather(rank, (0, 0));
        if rank == 0 {
            assert_eq!(buf[0], (3 * EACH) << 24);
        }
        ep.close();
    });
}
