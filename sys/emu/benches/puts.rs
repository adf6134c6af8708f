//! What the emulated device itself costs: posts and polls of small puts.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use utofu_abi::*;
use utofu_emu::Job;

#[path = "../tests/common/mod.rs"]
mod common;
use common::{EndPoint, Exchange, RMT, TCQ};

/// One thread posts to itself and polls both queues: the cost of the code alone.
fn to_oneself(b: &mut Criterion) {
    let job = Job::threads(vec![[0; 6]]);
    let _me = job.enter(0);
    let mut buf = vec![0u64; 8192];
    let ep = EndPoint::open(&mut buf);
    b.bench_function("put 8 B to oneself, polling TCQ and MRQ", |b| {
        b.iter(|| {
            assert_eq!(ep.put(ep.id, ep.stadd, ep.stadd + 64, 8, 0, TCQ | RMT), 0);
            assert!(ep.poll_tcq().is_ok());
            assert_eq!(ep.poll_mrq().0, 0);
        });
    });
    b.bench_function("poll an empty MRQ", |b| {
        b.iter(|| assert_eq!(ep.poll_mrq().0, UTOFU_ERR_NOT_FOUND));
    });
    ep.close();
}

/// Two threads: one way of a ping-pong is half an iteration.
fn ping_pong(b: &mut Criterion) {
    let job = Job::threads(Job::coords_for_shape(&[1, 2]));
    let ends = Exchange::new(2);
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            let _me = job.enter(1);
            let mut buf = vec![0u64; 1024];
            let ep = EndPoint::open(&mut buf);
            let all = ends.gather(1, (ep.id, ep.stadd));
            while !stop.load(Ordering::Relaxed) {
                match ep.poll_mrq().0 {
                    UTOFU_SUCCESS => ep.piggyback8(all[0].0, 1, all[0].1, 0, RMT),
                    _ => spin_loop(),
                }
            }
            ends.gather(1, (0, 0));
            ep.close();
        });
        let _me = job.enter(0);
        let mut buf = vec![0u64; 1024];
        let ep = EndPoint::open(&mut buf);
        let all = ends.gather(0, (ep.id, ep.stadd));
        b.bench_function("ping-pong of 8 B between two threads, there and back", |b| {
            b.iter(|| {
                ep.piggyback8(all[1].0, 1, all[1].1, 0, RMT);
                while ep.poll_mrq().0 == UTOFU_ERR_NOT_FOUND {
                    spin_loop();
                }
            });
        });
        stop.store(true, Ordering::Relaxed);
        ends.gather(0, (0, 0));
        ep.close();
    });
}

criterion_group!(benches, to_oneself, ping_pong);
criterion_main!(benches);
