//! Tests that need threads: workers, and ranks that wait at the barrier gates. (The simulated wire has no workers,
//! and has gates only as `sim-utofu`.)

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hopbine_torus::choose::Wire;
use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::plan::Flow;
use hopbine_torus::{Collective, Request, registry};

use super::{
    CheckedPlan, Engine, EngineConfig, Failure, Geometry, OnTimeout, Sizes, StartOrder, UserKeys,
    UserMemory, compile,
};
use crate::Rank;
use crate::comm::{CallOptions, Communicator, Hardware};
use crate::endpoint::{Endpoint, Event, Posted, RecvPost, SendPost};
use crate::error::{Error, Fault, WireError};
use crate::reduce::{Dtype, Op, Reducer};
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

/// The wire of one of three ports: nothing arrives, and the last port's first send waits a while for a poll of the
/// second port.
struct Port {
    index: usize,
    second_is_polled: Arc<AtomicBool>,
    was_polled_first: Arc<AtomicBool>,
}

impl Endpoint for Port {
    unsafe fn post_send(&mut self, _: Rank, _: SendPost) -> Result<Posted, WireError> {
        let end = Instant::now() + Duration::from_millis(50);
        while self.index == 2 && Instant::now() < end {
            let is_polled = self.second_is_polled.load(Ordering::Relaxed);
            self.was_polled_first.fetch_or(is_polled, Ordering::Relaxed);
            std::thread::yield_now();
        }
        Ok(Posted::Accepted)
    }

    unsafe fn post_recv(&mut self, _: Rank, _: RecvPost) -> Result<Posted, WireError> {
        Ok(Posted::Accepted)
    }

    fn poll(&mut self, _: &mut Vec<Event>) -> Result<(), WireError> {
        self.second_is_polled.fetch_or(self.index == 1, Ordering::Relaxed);
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        true
    }

    fn abandon(&mut self) {}
}

/// Whether a worker that slept has polled the second of three ports before the last one posted its first message.
fn wakes_before_the_last_post() -> bool {
    let shape = Shape::torus(&[2, 2, 2]).unwrap();
    let (map, root) = (RankMap::RowMajor, hopbine_torus::Rank(0));
    let request = Request { shape, map, root, ports: Some(3) };
    let algorithm = registry::find(Collective::Allreduce, "mixed").unwrap();
    let plan = algorithm.schedule(&request).unwrap().expand().unwrap().plan(root);
    let sizes = Sizes::Equal(300);
    let geometry =
        Geometry { sizes, elem_bytes: 8, in_place: true, segment_bytes: None, staged: None };
    let program = compile(&CheckedPlan::new(plan).unwrap(), &geometry).unwrap();
    assert_eq!(program.ports.len(), 3);

    let config = EngineConfig {
        workers: 3,
        cores: Vec::new(),
        own_cores: false,
        timeout: Duration::from_secs(60),
        on_timeout: OnTimeout::Fail,
        trace: None,
    };
    let [second_is_polled, was_polled_first] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let port = |index| -> Box<dyn Endpoint> {
        let (second_is_polled, was_polled_first) =
            (second_is_polled.clone(), was_polled_first.clone());
        Box::new(Port { index, second_is_polled, was_polled_first })
    };
    let ports = (0..3).map(port).collect();
    let engine = Engine::new(0, 8, ports, config, Arc::new(Failure::default())).unwrap();
    let reducer = Reducer::new(Dtype::U64, Op::Sum).unwrap();
    let operation = engine.prepare(Arc::new(program), Some(reducer)).unwrap();
    while !engine.group.ports.iter().all(|port| port.hints.is_parked()) {
        std::thread::yield_now();
    }
    let mut vector = [1u64; 300];
    let nothing = UserMemory { ptr: std::ptr::null_mut(), len: 0 };
    let memory = UserMemory { ptr: vector.as_mut_ptr().cast(), len: 2400 };
    // SAFETY: the engine is failed before the vector is dropped.
    unsafe {
        let keys = UserKeys::default();
        engine.start(&operation, [nothing, memory], &keys, (0, 0), StartOrder::InOrder, true)
    }
    .unwrap();
    engine.fail(&Error::Closed);
    was_polled_first.load(Ordering::Relaxed)
}

#[test]
fn workers_wake_after_the_first_messages_of_all_ports() {
    // A worker may notice the operation on its way to sleep, but not each time.
    assert!((0..10).any(|_| !wakes_before_the_last_post()));
}
