//! Session mode: posted operations wait for the session progress steps of other operations.

mod common;

use common::*;
use std::ffi::{c_ulong, c_void};
use std::sync::Arc;
use utofu_emu::{Job, Model, c};
use utofu_sys::*;

const SESSION: c_ulong = UTOFU_VCQ_FLAG_SESSION_MODE;
const STEP: c_ulong = UTOFU_ONESIDED_FLAG_SPS(1);

/// One end point for each element of `flags`, on ranks of separate nodes, with 512 words each.
fn ends(model: Model, flags: &[c_ulong]) -> (Arc<Job>, Vec<(EndPoint, *mut u64)>) {
    let coords = Job::coords_for_shape(&[1, flags.len() as u32]).unwrap();
    let job = Job::with_model(coords, model).unwrap();
    let open = |(rank, flags): (usize, &c_ulong)| {
        let _me = job.enter(rank);
        let buffer = vec![0u64; 512].leak();
        let p = buffer.as_mut_ptr();
        (EndPoint::open_with(0, *flags, buffer), p)
    };
    let all = flags.iter().enumerate().map(open).collect();
    (job, all)
}

fn unread(ep: &EndPoint) -> usize {
    let mut n = 0;
    // SAFETY: a valid address for the result.
    assert_eq!(unsafe { c::utofu_query_num_unread_tcq(ep.handle, &mut n) }, 0);
    n
}

#[test]
fn each_step_starts_the_next_operation() {
    let (_job, all) = ends(Model::default(), &[0, SESSION]);
    let [(a, _), (b, p)] = &all[..] else { unreachable!() };
    for i in 0..3u64 {
        set(*p, i as usize, 10 + i);
        assert_eq!(b.put(b.id, b.stadd + 8 * i, b.stadd + 80, 8, i, TCQ | RMT), 0);
    }
    assert_eq!(b.poll_tcq(), Err(UTOFU_ERR_NOT_FOUND));
    assert_eq!((b.poll_mrq().0, word(*p, 10), unread(b)), (UTOFU_ERR_NOT_FOUND, 0, 3));
    // The source is read when the operation starts.
    set(*p, 0, 20);
    a.piggyback8(b.id, 1, b.stadd + 88, 0, STEP);
    assert_eq!(b.poll_tcq(), Ok(7));
    assert_eq!((word(*p, 10), word(*p, 11), unread(b)), (20, 1, 2));
    assert_eq!((b.poll_mrq().1.edata, b.poll_mrq().0), (0, UTOFU_ERR_NOT_FOUND));
    // Polling the MRQ also starts operations that may start; operations without steps start nothing.
    a.piggyback8(b.id, 2, b.stadd + 88, 9, RMT);
    assert_eq!((b.poll_mrq().1.edata, b.poll_mrq().0), (9, UTOFU_ERR_NOT_FOUND));
    a.piggyback8(b.id, 3, b.stadd + 88, 0, UTOFU_ONESIDED_FLAG_SPS(2));
    assert_eq!([b.poll_mrq().1.edata, b.poll_mrq().1.edata], [1, 2]);
    assert_eq!(word(*p, 10), 12);
}

#[test]
fn steps_that_come_first_start_what_is_posted_later() {
    let (_job, all) = ends(Model::default(), &[0, SESSION]);
    let [(a, _), (b, p)] = &all[..] else { unreachable!() };
    a.piggyback8(b.id, 1, b.stadd + 80, 0, UTOFU_ONESIDED_FLAG_SPS(15));
    // A failed operation delivers no progress steps.
    assert_eq!(a.put(b.id, a.stadd, b.stadd + (1 << 41), 8, 0, UTOFU_ONESIDED_FLAG_SPS(15)), 0);
    set(*p, 0, 5);
    for i in 0..16 {
        assert_eq!(b.put(b.id, b.stadd, b.stadd + 80 + 8 * i, 8, 0, 0), 0);
    }
    assert_eq!((word(*p, 24), word(*p, 25)), (5, 0));
    assert_eq!((b.poll_tcq(), unread(b)), (Err(UTOFU_ERR_NOT_FOUND), 1));
}

#[test]
fn what_waits_takes_the_room_of_the_queue() {
    let (_job, all) = ends(Model::default(), &[0, SESSION]);
    let [(a, _), (b, _)] = &all[..] else { unreachable!() };
    for _ in 0..2011 {
        assert_eq!(b.put(b.id, b.stadd, b.stadd + 80, 8, 0, TCQ), 0);
    }
    assert_eq!(b.put(b.id, b.stadd, b.stadd + 80, 8, 0, TCQ), UTOFU_ERR_BUSY);
    a.piggyback8(b.id, 1, b.stadd + 80, 0, STEP);
    assert_eq!(b.poll_tcq(), Ok(7));
    assert_eq!(b.put(b.id, b.stadd, b.stadd + 80, 8, 0, TCQ), 0);
    assert_eq!(b.put(b.id, b.stadd, b.stadd + 80, 8, 0, TCQ), UTOFU_ERR_BUSY);
}

/// A broadcast in a chain: the root's blocks start the blocks of the next rank, and these start the blocks of the
/// rank after it. Prepared descriptors carry progress steps as well.
fn chain(model: Model) {
    const BLOCKS: usize = 40;
    let (_job, all) = ends(model, &[0, SESSION, SESSION, SESSION]);
    for round in 1..4u64 {
        for at in 0..=BLOCKS {
            set(all[0].1, at, 1000 * round + at as u64);
        }
        for rank in [2, 1, 0] {
            let ((ep, _), (next, _)) = (&all[rank], &all[rank + 1]);
            let flags = UTOFU_ONESIDED_FLAG_STRONG_ORDER | if rank < 2 { STEP } else { 0 };
            let null = std::ptr::null_mut();
            let last = TCQ | flags | if rank < 2 { 0 } else { RMT };
            let end = 8 * BLOCKS as u64;
            let (mut desc, mut size) = ([0u64; 8], 0);
            let to: *mut c_void = desc.as_mut_ptr().cast();
            // SAFETY: valid pointers; the buffers are never freed.
            unsafe {
                let (h, from, rmt) = (ep.handle, ep.stadd, next.stadd);
                let rc = c::utofu_put_stride(h, next.id, from, rmt, 8, 8, BLOCKS, 0, flags, null);
                assert_eq!(rc, 0, "{}", last_error());
                let (from, rmt) = (from + end, rmt + end);
                let rc = c::utofu_prepare_put(h, next.id, from, rmt, 8, 0, last, to, &mut size);
                assert_eq!(rc, 0, "{}", last_error());
                assert_eq!(c::utofu_post_toq(h, to, size, null), 0, "{}", last_error());
            }
        }
        for (ep, _) in &all[..3] {
            while let Err(rc) = ep.poll_tcq() {
                assert_eq!(rc, UTOFU_ERR_NOT_FOUND, "{}", last_error());
            }
        }
        all[3].0.wait_notice();
        let seen: Vec<_> = (0..=BLOCKS).map(|at| word(all[3].1, at)).collect();
        assert_eq!(seen, (0..=BLOCKS as u64).map(|at| 1000 * round + at).collect::<Vec<_>>());
    }
}

#[test]
fn a_chain_passes_blocks_on() {
    chain(Model::default());
}

#[test]
fn a_chain_passes_blocks_on_as_late_as_it_may() {
    for seed in 1..4 {
        chain(Model { late: Some(seed), checked: true, ..Model::default() });
    }
}

#[test]
fn what_nothing_would_start_in_time_is_refused() {
    let model = Model { put_ns: 1000, ..Model::default() };
    let (_job, all) = ends(model, &[0, SESSION]);
    let [(a, _), (b, _)] = &all[..] else { unreachable!() };
    assert_eq!(b.put(a.id, b.stadd, a.stadd, 8, 0, 0), UTOFU_ERR_NOT_SUPPORTED);
    let delayed = UTOFU_ONESIDED_FLAG_DELAY_START;
    assert_eq!(a.put(b.id, a.stadd, b.stadd, 8, 0, delayed), UTOFU_ERR_NOT_SUPPORTED);
}
