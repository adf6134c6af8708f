//! Tests that need threads: workers, and ranks that wait at the barrier gates. (The simulated wire has no workers,
//! and has gates only as `sim-utofu`.)

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hopbine_torus::choose::Wire;
use hopbine_torus::geometry::Shape;

use super::OnTimeout;
use crate::comm::{CallOptions, Communicator, Hardware};
use crate::error::{Error, Fault};
use crate::reduce::Op;
use crate::world::{Drive, EmulationConfig, emulate};

fn config(n_ranks: u32) -> EmulationConfig {
    EmulationConfig { ports: Some(2), ..EmulationConfig::new(Shape::torus(&[n_ranks]).unwrap()) }
}

#[test]
fn workers_drive_while_callers_wait_compute_or_sleep() {
    let config = EmulationConfig { drive: Drive::Workers, ..config(3) };
    emulate(&config, |comm| {
        assert!(comm.has_workers());
        let sum = |round: usize| (0..3).map(|rank| (rank + round) as f64).sum::<f64>();
        for round in 0..20 {
            let mine = vec![(comm.rank() as usize + round) as f64; [1, 40, 9000][round % 3]];
            let (mut waited, mut started, mut other) = (mine.clone(), mine.clone(), mine.clone());
            comm.allreduce_in_place(&mut waited, Op::Sum).unwrap();
            comm.scope(|scope| {
                let first = scope.allreduce_in_place(&mut started, Op::Sum)?;
                let second = scope.allreduce_in_place(&mut other, Op::Sum)?;
                // Long enough for the workers to go to sleep.
                std::thread::sleep(Duration::from_millis(2));
                second.wait()?;
                first.wait().map(drop)
            })
            .unwrap();
            for vector in [waited, started, other] {
                assert!(vector.iter().all(|&element| element == sum(round)));
            }
        }
    })
    .unwrap();
}

#[test]
fn a_function_of_the_callers_is_called_while_a_call_waits() {
    let config = EmulationConfig { drive: Drive::Inline, ..config(2) };
    let n_called = Arc::new(AtomicU32::new(0));
    emulate(&config, |comm| {
        let called = n_called.clone();
        if comm.rank() == 0 {
            comm.on_idle(Box::new(move || _ = called.fetch_add(1, Ordering::Relaxed)));
            comm.on_idle(Box::new(|| panic!("the first function stays")));
        } else {
            // Rank 0 waits for this rank at the barrier.
            while called.load(Ordering::Relaxed) < 3 {
                std::thread::yield_now();
            }
        }
        comm.barrier().unwrap();
    })
    .unwrap();
}

/// The errors of ranks 0 and 1 of three at the gates, or at the flat buffer, if rank 2 calls `late` instead.
fn found_at_gates(wire: Wire, late: impl Fn(&Communicator) + Sync) -> Vec<Option<Error>> {
    let timeout = Duration::from_millis(400);
    let config = EmulationConfig { wire, timeout, on_timeout: OnTimeout::Fail, ..config(3) };
    emulate(&config, |comm| {
        let gates = comm.with(CallOptions::new().hardware(Hardware::Always));
        gates.barrier().unwrap();
        if comm.rank() == 2 {
            late(comm);
            return None;
        }
        Some(gates.barrier().unwrap_err())
    })
    .unwrap()
}

fn is_named(found: &[Option<Error>], faults: &[Fault]) {
    assert_eq!(found.iter().flatten().count(), 2);
    for error in found.iter().flatten() {
        let (Error::Timeout { cause: Some(blame), .. } | Error::Lost { blame, .. }) = error else {
            panic!("{error}");
        };
        assert!(blame.rank == 2 && faults.contains(&blame.fault), "{error}");
    }
}

#[test]
fn who_has_not_come_to_the_gates_is_named() {
    let computes = |_: &Communicator| std::thread::sleep(Duration::from_secs(2));
    for wire in [Wire::Network, Wire::Memory] {
        is_named(&found_at_gates(wire, computes), &[Fault::Absent]);
    }
}

#[test]
fn who_has_left_instead_of_coming_to_the_gates_is_named() {
    // A rank that asks early may find that rank 2 still computes.
    is_named(&found_at_gates(Wire::Network, |_| ()), &[Fault::Left, Fault::Absent]);
}

#[test]
fn who_waits_in_another_call_is_named() {
    let elsewhere = |comm: &Communicator| {
        let by_plan = comm.with(CallOptions::new().hardware(Hardware::Never));
        by_plan.allreduce_in_place(&mut [1u64; 100], Op::Sum).unwrap_err();
    };
    is_named(&found_at_gates(Wire::Network, elsewhere), &[Fault::Elsewhere, Fault::Absent]);
}

#[test]
fn memory_that_is_registered_stays_so_and_progress_is_made_from_outside() {
    emulate(&config(2), |comm| {
        let mut vector = vec![u64::from(comm.rank()) + 1; 20_000];
        let (ptr, len) = (vector.as_mut_ptr(), size_of_val::<[u64]>(&vector) as u64);
        // SAFETY: the vector outlives the registration, which is dropped before it.
        let registered = unsafe { comm.register(ptr.cast(), len) }.unwrap();
        for round in 1..4u64 {
            comm.scope(|scope| {
                let request = scope.allreduce_in_place(&mut vector, Op::Sum)?;
                let mut seen = 0;
                while !request.test() {
                    seen = comm.progress(100, seen);
                }
                request.wait().map(drop)
            })
            .unwrap();
            assert!(vector.iter().all(|&element| element == 3 << (round - 1)));
        }
        drop(registered);
    })
    .unwrap();
}
