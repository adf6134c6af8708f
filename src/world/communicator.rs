//! The communicator: a torus of ranks, and the programs that have been compiled for it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hopbine_torus::collectives::{Collective, Request, registry};
use hopbine_torus::geometry::{Coord, RankMap, Shape};
use hopbine_torus::plan::{Rank, Schedule};

use super::call::{Call, Caller};
use super::gates::{Gates, Task};
use super::options::{self, CallOptions};
use super::select::{Choice, choose};
use crate::endpoint::utofu::CacheView;
use crate::engine::{
    CompileFailure, Engine, Geometry, Operation, Program, UserKeys, Waiter, compile,
};
use crate::error::Error;
use crate::memory::CacheStats;
use crate::reduce::{Dtype, Op, Reducer};

/// Programs kept for calls that may come again.
const KEPT_PROGRAMS: usize = 128;
/// Bytes of working and staging memory kept with them; the program used last is kept anyway.
const KEPT_BYTES: u64 = 256 << 20;

/// A group of ranks on a torus that call collectives together.
///
/// A handle: copies made by [`with`](Communicator::with) mean the same communicator. All ranks
/// must start the same operations on it in the same order, with the same options.
pub struct Communicator {
    inner: Arc<Inner>,
    options: CallOptions,
}

pub(super) struct Inner {
    shape: Shape,
    map: RankMap,
    caller: Caller,
    segment_bytes: Option<u64>,
    pub(super) engine: Engine,
    pub(super) hardware: Hardware,
    cache: Mutex<Cache>,
}

/// What a communicator knows of its device besides the engine.
pub(super) struct Hardware {
    /// The barrier gates, or why there are none.
    pub(super) gates: Result<Gates, String>,
    /// The ports' registration caches, if they have any.
    pub(super) caches: Vec<CacheView>,
}

#[derive(Default)]
struct Cache {
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
    /// A communicator over an engine whose ports reach all nodes of the shape.
    pub(super) fn new(
        shape: Shape,
        map: RankMap,
        segment_bytes: Option<u64>,
        engine: Engine,
        hardware: Hardware,
    ) -> Self {
        let caller = Caller { rank: engine.rank(), n_ranks: shape.n_nodes() };
        let cache = Mutex::new(Cache::default());
        let inner = Inner { shape, map, caller, segment_bytes, engine, hardware, cache };
        Communicator { inner: Arc::new(inner), options: CallOptions::default() }
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.inner.caller.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> u32 {
        self.inner.caller.n_ranks
    }

    /// The torus.
    pub fn shape(&self) -> &Shape {
        &self.inner.shape
    }

    /// This rank's place in the torus.
    pub fn coordinates(&self) -> Coord {
        self.inner.map.coord_of(&self.inner.shape, self.rank())
    }

    /// Number of ports that operations can use.
    pub fn n_ports(&self) -> u32 {
        self.inner.engine.n_ports() as u32
    }

    /// True if operations progress while the caller computes.
    pub fn has_workers(&self) -> bool {
        self.inner.engine.has_workers()
    }

    /// Figures of the registration caches of all ports, by port; empty if there are none.
    pub fn cache_stats(&self) -> Vec<CacheStats> {
        self.inner.hardware.caches.iter().filter_map(CacheView::stats).collect()
    }

    /// True if this call could be, and with these options is, performed by the barrier gates.
    pub fn uses_gates(&self, call: &Call) -> bool {
        matches!(self.gate_task(&call.normalized(self.inner.caller)), Ok(Some(_)))
    }

    /// The same communicator with other options for its calls.
    pub fn with(&self, options: CallOptions) -> Communicator {
        Communicator { inner: self.inner.clone(), options }
    }

    /// Fails if an earlier operation has.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.inner.engine.check()
    }

    /// The barrier gates, or why there are none.
    pub(super) fn gates(&self) -> Result<&Gates, &str> {
        self.inner.hardware.gates.as_ref().map_err(String::as_str)
    }

    /// How long nothing may move before a wait fails.
    pub(super) fn timeout(&self) -> std::time::Duration {
        self.inner.engine.config().timeout
    }

    pub(super) fn caller(&self) -> Caller {
        self.inner.caller
    }

    /// Starts a call. `waiting` says that the caller will wait for it at once.
    ///
    /// # Safety
    /// Until the operation is done: the send buffer is valid for reads of its elements and
    /// unchanged, the receive buffer is valid for reads and writes and used by nobody else.
    pub(super) unsafe fn launch(&self, call: &Call, waiting: bool) -> Result<Running, Error> {
        let call = &call.normalized(self.inner.caller);
        let mut prepared = self.prepare(call)?;
        let memory = call.memory(self.inner.caller);
        let keep = !self.options.register_anew;
        prepared.with(|engine, Ready { operation, keys }| {
            // SAFETY: the buffers stay valid until the operation is done, and whoever waits
            // for that settles the keys before telling anybody.
            unsafe { engine.register(operation, memory, keep, keys) }?;
            // SAFETY: the caller's promise; `check` (in `prepare`) has made sure that the
            // buffers have the lengths that the program needs and do not overlap.
            let started = unsafe { engine.start(operation, memory, keys, waiting) };
            if started.is_err() {
                engine.settle(keys);
            }
            started
        })?;
        Ok(Running(prepared))
    }

    /// Checks a normalized call and gets an operation for it.
    pub(super) fn prepare(&self, call: &Call) -> Result<Prepared, Error> {
        call.check(self.inner.caller)?;
        self.inner.engine.check()?;
        if self.options.hardware == options::Hardware::Always {
            return Err(Error::NotServed {
                collective: call.collective,
                name: "barrier gates".to_owned(),
                reason: "only blocking calls can use them".to_owned(),
            });
        }
        let entry = self.entry(call)?;
        let idle = lock(&entry.idle).pop();
        let ready = match idle {
            Some(ready) => ready,
            None => {
                let (program, reducer) = (entry.program.clone(), entry.reducer);
                let operation = self.inner.engine.prepare(program, reducer)?;
                Ready { operation, keys: UserKeys::default() }
            }
        };
        Ok(Prepared { inner: self.inner.clone(), entry, ready: Some(ready) })
    }

    /// Performs a call whose buffers are given as addresses, and waits for it.
    ///
    /// This is what the interfaces to other languages use. Lengths, root, operator and overlap
    /// are checked; whether the addresses are right cannot be.
    ///
    /// # Safety
    /// The send buffer must be valid for reads of `send_count` elements and the receive buffer
    /// for reads and writes of `recv_count` elements, for the whole call, and nobody may write
    /// the former or access the latter meanwhile.
    ///
    /// # Errors
    /// As for the method named after the collective; [`Error::Overlap`].
    pub unsafe fn call(&self, call: &Call) -> Result<(), Error> {
        let call = &call.normalized(self.inner.caller);
        if let Some((gates, task)) = self.gate_task(call)? {
            call.check(self.inner.caller)?;
            self.inner.engine.check()?;
            // SAFETY: the caller's promise.
            return unsafe { self.perform(gates, task, call) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.launch(call, true) }?.wait()
    }

    /// What the barrier gates are to do for a normalized call, if they are to do anything.
    fn gate_task(&self, call: &Call) -> Result<Option<(&Gates, Task)>, Error> {
        let always = match self.options.hardware {
            options::Hardware::Never => return Ok(None),
            options::Hardware::Auto if self.options.algorithm.is_some() => return Ok(None),
            options::Hardware::Auto => false,
            options::Hardware::Always => true,
        };
        // Nothing is said, and so nothing allocated, unless somebody wants to know.
        let refused = |reason: &dyn std::fmt::Display| Error::NotServed {
            collective: call.collective,
            name: "barrier gates".to_owned(),
            reason: reason.to_string(),
        };
        match &self.inner.hardware.gates {
            Ok(gates) => match gates.task(call, always) {
                Ok(task) => Ok(Some((gates, task))),
                Err(reason) if always => Err(refused(&reason)),
                Err(_) => Ok(None),
            },
            Err(reason) if always => Err(refused(reason)),
            Err(_) => Ok(None),
        }
    }

    /// Performs a call on the barrier gates. Operations under way go on meanwhile.
    ///
    /// # Safety
    /// As [`call`](Communicator::call).
    unsafe fn perform(&self, gates: &Gates, task: Task, call: &Call) -> Result<(), Error> {
        let Inner { engine, caller, .. } = &*self.inner;
        let mut waiter = Waiter::new(engine.config().own_cores);
        let mut vigil = engine.at_gates(caller.n_ranks);
        let idle = || {
            engine.check()?;
            if engine.progress() {
                waiter.progress();
                return Ok(());
            }
            vigil.idle(waiter.idle())
        };
        // SAFETY: the caller's promise.
        let outcome = unsafe { gates.perform(task, call, *caller, idle) };
        match &outcome {
            // All ranks are told of a mismatch, so they still agree where they are.
            Ok(()) | Err(Error::GatesMismatch { .. } | Error::Poisoned(_)) => {}
            Err(error) => engine.poison(error),
        }
        outcome
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
        let cache = &mut *lock(&self.inner.cache);
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
        let refused =
            |reason: String| Error::NotServed { collective, name: algorithm.name.clone(), reason };
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
        let plan = schedule.plan(caller.rank).map_err(|error| refused(error.to_string()))?;
        let segment = key.options.segment_bytes.or(self.inner.segment_bytes);
        let geometry = Geometry {
            count: key.count,
            elem_bytes,
            in_place: key.in_place,
            segment_bytes: Some(segment.unwrap_or(segment_bytes)),
        };
        let program = compile(&plan, &geometry);
        let mut program = program.map_err(|CompileFailure { port, step, error }| Error::Plan {
            rank: caller.rank,
            port,
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
