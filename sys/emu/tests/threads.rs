//! Ranks as threads: tests that need several ranks in one process.

mod common;

use common::*;
use std::cell::RefCell;
use std::sync::mpsc;
use utofu_emu::{Job, RankGuard, c};
use utofu_sys::*;

/// Runs `play` as every rank of a job, with the rank's buffer of `words` words and with all ranks' VCQ ids and
/// STADDs.
fn ranks(
    shape: &[u32],
    words: usize,
    play: impl Fn(usize, &EndPoint, &mut [u64], &[(u64, u64)]) + Sync,
) {
    let coords = Job::coords_for_shape(shape).unwrap();
    let n = coords.len();
    let (job, ends) = (Job::threads(coords), Exchange::new(n));
    hopbine_testing::ranks::ranks(0..n, |rank, _| {
        let _me = job.enter(rank);
        let mut buf = vec![0u64; words];
        let ep = EndPoint::open(&mut buf);
        let all = ends.gather(rank, (ep.id, ep.stadd));
        play(rank, &ep, &mut buf, &all);
        ends.gather(rank, (0, 0));
        ep.close();
    });
}

/// Many senders push into one queue; the notices of each sender must arrive in its order.
#[test]
fn many_ranks_put_to_one() {
    const PUTS: u64 = 20_000;
    ranks(&[3, 2], 1024, |rank, ep, buf, all| {
        if rank > 0 {
            for i in 0..PUTS {
                ep.piggyback8(all[0].0, i, all[0].1 + 8 * rank as u64, i % 256, RMT);
            }
            return;
        }
        let mut next = [0u64; 6];
        for _ in 0..5 * PUTS {
            let n = ep.wait_notice();
            let from = all.iter().position(|(id, _)| *id == n.vcq_id).unwrap();
            assert_eq!(n.notice_type, UTOFU_MRQ_TYPE_RMT_PUT as u8);
            assert_eq!(n.edata, next[from] % 256, "order of rank {from}");
            assert_eq!(n.rmt_stadd, ep.stadd + 8 * from as u64 + 8);
            next[from] += 1;
        }
        assert_eq!(next, [0, PUTS, PUTS, PUTS, PUTS, PUTS]);
        assert_eq!(&buf[1..6], &[PUTS - 1; 5]);
    });
}

/// A thread that reads aligned words while another rank puts them sees no word that mixes two puts.
#[test]
fn words_are_put_whole() {
    ranks(&[2], 64, |rank, ep, buf, all| {
        if rank == 0 {
            // SAFETY: the second half of the buffer; only the other rank writes it.
            unsafe { read_words(ep, buf.as_ptr().add(32), all[1]) };
        } else {
            put_words(ep, all[0].0, buf, all[0].1 + 256);
        }
    });
}

fn info(ep: &EndPoint) -> ([u8; 6], u16, u16, u16) {
    let (mut at, mut tni, mut cq, mut extra) = ([0u8; 6], 9, 9, 0);
    // SAFETY: valid addresses for the results.
    let rc =
        unsafe { c::utofu_query_vcq_info(ep.id, at.as_mut_ptr(), &mut tni, &mut cq, &mut extra) };
    assert_eq!(rc, 0);
    (at, tni, cq, extra)
}

fn tnis() -> Vec<u16> {
    let (mut ids, mut n) = (std::ptr::null_mut(), 0);
    // SAFETY: valid addresses; the array has `n` elements, and is freed once.
    unsafe {
        assert_eq!(c::utofu_get_onesided_tnis(&mut ids, &mut n), 0);
        let list = std::slice::from_raw_parts(ids, n).to_vec();
        libc::free(ids.cast());
        list
    }
}

/// Each rank of a node has its own CQs, so each can use every component id. Ranks reach each other by computed ids,
/// also by ids computed for another machine.
#[test]
fn ranks_of_a_node_have_cqs_of_their_own() {
    const CMP: u16 = 7;
    let here = [1, 2, 3, 0, 1, 0];
    let cases: [(usize, &[u16], &[u16]); 6] = [
        (2, &[0, 5], &[0, 6]),
        (3, &[0, 3, 6], &[0, 4, 8]),
        (4, &[0, 2, 4, 6], &[0, 2, 5, 8]),
        (6, &[0, 0, 2, 2, 4, 4], &[0, 0, 2, 2, 5, 5]),
        (8, &[0, 0, 2, 2, 4, 4, 6, 6], &[0, 0, 2, 2, 5, 5, 8, 8]),
        (12, &[0, 0, 0, 2, 2, 2, 4, 4, 4, 6, 6, 6], &[0, 0, 0, 2, 2, 2, 5, 5, 5, 8, 8, 8]),
    ];
    for (n, cqs, guesses) in cases {
        let job = Job::threads(vec![here; n]);
        let mut buffers = vec![vec![0u64; 1024]; n];
        let mut ends = Vec::new();
        for (rank, buffer) in buffers.iter_mut().enumerate() {
            let _me = job.enter(rank);
            let groups = n.div_ceil(4);
            let width = 6 / groups;
            let first = rank % groups * width;
            assert_eq!(tnis(), (first as u16..(first + width) as u16).collect::<Vec<_>>());
            let (mut handle, mut id, mut stadd) = (0, 0, 0);
            // SAFETY: valid addresses for the results; the buffer outlives the end point.
            unsafe {
                let foreign = (first + width) as u16 % 6;
                let rc = c::utofu_create_vcq_with_cmp_id(foreign, CMP, 0, &mut handle);
                assert_eq!(rc != 0, groups > 1, "a TNI of others");
                if rc == 0 {
                    assert_eq!(c::utofu_free_vcq(handle), 0);
                }
                let tni = first as u16;
                assert_eq!(c::utofu_create_vcq_with_cmp_id(tni, CMP, 0, &mut handle), 0);
                assert_eq!(c::utofu_query_vcq_id(handle, &mut id), 0);
                let p = buffer.as_mut_ptr().cast();
                assert_eq!(c::utofu_reg_mem_with_stag(handle, p, 8192, 3, 0, &mut stadd), 0);
            }
            let ep = EndPoint { handle, id, stadd };
            assert_eq!(info(&ep), (here, first as u16, cqs[rank], 8 + CMP));
            ends.push(ep);
        }
        for (to, target) in ends.iter().enumerate() {
            let (tni, mut id) = (info(target).1, 0);
            for cq in [cqs[to], guesses[to]] {
                let mut at = here;
                // SAFETY: valid addresses.
                let rc =
                    unsafe { c::utofu_construct_vcq_id(at.as_mut_ptr(), tni, cq, CMP, &mut id) };
                assert_eq!(rc, 0);
                let from = &ends[(to + 1) % n];
                from.piggyback8(id, 5, target.stadd, to as u64, RMT);
                let notice = target.wait_notice();
                assert_eq!((notice.edata, notice.vcq_id), (to as u64, from.id));
            }
        }
        ends.into_iter().for_each(EndPoint::close);
    }
}

/// A rank's VCQ and gate that its thread frees at its very end. The results of the calls are sent.
struct LastCalls {
    _entered: RankGuard,
    end: EndPoint,
    gate: utofu_vbg_id_t,
    codes: mpsc::Sender<([i32; 7], String)>,
}

impl Drop for LastCalls {
    fn drop(&mut self) {
        let EndPoint { handle, mut id, stadd } = self.end;
        // SAFETY: valid addresses; only this thread uses the VCQ and the gate.
        let codes = unsafe {
            [
                c::utofu_set_vcq_id_path(&mut id, std::ptr::null_mut()),
                c::utofu_barrier(self.gate, 0),
                c::utofu_poll_barrier(self.gate, 0),
                c::utofu_free_vbg(&mut self.gate, 1),
                c::utofu_dereg_mem(handle, stadd, 0),
                c::utofu_free_vcq(handle),
                c::utofu_free_vcq(handle),
            ]
        };
        self.codes.send((codes, last_error())).unwrap();
    }
}

/// Programs free VCQs in destructors of thread-local values, which may run when the device's own are gone.
#[test]
fn a_thread_that_is_ending_can_call() {
    thread_local! {
        static LAST_CALLS: RefCell<Option<LastCalls>> = const { RefCell::new(None) };
    }
    let job = Job::threads(Job::coords_for_shape(&[1]).unwrap());
    let (codes, came) = mpsc::channel();
    let mut buffer = [0; 8];
    let play = || {
        // Thread-local values are dropped in the reverse order of their first uses.
        LAST_CALLS.with(|last| {
            let entered = job.enter(0);
            let (mut gate, end) = (0, EndPoint::open(&mut buffer));
            // SAFETY: valid addresses.
            unsafe {
                assert_eq!(c::utofu_alloc_vbg(0, 1, 0, &mut gate), 0);
                let mut setting = utofu_vbg_setting {
                    vbg_id: gate,
                    src_lcl_vbg_id: gate,
                    src_rmt_vbg_id: UTOFU_VBG_ID_NULL,
                    dst_lcl_vbg_id: gate,
                    dst_rmt_vbg_id: UTOFU_VBG_ID_NULL,
                    dst_path_coords: [UTOFU_PATH_COORD_NULL; 3],
                };
                assert_eq!(c::utofu_set_vbg(&mut setting, 1), 0);
                assert_eq!(c::utofu_barrier(gate, 0), 0);
                assert_eq!(c::utofu_poll_barrier(gate, 0), 0);
                assert_eq!(c::utofu_poll_barrier(gate, 0), UTOFU_ERR_BUSY);
                assert_eq!(c::utofu_free_vcq(0), UTOFU_ERR_INVALID_VCQ_HDL);
            }
            assert!(!last_error().is_empty());
            *last.borrow_mut() = Some(LastCalls { _entered: entered, end, gate, codes });
        });
    };
    std::thread::scope(|threads| threads.spawn(play).join().unwrap());
    let codes = [0, 0, 0, 0, 0, 0, UTOFU_ERR_INVALID_VCQ_HDL];
    assert_eq!(came.recv(), Ok((codes, String::new())));
    assert_eq!(job.n_gates(), 0);
}

/// Bytes of resident memory of this process.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// The queues of 64 ranks with six queues each stay small, although more notices pass through them than they hold:
/// at full size they would take 3 GB.
#[test]
fn queues_cost_what_is_used() {
    let job = Job::threads(Job::coords_for_shape(&[4, 4, 4]).unwrap());
    let before = resident();
    let mut buf = [0u64; 8];
    let mut all = Vec::new();
    for rank in 0..64 {
        let _me = job.enter(rank);
        for tni in 0..6 {
            all.push(EndPoint::open_on(tni, &mut buf));
        }
    }
    for ep in &all {
        for i in 0..5_000 {
            ep.piggyback8(ep.id, i, ep.stadd, 0, RMT);
            assert_eq!(ep.wait_notice().edata, 0);
        }
    }
    let used = resident() - before;
    assert!(used < 100 << 20, "{used} bytes for 384 queues");
    all.into_iter().for_each(EndPoint::close);
}
