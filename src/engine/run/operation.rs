//! An operation that can be executed repeatedly: one run for each port, and its working memory.
//!
//! While an operation is under way its runs belong to the ports. A port that has finished or failed gives its run
//! back and decrements a count, which all threads that wait for the operation read.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use hopbine_torus::PortId;

use crate::error::Error;
use crate::reduce::Reducer;
use crate::sync::lock;

use super::memories::Memory;
use super::port::Completion;
use super::port_flags::PortFlags;
use super::port_run::{PortRun, StartOrder};
use super::work_memory::WorkMemory;
use crate::engine::compile::program::{Buffer, Program};

/// See the module documentation.
pub struct Operation {
    program: Arc<Program>,
    /// The runs of ports that are not under way. A cell belongs to the starting thread, of which there is one at a
    /// time, while `busy_ports` is 0, and to the port from [`take`](Operation::take) to the end of
    /// [`complete`](Completion::complete).
    idle: Box<[UnsafeCell<Option<Box<PortRun>>>]>,
    /// Ports that have not finished.
    unfinished_ports: AtomicU32,
    /// Ports that are under way.
    busy_ports: AtomicU32,
    has_failed: AtomicBool,
    failure: Mutex<Option<Error>>,
    port_flags: Arc<PortFlags>,
    /// The working space and, for each port, its staging, with their keys.
    memory: WorkMemory,
}

// SAFETY: the comment of `idle` says which thread uses a cell; runs may move between threads. The ports' mutexes
// order a start before the ports' accesses, and `busy_ports` orders these before the next start.
unsafe impl Sync for Operation {}

impl Operation {
    /// An operation that runs `program`, with its own working memory.
    pub(crate) fn new(
        program: Arc<Program>,
        reducer: Option<Reducer>,
        memory: WorkMemory,
    ) -> Arc<Self> {
        let port_flags = Arc::new(PortFlags::of(&program));
        let run = |port| {
            let run = PortRun::new(program.clone(), port, reducer, port_flags.clone());
            UnsafeCell::new(Some(Box::new(run)))
        };
        Arc::new(Operation {
            idle: PortId::first(program.ports.len() as u16).map(run).collect(),
            unfinished_ports: AtomicU32::new(0),
            busy_ports: AtomicU32::new(0),
            has_failed: AtomicBool::new(false),
            failure: Mutex::new(None),
            port_flags,
            memory,
            program,
        })
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// True if no port is under way: the caller may use the buffers again.
    pub fn is_done(&self) -> bool {
        // Acquire: pairs with the Release in `complete`, so that the ports' writes are visible.
        self.busy_ports.load(Ordering::Acquire) == 0
    }

    /// The failure of the operation, if it has failed.
    pub fn failure(&self) -> Option<Error> {
        // Relaxed: `is_done`, which is called before, orders this too.
        if !self.has_failed.load(Ordering::Relaxed) {
            return None;
        }
        lock(&self.failure).clone()
    }

    /// Marks all ports as under way.
    pub(crate) fn begin(&self) {
        assert!(self.is_done(), "an operation is started again only when it is done");
        if self.has_failed.load(Ordering::Relaxed) {
            self.has_failed.store(false, Ordering::Relaxed);
            *lock(&self.failure) = None;
        }
        self.port_flags.begin();
        // Relaxed: the ports' mutexes order these stores.
        self.unfinished_ports.store(self.idle.len() as u32, Ordering::Relaxed);
        self.busy_ports.store(self.idle.len() as u32, Ordering::Relaxed);
    }

    /// Takes the run of `port`, prepared for the operation with this context and number.
    ///
    /// # Safety
    /// See [`PortRun::start`]; `send` and `recv` are the user's memory. The thread has called
    /// [`begin`](Operation::begin), and calls this once for each port.
    pub(crate) unsafe fn take(
        &self,
        port: PortId,
        operation: (u64, u32),
        order: StartOrder,
        [send, recv]: [Memory; 2],
    ) -> Box<PortRun> {
        // SAFETY: from `begin` until this thread launches the run, the cell belongs to it.
        let Some(mut run) = (unsafe { &mut *self.idle[port.index()].get() }).take() else {
            unreachable!("`begin` has checked that the port is idle");
        };
        let [work, staging] = self.memory.of_port(port);
        let mut memories = [Memory::NONE; Buffer::COUNT];
        memories[Buffer::Send as usize] = send;
        memories[Buffer::Recv as usize] = recv;
        memories[Buffer::Work as usize] = work;
        memories[Buffer::Staging as usize] = staging;
        // SAFETY: the caller guarantees the user's memory. Work and staging belong to this operation, which outlives
        // the execution of the run, and whose executions do not overlap.
        unsafe { run.start(operation, order, memories) };
        run
    }
}

impl Completion for Operation {
    fn complete(&self, port: PortId, run: Box<PortRun>, failure: Option<&Error>) {
        if let Some(error) = failure {
            lock(&self.failure).get_or_insert_with(|| error.clone());
            // Relaxed: the count orders it.
            self.has_failed.store(true, Ordering::Relaxed);
        }
        let is_only = self.idle.len() == 1;
        // AcqRel: the last port sees the other ports' writes, and whether they failed.
        let is_last = is_only || self.unfinished_ports.fetch_sub(1, Ordering::AcqRel) == 1;
        // After a failure the user's memory is not touched.
        if is_last && !self.has_failed.load(Ordering::Relaxed) {
            run.close();
        }
        // SAFETY: the cell belongs to the port until the store below, and the port does not use the run any more.
        unsafe { *self.idle[port.index()].get() = Some(run) };
        if is_only {
            // Release: pairs with the Acquire in `is_done`.
            return self.busy_ports.store(0, Ordering::Release);
        }
        // Release: as above. A decrement also continues the release sequence of earlier ports.
        self.busy_ports.fetch_sub(1, Ordering::Release);
    }
}
