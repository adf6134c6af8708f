//! Tear-down of an engine, on a wire in memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::memory_wire::{MemoryEndpoint, MemoryWire};
use hopbine::endpoint::{
    Endpoint, Event, MemoryRange, Owner, Posted, RecvPost, Registry, SendPost,
};
use hopbine::engine::{
    CheckedPlan, Engine, EngineConfig, Failure, Geometry, OnTimeout, Operation, OperationWatch,
    Program, Sizes, StartOrder, UserKeys, UserMemory, compile,
};
use hopbine::reduce::{Dtype, Op, Reducer};
use hopbine::{Error, WireError};
use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::plan::Flow;
use hopbine_torus::{Collective, Request, registry};

/// Time-out for operations that must succeed, even on a busy machine.
pub const LONG: Duration = Duration::from_secs(60);

/// The engine of one of two ranks, and its program for a barrier of both.
pub fn barrier_of_two(wire: &MemoryWire, rank: u32, timeout: Duration) -> (Engine, Arc<Program>) {
    let request = Request {
        shape: Shape::torus(&[2]).unwrap(),
        map: RankMap::RowMajor,
        root: hopbine_torus::Rank(0),
        ports: Some(1),
    };
    let algorithm = registry::find(Collective::Barrier, "mixed").unwrap();
    let schedule = algorithm.schedule(&request).unwrap().expand().unwrap();
    let geometry = Geometry {
        sizes: Sizes::Equal(0),
        elem_bytes: 1,
        in_place: false,
        segment_bytes: None,
        staged: None,
    };
    let config = EngineConfig {
        workers: 0,
        cores: Vec::new(),
        own_cores: false,
        timeout,
        on_timeout: OnTimeout::Fail,
        trace: None,
    };
    let endpoint: Box<dyn Endpoint> = Box::new(wire.endpoint(rank, 0, 1));
    let engine =
        Engine::new(rank, 2, vec![endpoint], config, Arc::new(Failure::default())).unwrap();
    let plan = CheckedPlan::new(schedule.plan(hopbine_torus::Rank(rank))).unwrap();
    (engine, Arc::new(compile(&plan, &geometry).unwrap()))
}

/// The engines of ranks 0 and 1, each with a prepared barrier.
fn pair(timeout: Duration) -> [(Engine, Arc<Operation>); 2] {
    let wire = MemoryWire::default();
    [0, 1].map(|rank| {
        let (engine, program) = barrier_of_two(&wire, rank, timeout);
        let operation = engine.prepare(program, None).unwrap();
        (engine, operation)
    })
}

/// Context and number of the only operation.
const ID: (u64, u32) = (0, 0);
pub const NOTHING: [UserMemory; 2] = [UserMemory { ptr: std::ptr::null_mut(), len: 0 }; 2];

/// Starts an operation. If `at_once`, the caller's thread may drive it immediately.
///
/// # Safety
/// The same as for [`Engine::start`].
unsafe fn start_with(
    (engine, operation): &(Engine, Arc<Operation>),
    memory: [UserMemory; 2],
    at_once: bool,
) -> UserKeys {
    let mut keys = UserKeys::default();
    // SAFETY: the caller's guarantee.
    unsafe {
        engine.register(operation, memory, false, &mut keys).unwrap();
        engine.start(operation, memory, &keys, ID, StartOrder::InOrder, at_once).unwrap();
    }
    keys
}

fn start(rank: &(Engine, Arc<Operation>)) -> UserKeys {
    // SAFETY: the operation has no memory.
    unsafe { start_with(rank, NOTHING, true) }
}

/// Simulates a thread that passed the check just before another thread closed the engine.
#[test]
fn ports_refuse_what_slips_by() {
    let ranks = pair(LONG);
    ranks[0].0.drain().unwrap();
    start(&ranks[0]);
    assert_eq!(
        ranks[0].0.wait(&ranks[0].1, ID, &mut OperationWatch::default()),
        Err(Error::Closed)
    );
}

#[test]
fn what_is_under_way_is_waited_for() {
    let ranks = pair(LONG);
    start(&ranks[0]);
    start(&ranks[1]);
    std::thread::scope(|threads| {
        threads.spawn(|| ranks[1].0.wait(&ranks[1].1, ID, &mut OperationWatch::default()).unwrap());
        ranks[0].0.close();
        ranks[0].0.drain().unwrap();
        assert!(ranks[0].1.is_done() && ranks[0].1.failure().is_none());
    });
    assert_eq!(ranks[0].0.check(), Err(Error::Closed));
}

#[test]
fn but_not_for_ever() {
    let ranks = pair(Duration::from_millis(200));
    start(&ranks[0]);
    let error = ranks[0].0.drain().unwrap_err();
    assert!(matches!(error, Error::Timeout { rank: 0, port: 0, .. }), "{error}");
    assert!(error.to_string().contains("rank 1"), "{error}");
    assert_eq!(ranks[0].0.check(), Err(Error::Poisoned(error.into())));
}

/// A wire that needs registered memory and panics after a number of polls.
struct Odd {
    wire: MemoryEndpoint,
    polls_left: usize,
}

impl Endpoint for Odd {
    unsafe fn post_send(&mut self, to: u32, send: SendPost) -> Result<Posted, WireError> {
        // SAFETY: the caller's guarantee.
        unsafe { self.wire.post_send(to, send) }
    }

    unsafe fn post_recv(&mut self, from: u32, recv: RecvPost) -> Result<Posted, WireError> {
        // SAFETY: the caller's guarantee.
        unsafe { self.wire.post_recv(from, recv) }
    }

    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        self.polls_left = self.polls_left.checked_sub(1).expect("on purpose");
        self.wire.poll(events)
    }

    fn is_flushed(&self) -> bool {
        self.wire.is_flushed()
    }

    fn abandon(&mut self) {
        self.wire.abandon();
    }

    fn registry(&mut self) -> Option<&mut dyn Registry> {
        Some(self)
    }
}

impl Registry for Odd {
    unsafe fn register(&mut self, _: MemoryRange, _: Owner<'_>) -> Result<u64, WireError> {
        Ok(1)
    }

    fn release(&mut self, _: u64) -> Result<(), WireError> {
        Ok(())
    }

    fn keyless_bytes(&self) -> u64 {
        0
    }

    fn fence(&mut self) -> Result<bool, WireError> {
        Ok(true)
    }

    fn unfenced(&self) -> Option<u32> {
        None
    }
}

/// Two engines with workers, each with a prepared allreduce of `len` numbers.
fn odd_pair(len: u64, polls: [usize; 2]) -> [(Engine, Arc<Operation>); 2] {
    let wire = MemoryWire::default();
    let shape = Shape::torus(&[2]).unwrap();
    let request =
        Request { shape, map: RankMap::RowMajor, root: hopbine_torus::Rank(0), ports: Some(1) };
    let algorithm = registry::find(Collective::Allreduce, "mixed").unwrap();
    let schedule = algorithm.schedule(&request).unwrap();
    let expansion = schedule.expand().unwrap();
    let geometry = Geometry {
        sizes: Sizes::Equal(len),
        elem_bytes: 8,
        in_place: true,
        segment_bytes: Some(64),
        staged: None,
    };
    [0, 1].map(|rank| {
        let config = EngineConfig {
            workers: 1,
            cores: Vec::new(),
            own_cores: false,
            timeout: LONG,
            on_timeout: OnTimeout::Fail,
            trace: None,
        };
        let odd = Odd { wire: wire.endpoint(rank, 0, 5), polls_left: polls[rank as usize] };
        let engine = Engine::new(rank, 2, vec![Box::new(odd)], config, Arc::default()).unwrap();
        let program = compile(
            &CheckedPlan::new(expansion.plan(hopbine_torus::Rank(rank))).unwrap(),
            &geometry,
        )
        .unwrap();
        let reducer = Reducer::new(Dtype::U64, Op::Sum).unwrap();
        (engine.prepare(Arc::new(program), Some(reducer)).map(|o| (engine, o))).unwrap()
    })
}

fn start_on(rank: &(Engine, Arc<Operation>), vector: &mut [u64]) -> UserKeys {
    let len = size_of_val(vector) as u64;
    let memory = [NOTHING[0], UserMemory { ptr: vector.as_mut_ptr().cast(), len }];
    // SAFETY: the callers keep the vector until the operation has completed.
    unsafe { start_with(rank, memory, false) }
}

#[test]
fn a_panic_in_a_worker_is_a_failure_of_its_rank() {
    for polls in 0..30 {
        let ranks = odd_pair(100, [polls, usize::MAX]);
        let mut vectors = [vec![1; 100], vec![2; 100]];
        start_on(&ranks[0], &mut vectors[0]);
        // Without rank 1 only the panic can end the operation of rank 0.
        let is_alone = polls % 2 == 0;
        if !is_alone {
            start_on(&ranks[1], &mut vectors[1]);
        }
        let end = Instant::now() + LONG;
        while !ranks[0].1.is_done() {
            assert!(Instant::now() < end, "{polls} polls: neither done nor failed");
            std::thread::yield_now();
        }
        match ranks[0].0.wait(&ranks[0].1, ID, &mut OperationWatch::default()) {
            Ok(()) => assert!(!is_alone, "{polls} polls: no worker has panicked"),
            Err(error) => {
                assert!(matches!(error, Error::RankPanicked { rank: 0, .. }), "{error}");
                assert!(matches!(ranks[0].0.check(), Err(Error::Poisoned(_))));
            }
        }
        // This wire does not tell the other rank about the failure.
        ranks[1].0.fail(&Error::Closed);
        ranks[1].0.fail(&Error::Active);
        assert!(ranks[1].1.is_done());
    }
}

/// The thread that drops the last reference to an operation frees its memory, which requires the mutex of its port.
/// That thread may be a worker that has just driven the port.
#[test]
fn the_last_handle_may_go_anywhere() {
    for round in 0..300 {
        let ranks = odd_pair(50, [usize::MAX; 2]);
        let mut vectors = [vec![1; 50], vec![2; 50]];
        let engines = ranks.into_iter().zip(&mut vectors).map(|(rank, vector)| {
            start_on(&rank, vector);
            let (engine, operation) = rank;
            let watched = Arc::downgrade(&operation);
            if round % 2 == 0 {
                std::thread::yield_now();
            }
            drop(operation);
            (engine, watched)
        });
        for (engine, watched) in engines.collect::<Vec<_>>() {
            while watched.strong_count() > 0 {
                std::thread::yield_now();
            }
            drop(engine);
        }
        assert_eq!(vectors, [vec![3; 50], vec![3; 50]]);
    }
}
