//! Ranks as threads: what only several ranks of one process can show.

mod common;

use common::*;
use utofu_abi::*;
use utofu_emu::{Job, c};

/// Many senders push into one queue; every sender's notices must come in its order.
#[test]
fn many_ranks_put_to_one() {
    const PUTS: u64 = 20_000;
    let job = Job::threads(Job::coords_for_shape(&[3, 2]).unwrap());
    let ends = Exchange::new(6);
    std::thread::scope(|s| {
        for rank in 0..6usize {
            let (job, ends) = (&job, &ends);
            s.spawn(move || {
                let _me = job.enter(rank);
                let mut buf = vec![0u64; 1024];
                let ep = EndPoint::open(&mut buf);
                let all = ends.gather(rank, (ep.id, ep.stadd));
                if rank == 0 {
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
                } else {
                    for i in 0..PUTS {
                        let there = all[0].1 + 8 * rank as u64;
                        ep.piggyback8(all[0].0, i, there, i % 256, RMT);
                    }
                }
                ends.gather(rank, (0, 0));
                ep.close();
            });
        }
    });
}

/// Two ranks of one node share its TNIs: their VCQs take neighbouring places.
#[test]
fn ranks_of_a_node_share_its_queues() {
    let here = [1, 2, 3, 0, 1, 0];
    let job = Job::threads(vec![here, here]);
    let _a = job.enter(0);
    let first = EndPoint::open(&mut [0]);
    let b = job.enter(1);
    let second = EndPoint::open(&mut [0]);
    drop(b);
    for (ep, extra) in [(&first, 8), (&second, 9)] {
        let (mut at, mut tni, mut cq, mut x) = ([0u8; 6], 9, 9, 0);
        // SAFETY: valid places for the results.
        let rc =
            unsafe { c::utofu_query_vcq_info(ep.id, at.as_mut_ptr(), &mut tni, &mut cq, &mut x) };
        assert_eq!((rc, at, tni, cq, x), (0, here, 0, 0, extra));
    }
    first.close();
    second.close();
}

/// Bytes of memory that this process uses.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// 64 ranks with six queues each, through which more passes than they hold, stay small: at full
/// size the queues would take 3 GB.
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
