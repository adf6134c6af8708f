//! How communicators end: in any order, while handles exist, and when ranks panic.

use std::time::Duration;

use crate::common::calls::{checked, config};
use hopbine::reduce::Op;
use hopbine::{Blocks, CallOptions, Drive, Error, Wire, emulate};

const DRIVES: [Drive; 2] = [Drive::Inline, Drive::Workers];

/// Communicators, handles and persistent collectives have no lifetime parameter. A started operation continues after
/// its communicator is dropped. After the end of the world no operation can start.
#[test]
fn what_outlives_a_communicator_works_and_what_outlives_the_world_refuses() {
    for drive in DRIVES {
        let left = emulate(&config(&[2, 2], drive), |comm| {
            let second = comm.duplicate().unwrap();
            let handle = second.with(CallOptions::new());
            let mine = vec![u64::from(comm.rank()); 3000];
            let mut active = second.allreduce_init(mine, Op::Sum).unwrap();
            active.start().unwrap();
            drop(second);
            assert_eq!(active.wait(), Ok(()));
            assert_eq!(active.buffer().unwrap(), vec![6; 3000]);
            active.start().unwrap();
            checked(&handle, 30);
            active.wait().unwrap();
            drop(handle);
            // The original communicator is unaffected.
            checked(comm, 300);
            let third = comm.duplicate().unwrap();
            checked(&third, 30);
            (third, comm.with(CallOptions::new()), comm.allreduce_init(vec![1.0], Op::Sum).unwrap())
        });
        for (third, handle, mut persistent) in left.unwrap() {
            assert_eq!(handle.allreduce_in_place(&mut [1.0; 50], Op::Sum), Err(Error::Closed));
            assert_eq!(persistent.start(), Err(Error::Closed));
            assert_eq!(third.barrier(), Err(Error::Closed));
            assert_eq!(third.duplicate().map(drop), Err(Error::Closed));
        }
    }
}

/// A call that a rank has begun goes on while the world ends on this rank, even if its other ranks come later: in
/// stages by a plan, on another thread or by itself, and by a plan after an attempt on the flat buffer.
#[test]
fn the_end_of_the_world_waits_for_all_stages_of_a_call() {
    let bruck = CallOptions::new().algorithm("bruck:2");
    let cases = [
        (Wire::Network, bruck.clone(), true),
        (Wire::Memory, bruck.clone(), true),
        (Wire::Memory, CallOptions::new(), true),
        (Wire::Network, bruck.clone(), false),
        (Wire::Memory, bruck, false),
    ];
    for (wire, options, is_blocking) in cases {
        for drive in DRIVES {
            let config = config(&[4], drive).with(|config| config.wire = wire);
            let calls = emulate(&config, |comm| {
                let (second, given) = (comm.duplicate().unwrap(), vec![comm.rank(); 12_000]);
                let second = second.with(options.clone());
                let is_late = comm.rank() > 0;
                std::thread::sleep(Duration::from_millis(300) * u32::from(is_late));
                let blocks = Blocks::new(&[3000; 4]);
                let mut persistent = second.alltoallv_init(given.clone(), blocks, blocks).unwrap();
                if !is_blocking {
                    persistent.start().unwrap();
                }
                let call = move || {
                    let mut taken = vec![0; 12_000];
                    if is_blocking {
                        second.alltoallv(&given, blocks, &mut taken, blocks).unwrap();
                    } else {
                        persistent.wait().unwrap();
                        taken.copy_from_slice(persistent.buffer().unwrap());
                    }
                    taken
                };
                // Rank 0 leaves the world meanwhile.
                let begun: Box<dyn FnOnce() -> Vec<u32> + Send> = if is_blocking {
                    let thread = std::thread::spawn(call);
                    Box::new(|| thread.join().unwrap())
                } else {
                    Box::new(call)
                };
                if is_late {
                    let taken = begun();
                    return Box::new(|| taken) as Box<_>;
                }
                std::thread::sleep(Duration::from_millis(100));
                begun
            });
            let want: Vec<u32> = (0..4).flat_map(|from| [from; 3000]).collect();
            for call in calls.unwrap() {
                assert_eq!(call(), want);
            }
        }
    }
}

#[test]
fn when_a_rank_panics_everybody_ends() {
    for drive in DRIVES {
        let config = config(&[2, 2], drive);
        let panicked = |outcome: Result<Vec<()>, Error>| {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::RankPanicked { rank: 1, .. }), "{error}");
        };
        // The other ranks are in calls on the duplicate.
        panicked(emulate(&config, |comm| {
            let second = comm.duplicate().unwrap();
            for round in 0.. {
                assert!(comm.rank() != 1 || round < 20, "on purpose");
                let mut vector = vec![1.0; 10 << (round % 10)];
                match second.allreduce_in_place(&mut vector, Op::Max) {
                    Ok(()) => {}
                    Err(Error::RankPanicked { .. } | Error::Poisoned(_)) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }));
        // One thread of a rank panics while its other thread is in a call.
        panicked(emulate(&config, |comm| {
            let second = comm.duplicate().unwrap();
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    assert!(comm.rank() != 1, "on purpose");
                    second.barrier().unwrap_err();
                });
                (0..50).for_each(|count| checked(comm, 30 * count));
            });
        }));
        // The other ranks are leaving the world.
        panicked(emulate(&config, |comm| {
            let second = comm.duplicate().unwrap();
            checked(&second, 100);
            assert!(comm.rank() != 1, "on purpose");
        }));
    }
}
