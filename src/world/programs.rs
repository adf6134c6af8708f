//! The programs that have been compiled for a communicator, and the operations that run them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use hopbine_torus::plan::{Flow, Schedule};
use hopbine_torus::registry;
use hopbine_torus::{Collective, Request};

use super::call::Call;
use super::communicator::{Communicator, Inner};
use super::members::Members;
use super::options::CallOptions;
use super::select::{Choice, choose};
use crate::Rank;
use crate::engine::{
    CompileFailure, Engine, Geometry, Operation, Program, TestWatch, UserKeys, UserMemory, compile,
};
use crate::error::Error;
use crate::reduce::{Dtype, Op, Reducer};
use crate::sync::lock;

/// Programs kept for calls that may come again.
const KEPT_PROGRAMS: usize = 128;
/// Bytes of working and staging memory kept with them; the program used last is kept anyway.
const KEPT_BYTES: u64 = 256 << 20;

/// The programs of a communicator.
#[derive(Default)]
pub(super) struct Cache(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    entries: HashMap<Key, Arc<Entry>>,
    /// Counts lookups, to tell which entry has not been used for longest.
    clock: u64,
}

/// All that a program depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    collective: Collective,
    count: u64,
    dtype: Dtype,
    op: Option<Op>,
    root: Rank,
    in_place: bool,
    options: CallOptions,
}

/// A program, and operations that are ready to run it.
pub(super) struct Entry {
    program: Arc<Program>,
    reducer: Option<Reducer>,
    idle: Mutex<Vec<Ready>>,
    last_used: Mutex<u64>,
}

/// An operation that nobody uses.
pub(super) struct Ready {
    pub(super) operation: Arc<Operation>,
    pub(super) keys: UserKeys,
}

impl Communicator {
    /// Gets an operation for a normalized and checked call.
    pub(super) fn operation(&self, call: &Call) -> Result<Prepared, Error> {
        Prepared::new(self.inner.clone(), self.entry(call)?)
    }

    fn entry(&self, call: &Call) -> Result<Arc<Entry>, Error> {
        let key = Key {
            collective: call.collective,
            count: call.count,
            dtype: call.dtype,
            op: call.op,
            root: call.root,
            in_place: call.in_place,
            options: self.options.clone(),
        };
        let cache = &mut *lock(&self.inner.members.programs.0);
        cache.clock += 1;
        if let Some(entry) = cache.entries.get(&key) {
            *lock(&entry.last_used) = cache.clock;
            return Ok(entry.clone());
        }
        let (program, reducer) = self.compile(&key)?;
        let mut kept = program.memory_bytes();
        kept += cache.entries.values().map(|entry| entry.program.memory_bytes()).sum::<u64>();
        while cache.entries.len() >= KEPT_PROGRAMS || kept > KEPT_BYTES {
            let oldest = cache.entries.iter().min_by_key(|(_, entry)| *lock(&entry.last_used));
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            if let Some(entry) = cache.entries.remove(&oldest) {
                kept -= entry.program.memory_bytes();
            }
        }
        let last_used = Mutex::new(cache.clock);
        let entry = Arc::new(Entry {
            program: Arc::new(program),
            reducer,
            idle: Mutex::default(),
            last_used,
        });
        cache.entries.insert(key, entry.clone());
        Ok(entry)
    }

    fn compile(&self, key: &Key) -> Result<(Program, Option<Reducer>), Error> {
        let Inner { of_world, members, .. } = &*self.inner;
        let Members { shape, map, caller, .. } = &**members;
        let collective = key.collective;
        let reducer = key.op.map(|op| Reducer::new(key.dtype, op)).transpose()?;
        let elem_bytes = key.dtype.size_bytes() as u64;
        let n_ports = of_world.engine.n_ports() as u32;
        let bytes = key.count.saturating_mul(elem_bytes);
        let Choice { algorithm: chosen, ports, segment_bytes } =
            choose(collective, shape, bytes, n_ports, key.in_place);
        let algorithm = match &key.options.algorithm {
            None => chosen,
            Some(name) => registry::find(collective, name).map_err(|unknown| {
                Error::UnknownAlgorithm { collective, name: unknown.name, known: unknown.known }
            })?,
        };
        let refused = |reason: String| Error::NotServed {
            collective,
            name: algorithm.name.to_string(),
            reason,
        };
        let ports = key.options.ports.unwrap_or(ports);
        if ports > n_ports {
            return Err(Error::Setting {
                setting: "ports",
                found: ports.to_string(),
                valid: format!("1 to {n_ports}, the number of ports of the communicator"),
            });
        }
        let request =
            Request { shape: shape.clone(), map: map.clone(), root: key.root, ports: Some(ports) };
        let schedule = algorithm.schedule(&request).map_err(|error| refused(error.to_string()))?;
        let expansion = schedule.expand().map_err(|error| refused(error.to_string()))?;
        let plan = expansion.plan(hopbine_torus::Rank(caller.rank));
        let segment = key.options.segment_bytes.or(members.segment_bytes);
        let geometry = Geometry {
            count: key.count,
            elem_bytes,
            in_place: key.in_place,
            segment_bytes: Some(segment.unwrap_or(segment_bytes)),
        };
        let program = compile(&plan, &geometry);
        let mut program = program.map_err(|CompileFailure { lane, step, error }| Error::Plan {
            rank: caller.rank,
            lane,
            step,
            source: error,
        })?;
        program.call = call_number(&schedule, key, &geometry);
        if !members.is_world() {
            program = program.renumbered(|rank| members.world_rank(rank));
        }
        Ok((program, reducer))
    }
}

/// Stands for a call: equal on ranks whose calls can meet, different otherwise (but for one in
/// 65,536). A rank may have its input in place where others do not, unless that changes the
/// algorithm.
fn call_number(schedule: &Schedule, key: &Key, geometry: &Geometry) -> u16 {
    let mut hasher = DefaultHasher::new();
    (schedule, key.count, key.dtype, key.op, geometry.segment_bytes).hash(&mut hasher);
    hasher.finish() as u16
}

/// An operation in somebody's hands, not under way.
pub(super) struct Prepared {
    inner: Arc<Inner>,
    entry: Arc<Entry>,
    /// `None` only while being dropped.
    ready: Option<Ready>,
}

impl Prepared {
    fn new(inner: Arc<Inner>, entry: Arc<Entry>) -> Result<Self, Error> {
        let idle = lock(&entry.idle).pop();
        let ready = match idle {
            Some(ready) => ready,
            None => {
                let (program, reducer) = (entry.program.clone(), entry.reducer);
                let operation = inner.of_world.engine.prepare(program, reducer)?;
                Ready { operation, keys: UserKeys::default() }
            }
        };
        Ok(Prepared { inner, entry, ready: Some(ready) })
    }

    /// Starts the operation. `keep` allows the wire to remember the memory; `waiting` says that
    /// the caller will wait for it at once.
    ///
    /// # Safety
    /// As [`Engine::start`], until the operation is done.
    ///
    /// # Errors
    /// As [`Engine::register`] and [`Engine::start`].
    pub(super) unsafe fn start(
        mut self,
        memory: [UserMemory; 2],
        keep: bool,
        waiting: bool,
    ) -> Result<Running, Error> {
        let id = self.inner.next_operation();
        self.with(|engine, Ready { operation, keys }| {
            // SAFETY: the buffers stay valid until the operation is done, and whoever waits
            // for that releases the keys before telling anybody.
            unsafe { engine.register(operation, memory, keep, keys) }?;
            // SAFETY: the caller's promise.
            let started = unsafe { engine.start(operation, memory, keys, id, waiting) };
            if started.is_err() {
                engine.release(keys);
            }
            started
        })?;
        Ok(Running { prepared: self, id, watch: TestWatch::default() })
    }

    /// Gives access to the engine and the operation.
    pub(super) fn with<R>(&mut self, f: impl FnOnce(&Engine, &mut Ready) -> R) -> R {
        let Some(ready) = &mut self.ready else { unreachable!("taken in drop only") };
        f(&self.inner.of_world.engine, ready)
    }

    /// Names the next operation of the communicator.
    pub(super) fn next_operation(&self) -> (u64, u32) {
        self.inner.next_operation()
    }

    /// Whether something has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.inner.of_world.engine.has_failed()
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if let Some(ready) = self.ready.take() {
            lock(&self.entry.idle).push(ready);
        }
    }
}

/// An operation under way. Dropping it waits for it.
pub(super) struct Running {
    prepared: Prepared,
    /// Context and number of the operation.
    id: (u64, u32),
    watch: TestWatch,
}

impl Running {
    /// Moves things on a little; true if the operation is done.
    pub(super) fn test(&mut self) -> bool {
        let Running { prepared, id, watch } = self;
        prepared.with(|engine, ready| engine.test(&ready.operation, *id, watch))
    }

    /// Waits for the end.
    pub(super) fn wait(mut self) -> Result<(), Error> {
        self.finish()
    }

    fn finish(&mut self) -> Result<(), Error> {
        let id = self.id;
        self.prepared.with(|engine, Ready { operation, keys }| {
            let outcome = engine.wait(operation, id);
            engine.release(keys);
            outcome
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let ready = self.prepared.ready.as_ref();
        if ready.is_some_and(|ready| !ready.keys.is_released()) {
            // Whoever drops an operation without waiting does not want to know.
            let _ = self.finish();
        }
    }
}
