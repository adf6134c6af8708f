//! Shows that a sanitizer reports errors, so that the absence of reports means something.
//!
//! Each mode is a separate process: `clean` must end without a report, every other mode with one. `sanitize.sh`
//! compiles this file with the options of the tests and runs all modes.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, OnceLock, RwLock};
use std::thread;
use std::time::Duration;

const THREADS: usize = 4;
const ROUNDS: usize = 3000;

/// A number without synchronisation.
struct Plain(UnsafeCell<u64>);

// SAFETY: none; the sanitizer has to find out whether the accesses are ordered.
unsafe impl Sync for Plain {}

impl Plain {
    const fn new() -> Plain {
        Plain(UnsafeCell::new(0))
    }
    fn add(&self) {
        // SAFETY: a valid address; races are the purpose of the modes.
        unsafe { *self.0.get() += 1 }
    }
    fn get(&self) -> u64 {
        // SAFETY: as above.
        unsafe { *self.0.get() }
    }
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("clean") => clean(),
        Some("overflow") => overflow(),
        Some("freed") => freed(),
        Some("leak") => leak(),
        Some("counter") => counter(),
        Some("flag") => flag(),
        Some("two-locks") => two_locks(),
        Some("read-lock") => read_lock(),
        mode => panic!("no mode {mode:?}"),
    }
}

/// Accesses that the standard library orders, under contention: no report.
fn clean() {
    let (mutex, rwlock, barrier) = (Mutex::new(0u64), RwLock::new(0u64), Barrier::new(THREADS));
    let (once, in_turn) = (OnceLock::new(), Plain::new());
    let (turn, changed) = (Mutex::new(0usize), Condvar::new());
    let shared = Arc::new(vec![1u64; 64]);
    thread::scope(|s| {
        for me in 0..THREADS {
            let mine = shared.clone();
            let (mutex, rwlock, barrier) = (&mutex, &rwlock, &barrier);
            let (once, in_turn, turn, changed) = (&once, &in_turn, &turn, &changed);
            s.spawn(move || {
                let made = once.get_or_init(|| {
                    thread::sleep(Duration::from_millis(20));
                    vec![7u64; 64]
                });
                assert_eq!(made[63] + mine[63], 8);
                drop(mine);
                for round in 0..ROUNDS {
                    *mutex.lock().unwrap() += 1;
                    *rwlock.write().unwrap() += 1;
                    assert!(*rwlock.read().unwrap() > round as u64);
                    if round % 100 == 0 {
                        // Sleeps with the locks held, so that other threads take the contended path.
                        let _held = mutex.lock().unwrap();
                        let _held = rwlock.write().unwrap();
                        thread::sleep(Duration::from_micros(50));
                    }
                }
                for round in 0..100 {
                    if round % THREADS == me {
                        in_turn.add();
                    }
                    barrier.wait();
                    assert_eq!(in_turn.get(), round as u64 + 1);
                    barrier.wait();
                }
                for _ in 0..50 {
                    let mut now = turn.lock().unwrap();
                    while *now % THREADS != me {
                        let patience = Duration::from_secs(1);
                        now = if me == 0 {
                            changed.wait(now).unwrap()
                        } else {
                            changed.wait_timeout(now, patience).unwrap().0
                        };
                    }
                    *now += 1;
                    in_turn.add();
                    changed.notify_all();
                }
            });
        }
    });
    assert_eq!(in_turn.get(), 100 + 50 * THREADS as u64);
    let made = thread::spawn(move || shared.len()).join().unwrap();
    assert_eq!(made, 64);
}

/// A read beyond the end.
fn overflow() {
    let memory = vec![1u8; 100];
    // SAFETY: none; this is the mode's purpose.
    std::process::exit(i32::from(unsafe { *std::hint::black_box(memory.as_ptr().add(100)) }) & 1);
}

/// A read after the memory was freed.
fn freed() {
    let memory = vec![1u8; 100];
    let at = memory.as_ptr();
    drop(memory);
    // SAFETY: none; this is the mode's purpose.
    std::process::exit(i32::from(unsafe { *std::hint::black_box(at) }) & 1);
}

fn leak() {
    for size in 100..200 {
        std::hint::black_box(vec![1u8; size].leak());
    }
}

/// Waits until `n` threads have called it, without a happens-before edge between them.
fn meet(here: &AtomicUsize, n: usize) {
    here.fetch_add(1, Ordering::Relaxed);
    while here.load(Ordering::Relaxed) < n {
        thread::yield_now();
    }
}

/// Accesses without any order.
fn counter() {
    let (plain, here) = (Plain::new(), AtomicUsize::new(0));
    thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| {
                meet(&here, THREADS);
                plain.add();
            });
        }
    });
}

/// A message published by a relaxed store to a flag: correct on x86-64, but a data race.
fn flag() {
    let (plain, set, here) = (Plain::new(), AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|s| {
        s.spawn(|| {
            meet(&here, 2);
            plain.add();
            set.store(true, Ordering::Relaxed);
        });
        s.spawn(|| {
            meet(&here, 2);
            while !set.load(Ordering::Acquire) {
                thread::yield_now();
            }
            assert_eq!(plain.get(), 1);
        });
    });
}

/// Each thread holds a lock for which others wait, but not all hold the same lock.
fn two_locks() {
    let (plain, here) = (Plain::new(), AtomicUsize::new(0));
    let locks = [Mutex::new(()), Mutex::new(())];
    thread::scope(|s| {
        for n in 0..THREADS {
            let (plain, here, lock) = (&plain, &here, &locks[n % 2]);
            s.spawn(move || {
                let _held = lock.lock().unwrap();
                meet(here, 2);
                thread::sleep(Duration::from_millis(2));
                plain.add();
            });
        }
    });
}

/// Writes under a read lock, which admits several threads.
fn read_lock() {
    let (plain, here, lock) = (Plain::new(), AtomicUsize::new(0), RwLock::new(()));
    thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| {
                let _held = lock.read().unwrap();
                meet(&here, THREADS);
                plain.add();
            });
        }
    });
}
