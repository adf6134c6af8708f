//! The engine of one rank: its ports, and the threads that drive them.
//!
//! With workers, each port has a thread that drives it, alone or with other ports, whenever something is under
//! way; a thread that waits for an operation drives port 0 itself, and that port's worker stands aside
//! meanwhile. Without workers, whoever waits or tests drives all ports in turn. Whoever starts
//! an operation drives once. All run the same code, [`Port::drive`](super::run::port::Port).
//!
//! All communicators of a rank use its one engine, and name their operations by context and
//! number.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use hopbine_torus::PortId;

use crate::Rank;
use crate::endpoint::{Endpoint, Status, Time, UnexpectedBytes};
use crate::error::{Error, WireError};
use crate::reduce::Reducer;
use crate::timeline::{Ring, Tracer};

use super::compile::geometry::Staged;
use super::compile::program::Program;
use super::gates_watch::GatesWatch;
use super::run::backoff::{OnIdle, Waits};
use super::run::failure::Failure;
use super::run::group::{Advance, EngineConfig, Group};
use super::run::memories::Memory;
use super::run::operation::Operation;
use super::run::port::{Port, Push};
use super::run::port_run::StartOrder;
use super::run::user_memory::{self, UserKeys, UserMemory};
use super::run::work_memory::{Spares, WorkMemory};
use super::run::worker::Worker;

/// See the module documentation.
pub struct Engine {
    pub(super) group: Group,
    pub(super) workers: Vec<Worker>,
    is_closed: AtomicBool,
    staged_bytes: AtomicU64,
    /// What records the rank's timeline, if it is wanted.
    tracer: Option<Box<Tracer>>,
}

impl Engine {
    /// The engine of one of `n_ranks` ranks, over one endpoint per port. Engines that share `failure` fail together.
    ///
    /// # Errors
    /// [`Error::Startup`] if a worker thread cannot be started.
    pub fn new(
        rank: Rank,
        n_ranks: u32,
        endpoints: Vec<Box<dyn Endpoint>>,
        config: EngineConfig,
        failure: Arc<Failure>,
    ) -> Result<Self, Error> {
        let time = endpoints.first().map_or_else(Time::default, |first| Time::of(first.clock()));
        let trace = config.trace.clone();
        let tracer = trace.map(|trace| Box::new(Tracer::new(trace, rank, &time)));
        let ports: Arc<[_]> = endpoints
            .into_iter()
            .zip((0..).map(PortId))
            .map(|(endpoint, id)| {
                let ring = tracer.as_deref().map(Tracer::ring);
                Port::new(rank, id, endpoint, failure.clone(), config.workers > 0, ring)
            })
            .collect();
        let bells: Option<Vec<_>> = ports.iter().map(|port| port.bell.clone()).collect();
        let waits = Waits::new(bells.and_then(|bells| bells.into_iter().next()), time);
        let group = Group {
            rank,
            n_ranks,
            waits,
            spares: Spares::new(ports.clone()),
            ports,
            failure,
            config,
            several: AtomicBool::new(false),
            beat: AtomicU32::new(0),
            n_long_waits: AtomicU64::new(0),
            advancing: Mutex::default(),
            n_advancing: AtomicU32::new(0),
            n_advanced: AtomicU64::new(0),
        };
        let mut engine = Engine {
            group,
            workers: Vec::new(),
            is_closed: AtomicBool::new(false),
            staged_bytes: AtomicU64::new(0),
            tracer,
        };
        for index in 0..engine.config().workers.min(engine.n_ports()) {
            // Pushed one by one: if one fails, dropping the engine stops the others.
            let worker = engine.spawn_worker(index)?;
            engine.workers.push(worker);
        }
        Ok(engine)
    }

    fn spawn_worker(&self, index: usize) -> Result<Worker, Error> {
        let Group { rank, ports, config, .. } = &self.group;
        let core = config.cores.get(index).copied();
        let name = format!("hopbine {rank}.{index}");
        let ports = ports.iter().skip(index).step_by(config.workers).cloned().collect();
        let worker = Worker::spawn(name, ports, core, config.own_cores);
        worker.map_err(|error| Error::Startup {
            rank: *rank,
            source: WireError::new("starting a worker thread", error),
        })
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.group.rank
    }

    /// Number of ports.
    pub fn n_ports(&self) -> usize {
        self.group.ports.len()
    }

    /// What all ports keep of messages that came before their receives.
    pub fn unexpected(&self) -> UnexpectedBytes {
        let of_port = |port: &Arc<Port>| port.reserve().endpoint.unexpected();
        let all = self.group.ports.iter().map(of_port);
        all.reduce(UnexpectedBytes::and).unwrap_or_default()
    }

    /// How it is driven.
    pub fn config(&self) -> &EngineConfig {
        &self.group.config
    }

    /// True if operations progress without anybody waiting or testing.
    pub fn has_workers(&self) -> bool {
        self.group.config.workers > 0
    }

    /// The worker that drives a port, if there are workers.
    fn worker_of(&self, port: PortId) -> Option<&Worker> {
        self.workers.get(port.index().checked_rem(self.workers.len())?)
    }

    /// Bytes of the working memory of all operations that there are.
    pub fn operation_bytes(&self) -> u64 {
        self.group.spares.given_bytes()
    }

    /// Which calls leave the user's memory off the wire, all ports being of one kind; with `wanted` bytes in place of
    /// what the wire says.
    pub fn staged(&self, wanted: Option<u64>) -> Option<Staged> {
        let port = self.group.ports.first()?;
        let up_to_bytes = wanted.unwrap_or(port.stage_bytes?);
        Some(Staged { keyless_bytes: port.keyless_bytes, up_to_bytes })
    }

    /// Bytes that operations have copied so that the user's memory need not be registered.
    pub fn staged_bytes(&self) -> u64 {
        self.staged_bytes.load(Ordering::Relaxed)
    }

    /// Prepares an operation: gives it its working memory, registered.
    ///
    /// # Errors
    /// [`Error::Wire`] if there is no memory for it, or if registration fails.
    pub fn prepare(
        &self,
        program: Arc<Program>,
        reducer: Option<Reducer>,
    ) -> Result<Arc<Operation>, Error> {
        let memory = WorkMemory::new(&program, &self.group.spares)?;
        Ok(Operation::new(program, reducer, memory))
    }

    /// Fails if an earlier operation has.
    ///
    /// # Errors
    /// [`Error::Poisoned`]; [`Error::Closed`] after [`refuse`](Engine::refuse).
    #[inline]
    pub fn check(&self) -> Result<(), Error> {
        // Relaxed: an operation that slips by is refused by the ports.
        if !self.has_failed() && !self.is_closed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.refusal()
    }

    #[cold]
    fn refusal(&self) -> Result<(), Error> {
        let reason = self.group.failure.reason();
        Err(reason.map_or(Error::Closed, |reason| Error::Poisoned(Arc::new(reason))))
    }

    /// Whether something has failed.
    pub fn has_failed(&self) -> bool {
        self.group.failure.is_set()
    }

    /// Registers the user's memory wherever `operation` puts it on the wire. `keep` allows the
    /// wire to remember it for the next time.
    ///
    /// # Safety
    /// The memory must stay valid until `keys` have been released.
    ///
    /// # Errors
    /// [`Error::Poisoned`] after an earlier failure, [`Error::Wire`] if registration fails.
    #[inline]
    pub unsafe fn register(
        &self,
        operation: &Operation,
        memory: [UserMemory; 2],
        keep: bool,
        keys: &mut UserKeys,
    ) -> Result<(), Error> {
        if !user_memory::needs_keys(&self.group.ports, operation) {
            return Ok(());
        }
        self.check()?;
        // SAFETY: the caller's promise.
        unsafe { user_memory::register(&self.group.ports, operation, memory, keep, keys) }
    }

    /// Registers the user's memory at all ports until its keys are released: operations on it
    /// find it registered, also where the system does not tell what memory goes.
    ///
    /// # Safety
    /// The memory must stay valid until the keys have been released.
    ///
    /// # Errors
    /// As [`register`](Engine::register).
    pub unsafe fn register_explicitly(&self, memory: UserMemory) -> Result<UserKeys, Error> {
        self.check()?;
        // SAFETY: the caller's promise.
        unsafe { user_memory::register_explicitly(&self.group.ports, memory) }
    }

    /// Releases what [`register`](Engine::register) or
    /// [`register_explicitly`](Engine::register_explicitly) has registered; nothing uses it.
    #[inline]
    pub fn release(&self, keys: &mut UserKeys) {
        if keys.is_released() {
            return;
        }
        user_memory::release(&self.group.ports, keys);
    }

    /// Starts `operation` on the user's memory, of which `keys` are the keys, as the operation
    /// with this context and number. On all ranks of the communicator with that context it must
    /// be the same; no other under way may have them, and those whose order is kept start in the order of
    /// their numbers. Drives once. `waiting` says that the
    /// caller will wait for it at once.
    ///
    /// # Safety
    /// Until the operation is done, the first memory must stay valid for reads and unchanged,
    /// the second valid for reads and writes and used by nobody else. They may not overlap; one
    /// that the program does not touch may be absent (null, length 0). No other thread starts
    /// `operation` meanwhile.
    ///
    /// # Errors
    /// [`Error::Poisoned`] after an earlier failure; [`Error::Closed`] after the end.
    pub unsafe fn start(
        &self,
        operation: &Arc<Operation>,
        memory: [UserMemory; 2],
        keys: &UserKeys,
        id: (u64, u32),
        order: StartOrder,
        waiting: bool,
    ) -> Result<(), Error> {
        self.check()?;
        self.group.note_context(id.0);
        let n_ports = operation.program().ports.len();
        operation.begin();
        if operation.program().staged_bytes > 0 {
            // Relaxed: a figure.
            self.staged_bytes.fetch_add(operation.program().staged_bytes, Ordering::Relaxed);
        }
        for port in &self.group.ports[..n_ports] {
            let keys = keys.of_port(port.id);
            let with_key = |at: usize| Memory {
                ptr: memory[at].ptr,
                len: memory[at].len,
                key: keys[at].unwrap_or(0),
            };
            // SAFETY: the caller's promise; ports touch disjoint bytes (the compiler's work),
            // and the keys are those of this port.
            let run = unsafe { operation.take(port.id, id, order, [with_key(0), with_key(1)]) };
            let (is_driven, worker) = (waiting && port.id.0 == 0, self.worker_of(port.id));
            // A worker that is awake is as fast as this thread.
            let push = if waiting && n_ports == 1 {
                Push::AllTheWay
            } else if worker.is_none() || port.hints.is_parked() || is_driven {
                Push::Posts
            } else {
                Push::Nowhere
            };
            port.launch(run, operation.clone(), push);
            if let Some(worker) = worker.filter(|_| !is_driven) {
                worker.wake();
            }
        }
        Ok(())
    }

    /// Watches over a wait at the barrier gates.
    pub fn at_gates(&self) -> GatesWatch<'_> {
        GatesWatch::new(&self.group)
    }

    /// Makes every operation of this engine fail, as after a failure of its own: when this
    /// returns the ports have let go of all that were under way.
    pub fn fail(&self, error: &Error) {
        self.group.fail(error);
    }

    /// From now on a call that others make differently fails alone, where all its messages meet.
    pub fn spare(&self) {
        self.group.failure.spare();
    }

    /// Whether [`spare`](Engine::spare) was called.
    pub fn is_sparing(&self) -> bool {
        self.group.failure.is_sparing()
    }

    /// Waits that were found too long.
    pub fn n_long_waits(&self) -> u64 {
        // Relaxed: a figure.
        self.group.n_long_waits.load(Ordering::Relaxed)
    }

    /// Has `on_idle` called now and then while a caller waits, on the caller's thread. The first
    /// one given stays.
    pub fn on_idle(&self, on_idle: OnIdle) {
        let _ = self.group.waits.on_idle.set(on_idle);
    }

    /// From now on whoever waits for anything, or tests it, does what is due of this.
    pub fn advances(&self, call: Weak<dyn Advance>) {
        self.group.advances(call);
    }

    /// What records the rank's timeline, if it is wanted.
    #[inline]
    pub(crate) fn tracer(&self) -> Option<&Tracer> {
        self.tracer.as_deref()
    }

    /// Writes the timeline, if one is recorded and has not been written: what happens from now on is not in it.
    pub fn write_timeline(&self) {
        let Some(tracer) = &self.tracer else { return };
        let rings: Vec<Ring> =
            self.group.ports.iter().filter_map(|port| port.reserve().ring.take()).collect();
        tracer.write(&rings);
    }

    /// Refuses every operation from now on.
    pub fn refuse(&self) {
        // Relaxed: see `check`.
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Before the end, after [`refuse`](Engine::refuse): waits until nothing is under way and
    /// all that this engine has written has arrived in its peers' memory.
    ///
    /// # Errors
    /// [`Error::Timeout`] if nothing moved for too long (a second at least where only the device has still
    /// something to do), [`Error::Wire`], and [`Error::Poisoned`] after an earlier failure. Peers may then be
    /// written to at any time.
    pub fn drain(&self) -> Result<(), Error> {
        self.group.drained().inspect_err(|error| self.group.fail(error))?;
        self.group.show(Status::Left);
        Ok(())
    }

    /// After [`drain`](Engine::drain), of all ranks or in vain: the endpoints give back what is not
    /// theirs.
    pub fn end(&self) {
        self.group.ports.iter().for_each(|port| port.reserve().endpoint.end());
    }

    /// All ranks have ended, and nothing moves any more: memory that peers were told of can be freed.
    #[cfg(feature = "sim")]
    pub fn all_have_ended(&self) {
        self.group.failure.end();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Before the ports go: a worker must not be the one that ends an endpoint.
        self.workers.clear();
        self.write_timeline();
    }
}
