//! The engine of one rank: its ports, and the threads that drive them.
//!
//! With workers, each port has a thread that drives it whenever something is under way and
//! that is parked otherwise; a thread that waits for an operation drives port 0 itself, and
//! that port's worker stands aside meanwhile. Without workers, whoever waits or tests drives
//! all ports in turn. Both ways run the same code, [`Port::drive`]. A rank may have several
//! engines ([`Engine::beside`]); whoever finds nothing to do on one helps the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::Rank;

use crate::endpoint::{Endpoint, Status};
use crate::error::Error;
use crate::reduce::Reducer;

use super::company::{Company, Ports};
use super::keys::{UserKeys, UserMemory};
use super::memory::WorkMemory;
use super::poison::Poison;
use super::port::Port;
use super::program::Program;
use super::request::{Operation, lock};
use super::run::Memory;
use super::vigil::{GatesVigil, Vigil, Wanted};
use super::wait::Waiter;
use super::worker::Worker;

/// How an engine is driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// A worker thread for every port.
    pub workers: bool,
    /// The cores for the workers, port by port; ports beyond the list are not pinned.
    pub cores: Vec<usize>,
    /// Waiting threads may keep a core busy: there is one for each.
    pub own_cores: bool,
    /// How long nothing may move before a wait fails.
    pub timeout: Duration,
}

/// Operations that ranks need not start in the same order have numbers from here on, the others
/// below.
const RESERVED: u32 = 1 << 31;

/// See the module documentation.
pub struct Engine {
    pub(super) rank: Rank,
    pub(super) ports: Ports,
    pub(super) poison: Arc<Poison>,
    pub(super) company: Arc<Company>,
    pub(super) config: EngineConfig,
    workers: Vec<Worker>,
    next_operation: AtomicU32,
    pub(super) is_closed: AtomicBool,
}

impl Engine {
    /// An engine over one endpoint per port. Engines that share `poison` fail together.
    ///
    /// # Errors
    /// [`Error::Startup`] if a worker thread cannot be started.
    pub fn new(
        rank: Rank,
        endpoints: Vec<Box<dyn Endpoint>>,
        config: EngineConfig,
        poison: Arc<Poison>,
    ) -> Result<Self, Error> {
        Engine::join(rank, endpoints, config, poison, Arc::default())
    }

    pub(super) fn join(
        rank: Rank,
        endpoints: Vec<Box<dyn Endpoint>>,
        config: EngineConfig,
        poison: Arc<Poison>,
        company: Arc<Company>,
    ) -> Result<Self, Error> {
        let ports = endpoints
            .into_iter()
            .enumerate()
            .map(|(index, endpoint)| Port::new(rank, index, endpoint, poison.clone()));
        let mut engine = Engine {
            rank,
            ports: ports.collect(),
            poison,
            company,
            config,
            workers: Vec::new(),
            next_operation: AtomicU32::new(0),
            is_closed: AtomicBool::new(false),
        };
        engine.company.join(&engine.ports);
        engine.poison.spread_to(&engine.company);
        if engine.config.workers {
            for index in 0..engine.ports.len() {
                // Pushed one by one: if one fails, dropping the engine stops the others.
                let worker = engine.spawn_worker(index)?;
                engine.workers.push(worker);
            }
        }
        Ok(engine)
    }

    fn spawn_worker(&self, index: usize) -> Result<Worker, Error> {
        let core = self.config.cores.get(index).copied();
        let name = format!("hopbine {}.{index}", self.rank);
        let worker = Worker::spawn(name, self.ports[index].clone(), core, self.config.own_cores);
        worker.map_err(|error| Error::Startup {
            rank: self.rank,
            source: crate::error::WireError {
                call: "starting a worker thread",
                reason: error.to_string(),
                peer: None,
            },
        })
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Number of ports.
    pub fn n_ports(&self) -> usize {
        self.ports.len()
    }

    /// How it is driven.
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// True if operations progress without anybody waiting or testing.
    pub fn has_workers(&self) -> bool {
        self.config.workers
    }

    /// Prepares an operation: allocates and registers its working memory.
    ///
    /// # Errors
    /// [`Error::Wire`] if registration fails.
    pub fn prepare(
        &self,
        program: Arc<Program>,
        reducer: Option<Reducer>,
    ) -> Result<Arc<Operation>, Error> {
        let memory = WorkMemory::new(&program, &self.ports)?;
        Ok(Operation::new(program, reducer, memory))
    }

    /// Reserves the number that identifies the next operation on all ranks. Ranks must start
    /// operations in the same order.
    fn number(&self) -> u32 {
        // Relaxed: a plain counter. It wraps after 2^31 operations, long after the first ones
        // have left the wire.
        self.next_operation.fetch_add(1, Ordering::Relaxed) % RESERVED
    }

    /// Fails if an earlier operation has.
    ///
    /// # Errors
    /// [`Error::Poisoned`]; [`Error::Closed`] after [`refuse`](Engine::refuse).
    pub fn check(&self) -> Result<(), Error> {
        match self.poison.reason() {
            Some(reason) => Err(Error::Poisoned(Arc::new(reason))),
            // Relaxed: an operation that slips by is refused by the ports.
            None if self.is_closed.load(Ordering::Relaxed) => Err(Error::Closed),
            None => Ok(()),
        }
    }

    /// Starts `operation` on the user's memory, of which `keys` are the keys. `waiting` says
    /// that the caller will wait for it at once.
    ///
    /// # Safety
    /// Until the operation is done, the first memory must stay valid for reads and unchanged,
    /// the second valid for reads and writes and used by nobody else. They may not overlap; one
    /// that the program does not touch may be absent (null, length 0).
    ///
    /// # Errors
    /// [`Error::Poisoned`] after an earlier failure; [`Error::Closed`] after the end.
    pub unsafe fn start(
        &self,
        operation: &Arc<Operation>,
        memory: [UserMemory; 2],
        keys: &UserKeys,
        waiting: bool,
    ) -> Result<(), Error> {
        self.check()?;
        let number = self.number();
        // SAFETY: the caller's promise.
        unsafe { self.start_numbered(operation, memory, keys, waiting, number) };
        Ok(())
    }

    /// As [`start`](Engine::start), for an operation that ranks may start in any order among
    /// others: all give it the same `name`, below 2^31, that no other has that is under way.
    ///
    /// # Safety
    /// See [`start`](Engine::start).
    ///
    /// # Errors
    /// As [`start`](Engine::start).
    pub unsafe fn start_reserved(
        &self,
        operation: &Arc<Operation>,
        memory: [UserMemory; 2],
        keys: &UserKeys,
        name: u32,
    ) -> Result<(), Error> {
        self.check()?;
        // SAFETY: the caller's promise.
        unsafe { self.start_numbered(operation, memory, keys, true, RESERVED | name) };
        Ok(())
    }

    unsafe fn start_numbered(
        &self,
        operation: &Arc<Operation>,
        memory: [UserMemory; 2],
        keys: &UserKeys,
        waiting: bool,
        number: u32,
    ) {
        let n_ports = operation.program().ports.len();
        operation.begin();
        for (index, (port, keys)) in self.ports[..n_ports].iter().zip(&keys.0).enumerate() {
            let with_key = |at: usize| Memory {
                ptr: memory[at].ptr,
                len: memory[at].len,
                key: keys[at].unwrap_or(0),
            };
            // SAFETY: the caller's promise; ports touch disjoint bytes (the compiler's work),
            // and the keys are those of this port.
            let run = unsafe { operation.take(index, number, [with_key(0), with_key(1)]) };
            port.launch(run, operation.clone());
        }
        // A caller that waits drives port 0 itself.
        for worker in self.workers.iter().take(n_ports).skip(usize::from(waiting)) {
            worker.wake();
        }
    }

    /// Waits until `operation` is done.
    ///
    /// # Errors
    /// What went wrong with it; [`Error::Timeout`] if nothing moved for too long.
    pub fn wait(&self, operation: &Arc<Operation>) -> Result<(), Error> {
        if self.config.workers {
            self.wait_beside_workers(operation);
        } else {
            let n_ports = operation.program().ports.len();
            self.wait_driving(operation, || {
                // All ports: other operations may use more of them than this one.
                for (index, port) in self.ports.iter().enumerate() {
                    if index < n_ports || port.is_active() {
                        port.drive();
                    }
                }
            });
        }
        lock(&operation.tests).end(self);
        operation.failure().map_or(Ok(()), |failure| {
            self.poison.spread();
            Err(failure)
        })
    }

    fn wait_beside_workers(&self, operation: &Arc<Operation>) {
        let port = &self.ports[0];
        // Relaxed: only tells the worker to stand aside; the port's mutex does the rest.
        port.n_callers.fetch_add(1, Ordering::Relaxed);
        self.wait_driving(operation, || {
            if port.is_active() {
                port.drive();
            }
        });
        // SeqCst: see `Port::launch`.
        port.n_callers.fetch_sub(1, Ordering::SeqCst);
        if port.is_active() {
            // Other operations are under way on it, and its worker may have parked.
            self.workers[0].wake();
        }
    }

    fn wait_driving(&self, operation: &Arc<Operation>, drive: impl Fn()) {
        let mut moves = self.n_moves();
        let mut moved = || {
            drive();
            // Workers, or whoever helps, may have moved something as well.
            self.has_moved(&mut moves)
        };
        let mut waiter = Waiter::new(self.config.own_cores);
        let mut vigil = Vigil::default();
        while !operation.is_done() {
            if moved() {
                waiter.progress();
                vigil.ease(self);
            } else {
                let idle = if self.help() { waiter.busy() } else { waiter.idle() };
                if let Err(error) = vigil.idle(self, Wanted::Operation(operation), idle) {
                    // What has come while the cause was looked for is no failure.
                    if moved() {
                        waiter.progress();
                        vigil.ease(self);
                    } else if !operation.is_done() {
                        self.poison(&error);
                    }
                }
            }
        }
        vigil.ease(self);
    }

    /// Shows what this rank is doing to whoever asks.
    pub(super) fn show(&self, status: Status) {
        for port in self.ports.iter() {
            port.show(status);
        }
    }

    /// Watches over a wait for all of `n_ranks` ranks at the barrier gates.
    pub fn at_gates(&self, n_ranks: u32) -> GatesVigil<'_> {
        GatesVigil::new(self, n_ranks)
    }

    /// A number that changes whenever something moves.
    pub(super) fn n_moves(&self) -> u64 {
        self.ports.iter().map(|port| port.n_moves()).sum()
    }

    /// True if something has moved since the last time, when `moves` was the number.
    pub(super) fn has_moved(&self, moves: &mut u64) -> bool {
        let sum = self.n_moves();
        std::mem::replace(moves, sum) != sum
    }

    /// Moves on whatever is under way, for a thread that waits for something else. Returns
    /// whether anything happened.
    pub fn progress(&self) -> bool {
        let mut moved = false;
        for port in self.ports.iter().filter(|port| port.is_active()) {
            moved |= port.try_drive();
        }
        moved
    }

    /// For a thread that has nothing to do: moves on the other engines of this rank, if nobody
    /// else does. Returns whether anything happened.
    pub fn help(&self) -> bool {
        !self.config.workers && self.company.help_others(&self.ports)
    }

    /// Makes every operation of this engine fail, as after a failure of its own: when this
    /// returns the ports have let go of all that were under way.
    pub fn poison(&self, error: &Error) {
        self.poison.set(error);
        self.poison.spread();
    }

    /// Moves things on a little and returns whether `operation` is done, if only because it
    /// has failed: [`wait`](Engine::wait) tells.
    pub fn test(&self, operation: &Arc<Operation>) -> bool {
        let driven = if self.config.workers { 0 } else { self.ports.len() };
        if !operation.is_done() {
            for port in &self.ports[..driven] {
                port.try_drive();
            }
        }
        let mut tests = lock(&operation.tests);
        if operation.is_done() {
            tests.end(self);
            return true;
        }
        let tested = tests.tested(self, operation);
        drop(tests);
        match tested {
            Ok(()) => _ = self.help(),
            Err(error) => {
                let mut moves = self.n_moves();
                self.progress();
                if !self.has_moved(&mut moves) && !operation.is_done() {
                    self.poison(&error);
                }
            }
        }
        operation.is_done()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.company.leave(&self.ports);
        // Before the ports go: a worker must not be the one that ends an endpoint.
        self.workers.clear();
    }
}
