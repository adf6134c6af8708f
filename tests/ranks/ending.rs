//! The end of an engine, on a wire in memory.

use std::sync::Arc;
use std::time::Duration;

use crate::common::memory_wire::MemoryWire;
use hopbine::Error;
use hopbine::endpoint::Endpoint;
use hopbine::engine::{
    Engine, EngineConfig, Failure, Geometry, OnTimeout, Operation, UserKeys, UserMemory, compile,
};
use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::plan::Flow;
use hopbine_torus::{Collective, Request, registry};

/// For what is to succeed, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Ranks 0 and 1, with a barrier each.
fn pair(timeout: Duration) -> [(Engine, Arc<Operation>); 2] {
    let wire = MemoryWire::default();
    let request = Request {
        shape: Shape::torus(&[2]).unwrap(),
        map: RankMap::RowMajor,
        root: 0,
        ports: Some(1),
    };
    let algorithm = registry::find(Collective::Barrier, "mixed").unwrap();
    let schedule = algorithm.schedule(&request).unwrap().expand().unwrap();
    let geometry = Geometry { count: 0, elem_bytes: 1, in_place: false, segment_bytes: None };
    [0, 1].map(|rank| {
        let config = EngineConfig {
            workers: false,
            cores: Vec::new(),
            own_cores: false,
            timeout,
            on_timeout: OnTimeout::Fail,
        };
        let endpoint: Box<dyn Endpoint> = Box::new(wire.endpoint(rank, 0, 1));
        let engine =
            Engine::new(rank, vec![endpoint], config, Arc::new(Failure::default())).unwrap();
        let program = compile(&schedule.plan(hopbine_torus::Rank(rank)), &geometry).unwrap();
        let operation = engine.prepare(Arc::new(program), None).unwrap();
        (engine, operation)
    })
}

/// Context and number of the one operation.
const ID: (u64, u32) = (0, 0);
const NOTHING: [UserMemory; 2] = [UserMemory { ptr: std::ptr::null_mut(), len: 0 }; 2];

fn start((engine, operation): &(Engine, Arc<Operation>)) -> UserKeys {
    let mut keys = UserKeys::default();
    // SAFETY: there is no memory.
    unsafe {
        engine.register(operation, NOTHING, false, &mut keys).unwrap();
        engine.start(operation, NOTHING, &keys, ID, true).unwrap();
    }
    keys
}

/// As if a thread had passed the check just before another closed the engine.
#[test]
fn ports_refuse_what_slips_by() {
    let ranks = pair(LONG);
    ranks[0].0.drain().unwrap();
    start(&ranks[0]);
    assert_eq!(ranks[0].0.wait(&ranks[0].1, ID), Err(Error::Closed));
}

#[test]
fn what_is_under_way_is_waited_for() {
    let ranks = pair(LONG);
    start(&ranks[0]);
    start(&ranks[1]);
    std::thread::scope(|threads| {
        threads.spawn(|| ranks[1].0.wait(&ranks[1].1, ID).unwrap());
        ranks[0].0.refuse();
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
