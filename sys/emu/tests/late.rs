//! The late mode: every transfer happens as late as allowed, and a program that does not wait is detected. A case
//! that ends its process runs in a separate process.

mod common;

use common::*;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use utofu_emu::{Job, Model, c};
use utofu_sys::*;

/// Two end points with leaked buffers, in one thread.
fn pair_of(model: Model) -> (Arc<Job>, [(EndPoint, *mut u64); 2]) {
    let model = Model { late: Some(7), ..model };
    let job = Job::with_model(Job::coords_for_shape(&[1, 2]).unwrap(), model).unwrap();
    let ends = two_ends(&job, 4096);
    (job, ends)
}

fn pair(checked: bool) -> (Arc<Job>, [(EndPoint, *mut u64); 2]) {
    pair_of(Model { checked, ..Model::default() })
}

fn completion(ep: &EndPoint) -> usize {
    loop {
        match ep.poll_tcq() {
            Ok(cookie) => return cookie,
            Err(rc) => assert_eq!(rc, UTOFU_ERR_NOT_FOUND, "{}", last_error()),
        }
    }
}

#[test]
fn data_come_with_their_notice_and_sources_are_read_with_their_completion() {
    let (_job, [(a, from), (b, to)]) = pair(false);
    let (mut early, mut reused) = (0, 0);
    for i in 1..=300u64 {
        set(from, 0, i);
        assert_eq!(a.put(b.id, a.stadd, b.stadd, 8, i % 256, TCQ | LCL | RMT), 0);
        early += u32::from(word(to, 0) == i);
        assert_eq!(completion(&a), 7);
        // After the completion the sender may write to the source again.
        set(from, 0, 0);
        assert_eq!(b.wait_notice().edata, i % 256);
        assert_eq!(word(to, 0), i, "the notice is there, the data are not");
        assert_eq!(a.wait_notice().notice_type, UTOFU_MRQ_TYPE_LCL_PUT as u8);
    }
    assert!(early < 150, "{early} of 300 puts were there at once");
    for i in 1..=300u64 {
        set(from, 0, i);
        assert_eq!(a.put(b.id, a.stadd, b.stadd, 8, 0, TCQ | RMT), 0);
        set(from, 0, 0);
        b.wait_notice();
        reused += u32::from(word(to, 0) == 0);
        completion(&a);
    }
    assert!(reused > 0, "300 sources were changed too early, and all their puts were right");
    a.close();
    b.close();
}

/// With latencies as without them.
#[test]
fn only_strong_order_keeps_order() {
    const PUTS: u8 = 100;
    let strong = UTOFU_ONESIDED_FLAG_STRONG_ORDER;
    for (put_ns, flag) in [(0, 0), (0, strong), (500, 0), (500, strong)] {
        let (_job, [(a, _), (b, to)]) = pair_of(Model { put_ns, ..Model::default() });
        for i in 0..PUTS {
            let value = u64::from(i) + 1;
            a.piggyback8(b.id, value, b.stadd, i.into(), RMT | LCL | flag);
        }
        let came: Vec<u8> = (0..PUTS).map(|_| b.wait_notice().edata as u8).collect();
        for _ in 0..PUTS {
            a.wait_notice();
        }
        let mut sorted = came.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..PUTS).collect::<Vec<_>>(), "each once");
        assert_eq!(came == sorted, flag == strong, "put_ns {put_ns}: {came:?}");
        if flag == strong {
            assert_eq!(word(to, 0), PUTS.into());
        }
        assert_eq!(a.poll_tcq(), Err(UTOFU_ERR_NOT_FOUND));
        a.close();
        b.close();
    }
}

#[test]
fn gets_and_atomic_operations_bring_what_was_there() {
    let (_job, [(a, here), (b, there)]) = pair(false);
    set(there, 5, 41);
    assert_eq!(a.get(b.id, a.stadd, b.stadd + 40, 8, 1, LCL | RMT), 0);
    assert_eq!(b.wait_notice().notice_type, UTOFU_MRQ_TYPE_RMT_GET as u8);
    assert_eq!(a.wait_notice().lcl_stadd, a.stadd + 8);
    assert_eq!(word(here, 0), 41);
    // SAFETY: the buffers are never freed.
    let rc = unsafe {
        let (op, null) = (UTOFU_ARMW_OP_ADD, std::ptr::null_mut());
        c::utofu_armw8(a.handle, b.id, op, 1, b.stadd + 40, 2, LCL | RMT, null)
    };
    assert_eq!(rc, 0);
    assert_eq!(b.wait_notice().rmt_stadd, b.stadd + 40);
    assert_eq!((a.wait_notice().rmt_value, word(there, 5)), (41, 42));
    a.close();
    b.close();
}

#[test]
fn errors_come_late_too() {
    let (_job, [(a, _), (b, _)]) = pair(false);
    assert_eq!(a.put(b.id, a.stadd + (1 << 41), b.stadd, 8, 0, 0), 0);
    let code = loop {
        match a.poll_tcq() {
            Err(UTOFU_ERR_NOT_FOUND) => {}
            other => break other,
        }
    };
    assert_eq!(code, Err(UTOFU_ERR_TCQ_STADD));
    for op in [EndPoint::put, EndPoint::get] {
        assert_eq!(op(&a, b.id, a.stadd, b.stadd + (1 << 41), 8, 3, RMT), 0);
        let (code, notice) = loop {
            match a.poll_mrq() {
                (UTOFU_ERR_NOT_FOUND, _) => std::thread::yield_now(),
                other => break other,
            }
        };
        assert_eq!((code, notice.edata), (UTOFU_ERR_MRQ_RMT_STADD, 3));
    }
    a.close();
    b.close();
}

/// The device's thread reads the source of a put and writes the destination of a get. The end of their registration
/// waits for it.
#[test]
fn local_memory_is_not_used_after_its_deregistration() {
    const WORDS: usize = 1 << 20;
    let model = Model { late: Some(7), ..Model::default() };
    let job = Job::with_model(Job::coords_for_shape(&[1, 2]).unwrap(), model).unwrap();
    let [(a, here), (b, there)] = two_ends(&job, WORDS);
    // From the end on, which the device reaches last.
    let fill = |p, value| (0..WORDS).rev().for_each(|at| set(p, at, value));
    for i in 0..10 {
        for is_put in [true, false] {
            fill(here, 1);
            fill(there, if is_put { 1 } else { 2 });
            let post = if is_put { EndPoint::put } else { EndPoint::get };
            assert_eq!(post(&a, b.id, a.stadd, b.stadd, 8 * WORDS, 0, TCQ | LCL), 0);
            if is_put {
                std::thread::sleep(Duration::from_micros(200 * i));
            }
            let start = Instant::now();
            while !is_put && word(here, WORDS / 8) == 1 && start.elapsed().as_secs() < 10 {}
            // SAFETY: only this thread uses the handle.
            assert_eq!(unsafe { c::utofu_dereg_mem(a.handle, a.stadd, 0) }, 0);
            fill(here, 3);
            let sent = loop {
                match a.poll_tcq() {
                    Err(UTOFU_ERR_NOT_FOUND) => std::thread::yield_now(),
                    sent => break sent,
                }
            };
            if sent.is_ok() {
                while a.poll_mrq().0 == UTOFU_ERR_NOT_FOUND {
                    std::thread::yield_now();
                }
            }
            let (p, value) = if is_put { (there, 1) } else { (here, 3) };
            assert_eq!((0..WORDS).find(|at| word(p, *at) != value), None, "put: {is_put}");
            let mut again = 0;
            // SAFETY: the whole buffer, which is never freed.
            let code = unsafe { c::utofu_reg_mem(a.handle, here.cast(), 8 * WORDS, 0, &mut again) };
            assert_eq!((code, again), (0, a.stadd));
        }
    }
    a.close();
    b.close();
}

/// Freeing a VCQ completes all its operations.
#[test]
fn a_freed_vcq_has_sent_everything() {
    let (_job, [(a, from), (b, to)]) = pair(false);
    for i in 0..100 {
        set(from, i, i as u64 + 1);
        let at = 8 * i as u64;
        assert_eq!(a.put(b.id, a.stadd + at, b.stadd + at, 8, 0, 0), 0);
    }
    // SAFETY: only this thread uses the handle.
    assert_eq!(unsafe { c::utofu_free_vcq(a.handle) }, 0);
    assert!((0..100).all(|i| word(to, i) == i as u64 + 1));
    b.close();
}

/// Runs a part of `misuse_ends_the_process` in a separate process, which must end with a message.
fn ends_with(part: &str, wanted: &str) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["misuse_ends_the_process", "--exact", "--nocapture", "--test-threads=1"])
        .env("HOPBINE_TEST_PART", part);
    let ended = hopbine_testing::processes::run(&mut command);
    let text = &ended.stderr;
    assert_eq!(ended.status.signal(), Some(libc::SIGABRT), "{part}: {text}");
    assert!(text.contains(wanted), "{part}: {text}");
}

#[test]
fn misuse_ends_the_process() {
    let Ok(part) = std::env::var("HOPBINE_TEST_PART") else {
        ends_with("source", "has changed the source of a put of 8 bytes");
        ends_with("overlap", "to rank 1 overlap: 16 bytes to STADD");
        ends_with("deregister", "deregisters STADD");
        ends_with("threads", "two threads use CQ 0 of TNI 0 at once");
        return;
    };
    let (_job, [(a, from), (b, to)]) = pair(true);
    // Repeats each misuse, since a single one may come too late to be detected.
    let tries = 100_000;
    match part.as_str() {
        "source" => {
            for i in 0..tries {
                assert_eq!(a.put(b.id, a.stadd, b.stadd, 8, 0, TCQ | LCL), 0);
                set(from, 0, i + 1);
                completion(&a);
                a.wait_notice();
            }
        }
        "overlap" => {
            set(from, 0, 1);
            for _ in 0..tries {
                assert_eq!(a.put(b.id, a.stadd, b.stadd + 64, 16, 0, LCL), 0);
                assert_eq!(b.put(b.id, b.stadd + 256, b.stadd + 72, 16, 0, LCL), 0);
                a.wait_notice();
                b.wait_notice();
                assert_eq!(a.poll_tcq(), Err(UTOFU_ERR_NOT_FOUND));
                assert_eq!(b.poll_tcq(), Err(UTOFU_ERR_NOT_FOUND));
            }
        }
        "deregister" => {
            for _ in 0..tries {
                assert_eq!(a.put(b.id, a.stadd, b.stadd, 8, 0, TCQ), 0);
                // SAFETY: only this thread uses the handle.
                unsafe { c::utofu_dereg_mem(b.handle, b.stadd, 0) };
                completion(&a);
                let (mut again, bytes) = (0, 4096 * size_of::<u64>());
                // SAFETY: the whole buffer, which is never freed.
                let code = unsafe { c::utofu_reg_mem(b.handle, to.cast(), bytes, 0, &mut again) };
                assert_eq!((code, again), (0, b.stadd));
            }
        }
        "threads" => {
            std::thread::scope(|threads| {
                for _ in 0..2 {
                    threads.spawn(|| {
                        for _ in 0..tries {
                            a.poll_tcq().unwrap_err();
                        }
                    });
                }
            });
        }
        other => panic!("{other}"),
    }
    println!("nothing was noticed");
}
