//! Every field of every notice, also fields that the manual leaves undefined: other people's programs may read
//! them.

mod common;

use common::*;
use utofu_emu::{Job, c};
use utofu_sys::*;

const BOTH: std::ffi::c_ulong = LCL | RMT;

/// The local and the remote notice of the operation that `post` posts from the first end point to the second.
fn notices(
    post: impl FnOnce(&EndPoint, &EndPoint) -> i32,
) -> ([EndPoint; 2], utofu_mrq_notice, utofu_mrq_notice) {
    let job = Job::threads(Job::coords_for_shape(&[1, 2]).unwrap());
    let ends = [0, 1].map(|rank| {
        let _me = job.enter(rank);
        let buffer = vec![0x1122_3344_5566_7788u64; 1024].leak();
        EndPoint::open(buffer)
    });
    assert_eq!(post(&ends[0], &ends[1]), 0, "{}", last_error());
    let (local, remote) = (ends[0].wait_notice(), ends[1].wait_notice());
    assert_eq!((local.vcq_id, remote.vcq_id), (ends[1].id, ends[0].id));
    assert_eq!((local.edata, remote.edata), (9, 9));
    (ends, local, remote)
}

fn kinds(local: &utofu_mrq_notice, remote: &utofu_mrq_notice) -> [u32; 2] {
    [local.notice_type, remote.notice_type].map(u32::from)
}

#[test]
fn of_a_put() {
    let (ends, local, remote) = notices(|a, b| a.put(b.id, a.stadd, b.stadd + 64, 24, 9, BOTH));
    let end = ends[1].stadd + 64 + 24;
    assert_eq!(kinds(&local, &remote), [UTOFU_MRQ_TYPE_LCL_PUT, UTOFU_MRQ_TYPE_RMT_PUT]);
    assert_eq!((local.rmt_stadd, local.lcl_stadd), (end, 0));
    assert_eq!((remote.rmt_stadd, remote.rmt_value), (end, end));
}

#[test]
fn of_a_get() {
    let (ends, local, remote) =
        notices(|a, b| a.get(b.id, a.stadd + 128, b.stadd + 64, 24, 9, BOTH));
    let (here, there) = (ends[0].stadd + 128 + 24, ends[1].stadd + 64 + 24);
    assert_eq!(kinds(&local, &remote), [UTOFU_MRQ_TYPE_LCL_GET, UTOFU_MRQ_TYPE_RMT_GET]);
    assert_eq!((local.lcl_stadd, local.rmt_value), (here, here));
    assert_eq!((remote.rmt_stadd, remote.rmt_value), (there, there));
}

#[test]
fn of_atomic_operations() {
    const OLD: u64 = 0x1122_3344_5566_7788;
    let null = std::ptr::null_mut();
    // SAFETY: the buffers are never freed.
    let swap8 = |a: &EndPoint, b: &EndPoint| unsafe {
        c::utofu_armw8(a.handle, b.id, UTOFU_ARMW_OP_SWAP, 1, b.stadd + 64, 9, BOTH, null)
    };
    // SAFETY: the buffers are never freed.
    let cswap4 = |a: &EndPoint, b: &EndPoint| unsafe {
        c::utofu_cswap4(a.handle, b.id, 0, 1, b.stadd + 64, 9, BOTH, null)
    };
    let check = |(ends, local, remote): ([EndPoint; 2], utofu_mrq_notice, utofu_mrq_notice),
                 old| {
        let at = ends[1].stadd + 64;
        assert_eq!(kinds(&local, &remote), [UTOFU_MRQ_TYPE_LCL_ARMW, UTOFU_MRQ_TYPE_RMT_ARMW]);
        assert_eq!((local.rmt_stadd, local.rmt_value, local.lcl_stadd), (at, old, old));
        assert_eq!((remote.rmt_stadd, remote.rmt_value), (at, at));
    };
    check(notices(swap8), OLD);
    check(notices(cswap4), OLD & 0xffff_ffff);
}
