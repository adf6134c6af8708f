//! Each error has its code, at the place where the device reports it.

mod common;

use std::sync::Mutex;

use common::*;
use utofu_emu::{Job, c};
use utofu_sys::*;

/// Two end points of ranks on two nodes, in one thread.
struct Pair {
    job: std::sync::Arc<Job>,
    a: EndPoint,
    b: EndPoint,
}

/// One page each; the pages are never freed.
fn pair() -> Pair {
    let job = Job::threads(Job::coords_for_shape(&[1, 2]).unwrap());
    let open = |rank| {
        let _me = job.enter(rank);
        EndPoint::open(page())
    };
    let (a, b) = (open(0), open(1));
    Pair { job, a, b }
}

/// A separate page, never freed: registrations cover whole pages.
fn page() -> &'static mut [u64] {
    /// The addresses of all pages, so that leak detectors find the pages reachable.
    static PAGES: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let mut v = vec![0u64; 2048];
    let skip = v.as_ptr().align_offset(4096);
    v.truncate(skip + 512);
    let page = &mut v.leak()[skip..];
    PAGES.lock().unwrap().push(page.as_ptr().addr());
    page
}

impl Pair {
    /// Asserts that the local MRQ has this error code, and that all other queues are empty.
    fn expect_mrq(&self, code: i32, kind: utofu_mrq_notice_type, to: u64) {
        let (rc, n) = self.a.poll_mrq();
        assert_eq!((rc, n.notice_type, n.vcq_id, n.edata), (code, kind as u8, to, 9));
        assert_ne!(last_error(), "");
        assert_eq!(self.a.poll_tcq(), Err(UTOFU_ERR_NOT_FOUND), "it was sent");
        assert_eq!(self.a.poll_mrq().0, UTOFU_ERR_NOT_FOUND);
        assert_eq!(self.b.poll_mrq().0, UTOFU_ERR_NOT_FOUND, "the target sees nothing");
    }
}

#[test]
fn puts_that_the_target_refuses() {
    let p = pair();
    let (a, b) = (&p.a, &p.b);
    for (stadd, len, code) in [
        (b.stadd + 4088, 9, UTOFU_ERR_MRQ_RMT_LENGTH),
        (b.stadd + 4097, 0, UTOFU_ERR_MRQ_RMT_LENGTH),
        (b.stadd + (1 << 41), 8, UTOFU_ERR_MRQ_RMT_STADD),
        (77, 8, UTOFU_ERR_MRQ_RMT_STADD),
    ] {
        assert_eq!(a.put(b.id, a.stadd, stadd, len, 9, RMT), 0);
        p.expect_mrq(code, UTOFU_MRQ_TYPE_LCL_PUT, b.id);
    }
    assert_eq!(a.put(b.id, a.stadd, b.stadd + 4088, 8, 9, RMT), 0);
    assert_eq!(b.wait_notice().rmt_stadd, b.stadd + 4096, "up to the end is fine");
}

#[test]
fn a_deregistered_target_is_unknown() {
    let p = pair();
    // SAFETY: only this thread uses the handle.
    assert_eq!(unsafe { c::utofu_dereg_mem(p.b.handle, p.b.stadd, 0) }, 0);
    assert_eq!(p.a.put(p.b.id, p.a.stadd, p.b.stadd, 8, 9, RMT), 0);
    p.expect_mrq(UTOFU_ERR_MRQ_RMT_STADD, UTOFU_MRQ_TYPE_LCL_PUT, p.b.id);
}

#[test]
fn read_only_memory_is_not_written() {
    let p = pair();
    let mut stadd = 0;
    let memory = page();
    // SAFETY: the memory stays mapped.
    let rc = unsafe {
        let flags = UTOFU_REG_MEM_FLAG_READ_ONLY;
        c::utofu_reg_mem(p.b.handle, memory.as_mut_ptr().cast(), 4096, flags, &mut stadd)
    };
    assert_eq!(rc, 0);
    assert_eq!(p.a.put(p.b.id, p.a.stadd, stadd, 8, 9, 0), 0);
    p.expect_mrq(UTOFU_ERR_MRQ_RMT_MEMORY, UTOFU_MRQ_TYPE_LCL_PUT, p.b.id);
    assert_eq!(p.a.get(p.b.id, p.a.stadd, stadd, 8, 9, LCL), 0);
    assert_eq!(p.a.wait_notice().notice_type, UTOFU_MRQ_TYPE_LCL_GET as u8);
}

#[test]
fn peers_that_do_not_exist() {
    let p = pair();
    let (mut nowhere, mut unborn) = (0, 0);
    // SAFETY: valid addresses.
    unsafe {
        let mut far = [9u8, 9, 9, 1, 2, 1];
        assert_eq!(c::utofu_construct_vcq_id(far.as_mut_ptr(), 0, 0, 0, &mut nowhere), 0);
        let mut near = [0u8; 6];
        assert_eq!(c::utofu_construct_vcq_id(near.as_mut_ptr(), 3, 7, 5, &mut unborn), 0);
    }
    for id in [nowhere, unborn] {
        assert_eq!(p.a.put(id, p.a.stadd, p.b.stadd, 8, 9, RMT), 0);
        p.expect_mrq(UTOFU_ERR_MRQ_PEER, UTOFU_MRQ_TYPE_LCL_PUT, id);
    }
}

#[test]
fn local_faults_of_a_put_show_in_the_tcq_even_if_silent() {
    let p = pair();
    for (stadd, len, code) in [
        (p.a.stadd + (1 << 41), 8, UTOFU_ERR_TCQ_STADD),
        (p.a.stadd + 4096, 1, UTOFU_ERR_TCQ_LENGTH),
    ] {
        assert_eq!(p.a.put(p.b.id, stadd, p.b.stadd, len, 9, LCL | RMT), 0);
        assert_eq!(p.a.poll_tcq(), Err(code));
        assert_eq!(p.a.poll_mrq().0, UTOFU_ERR_NOT_FOUND);
        assert_eq!(p.b.poll_mrq().0, UTOFU_ERR_NOT_FOUND);
    }
}

#[test]
fn local_faults_of_a_get_show_in_the_mrq() {
    let p = pair();
    for (stadd, len, code) in [
        (p.a.stadd + (1 << 41), 8, UTOFU_ERR_MRQ_LCL_STADD),
        (p.a.stadd + 4090, 8, UTOFU_ERR_MRQ_LCL_LENGTH),
    ] {
        assert_eq!(p.a.get(p.b.id, stadd, p.b.stadd, len, 9, LCL | RMT), 0);
        p.expect_mrq(code, UTOFU_MRQ_TYPE_LCL_GET, p.b.id);
    }
}

#[test]
fn arguments_out_of_range_are_refused_at_once() {
    let p = pair();
    let (a, b) = (&p.a, &p.b);
    assert_eq!(a.put(b.id, a.stadd, b.stadd, 8, 256, 0), UTOFU_ERR_INVALID_EDATA);
    assert_eq!(a.put(b.id, a.stadd, b.stadd, 16_777_216, 0, 0), UTOFU_ERR_INVALID_SIZE);
    assert_eq!(a.put(u64::MAX, a.stadd, b.stadd, 8, 0, 0), UTOFU_ERR_INVALID_VCQ_ID);
    let delayed = UTOFU_ONESIDED_FLAG_DELAY_START;
    assert_eq!(a.put(b.id, a.stadd, b.stadd, 8, 0, delayed), UTOFU_ERR_NOT_SUPPORTED);
    let null = std::ptr::null_mut();
    let mut long = [0u8; 64];
    // SAFETY: pointers are null or valid.
    unsafe {
        let data = long.as_mut_ptr().cast();
        let rc = c::utofu_put_piggyback(a.handle, b.id, data, b.stadd, 33, 0, 0, null);
        assert_eq!(rc, UTOFU_ERR_INVALID_SIZE);
        let rc = c::utofu_put_piggyback(a.handle, b.id, null, b.stadd, 1, 0, 0, null);
        assert_eq!(rc, UTOFU_ERR_INVALID_POINTER);
        let rc = c::utofu_put_piggyback8(a.handle, b.id, 0, b.stadd, 9, 0, 0, null);
        assert_eq!(rc, UTOFU_ERR_INVALID_SIZE);
        let rc = c::utofu_armw4(a.handle, b.id, 6, 0, b.stadd, 0, 0, null);
        assert_eq!(rc, UTOFU_ERR_INVALID_OP);
        let rc = c::utofu_put_gap(a.handle, b.id, a.stadd, b.stadd, 8, 0, 0, 1921, 0, null);
        assert_eq!(rc, UTOFU_ERR_INVALID_ARG);
        let rc = c::utofu_put_stride(a.handle, b.id, a.stadd, b.stadd, 8, 8, 0, 0, 0, null);
        assert_eq!(rc, UTOFU_ERR_INVALID_NUMBER);
        let desc = long.as_mut_ptr().cast();
        assert_eq!(c::utofu_post_toq(a.handle, desc, 32, null), UTOFU_ERR_INVALID_DESC);
        assert_eq!(c::utofu_post_toq(a.handle, desc, 31, null), UTOFU_ERR_INVALID_DESC);
        let mut stadd = 0;
        assert_eq!(c::utofu_query_stadd(b.id, 256, &mut stadd), UTOFU_ERR_INVALID_STAG);
    }
    assert_eq!(a.poll_tcq(), Err(UTOFU_ERR_NOT_FOUND));
}

#[test]
fn freed_handles_are_recognised() {
    let job = Job::threads(vec![[0; 6]]);
    let _me = job.enter(0);
    let ep = EndPoint::open(page());
    let (handle, id, stadd) = (ep.handle, ep.id, ep.stadd);
    ep.close();
    let next = EndPoint::open(page());
    assert_eq!(next.id, id, "the place is used again");
    let gone = EndPoint { handle, id, stadd };
    assert_eq!(gone.put(id, stadd, stadd, 8, 0, 0), UTOFU_ERR_INVALID_VCQ_HDL);
    assert_eq!(gone.poll_mrq().0, UTOFU_ERR_INVALID_VCQ_HDL);
    // SAFETY: the device refuses a freed handle.
    let rc = unsafe { c::utofu_free_vcq(handle) };
    assert_eq!(rc, UTOFU_ERR_INVALID_VCQ_HDL);
    assert_eq!(next.poll_mrq().0, UTOFU_ERR_NOT_FOUND, "nothing of the earlier VCQ is left");
}

/// A sender keeps the location of a VCQ, but checks each time that the VCQ exists.
#[test]
fn peers_that_go_and_come_again() {
    let mut p = pair();
    let id = p.b.id;
    for _ in 0..3 {
        assert_eq!(p.a.put(id, p.a.stadd, p.b.stadd, 8, 9, RMT), 0);
        assert_eq!(p.b.wait_notice().vcq_id, p.a.id);
        let gone = std::mem::replace(&mut p.b, EndPoint { handle: 0, id, stadd: 0 });
        let stadd = gone.stadd;
        gone.close();
        assert_eq!(p.a.put(id, p.a.stadd, stadd, 8, 9, RMT), 0);
        assert_eq!(p.a.poll_mrq().0, UTOFU_ERR_MRQ_PEER);
        let _me = p.job.enter(1);
        p.b = EndPoint::open(page());
        assert_eq!(p.b.id, id, "the same place");
    }
}

/// A batch with an invalid descriptor posts nothing.
#[test]
fn batches_with_something_else_in_them() {
    let p = pair();
    let (mut descs, mut size) = ([0u64; 8], 0);
    let to = descs.as_mut_ptr().cast();
    // SAFETY: there is room for two descriptors; the second is zeros.
    unsafe {
        let rc = c::utofu_prepare_put(
            p.a.handle, p.b.id, p.a.stadd, p.b.stadd, 8, 9, RMT, to, &mut size,
        );
        assert_eq!((rc, size), (0, 32));
        let null = std::ptr::null_mut();
        assert_eq!(c::utofu_post_toq(p.a.handle, to, 64, null), UTOFU_ERR_INVALID_DESC);
        assert_eq!(p.b.poll_mrq().0, UTOFU_ERR_NOT_FOUND);
        assert_eq!(c::utofu_post_toq(p.a.handle, to, 32, null), 0);
    }
    assert_eq!(p.b.wait_notice().edata, 9);
}
