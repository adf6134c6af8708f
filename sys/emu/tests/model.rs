//! The latency model: no event is visible before it is due, and the promised order is kept.

mod common;

use common::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use utofu_emu::{Job, Model, NodeLink};
use utofu_sys::*;

/// End points of two neighbours on `buffers`.
fn neighbours(job: &Arc<Job>, buffers: &mut [Vec<u64>; 2]) -> [EndPoint; 2] {
    let mut rank = 0..;
    buffers.each_mut().map(|buffer| {
        let _entered = job.enter(rank.next().unwrap());
        EndPoint::open(buffer)
    })
}

#[test]
fn notices_come_when_they_are_due_and_in_order() {
    let delay = Duration::from_millis(20);
    let model = Model { put_ns: delay.as_nanos() as u64, ..Model::default() };
    let job = Job::with_model(Job::coords_for_shape(&[1, 2]).unwrap(), model).unwrap();
    let mut buffers = [vec![1; 1024], vec![0; 1024]];
    let [a, b] = neighbours(&job, &mut buffers);
    let start = Instant::now();
    for i in 0..10 {
        assert_eq!(a.put(b.id, a.stadd, b.stadd, 4096 >> i, i, TCQ | LCL | RMT), 0);
    }
    // A notice may come late on a busy machine, but never early.
    for i in 0..10 {
        let n = b.wait_notice();
        assert!(start.elapsed() >= delay);
        assert_eq!((n.notice_type, n.edata), (UTOFU_MRQ_TYPE_RMT_PUT as u8, i));
    }
    for i in 0..10 {
        let n = a.wait_notice();
        assert_eq!((n.notice_type, n.edata), (UTOFU_MRQ_TYPE_LCL_PUT as u8, i));
        assert_eq!(a.poll_tcq(), Ok(7));
    }
    a.close();
    b.close();
}

/// A notice from a distant sender does not delay the notice of a near sender that was posted later.
#[test]
fn senders_do_not_wait_for_each_other() {
    let model = Model { hop_ns: 30_000_000, ..Model::default() };
    // Three nodes in a row: the outer two are two hops apart, rank 1 is next to rank 0.
    let row = vec![[0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 1, 0, 1]];
    let job = Job::with_model(row, model).unwrap();
    let mut buffers = vec![vec![0u64; 1024]; 3];
    let eps: Vec<EndPoint> = buffers
        .iter_mut()
        .enumerate()
        .map(|(rank, buf)| {
            let _me = job.enter(rank);
            EndPoint::open(buf)
        })
        .collect();
    let at = &eps[0];
    loop {
        let start = Instant::now();
        assert_eq!(eps[2].put(at.id, eps[2].stadd, at.stadd, 8, 2, RMT), 0);
        assert_eq!(eps[1].put(at.id, eps[1].stadd, at.stadd, 8, 1, RMT), 0);
        let together = start.elapsed() < Duration::from_nanos(model.hop_ns);
        let order = [at.wait_notice().edata, at.wait_notice().edata];
        // If this thread needed longer than one hop to post, the order proves nothing.
        if together {
            return assert_eq!(order, [1, 2], "one hop is faster than two");
        }
    }
}

/// With jitter a put overtakes another of the same sender, unless it is strongly ordered.
#[test]
fn jitter_keeps_only_the_order_that_is_promised() {
    let model = Model { jitter_ns: 1_000_000, ..Model::default() };
    let job = Job::with_model(Job::coords_for_shape(&[1, 2]).unwrap(), model).unwrap();
    let mut buffers = [vec![1; 1024], vec![0; 1024]];
    let [a, b] = neighbours(&job, &mut buffers);
    const PUTS: u8 = 100;
    const STRONG: u8 = 50;
    for i in 0..PUTS {
        let order = if i == STRONG { UTOFU_ONESIDED_FLAG_STRONG_ORDER } else { 0 };
        assert_eq!(a.put(b.id, a.stadd, b.stadd, 8, u64::from(i), LCL | RMT | order), 0);
    }
    for end in [&a, &b] {
        let came: Vec<u8> = (0..PUTS).map(|_| end.wait_notice().edata as u8).collect();
        let mut sorted = came.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..PUTS).collect::<Vec<_>>(), "each once");
        assert_ne!(came, sorted, "a hundred random delays in order");
        let strong = came.iter().position(|&i| i == STRONG).unwrap();
        assert!((0..STRONG).all(|i| came[..strong].contains(&i)), "{came:?}");
    }
    a.close();
    b.close();
}

/// Every message occupies a receiver that polls, its own local notices do not; messages from its node cost the node
/// link's overhead.
#[test]
fn messages_take_their_receiver_one_after_the_other() {
    let cost = Duration::from_millis(10);
    let overhead_ns = cost.as_nanos() as u64;
    let node = NodeLink { overhead_ns: 3 * overhead_ns, ..NodeLink::default() };
    for (coords, cost) in [([[0; 6], [0, 0, 0, 1, 0, 0]], cost), ([[0; 6]; 2], 3 * cost)] {
        let model = Model {
            post_ns: overhead_ns,
            poll_ns: overhead_ns,
            node: Some(node),
            ..Model::default()
        };
        let job = Job::with_model(coords.to_vec(), model).unwrap();
        let mut buffers = [vec![1; 1024], vec![0; 1024]];
        let [a, b] = neighbours(&job, &mut buffers);
        let start = Instant::now();
        for i in 0..3 {
            assert_eq!(a.put(b.id, a.stadd, b.stadd, 8, i, LCL | RMT), 0);
        }
        for i in 0..3u8 {
            assert_eq!(a.wait_notice().edata, u64::from(i));
            assert!(start.elapsed() >= cost * (u32::from(i) + 1), "sent one after the other");
        }
        for i in 0..3u8 {
            assert_eq!(b.wait_notice().edata, u64::from(i));
            // The receiver processes the first message after it has left the sender.
            assert!(start.elapsed() >= cost * (u32::from(i) + 2), "received one after the other");
        }
        a.close();
        b.close();
    }
}

/// The caller is busy at least for the modelled time; a slow machine may take longer.
#[test]
fn registrations_take_their_time() {
    let cost = Duration::from_millis(5);
    let ns = cost.as_nanos() as u64;
    let took = |model: Model| {
        let job = Job::with_model(Job::coords_for_shape(&[1]).unwrap(), model).unwrap();
        let _entered = job.enter(0);
        let mut buffer = vec![0; 1024];
        let start = Instant::now();
        let end = EndPoint::open(&mut buffer);
        let registered = start.elapsed();
        end.close();
        [registered, start.elapsed() - registered]
    };
    assert!(took(Model { reg_ns: ns, ..Model::default() })[0] >= cost);
    assert!(took(Model { dereg_ns: ns, ..Model::default() })[1] >= cost);
}
