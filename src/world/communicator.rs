//! The communicator: a torus of ranks, and how they call collectives together.

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};

use crate::Rank;
use hopbine_torus::geometry::{Coord, RankMap, Shape};

use super::call::{Call, Caller};
use super::device::{Hardware, Site};
use super::gates::{Gates, Task};
use super::options::{self, CallOptions};
use super::programs::{Cache, Prepared, Running, Turn};
use crate::endpoint::utofu::CacheView;
use crate::engine::{Engine, Waiter};
use crate::error::Error;
use crate::memory::CacheStats;

/// A group of ranks on a torus that call collectives together.
///
/// A handle: copies made by [`with`](Communicator::with) mean the same communicator. All ranks
/// must start the same operations on it in the same order, with the same options.
pub struct Communicator {
    pub(super) inner: Arc<Inner>,
    pub(super) options: CallOptions,
}

pub(super) struct Inner {
    pub(super) shape: Shape,
    pub(super) map: RankMap,
    pub(super) caller: Caller,
    pub(super) segment_bytes: Option<u64>,
    pub(super) engine: Engine,
    hardware: Hardware,
    pub(super) programs: Mutex<Cache>,
    pub(super) site: Site,
    /// Duplicates made so far: the same on all ranks.
    pub(super) n_duplicates: AtomicU32,
}

impl Communicator {
    /// A communicator over an engine whose ports reach all nodes of the shape.
    pub(super) fn new(
        shape: Shape,
        map: RankMap,
        segment_bytes: Option<u64>,
        engine: Engine,
        hardware: Hardware,
        site: Site,
    ) -> Self {
        let inner = Inner {
            caller: Caller { rank: engine.rank(), n_ranks: shape.n_nodes() },
            shape,
            map,
            segment_bytes,
            engine,
            hardware,
            programs: Mutex::default(),
            site,
            n_duplicates: AtomicU32::new(0),
        };
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

    /// Refuses all further calls, waits for those under way, and returns when everything that
    /// this rank has written has arrived. When all ranks have returned, memory that peers wrote
    /// to can be freed; after an error it must not be.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::Wire`]; [`Error::Poisoned`] after an earlier failure;
    /// [`Error::Closed`] if this is not the first time.
    pub(super) fn close(&self) -> Result<(), Error> {
        let Inner { engine, hardware, .. } = &*self.inner;
        engine.check().inspect_err(|error| engine.give_up(error))?;
        match &hardware.gates {
            Ok(gates) => gates.between_calls(|| engine.refuse()),
            Err(_) => engine.refuse(),
        }
        engine.drain()
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
        let prepared = self.prepare(call)?;
        let memory = call.memory(self.inner.caller);
        let keep = !self.options.register_anew;
        // SAFETY: the caller's promise; `check` (in `prepare`) has made sure that the buffers
        // have the lengths that the program needs and do not overlap.
        unsafe { prepared.start(memory, keep, Turn::Next { waiting }) }
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
        self.operation(call)
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
                vigil.ease();
                return Ok(());
            }
            vigil.idle(if engine.help() { waiter.busy() } else { waiter.idle() })
        };
        // SAFETY: the caller's promise.
        let outcome = unsafe { gates.perform(task, call, *caller, || engine.check(), idle) };
        match &outcome {
            // All ranks are told of a mismatch, so they still agree where they are.
            Ok(()) | Err(Error::GatesMismatch { .. } | Error::Poisoned(_) | Error::Closed) => {}
            Err(error) => engine.poison(error),
        }
        outcome
    }
}
