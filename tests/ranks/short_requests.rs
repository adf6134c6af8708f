//! Short requests over shared memory, which occupy places of the flat buffer: more requests than places, among
//! blocking calls, completed in any order, on several threads, and with ranks that fail.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hopbine::reduce::{Dtype, Op};
use hopbine::torus::collectives::Collective;
use hopbine::torus::geometry::Shape;
use hopbine::{
    Blame, Call, CallOptions, Communicator, Drive, EmulationConfig, Error, Fault, Hardware,
    OnTimeout, Wire, emulate,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

fn config(n_ranks: u32) -> EmulationConfig {
    let mut config = EmulationConfig::new(Shape::torus(&[n_ranks]).unwrap());
    config.wire = Wire::Memory;
    config
}

/// Runs `body` on all ranks and verifies that it succeeds on each.
fn all(n_ranks: u32, body: impl Fn(&Communicator) -> Result<(), Error> + Sync) {
    let results = emulate(&config(n_ranks), body).unwrap();
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

fn sum(comm: &Communicator, of: impl Fn(u64) -> u64) -> u64 {
    (0..u64::from(comm.size())).map(of).sum()
}

#[test]
fn the_flat_buffer_serves_requests() {
    all(3, |comm| {
        for collective in Collective::ALL {
            let op = collective.is_reduction().then_some(Op::Sum);
            let call = Call { op, ..Call::new(collective, 1, Dtype::U64) };
            let by = comm.explain_started(&call)?.by;
            assert_eq!(by, "flat buffer", "{collective}");
            assert_eq!(comm.explain(&call)?.by, by);
        }
        let long =
            Call { op: Some(Op::Sum), ..Call::new(Collective::Allreduce, 1 << 20, Dtype::U64) };
        assert_ne!(comm.explain_started(&long)?.by, "flat buffer");
        // The flat buffer can be requested, and excluded.
        comm.with(CallOptions::new().hardware(Hardware::Always))
            .scope(|scope| scope.barrier()?.wait().map(drop))?;
        let by_plan = comm.with(CallOptions::new().hardware(Hardware::Never));
        assert_ne!(by_plan.explain_started(&Call { count: 1, ..long })?.by, "flat buffer");
        by_plan.scope(|scope| scope.barrier()?.wait().map(drop))
    });
}

/// Many more requests of each collective than there are places. Each rank waits for them in its own order, with
/// blocking calls in between.
#[test]
fn many_requests_among_blocking_calls_end_in_any_order() {
    for n_ranks in [1, 2, 3, 5] {
        all(n_ranks, |comm| {
            let (me, n) = (u64::from(comm.rank()), comm.size() as usize);
            let rng = &mut SmallRng::seed_from_u64(me);
            for round in 0..12u64 {
                let n_each = [1, 2, 3, 7, 30][round as usize % 5];
                let mine: Vec<Vec<u64>> =
                    (0..n_each).map(|at| vec![1000 * round + 10 * at + me; n]).collect();
                let of = |at: u64, rank: u64| 1000 * round + 10 * at + rank;
                let mut sums = vec![[0; 1]; n_each as usize];
                let mut told = vec![[0; 9]; n_each as usize];
                let mut gathered = vec![vec![0; n]; n_each as usize];
                let mut exchanged = gathered.clone();
                let mut largest = vec![[0; 1]; n_each as usize];
                let mut in_place = vec![[0; 1]; n_each as usize];
                let bcast_root = |at: u64| (at % n as u64) as u32;
                comm.scope(|scope| {
                    let mut requests = Vec::new();
                    let buffers = mine.iter().zip(&mut sums).zip(&mut told).zip(&mut gathered);
                    let buffers = buffers.zip(&mut exchanged).zip(&mut largest).zip(&mut in_place);
                    for (
                        at,
                        ((((((mine, sum_), told), gathered), exchanged), largest), in_place),
                    ) in (0..).zip(buffers)
                    {
                        requests.push(scope.allreduce(&mine[..1], sum_, Op::Sum)?);
                        if bcast_root(at) == comm.rank() {
                            told.fill(of(at, 77));
                        }
                        requests.push(scope.bcast(told, bcast_root(at))?);
                        if at % 3 == 0 {
                            let mut blocking = [of(at, me)];
                            comm.allreduce_in_place(&mut blocking, Op::Max)?;
                            assert_eq!(blocking, [of(at, n as u64 - 1)]);
                        }
                        requests.push(scope.allgather(&mine[..1], gathered)?);
                        requests.push(scope.alltoall(mine, exchanged)?);
                        let root = (at as usize % n) as u32;
                        let largest = if root == comm.rank() { &mut largest[..] } else { &mut [] };
                        requests.push(scope.reduce(&mine[..1], largest, Op::Max, root)?);
                        in_place[0] = of(at, me);
                        requests.push(scope.allreduce_in_place(in_place, Op::Min)?);
                        if at % 5 == 4 {
                            comm.barrier()?;
                        }
                        if at % 4 == 0 {
                            let which = rng.random_range(0..requests.len());
                            requests.swap_remove(which).wait()?;
                        }
                    }
                    while !requests.is_empty() {
                        let which = rng.random_range(0..requests.len());
                        if rng.random_bool(0.5) && !requests[which].test() {
                            continue;
                        }
                        requests.swap_remove(which).wait()?;
                    }
                    Ok(())
                })?;
                for (at, index) in (0..n_each).zip(0..) {
                    assert_eq!(sums[index], [sum(comm, |rank| of(at, rank))]);
                    assert_eq!(told[index], [of(at, 77); 9]);
                    let by_rank: Vec<u64> = (0..n as u64).map(|rank| of(at, rank)).collect();
                    assert_eq!(gathered[index], by_rank);
                    assert_eq!(exchanged[index], by_rank);
                    let is_root = index % n == me as usize;
                    assert_eq!(largest[index], [if is_root { of(at, n as u64 - 1) } else { 0 }]);
                    assert_eq!(in_place[index], [of(at, 0)]);
                }
            }
            Ok(())
        });
    }
}

/// A rank that waits for another call also advances its requests, because other ranks need them to complete theirs.
#[test]
fn requests_go_on_while_their_rank_waits_for_another_call() {
    all(2, |comm| {
        let by_plan = comm.with(CallOptions::new().hardware(Hardware::Never));
        for others in [&comm.duplicate()?, &by_plan] {
            let mine = [comm.rank() + 1; 3];
            let mut sums = [[0; 3]; 40];
            let mut word = [comm.rank()];
            comm.scope(|scope| {
                let requests: Result<Vec<_>, _> =
                    sums.iter_mut().map(|sum| scope.allreduce(&mine, sum, Op::Sum)).collect();
                if comm.rank() == 1 {
                    others.bcast(&mut word, 0)?;
                }
                for request in requests? {
                    request.wait()?;
                }
                if comm.rank() == 0 {
                    others.bcast(&mut word, 0)?;
                }
                Ok(())
            })?;
            assert!(sums.iter().all(|sum| *sum == [3; 3]) && word == [0]);
        }
        Ok(())
    });
}

/// More requests than there are places go on while their rank only tests a request by a plan, also beside workers.
#[test]
fn requests_go_on_while_their_rank_tests_another_call() {
    for drive in [Drive::Inline, Drive::Workers] {
        let are_started = Barrier::new(2);
        let config = config(2).with(|config| config.drive = drive);
        let results = emulate(&config, |comm| {
            let by_plan = comm.with(CallOptions::new().hardware(Hardware::Never));
            let mine = [comm.rank() + 1];
            let (mut sums, mut word) = ([[0]; 40], [comm.rank()]);
            comm.scope(|scope| {
                if comm.rank() == 1 {
                    are_started.wait();
                }
                let requests: Result<Vec<_>, _> =
                    sums.iter_mut().map(|sum| scope.allreduce(&mine, sum, Op::Sum)).collect();
                let wait_for_all =
                    || requests?.into_iter().try_for_each(|one| one.wait().map(drop));
                if comm.rank() == 1 {
                    wait_for_all()?;
                    return by_plan.allreduce_in_place(&mut word, Op::Max);
                }
                by_plan.scope(|scope| {
                    let other = scope.allreduce_in_place(&mut word, Op::Max)?;
                    are_started.wait();
                    let start = Instant::now();
                    while !other.test() {
                        assert!(start.elapsed() < Duration::from_secs(30), "they do not go on");
                        std::thread::yield_now();
                    }
                    other.wait().map(drop)
                })?;
                wait_for_all()
            })?;
            assert!(sums.iter().all(|sum| *sum == [3]) && word == [1]);
            Ok::<_, Error>(())
        });
        assert_eq!(results.unwrap(), [Ok(()), Ok(())]);
    }
}

/// More calls than there are places follow a request that is neither tested nor waited for.
#[test]
fn blocking_calls_pass_a_request() {
    all(3, |comm| {
        let mine = [comm.rank()];
        let (mut sum, mut first) = ([0], [0]);
        comm.scope(|scope| {
            let request = scope.allreduce(&mine, &mut sum, Op::Sum)?;
            for round in 0..20 {
                let mut word = [if comm.rank() == 0 { round } else { 99 }];
                comm.bcast(&mut word, 0)?;
                assert_eq!(word, [round]);
                let root = round % 3;
                comm.reduce(
                    &mine,
                    if root == comm.rank() { &mut first } else { &mut [] },
                    Op::Min,
                    root,
                )?;
            }
            assert_eq!(request.wait()?, [3]);
            Ok(())
        })
    });
}

#[test]
fn persistent_ones_start_again_and_again() {
    all(3, |comm| {
        let mut many: Vec<_> = (0..9)
            .map(|at| comm.allreduce_init(vec![u64::from(comm.rank()) + at], Op::Sum))
            .collect::<Result<_, _>>()?;
        let mut barrier = comm.barrier_init()?;
        for round in 0..30u64 {
            many.iter_mut().try_for_each(|one| one.start())?;
            barrier.start()?;
            assert_eq!(barrier.start(), Err(Error::Active));
            comm.barrier()?;
            for (at, one) in many.iter_mut().enumerate().rev() {
                while round % 2 == 0 && !one.test()? {}
                one.wait()?;
                let sum_of = |factor: u64| sum(comm, |rank| rank + at as u64 + factor);
                assert_eq!(one.buffer()?, [sum_of(round)]);
                one.buffer_mut()?[0] = u64::from(comm.rank()) + at as u64 + round + 1;
            }
            barrier.wait()?;
        }
        // The operations are in progress when they are dropped.
        many.iter_mut().try_for_each(|one| one.start())?;
        drop(many);
        comm.barrier()
    });
}

/// The requests of a communicator complete on one thread while another thread is in a blocking call on it.
#[test]
fn threads_wait_for_requests_and_calls_at_once() {
    all(2, |comm| {
        let mine = [u64::from(comm.rank())];
        for _ in 0..50 {
            let mut sums = [[0]; 12];
            comm.scope(|scope| {
                let requests: Result<Vec<_>, Error> =
                    sums.iter_mut().map(|sum| scope.allreduce(&mine, sum, Op::Sum)).collect();
                std::thread::scope(|threads| {
                    let requests = requests?;
                    let waiting = threads.spawn(move || {
                        requests.into_iter().rev().try_for_each(|request| request.wait().map(drop))
                    });
                    comm.barrier()?;
                    waiting.join().unwrap()
                })
            })?;
            assert_eq!(sums, [[1]; 12]);
        }
        Ok(())
    });
}

/// Waits for requests that cannot complete, and returns the error of the next call.
fn wait_in_vain(comm: &Communicator, tests: bool) -> Error {
    let mine = vec![u64::from(comm.rank()); 8];
    let mut sums = vec![vec![0; 8]; 7];
    let failed = comm.scope(|scope| {
        let mut requests = Vec::new();
        for sum in &mut sums {
            requests.push(scope.allreduce(&mine, sum, Op::Sum)?);
        }
        while tests && !requests[3].test() {
            std::thread::yield_now();
        }
        let mut outcomes = requests.into_iter().map(|request| request.wait().map(drop));
        outcomes.next().expect("there are some").unwrap_err();
        // All requests fail after one has failed.
        assert!(outcomes.all(|outcome| outcome.is_err()));
        Ok(())
    });
    // No request has written anything, or will.
    assert!(sums.iter().flatten().all(|&word| word == 0));
    assert_eq!(failed, Ok(()));
    comm.barrier().unwrap_err()
}

#[test]
fn a_rank_that_leaves_ends_the_requests_of_others() {
    for tests in [false, true] {
        let ended = emulate(&config(3), |comm| {
            comm.barrier().unwrap();
            if comm.rank() == 2 { Error::Closed } else { wait_in_vain(comm, tests) }
        });
        let ended = ended.unwrap();
        for error in &ended[..2] {
            assert!(error.to_string().contains("rank 2"), "{error}");
        }
    }
}

#[test]
fn a_late_rank_is_named_by_a_timeout() {
    for tests in [false, true] {
        let config = config(2).with(|config| {
            config.timeout = Duration::from_millis(300);
            config.on_timeout = OnTimeout::Fail;
        });
        let has_failed = AtomicBool::new(false);
        let ended = emulate(&config, |comm| {
            if comm.rank() == 1 {
                while !has_failed.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(10));
                }
                return None;
            }
            let error = wait_in_vain(comm, tests);
            has_failed.store(true, Ordering::Relaxed);
            Some(error)
        });
        let Some(Error::Poisoned(error)) = &ended.unwrap()[0] else { panic!("not poisoned") };
        let Error::Timeout { cause: Some(blame), .. } = **error else { panic!("{error}") };
        assert_eq!(blame, Blame { rank: 1, fault: Fault::Absent, by: 0 });
    }
}

/// A request that differs on another rank fails. With it the world fails, or only this request if the communicator
/// spares mismatches.
#[test]
fn a_request_that_differs_fails() {
    for spares in [false, true] {
        let all_started = Barrier::new(2);
        let ended = emulate(&config(2), |comm| {
            if spares {
                comm.spare();
            }
            comm.barrier().unwrap();
            let mine = [comm.rank(); 2];
            let [mut before, mut differs, mut after] = [[7; 2]; 3];
            let count = 1 + comm.rank() as usize;
            let outcomes = comm.scope(|scope| {
                let requests = [
                    scope.allreduce(&mine, &mut before, Op::Max)?,
                    scope.allreduce(&mine[..count], &mut differs[..count], Op::Sum)?,
                    scope.allreduce(&mine, &mut after, Op::Max)?,
                ];
                all_started.wait();
                let [before, differs, after] = requests;
                Ok([after, differs, before].map(|request| request.wait().map(|_| ())))
            });
            let [of_after, of_differs, of_before] = outcomes.unwrap();
            assert_eq!((of_after, of_before), (Ok(()), Ok(())));
            assert_eq!([before, differs, after], [[1; 2], [7; 2], [1; 2]]);
            (of_differs.unwrap_err(), comm.barrier())
        });
        for (error, later) in ended.unwrap() {
            let Error::Lost { blame, .. } = &error else { panic!("{error}") };
            assert_eq!(blame.fault, Fault::Elsewhere);
            assert_eq!(later.is_ok(), spares, "{later:?}");
        }
    }
}
