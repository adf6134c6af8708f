//! The engine of one rank: its ports, and the threads that drive them.
//!
//! With workers, each worker thread drives one or several ports while a run is under way on them. A thread that waits
//! for an operation drives port 0 itself, and that port's worker stands aside meanwhile. Without workers, a thread
//! that waits or tests drives all ports in turn. A thread that starts an operation drives its ports once, unless a
//! running worker does. All run the same code, [`Port::drive`](super::run::port::Port).
//!
//! All communicators of a rank share its engine. A communicator's context and a number identify an operation.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use hopbine_torus::PortId;

use crate::Rank;
use crate::endpoint::{Endpoint, Time, UnexpectedStats};
use crate::error::{Error, WireError};
use crate::reduce::Reducer;
use crate::timeline::{RecordRing, Tracer};

use super::compile::geometry::Staged;
use super::compile::program::Program;
use super::gates_watch::GatesWatch;
use super::run::backoff::{OnIdle, Waits};
use super::run::failure::Failure;
use super::run::group::{EngineConfig, PortGroup, ProgressHook};
use super::run::memories::Memory;
use super::run::operation::Operation;
use super::run::port::{LaunchMode, Port};
use super::run::port_run::StartOrder;
use super::run::user_memory::{self, UserKeys, UserMemory};
use super::run::work_memory::{MemoryPool, WorkMemory};
use super::run::worker::Worker;

/// See the module documentation.
pub struct Engine {
    pub(super) group: PortGroup,
    pub(super) workers: Vec<Worker>,
    pub(super) is_closed: AtomicBool,
    staged_bytes: AtomicU64,
    /// The recorder of the rank's timeline, if tracing is enabled.
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
        let group = PortGroup {
            rank,
            n_ranks,
            waits,
            pool: MemoryPool::new(ports.clone()),
            ports,
            failure,
            config,
            several_comms: AtomicBool::new(false),
            beat: AtomicU32::new(0),
            n_long_waits: AtomicU64::new(0),
            hooks: Mutex::default(),
            n_hooks: AtomicU32::new(0),
            n_hook_moves: AtomicU64::new(0),
            admitted: Arc::default(),
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
        let PortGroup { rank, ports, config, .. } = &self.group;
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

    /// Statistics of unexpected messages, for all ports together.
    pub fn unexpected(&self) -> UnexpectedStats {
        let of_port = |port: &Arc<Port>| {
            let mut state = port.lock_state();
            state.endpoint.matching().map(|matching| matching.unexpected()).unwrap_or_default()
        };
        let all = self.group.ports.iter().map(of_port);
        all.reduce(UnexpectedStats::and).unwrap_or_default()
    }

    /// As [`Matching::forget_calls`](crate::endpoint::Matching::forget_calls), on all ports: also on those that the
    /// operations of this communicator do not use at present.
    #[cold]
    pub(crate) fn forget_calls(&self, context: u64, newest: Option<u32>) {
        for port in &*self.group.ports {
            if let Some(matching) = port.lock_state().endpoint.matching() {
                matching.forget_calls(context, newest);
            }
        }
    }

    /// The configuration.
    pub fn config(&self) -> &EngineConfig {
        &self.group.config
    }

    /// True if workers drive operations, so that they progress while no thread waits or tests.
    pub fn has_workers(&self) -> bool {
        self.group.config.workers > 0
    }

    /// The worker that drives a port, if there are workers.
    fn worker_of(&self, port: PortId) -> Option<&Worker> {
        self.workers.get(port.index().checked_rem(self.workers.len())?)
    }

    /// Bytes of the working memory of all existing operations.
    pub fn operation_bytes(&self) -> u64 {
        self.group.pool.used_bytes()
    }

    /// Returns the limits for calls that keep the user's memory off the wire; `wanted` replaces the wire's own limit
    /// in bytes. All ports have wires of the same kind.
    pub fn staged(&self, wanted: Option<u64>) -> Option<Staged> {
        let port = self.group.ports.first()?;
        let up_to_bytes = wanted.unwrap_or(port.stage_bytes?);
        Some(Staged { keyless_bytes: port.keyless_bytes, up_to_bytes })
    }

    /// Bytes that operations have copied so that the user's memory need not be registered.
    pub fn staged_bytes(&self) -> u64 {
        self.staged_bytes.load(Ordering::Relaxed)
    }

    /// Creates an operation with its working memory, registered where the wire needs it.
    ///
    /// # Errors
    /// [`Error::Wire`] if allocation or registration of the memory fails.
    pub fn prepare(
        &self,
        program: Arc<Program>,
        reducer: Option<Reducer>,
    ) -> Result<Arc<Operation>, Error> {
        let memory = WorkMemory::new(&program, &self.group.pool)?;
        Ok(Operation::new(program, reducer, memory))
    }

    /// Returns an error after an earlier failure or a [`close`](Engine::close).
    ///
    /// # Errors
    /// [`Error::Poisoned`]; [`Error::Closed`] after [`close`](Engine::close).
    #[inline]
    pub fn check(&self) -> Result<(), Error> {
        // Relaxed: the ports refuse an operation that misses a concurrent failure or `close` here.
        if self.is_closed.load(Ordering::Relaxed) { self.refusal() } else { self.check_failure() }
    }

    /// Returns an error after an earlier failure.
    #[inline]
    fn check_failure(&self) -> Result<(), Error> {
        if self.has_failed() { self.refusal() } else { Ok(()) }
    }

    #[cold]
    fn refusal(&self) -> Result<(), Error> {
        let reason = self.group.failure.reason();
        Err(reason.map_or(Error::Closed, |reason| Error::Poisoned(Arc::new(reason))))
    }

    /// Notes that this rank has several communicators, before threads wait on them.
    pub fn note_several_comms(&self) {
        self.group.note_several_comms();
    }

    /// Whether something has failed.
    pub fn has_failed(&self) -> bool {
        self.group.failure.is_set()
    }

    /// Registers the user's memory at each port where `operation` puts it on the wire in messages that need
    /// registered memory. `keep` lets the wire cache the registration for later calls.
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
        self.check_failure()?;
        // SAFETY: the caller's promise.
        unsafe { user_memory::register(&self.group.ports, operation, memory, keep, keys) }
    }

    /// Registers the user's memory at all ports until its keys are released. Operations on it find the registration,
    /// even if the system does not report which memory is unmapped.
    ///
    /// # Safety
    /// The memory must stay valid until the keys have been released.
    ///
    /// # Errors
    /// As [`register`](Engine::register); [`Error::Closed`] after [`close`](Engine::close).
    pub unsafe fn register_explicitly(&self, memory: UserMemory) -> Result<UserKeys, Error> {
        self.check()?;
        // SAFETY: the caller's promise.
        unsafe { user_memory::register_explicitly(&self.group.ports, memory) }
    }

    /// Releases the keys from [`register`](Engine::register) or [`register_explicitly`](Engine::register_explicitly);
    /// no operation under way may use them.
    #[inline]
    pub fn release(&self, keys: &mut UserKeys) {
        if keys.is_released() {
            return;
        }
        user_memory::release(&self.group.ports, keys);
    }

    /// Starts `operation` on the user's memory, whose keys are `keys`, under context and number `id`. All ranks of
    /// the communicator with that context must start the same operation under this number. No other operation under
    /// way may have the same `id`, and operations with [`StartOrder::InOrder`] start in the order of their numbers.
    /// Posts the first messages, unless a running worker is about to. `waiting` says that the caller waits for the
    /// operation at once. The caller has called [`check`](Engine::check), or the call that the operation is part of is
    /// [`Admitted`](super::Admitted).
    ///
    /// # Safety
    /// Until the operation is done, the first memory must stay valid for reads and unchanged, the second valid for
    /// reads and writes and used by nothing else. The two may not overlap. A memory that the program does not touch
    /// may be absent (null, length 0). No other thread may start `operation` meanwhile.
    ///
    /// # Errors
    /// [`Error::Poisoned`] after an earlier failure.
    pub unsafe fn start(
        &self,
        operation: &Arc<Operation>,
        memory: [UserMemory; 2],
        keys: &UserKeys,
        id: (u64, u32),
        order: StartOrder,
        waiting: bool,
    ) -> Result<(), Error> {
        self.check_failure()?;
        let n_ports = operation.program().ports.len();
        operation.begin();
        if operation.program().staged_bytes > 0 {
            // Relaxed: a statistic.
            self.staged_bytes.fetch_add(operation.program().staged_bytes, Ordering::Relaxed);
        }
        for port in &self.group.ports[..n_ports] {
            let keys = keys.of_port(port.id);
            let with_key = |at: usize| Memory {
                ptr: memory[at].ptr,
                len: memory[at].len,
                key: keys[at].unwrap_or(0),
            };
            // SAFETY: the caller's promise; the compiler makes ports touch disjoint bytes, and the keys are this
            // port's.
            let run = unsafe { operation.take(port.id, id, order, [with_key(0), with_key(1)]) };
            let is_driven = waiting && port.id.0 == 0;
            // A running worker posts as soon as this thread would.
            let mode = if waiting && n_ports == 1 {
                LaunchMode::Full
            } else if self.worker_of(port.id).is_none() || port.hints.is_parked() || is_driven {
                LaunchMode::PostOnly
            } else {
                LaunchMode::Deferred
            };
            port.launch(run, operation.clone(), mode);
        }
        // After the first messages of all ports: a wake-up may be a system call. The caller drives port 0 if it waits.
        let undriven = self.group.ports[..n_ports].iter().skip(usize::from(waiting));
        undriven.filter_map(|port| self.worker_of(port.id)).for_each(Worker::wake);
        Ok(())
    }

    /// Returns a watch over a wait at the barrier gates or the flat buffer.
    pub fn watch_gates(&self) -> GatesWatch<'_> {
        GatesWatch::new(&self.group)
    }

    /// Fails every operation of this engine, as after a failure of its own. On return the ports have given back all
    /// runs that were under way.
    pub fn fail(&self, error: &Error) {
        self.group.fail(error);
    }

    /// From now on a call that differs from other ranks' call fails alone, if all messages of the two calls match.
    pub fn allow_mismatch(&self) {
        self.group.failure.allow_mismatch();
    }

    /// Whether [`allow_mismatch`](Engine::allow_mismatch) was called.
    pub fn allows_mismatch(&self) -> bool {
        self.group.failure.allows_mismatch()
    }

    /// Number of times that a wait was found too long.
    pub fn n_long_waits(&self) -> u64 {
        // Relaxed: a statistic.
        self.group.n_long_waits.load(Ordering::Relaxed)
    }

    /// Sets a function that a waiting caller's thread calls from time to time. Later calls of this method have no
    /// effect.
    pub fn on_idle(&self, on_idle: OnIdle) {
        let _ = self.group.waits.on_idle.set(on_idle);
    }

    /// Adds `call` to those that every thread that waits or tests advances.
    pub fn add_hook(&self, call: Weak<dyn ProgressHook>) {
        self.group.add_hook(call);
    }

    /// The recorder of the rank's timeline, if tracing is enabled.
    #[inline]
    pub(crate) fn tracer(&self) -> Option<&Tracer> {
        self.tracer.as_deref()
    }

    /// Writes the timeline, if one is recorded and has not been written. Later events are not recorded.
    pub fn write_timeline(&self) {
        let Some(tracer) = &self.tracer else { return };
        let rings: Vec<RecordRing> =
            self.group.ports.iter().filter_map(|port| port.lock_state().ring.take()).collect();
        tracer.write(&rings);
    }

    /// Declares that all ranks have ended and no message is in flight: memory that peers can address may be freed.
    #[cfg(feature = "sim")]
    pub fn all_have_ended(&self) {
        self.group.failure.end();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Before the ports are dropped: a worker must not be the thread that drops an endpoint.
        self.workers.clear();
        self.write_timeline();
    }
}
