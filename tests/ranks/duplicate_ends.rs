//! How duplicates end: in order, with handles left, with ranks that do not come or panic.

use std::time::{Duration, Instant};

use crate::common::calls::{checked, config};
use hopbine::reduce::Op;
use hopbine::{CallOptions, Drive, EmulationConfig, Error, Hardware, Latency, emulate};

const DRIVES: [Drive; 2] = [Drive::Inline, Drive::Workers];

/// Handles and persistent collectives have no lifetime: what is under way is waited for, and
/// nothing can be started any more.
#[test]
fn what_outlives_a_communicator_refuses() {
    for drive in DRIVES {
        let left = emulate(&config(&[2, 2], drive), |comm| {
            let second = comm.duplicate().unwrap();
            let handle = second.with(CallOptions::new());
            let by_plan = second.with(CallOptions::new().hardware(Hardware::Never));
            let mine = vec![u64::from(comm.rank()); 3000];
            let mut idle = second.allreduce_init(mine.clone(), Op::Sum).unwrap();
            let mut active = second.allreduce_init(mine, Op::Sum).unwrap();
            active.start().unwrap();
            second.finish().unwrap();
            assert_eq!(active.wait(), Ok(()));
            assert_eq!(active.buffer().unwrap(), vec![6; 3000]);
            assert_eq!(active.start(), Err(Error::Closed));
            assert_eq!(idle.start(), Err(Error::Closed));
            assert_eq!(handle.barrier(), Err(Error::Closed));
            assert_eq!(by_plan.barrier(), Err(Error::Closed));
            assert_eq!(handle.duplicate().map(drop), Err(Error::Closed));
            // Nothing of that has harmed the original.
            checked(comm, 300);
            (comm.with(CallOptions::new()), comm.allreduce_init(vec![1.0], Op::Sum).unwrap())
        });
        for (handle, mut persistent) in left.unwrap() {
            assert_eq!(handle.allreduce_in_place(&mut [1.0; 50], Op::Sum), Err(Error::Closed));
            assert_eq!(persistent.start(), Err(Error::Closed));
        }
    }
}

#[test]
fn a_rank_that_does_not_close_is_noticed() {
    let timeout = Duration::from_secs(2);
    let config = EmulationConfig { timeout, ..config(&[2], Drive::Inline) };
    let errors = emulate(&config, |comm| {
        let second = comm.duplicate().unwrap();
        checked(&second, 10);
        if comm.rank() == 0 {
            std::mem::forget(second);
            return None;
        }
        let error = second.finish().unwrap_err();
        assert_eq!(comm.barrier(), Err(Error::Poisoned(error.clone().into())));
        Some(error)
    });
    let error = errors.unwrap().remove(1).unwrap();
    assert!(matches!(error, Error::Timeout { rank: 1, .. }), "{error}");
}

/// The end takes two trips: what was written arrives, then the ranks meet. The first rank to
/// come waits for both.
#[test]
fn the_end_waits_for_what_is_on_the_wire() {
    const WIRE: Duration = Duration::from_millis(40);
    let latency = Latency { put_ns: WIRE.as_nanos() as u64, ..Latency::default() };
    let config = EmulationConfig { latency, ..config(&[2], Drive::Inline) };
    let times = emulate(&config, |comm| {
        checked(comm, 10);
        let second = comm.duplicate().unwrap();
        checked(&second, 10);
        let start = Instant::now();
        second.finish().unwrap();
        start.elapsed()
    });
    assert!(times.unwrap().into_iter().max().unwrap() >= 2 * WIRE);
}

#[test]
fn when_a_rank_panics_everybody_ends() {
    for drive in DRIVES {
        let config = config(&[2, 2], drive);
        let panicked = |outcome: Result<Vec<()>, Error>| {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::RankPanicked { rank: 1, .. }), "{error}");
        };
        // The others are at the duplicate.
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
        // One thread of a rank panics, with the other in the middle of something.
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
        // The others are closing.
        panicked(emulate(&config, |comm| {
            let second = comm.duplicate().unwrap();
            checked(&second, 100);
            assert!(comm.rank() != 1, "on purpose");
            second.finish().unwrap_err();
        }));
    }
}
