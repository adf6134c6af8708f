//! The programs that have been compiled for a communicator, and idle operations that run them.
//!
//! A repeated call finds its operation among those used last, without a lock and without a hash;
//! others through a table by all that a program depends on. What does not depend on the amount
//! of data, the plan, is kept apart.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_utils::atomic::AtomicCell;
use hopbine_torus::plan::{Flow, Plan};
use hopbine_torus::registry::{self, Algorithm};
use hopbine_torus::{Collective, Request};

use super::call::Call;
use super::communicator::{Communicator, Inner};
use super::members::Members;
use super::options::CallOptions;
use super::select::{Choice, choose};
use crate::Rank;
use crate::engine::{CompileFailure, Geometry, Operation, Program, UserKeys, compile};
use crate::error::Error;
use crate::reduce::{Dtype, Op, Reducer};
use crate::sync::lock;

/// Programs kept for calls that may come again.
const KEPT_PROGRAMS: usize = 128;
/// Bytes of working and staging memory kept with them; the program used last is kept anyway.
const KEPT_BYTES: u64 = 256 << 20;
/// Bytes kept for several operations of one program at once.
const KEPT_BYTES_OF_ONE: u64 = KEPT_BYTES / 4;
/// Plans kept for other amounts of data.
const KEPT_PLANS: usize = 16;
/// Operations found without looking into the table.
const RECENT: usize = 8;

/// The programs of a communicator, for it and its duplicates.
#[derive(Default)]
pub(super) struct Cache {
    recent: [AtomicCell<Option<Box<Ready>>>; RECENT],
    programs: Mutex<HashMap<Key, Arc<Entry>>>,
    /// The one used last at the end.
    plans: Mutex<Vec<(PlanKey, Arc<Plan>)>>,
    /// Counts lookups, to tell which entry has not been used for longest.
    clock: AtomicU64,
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

/// All that a plan depends on, beside the communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PlanKey {
    collective: Collective,
    algorithm: Cow<'static, str>,
    root: Rank,
    ports: u32,
}

/// A program, and operations that are ready to run it.
struct Entry {
    program: Arc<Program>,
    reducer: Option<Reducer>,
    idle: Mutex<Vec<Box<Ready>>>,
    last_used: AtomicU64,
}

/// An operation that nobody uses.
pub(super) struct Ready {
    key: Key,
    entry: Arc<Entry>,
    pub(super) operation: Arc<Operation>,
    pub(super) keys: UserKeys,
}

/// What moves data without looking at them does the same for all types.
fn amount(call: &Call) -> (u64, Dtype) {
    if call.collective.is_reduction() {
        (call.count, call.dtype)
    } else {
        (call.count.saturating_mul(call.dtype.size_bytes() as u64), Dtype::U8)
    }
}

impl Key {
    fn new(call: &Call, options: &CallOptions) -> Self {
        let &Call { collective, op, root, in_place, .. } = call;
        let (count, dtype) = amount(call);
        Key { collective, count, dtype, op, root, in_place, options: options.clone() }
    }

    fn is_of(&self, call: &Call, options: &CallOptions) -> bool {
        (self.collective, self.op, self.root) == (call.collective, call.op, call.root)
            && (self.count, self.dtype) == amount(call)
            && self.in_place == call.in_place
            && self.options == *options
    }

    /// Where among the recent ones its operation is.
    fn place(collective: Collective, count: u64) -> usize {
        // Counts and collectives that a program has in turn mostly get different places.
        let magnitude = u64::BITS - count.leading_zeros();
        (count as usize ^ magnitude as usize ^ (3 * collective as usize)) % RECENT
    }
}

impl Cache {
    /// Keeps an operation that is not under way for the next time.
    pub(super) fn put(&self, ready: Box<Ready>) {
        let place = Key::place(ready.key.collective, ready.key.count);
        if let Some(other) = self.recent[place].swap(Some(ready)) {
            other.rest();
        }
    }
}

impl Ready {
    /// Out of the way, for whoever looks into the table.
    fn rest(self: Box<Self>) {
        let entry = self.entry.clone();
        let idle = &mut *lock(&entry.idle);
        let bytes = entry.program.memory_bytes() * (idle.len() as u64 + 1);
        if idle.is_empty() || bytes <= KEPT_BYTES_OF_ONE {
            idle.push(self);
        }
    }
}

impl Communicator {
    /// Gets an operation for a normalized and checked call. To be [put](Cache::put) back.
    pub(super) fn ready(&self, call: &Call) -> Result<Box<Ready>, Error> {
        let cache = &self.inner.members.programs;
        let place = Key::place(call.collective, amount(call).0);
        if let Some(ready) = cache.recent[place].take() {
            if ready.key.is_of(call, &self.options) {
                return Ok(ready);
            }
            ready.rest();
        }
        let key = Key::new(call, &self.options);
        let entry = self.entry(&key)?;
        if let Some(ready) = lock(&entry.idle).pop() {
            return Ok(ready);
        }
        let (program, reducer) = (entry.program.clone(), entry.reducer);
        let operation = self.inner.of_world.engine.prepare(program, reducer)?;
        Ok(Box::new(Ready { key, entry, operation, keys: UserKeys::default() }))
    }

    fn entry(&self, key: &Key) -> Result<Arc<Entry>, Error> {
        let Cache { programs, clock, .. } = &self.inner.members.programs;
        // Relaxed: only compared with each other.
        let now = clock.fetch_add(1, Ordering::Relaxed);
        if let Some(entry) = lock(programs).get(key) {
            entry.last_used.store(now, Ordering::Relaxed);
            return Ok(entry.clone());
        }
        // Not under the lock: others go on meanwhile, and perhaps do the same.
        let (program, reducer) = self.compile(key)?;
        let mut kept = program.memory_bytes();
        let last_used = AtomicU64::new(now);
        let (program, idle) = (Arc::new(program), Mutex::default());
        let entry = Arc::new(Entry { program, reducer, idle, last_used });
        let programs = &mut *lock(programs);
        kept += programs.values().map(|entry| entry.program.memory_bytes()).sum::<u64>();
        while programs.len() >= KEPT_PROGRAMS || kept > KEPT_BYTES {
            let age = |entry: &Entry| entry.last_used.load(Ordering::Relaxed);
            let oldest = programs.iter().min_by_key(|(_, entry)| age(entry));
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            if let Some(entry) = programs.remove(&oldest) {
                kept -= entry.program.memory_bytes();
            }
        }
        Ok(programs.entry(key.clone()).or_insert(entry).clone())
    }

    fn compile(&self, key: &Key) -> Result<(Program, Option<Reducer>), Error> {
        let Inner { of_world, members, .. } = &*self.inner;
        let Members { shape, caller, .. } = &**members;
        let collective = key.collective;
        let reducer = key.op.map(|op| Reducer::new(key.dtype, op)).transpose()?;
        let elem_bytes = key.dtype.size_bytes() as u64;
        let n_ports = of_world.engine.n_ports() as u32;
        let bytes = key.count.saturating_mul(elem_bytes);
        let Choice { algorithm: chosen, ports, segment_bytes } =
            choose(of_world.wire, collective, shape, bytes, n_ports, key.in_place);
        let algorithm = match &key.options.algorithm {
            None => chosen,
            Some(name) => registry::find(collective, name).map_err(|unknown| {
                Error::UnknownAlgorithm { collective, name: unknown.name, known: unknown.known }
            })?,
        };
        let ports = key.options.ports.unwrap_or(ports);
        if ports > n_ports {
            return Err(Error::Setting {
                setting: "ports",
                found: ports.to_string(),
                valid: format!("1 to {n_ports}, the number of ports of the communicator"),
            });
        }
        let plan = self.plan(&algorithm, key.root, ports)?;
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
        let how = (&algorithm.name, ports, geometry.segment_bytes, members.fingerprint());
        program.call = call_number(key, &how);
        if !members.is_world() {
            program = program.renumbered(|rank| members.world_rank(rank));
        }
        Ok((program, reducer))
    }
    /// This rank's plan.
    fn plan(&self, algorithm: &Algorithm, root: Rank, ports: u32) -> Result<Arc<Plan>, Error> {
        let Members { shape, map, caller, programs, .. } = &*self.inner.members;
        let (collective, name) = (algorithm.collective, &algorithm.name);
        let key = PlanKey { collective, algorithm: name.clone(), root, ports };
        {
            let plans = &mut *lock(&programs.plans);
            if let Some(place) = plans.iter().position(|(other, _)| *other == key) {
                plans[place..].rotate_left(1);
                return Ok(plans[plans.len() - 1].1.clone());
            }
        }
        let refused = |reason| Error::NotServed { collective, name: name.to_string(), reason };
        let request = Request { shape: shape.clone(), map: map.clone(), root, ports: Some(ports) };
        let schedule = algorithm.schedule(&request).map_err(|error| refused(error.to_string()))?;
        let expansion = schedule.expand().map_err(|error| refused(error.to_string()))?;
        let plan = Arc::new(expansion.plan(hopbine_torus::Rank(caller.rank)));
        let plans = &mut *lock(&programs.plans);
        if plans.len() == KEPT_PLANS {
            plans.remove(0);
        }
        plans.push((key, plan.clone()));
        Ok(plan)
    }
}

/// Stands for a call: equal on ranks whose calls can meet, different otherwise (but for one in
/// 65,536). A rank may have its input in place where others do not, unless that changes the
/// algorithm.
fn call_number(key: &Key, how: &impl Hash) -> u16 {
    let mut hasher = DefaultHasher::new();
    let Key { collective, count, dtype, op, root, .. } = key;
    (collective, count, dtype, op, root, how).hash(&mut hasher);
    hasher.finish() as u16
}
