//! Repeated collectives allocate no memory in the steady state: persistent, blocking and non-blocking calls, on any
//! thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hopbine::reduce::Op;
use hopbine::torus::geometry::Shape;
use hopbine::{Drive, EmulationConfig, emulate};

struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

fn count() {
    if COUNTS.load(Ordering::Relaxed) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: forwards every call to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's guarantee.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's guarantee.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's guarantee.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// All cases are in one test function, because the counter counts allocations of the whole process.
#[test]
fn nothing_is_allocated_in_the_steady_state() {
    for drive in [Drive::Inline, Drive::Workers] {
        let config = EmulationConfig::new(Shape::torus(&[2, 2]).unwrap())
            .with(|config| config.drive = drive);
        let meet = Barrier::new(4);
        let counted = emulate(&config, |comm| {
            let rank = u64::from(comm.rank());
            let mut persistent: Vec<_> = [1, 100, 1000, 60_000]
                .map(|len| comm.allreduce_init(vec![rank; len], Op::Max).unwrap())
                .into();
            persistent.push(comm.alltoall_init(vec![rank; 4 * 500]).unwrap());
            let (send, mut recv) = (vec![rank; 5000], vec![0; 5000]);
            let mut rounds = |n: usize| {
                for _ in 0..n {
                    persistent.iter_mut().for_each(|one| one.start().unwrap());
                    persistent.iter_mut().for_each(|one| one.wait().unwrap());
                    comm.allreduce(&send, &mut recv, Op::Sum).unwrap();
                    comm.bcast(&mut recv[..7], 1).unwrap();
                    comm.barrier().unwrap();
                }
            };
            rounds(50);
            // Queues grow to the largest number of concurrent operations and of unexpected messages. This warm-up
            // makes both numbers larger than the counted rounds can.
            for late in 0..4 {
                if rank == late {
                    std::thread::sleep(Duration::from_millis(50));
                }
                for len in [1, 5000] {
                    let mut recvs = vec![vec![0; len]; 40];
                    comm.scope(|scope| {
                        for recv in &mut recvs {
                            let _ = scope.allreduce(&send[..len], recv, Op::Sum)?;
                        }
                        Ok(())
                    })
                    .unwrap();
                }
            }
            let mut sums = [[0]; 8];
            comm.scope(|scope| {
                let mut sums = sums.each_mut().map(|sum| &mut sum[..]);
                let mut requests = |n: usize| {
                    for _ in 0..n {
                        let start = |sum| scope.allreduce(&send[..1], sum, Op::Sum).unwrap();
                        let under_way = std::mem::take(&mut sums).map(start);
                        sums = under_way.map(|request| request.wait().unwrap());
                    }
                };
                requests(50);
                meet.wait();
                COUNTS.store(true, Ordering::Relaxed);
                meet.wait();
                rounds(100);
                requests(100);
                meet.wait();
                COUNTS.store(false, Ordering::Relaxed);
                Ok(())
            })
            .unwrap();
            assert_eq!((recv[4999], sums), (6, [[6]; 8]));
            meet.wait();
            ALLOCATIONS.swap(0, Ordering::Relaxed)
        });
        // Only the first rank to swap gets the count; the other ranks get 0.
        assert_eq!(counted.unwrap().into_iter().sum::<u64>(), 0, "{drive:?}");
    }
    // Verifies that the counter works.
    COUNTS.store(true, Ordering::Relaxed);
    drop(std::hint::black_box(vec![1u8; 100]));
    assert!(ALLOCATIONS.load(Ordering::Relaxed) > 0);
}
