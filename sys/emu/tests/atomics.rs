//! Atomic operations of several ranks on one word.

mod common;

use common::*;
use hopbine_testing::ranks::ranks;
use std::sync::atomic::{AtomicU64, Ordering};
use utofu_emu::{Job, c};
use utofu_sys::*;

/// Runs `body` as every rank of a job.
fn on(shape: &[u32], body: impl Fn(usize, &Exchange<(u64, u64)>) + Sync) {
    let coords = Job::coords_for_shape(shape).unwrap();
    let n_ranks = coords.len();
    let (job, ends) = (Job::threads(coords), Exchange::new(n_ranks));
    ranks(0..n_ranks, |rank, _| {
        let _me = job.enter(rank);
        body(rank, &ends);
    });
}

/// Counts all additions, by all ranks and at the same time by the owner's code.
#[test]
fn adds_are_atomic_towards_ranks_and_code() {
    const EACH: u64 = 20_000;
    on(&[2, 2], |rank, ends| {
        let mut buf = vec![0u64; 16];
        // SAFETY: the buffer outlives the reference, and until the end is used only through it and through atomic
        // operations.
        let word = unsafe { AtomicU64::from_ptr(buf.as_mut_ptr()) };
        let ep = EndPoint::open(&mut buf);
        let (to, stadd) = ends.gather(rank, (ep.id, ep.stadd))[0];
        for _ in 0..EACH {
            if rank == 0 {
                word.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            // SAFETY: rank 0's buffer lives until all ranks have called the next gather.
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

/// A lock made of compare-and-swap on misaligned bytes still gives mutual exclusion.
#[test]
fn misaligned_targets_are_atomic_towards_each_other() {
    const EACH: u64 = 3_000;
    on(&[1, 3], |rank, ends| {
        let mut buf = vec![0u64; 16];
        let ep = EndPoint::open(&mut buf);
        let (to, stadd) = ends.gather(rank, (ep.id, ep.stadd))[0];
        for _ in 0..EACH {
            // SAFETY: rank 0's buffer lives until all ranks have called the next gather.
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
