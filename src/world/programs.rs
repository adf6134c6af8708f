//! The programs that have been compiled for a communicator, and the operations that run them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hopbine_torus::plan::{Flow, Schedule};
use hopbine_torus::registry;
use hopbine_torus::{Collective, Request};

use super::call::Call;
use super::communicator::{Communicator, Inner};
use super::options::CallOptions;
use super::select::{Choice, choose};
use crate::Rank;
use crate::engine::{
    CompileFailure, Engine, Geometry, Operation, Program, UserKeys, UserMemory, compile,
};
use crate::error::Error;
use crate::reduce::{Dtype, Op, Reducer};

/// Programs kept for calls that may come again.
const KEPT_PROGRAMS: usize = 128;
/// Bytes of working and staging memory kept with them; the program used last is kept anyway.
const KEPT_BYTES: u64 = 256 << 20;

/// The programs of a communicator.
#[derive(Default)]
pub(super) struct Cache {
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

impl Drop for Ready {
    fn drop(&mut self) {
        // A port that has just given its run back may still hold a reference for a moment, and
        // its mutex. It must not be the one that drops the operation, which releases
        // registrations and needs that mutex for it.
        while Arc::strong_count(&self.operation) > 1 {
            std::thread::yield_now();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Everything behind these mutexes is consistent between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let cache = &mut *lock(&self.inner.programs);
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
        let Inner { shape, map, engine, caller, .. } = &*self.inner;
        let collective = key.collective;
        let reducer = key.op.map(|op| Reducer::new(key.dtype, op)).transpose()?;
        let elem_bytes = key.dtype.size_bytes() as u64;
        let n_ports = engine.n_ports() as u32;
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
        let segment = key.options.segment_bytes.or(self.inner.segment_bytes);
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
                let operation = inner.engine.prepare(program, reducer)?;
                Ready { operation, keys: UserKeys::default() }
            }
        };
        Ok(Prepared { inner, entry, ready: Some(ready) })
    }

    /// Starts the operation. `keep` allows the wire to remember the memory.
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
        turn: Turn,
    ) -> Result<Running, Error> {
        self.with(|engine, Ready { operation, keys }| {
            // SAFETY: the buffers stay valid until the operation is done, and whoever waits
            // for that settles the keys before telling anybody.
            unsafe { engine.register(operation, memory, keep, keys) }?;
            // SAFETY: the caller's promise.
            let started = unsafe {
                match turn {
                    Turn::Next { waiting } => engine.start(operation, memory, keys, waiting),
                    Turn::Any { name } => engine.start_reserved(operation, memory, keys, name),
                }
            };
            if started.is_err() {
                engine.settle(keys);
            }
            started
        })?;
        Ok(Running(self))
    }

    /// Gives access to the engine and the operation.
    pub(super) fn with<R>(&mut self, f: impl FnOnce(&Engine, &mut Ready) -> R) -> R {
        let Some(ready) = &mut self.ready else { unreachable!("taken in drop only") };
        f(&self.inner.engine, ready)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if let Some(ready) = self.ready.take() {
            lock(&self.entry.idle).push(ready);
        }
    }
}

/// When the other ranks start an operation.
pub(super) enum Turn {
    /// After the same others as this rank. `waiting` says that the caller will wait for it at
    /// once.
    Next { waiting: bool },
    /// At any time: they know it by its name. The caller will wait for it at once.
    Any { name: u32 },
}

/// An operation under way. Dropping it waits for it.
pub(super) struct Running(Prepared);

impl Running {
    /// Moves things on a little; true if the operation is done.
    pub(super) fn test(&self) -> bool {
        let Prepared { inner, ready, .. } = &self.0;
        ready.as_ref().is_none_or(|ready| inner.engine.test(&ready.operation))
    }

    /// Waits for the end.
    pub(super) fn wait(mut self) -> Result<(), Error> {
        self.finish()
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.0.with(|engine, Ready { operation, keys }| {
            let outcome = engine.wait(operation);
            engine.settle(keys);
            outcome
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let under_way = self.0.ready.as_ref().is_some_and(|ready| !ready.keys.is_settled());
        if under_way {
            // Whoever drops an operation without waiting does not want to know.
            let _ = self.finish();
        }
    }
}
