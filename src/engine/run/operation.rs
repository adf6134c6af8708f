//! One operation that can be executed again and again: its runs, one for each port, and its
//! working memory.
//!
//! While an operation is under way its runs belong to the ports; a port that has finished (or
//! failed) gives its run back and counts down. The count is what everybody waits for.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use hopbine_torus::PortId;

use crate::error::Error;
use crate::reduce::Reducer;
use crate::sync::lock;

use super::crossings::Crossings;
use super::memories::Memory;
use super::port::Completion;
use super::port_run::{PortRun, StartOrder};
use super::work_memory::WorkMemory;
use crate::engine::compile::program::{Buffer, Program};

/// See the module documentation.
pub struct Operation {
    program: Arc<Program>,
    /// The runs of ports that are not under way. While `busy_ports` is 0 they are the starter's, of
    /// whom there is one at a time; from [`take`](Operation::take) to the end of
    /// [`give_back`](Completion::give_back) the port's.
    idle: Box<[UnsafeCell<Option<Box<PortRun>>>]>,
    /// Ports that have not finished.
    unfinished_ports: AtomicU32,
    /// Ports that are under way.
    busy_ports: AtomicU32,
    has_failed: AtomicBool,
    failure: Mutex<Option<Error>>,
    crossings: Arc<Crossings>,
    /// Working memory and, per port, staging with their keys.
    memory: WorkMemory,
}

// SAFETY: `idle` says who uses its cells when; runs may go from thread to thread. The ports' mutexes
// order a start before what ports do, and `busy_ports` what ports do before the next start.
unsafe impl Sync for Operation {}

impl Operation {
    /// An operation that runs `program`, with its own working memory.
    pub(crate) fn new(
        program: Arc<Program>,
        reducer: Option<Reducer>,
        memory: WorkMemory,
    ) -> Arc<Self> {
        let crossings = Arc::new(Crossings::of(&program));
        let run = |port| {
            let run = PortRun::new(program.clone(), port, reducer, crossings.clone());
            UnsafeCell::new(Some(Box::new(run)))
        };
        Arc::new(Operation {
            idle: PortId::first(program.ports.len() as u16).map(run).collect(),
            unfinished_ports: AtomicU32::new(0),
            busy_ports: AtomicU32::new(0),
            has_failed: AtomicBool::new(false),
            failure: Mutex::new(None),
            crossings,
            memory,
            program,
        })
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// True if no port is under way: the buffers are the caller's again.
    pub fn is_done(&self) -> bool {
        // Acquire: pairs with the Release in `give_back`, so that what the ports wrote is seen.
        self.busy_ports.load(Ordering::Acquire) == 0
    }

    /// What went wrong, if anything did.
    pub fn failure(&self) -> Option<Error> {
        // Relaxed: `is_done` comes before, and orders this too.
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
        self.crossings.begin();
        // Relaxed: the ports learn of the operation through their mutexes.
        self.unfinished_ports.store(self.idle.len() as u32, Ordering::Relaxed);
        self.busy_ports.store(self.idle.len() as u32, Ordering::Relaxed);
    }

    /// Takes the run of `port`, made ready for the operation with this context and number.
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
        // SAFETY: from `begin` on the cell is this thread's, until it launches the run.
        let Some(mut run) = (unsafe { &mut *self.idle[port.index()].get() }).take() else {
            unreachable!("`begin` has checked that the port is idle");
        };
        let [work, staging] = self.memory.of_port(port);
        let mut memories = [Memory::NONE; Buffer::COUNT];
        memories[Buffer::Send as usize] = send;
        memories[Buffer::Recv as usize] = recv;
        memories[Buffer::Work as usize] = work;
        memories[Buffer::Staging as usize] = staging;
        // SAFETY: the user's memory is the caller's promise; work and staging belong to this
        // operation, which outlives the run's execution, and of which there is one at a time.
        unsafe { run.start(operation, order, memories) };
        run
    }
}

impl Completion for Operation {
    fn give_back(&self, port: PortId, run: Box<PortRun>, failure: Option<&Error>) {
        if let Some(error) = failure {
            lock(&self.failure).get_or_insert_with(|| error.clone());
            // Relaxed: ordered by the count.
            self.has_failed.store(true, Ordering::Relaxed);
        }
        let is_only = self.idle.len() == 1;
        // AcqRel: the last one sees what the others have written, and whether they failed.
        let is_last = is_only || self.unfinished_ports.fetch_sub(1, Ordering::AcqRel) == 1;
        // After a failure the user's memory is not touched.
        if is_last && !self.has_failed.load(Ordering::Relaxed) {
            run.close();
        }
        // SAFETY: the cell is the port's until the store below, and the port is done with the run.
        unsafe { *self.idle[port.index()].get() = Some(run) };
        if is_only {
            // Release: pairs with the Acquire in `is_done`.
            return self.busy_ports.store(0, Ordering::Release);
        }
        // Release: as above. It is a decrement, so it also carries on what earlier ports released.
        self.busy_ports.fetch_sub(1, Ordering::Release);
    }
}
