//! Operations that overlap with computation, with each other, and with late ranks; and operations that are dropped,
//! forgotten, or fail.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::calls::config;
use hopbine::Wire;
use hopbine::reduce::Op;
use hopbine::{
    Awaited, Blame, Blocks, CallOptions, Communicator, Drive, EmulationConfig, Error, Fault,
    Hardware, OnTimeout, emulate,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const DRIVES: [Drive; 2] = [Drive::Inline, Drive::Workers];
/// Time-out, long enough for any machine and short enough to notice a hang.
const DEADLINE: Duration = Duration::from_secs(120);

/// Sum over all ranks of rank * factor.
fn sum(comm: &Communicator, factor: u64) -> u64 {
    let p = u64::from(comm.size());
    p * (p - 1) / 2 * factor
}

#[test]
fn handles_may_cross_threads() {
    fn sent<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    shared::<Communicator>();
    sent::<hopbine::Persistent<f64>>();
    sent::<hopbine::Request<'static, f64>>();
}

/// Each rank has two threads with separate operations. The order of the starts is the same on all ranks, the order of
/// the waits is not.
#[test]
fn several_threads_wait_on_one_communicator() {
    for drive in DRIVES {
        emulate(&config(&[3], drive), |comm| {
            let mut operations: Vec<_> = (0..4)
                .map(|at| {
                    comm.allreduce_init(vec![u64::from(comm.rank()); 10 << (3 * at)], Op::Sum)
                })
                .collect::<Result<_, _>>()
                .unwrap();
            for _ in 0..20 {
                operations.iter_mut().for_each(|one| one.start().unwrap());
                let (left, right) = operations.split_at_mut(2);
                std::thread::scope(|threads| {
                    threads.spawn(|| left.iter_mut().for_each(|one| one.wait().unwrap()));
                    right.iter_mut().rev().for_each(|one| one.wait().unwrap());
                });
                for one in &mut operations {
                    assert!(one.buffer().unwrap().iter().all(|&got| got == sum(comm, 1)));
                    one.buffer_mut().unwrap().fill(u64::from(comm.rank()));
                }
            }
        })
        .unwrap();
    }
}

#[test]
fn workers_finish_without_the_callers_help() {
    for drive in [Drive::Workers, Drive::Worker] {
        emulate(&config(&[2, 2], drive), |comm| {
            assert!(comm.has_workers());
            for len in [1, 100, 50_000] {
                let mut persistent =
                    comm.allreduce_init(vec![u64::from(comm.rank()); len], Op::Sum).unwrap();
                for _ in 0..3 {
                    persistent.buffer_mut().unwrap().fill(u64::from(comm.rank()));
                    persistent.start().unwrap();
                    let start = Instant::now();
                    // With workers, `test` only checks whether the operation is complete.
                    while !persistent.test().unwrap() {
                        assert!(start.elapsed() < DEADLINE, "the workers do not work");
                        std::hint::black_box((0..1000u64).sum::<u64>());
                    }
                    assert_eq!(persistent.buffer().unwrap(), vec![sum(comm, 1); len]);
                }
            }
        })
        .unwrap();
    }
}

#[test]
fn without_workers_testing_is_enough() {
    emulate(&config(&[3], Drive::Inline), |comm| {
        let mut persistent = comm.allgather_init(vec![comm.rank(); 1000]).unwrap();
        persistent.start().unwrap();
        let start = Instant::now();
        while !persistent.test().unwrap() {
            assert!(start.elapsed() < DEADLINE);
            std::thread::yield_now();
        }
        let want: Vec<u32> = (0..3).flat_map(|rank| [rank; 1000]).collect();
        assert_eq!(persistent.buffer().unwrap(), want);
        // Peers may still need this rank's polling.
        comm.barrier().unwrap();
    })
    .unwrap();
}

/// A call in stages goes on while its rank only tests another request; the other ranks need it before that one.
#[test]
fn testing_one_request_starts_the_stages_of_another() {
    for drive in DRIVES {
        let config = config(&[4], drive)
            .with(|config| config.preferred = "alltoall=bruck:2".parse().unwrap());
        emulate(&config, |comm| {
            let counts = [3000; 4];
            let given = vec![u64::from(comm.rank()); 12_000];
            let (mut exchanged, mut summed) = (vec![0; 12_000], vec![1u64; 1 << 17]);
            comm.scope(|scope| {
                let blocks = Blocks::new(&counts);
                let in_stages = scope.alltoallv(&given, blocks, &mut exchanged, blocks)?;
                if comm.rank() == 0 {
                    let other = scope.allreduce_in_place(&mut summed, Op::Sum)?;
                    let start = Instant::now();
                    while !other.test() {
                        assert!(start.elapsed() < DEADLINE / 4, "the stages do not go on");
                        std::thread::yield_now();
                    }
                    return in_stages.wait().map(drop);
                }
                in_stages.wait()?;
                scope.allreduce_in_place(&mut summed, Op::Sum)?.wait().map(drop)
            })
            .unwrap();
            assert!(exchanged.chunks(3000).zip(0..).all(|(block, from)| block == [from; 3000]));
            assert_eq!(summed, vec![4; 1 << 17]);
        })
        .unwrap();
    }
}

#[test]
fn persistent_collectives_of_all_kinds() {
    for drive in DRIVES {
        emulate(&config(&[2, 3], drive), |comm| {
            let (rank, p) = (comm.rank(), comm.size());
            let mut all = [
                comm.reduce_scatter_init(vec![rank; 6 * 10], Op::Sum).unwrap(),
                comm.allgather_init(vec![rank; 10]).unwrap(),
                comm.bcast_init(vec![rank; 10], 4).unwrap(),
                comm.reduce_init(vec![rank; 10], Op::Max, 2).unwrap(),
                comm.gather_init(vec![rank; 10], 1).unwrap(),
                comm.scatter_init(if rank == 3 { (0..60).collect() } else { vec![] }, 10, 3)
                    .unwrap(),
                comm.alltoall_init((0..60).map(|at| rank * 100 + at / 10).collect()).unwrap(),
            ];
            let mut barrier = comm.barrier_init().unwrap();
            for _ in 0..3 {
                all[2].buffer_mut().unwrap().fill(rank);
                all.iter_mut().for_each(|one| one.start().unwrap());
                barrier.start().unwrap();
                assert_eq!(all[0].start(), Err(Error::Active));
                assert_eq!(all[0].buffer().unwrap_err(), Error::Active);
                all.iter_mut().rev().for_each(|one| one.wait().unwrap());
                barrier.wait().unwrap();
                let by_rank = |of: fn(u32) -> u32| (0..p).flat_map(|r| [of(r); 10]).collect();
                let ranks: Vec<u32> = by_rank(|rank| rank);
                let got: Vec<&[u32]> = all.iter().map(|one| one.buffer().unwrap()).collect();
                assert_eq!(got[0], [15; 10]);
                assert_eq!(got[1], ranks);
                assert_eq!(got[2], [4; 10]);
                assert_eq!(got[3], if rank == 2 { &[5; 10][..] } else { &[] });
                assert_eq!(got[4], if rank == 1 { &ranks[..] } else { &[] });
                assert_eq!(got[5], (rank * 10..rank * 10 + 10).collect::<Vec<_>>());
                let want: Vec<u32> = (0..p).flat_map(|from| [from * 100 + rank; 10]).collect();
                assert_eq!(got[6], want);
            }
        })
        .unwrap();
    }
}

#[test]
fn many_in_flight_are_waited_for_in_any_order() {
    for drive in DRIVES {
        emulate(&config(&[2, 2], drive), |comm| {
            let sends: Vec<Vec<u64>> = (0..24)
                .map(|at| vec![u64::from(comm.rank()) * at; (at * at * 40) as usize])
                .collect();
            let mut recvs: Vec<Vec<u64>> = sends.iter().map(|send| vec![0; send.len()]).collect();
            comm.scope(|scope| {
                let mut requests = Vec::new();
                for (send, recv) in sends.iter().zip(&mut recvs) {
                    requests.push(scope.allreduce(send, recv, Op::Sum)?);
                }
                // Each rank waits in its own order.
                let mut rng = SmallRng::seed_from_u64(u64::from(comm.rank()));
                while !requests.is_empty() {
                    let which = rng.random_range(0..requests.len());
                    let request = requests.swap_remove(which);
                    let got = request.wait()?;
                    assert!(got.windows(2).all(|pair| pair[0] == pair[1]));
                }
                Ok(())
            })
            .unwrap();
            for (at, recv) in recvs.iter().enumerate() {
                assert_eq!(*recv, vec![sum(comm, at as u64); recv.len()]);
            }
        })
        .unwrap();
    }
}

/// Half of the ranks start all calls at once, the others make them one by one. So far more unexpected messages arrive
/// than there are slots.
#[test]
fn running_ahead_blocks_nobody() {
    for drive in DRIVES {
        emulate(&config(&[4], drive), |comm| {
            let mine = vec![u64::from(comm.rank()); 40];
            let mut recvs = vec![vec![0u64; 40]; 100];
            // Excludes the flat buffer and, for blocking calls, the gates.
            let by_plan = comm.with(CallOptions::new().hardware(Hardware::Never));
            if comm.rank() % 2 == 0 {
                by_plan
                    .scope(|scope| {
                        for recv in &mut recvs {
                            let _ = scope.allreduce(&mine, recv, Op::Sum)?;
                        }
                        Ok(())
                    })
                    .unwrap();
            } else {
                for recv in &mut recvs {
                    by_plan.allreduce(&mine, recv, Op::Sum).unwrap();
                }
            }
            assert!(recvs.iter().all(|recv| *recv == vec![6; 40]));
        })
        .unwrap();
    }
}

#[test]
fn a_root_may_be_far_ahead() {
    emulate(&config(&[5], Drive::Inline), |comm| {
        for round in 0..2000u32 {
            if comm.rank() == 3 && round % 500 == 0 {
                std::thread::sleep(Duration::from_millis(20));
            }
            let mut word = if comm.rank() == 0 { vec![round; 30] } else { vec![0; 30] };
            comm.bcast(&mut word, 0).unwrap();
            assert_eq!(word, [round; 30]);
        }
    })
    .unwrap();
}

#[test]
fn ranks_may_be_skewed() {
    for drive in DRIVES {
        emulate(&config(&[2, 3], drive), |comm| {
            let mut rng = SmallRng::seed_from_u64(u64::from(comm.rank()) + 100);
            for round in 0..60u32 {
                if rng.random_bool(0.2) {
                    std::thread::sleep(Duration::from_micros(rng.random_range(0..2000)));
                }
                let len = [1, 50, 3000][round as usize % 3];
                let mut vector = vec![u64::from(comm.rank()); len];
                match round % 4 {
                    0 => comm.allreduce_in_place(&mut vector, Op::Sum).unwrap(),
                    1 => {
                        vector.fill(u64::from(comm.rank()) * 15);
                        comm.bcast(&mut vector, 1).unwrap();
                    }
                    2 => {
                        let mut recv = vec![0; len];
                        comm.reduce(&vector, &mut recv, Op::Sum, 5).unwrap();
                        vector = if comm.rank() == 5 { recv } else { vec![15; len] };
                    }
                    _ => {
                        comm.barrier().unwrap();
                        vector.fill(15);
                    }
                }
                assert_eq!(vector, vec![15; len], "round {round}");
            }
        })
        .unwrap();
    }
}

#[test]
fn dropped_and_forgotten_requests_complete() {
    for drive in DRIVES {
        emulate(&config(&[2, 2], drive), |comm| {
            let mine = vec![u64::from(comm.rank()); 3000];
            let mut sum = vec![0; 3000];
            comm.scope(|scope| {
                // Dropping a request is the same as forgetting it: the scope waits for its operation.
                let _ = scope.allreduce(&mine, &mut sum, Op::Sum)?;
                Ok(())
            })
            .unwrap();
            assert_eq!(sum, vec![6; 3000]);

            let mut persistent = comm.allreduce_init(mine.clone(), Op::Sum).unwrap();
            persistent.start().unwrap();
            drop(persistent);
            let mut persistent = comm.allreduce_init(mine, Op::Sum).unwrap();
            persistent.start().unwrap();
            // Forgetting leaks the buffer; the collective must still complete on the other ranks.
            if comm.rank() == 0 {
                while !persistent.test().unwrap() {
                    std::thread::yield_now();
                }
                std::mem::forget(persistent);
            } else {
                persistent.wait().unwrap();
            }
            comm.barrier().unwrap();
        })
        .unwrap();
    }
}

#[test]
fn a_panic_in_a_scope_waits_too() {
    emulate(&config(&[3], Drive::Inline), |comm| {
        let mine = vec![u64::from(comm.rank()); 9000];
        let mut sum = vec![0; 9000];
        let panic = catch_unwind(AssertUnwindSafe(|| {
            comm.scope(|scope| -> Result<(), Error> {
                let _request = scope.allreduce(&mine, &mut sum, Op::Sum)?;
                panic!("on purpose")
            })
        }));
        assert!(panic.is_err());
        assert_eq!(sum, vec![3; 9000]);
        comm.barrier().unwrap();
    })
    .unwrap();
}

#[test]
fn a_lost_peer_ends_in_a_timeout_that_names_it() {
    for drive in DRIVES {
        for len in [1, 10_000] {
            let config = config(&[2], drive).with(|config| {
                config.timeout = Duration::from_millis(300);
                config.on_timeout = OnTimeout::Fail;
            });
            let has_failed = AtomicBool::new(false);
            let errors = emulate(&config, |comm| {
                // The barrier gates could not tell which rank is missing.
                let comm = comm.with(CallOptions::new().hardware(Hardware::Never));
                if comm.rank() == 1 {
                    // A rank that leaves would be detected at once.
                    while !has_failed.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                }
                (comm.rank() == 0).then(|| {
                    let mut vector = vec![1u64; len];
                    let first = comm.allreduce_in_place(&mut vector, Op::Sum).unwrap_err();
                    has_failed.store(true, Ordering::Relaxed);
                    let second = comm.barrier().unwrap_err();
                    (first, second)
                })
            });
            let (first, second) = errors.unwrap()[0].clone().unwrap();
            let Error::Timeout { rank: 0, step: 0, awaited, cause: Some(blame), .. } = &first
            else {
                panic!("{first}");
            };
            assert_eq!(*blame, Blame { rank: 1, fault: Fault::Absent, by: 0 });
            assert!(matches!(awaited, Awaited::MessageFrom(1) | Awaited::ReadyFrom(1)));
            assert!(first.to_string().contains("rank 1"), "{first}");
            assert_eq!(second, Error::Poisoned(first.into()));
        }
    }
}

#[test]
fn a_panic_on_one_rank_frees_the_others() {
    for drive in DRIVES {
        let start = Instant::now();
        let outcome = emulate(&config(&[2, 2], drive), |comm| {
            assert!(comm.rank() != 2, "rank two had enough");
            let mut vector = vec![1u64; 100];
            // The call fails at once instead of waiting for the time-out.
            comm.allreduce_in_place(&mut vector, Op::Sum).unwrap_err()
        });
        let Err(Error::RankPanicked { rank: 2, message }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(message, "rank two had enough");
        assert!(start.elapsed() < Duration::from_secs(50), "waited for the time-out");
    }
}

/// More different calls than the cache of programs holds.
#[test]
fn programs_come_and_go() {
    emulate(&config(&[2, 2], Drive::Inline), |comm| {
        for round in 0..2 {
            for len in 0..150 {
                let mut vector = vec![u64::from(comm.rank()); len];
                comm.allreduce_in_place(&mut vector, Op::Sum).unwrap();
                assert_eq!(vector, vec![6; len], "round {round}");
            }
        }
    })
    .unwrap();
}

#[test]
fn sixty_four_ranks_share_the_cores() {
    emulate(&config(&[4, 4, 4], Drive::Inline), |comm| {
        for len in [1, 1000] {
            for _ in 0..5 {
                let mut vector = vec![u64::from(comm.rank()); len];
                comm.allreduce_in_place(&mut vector, Op::Sum).unwrap();
                assert_eq!(vector, vec![2016; len]);
            }
        }
        let comm = comm.with(CallOptions::new().ports(6));
        let mut vector = vec![1u64; 100_000];
        comm.allreduce_in_place(&mut vector, Op::Sum).unwrap();
        assert_eq!(vector, vec![64; 100_000]);
    })
    .unwrap();
}

/// Starts a broadcast from rank 0, tests it until `has_come`, computes for `time`, and waits for it.
fn test_and_compute(
    comm: &Communicator,
    has_come: &AtomicBool,
    time: Duration,
) -> Result<u32, Error> {
    let mut data = [comm.rank()];
    comm.with(CallOptions::new().hardware(Hardware::Never)).scope(|scope| {
        let request = scope.bcast(&mut data, 0)?;
        while !has_come.load(Ordering::Relaxed) {
            request.test();
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(time);
        request.wait().map(|data| data[0])
    })
}

/// The published status of a computing rank is out of date: other ranks have reached the gates, or have left.
#[test]
fn who_computes_is_waited_for_by_those_who_have_gone_on() {
    let timeout = Duration::from_millis(600);
    let gates = EmulationConfig::new("3".parse().unwrap()).with(|config| config.timeout = timeout);
    let left = EmulationConfig::new("4".parse().unwrap()).with(|config| {
        config.timeout = timeout;
        config.wire = Wire::Memory;
        // Rank 3 waits for rank 2, and rank 2 for rank 0.
        config.preferred = "bcast=doubling-tree".parse().unwrap();
    });
    for (config, tester) in [(gates, 1), (left, 2)] {
        let has_come = AtomicBool::new(false);
        let results = emulate(&config, |comm| {
            if comm.rank() == 0 {
                std::thread::sleep(timeout / 4);
                has_come.store(true, Ordering::Relaxed);
            }
            let data = if comm.rank() == tester {
                test_and_compute(comm, &has_come, 2 * timeout)?
            } else {
                let mut data = [comm.rank()];
                let by_plan = comm.with(CallOptions::new().hardware(Hardware::Never));
                by_plan.bcast(&mut data, 0)?;
                data[0]
            };
            if comm.size() == 3 {
                comm.with(CallOptions::new().hardware(Hardware::Always)).barrier()?;
            }
            Ok::<_, Error>(data)
        });
        assert!(results.as_ref().unwrap().iter().all(|data| *data == Ok(0)), "{results:?}");
    }
}

/// A rank that has tested a request for long computes, before or after it waits for this request. Other ranks must
/// not conclude that it waits, which would make a circle with ranks that wait for it.
#[test]
fn who_has_tested_and_computes_is_waited_for() {
    let timeout = Duration::from_millis(300);
    let config = EmulationConfig::new("2".parse().unwrap()).with(|config| config.timeout = timeout);
    for computes_before in [true, false] {
        let has_come = AtomicBool::new(false);
        let results = emulate(&config, |comm| {
            let comm = comm.with(CallOptions::new().hardware(Hardware::Never));
            let mut sum = [1];
            if comm.rank() == 1 {
                std::thread::sleep(timeout / 2);
                has_come.store(true, Ordering::Relaxed);
            }
            let compute = |is_time| {
                if is_time && comm.rank() == 0 {
                    std::thread::sleep(3 * timeout);
                }
            };
            comm.scope(|scope| {
                let request = scope.allreduce_in_place(&mut sum, Op::Sum)?;
                while !has_come.load(Ordering::Relaxed) {
                    request.test();
                    std::thread::sleep(Duration::from_millis(1));
                }
                compute(computes_before);
                request.wait().map(drop)
            })?;
            compute(!computes_before);
            comm.allreduce_in_place(&mut sum, Op::Sum)?;
            Ok::<_, Error>(sum[0])
        });
        assert_eq!(results.unwrap(), [Ok(4), Ok(4)], "{computes_before}");
    }
}
