//! Calls by plans that are started once or repeatedly. Other calls of the rank may start their later stages.

use std::sync::{Arc, Mutex};

use super::run::Run;
use super::running::{Numbers, Prepared, order};
use crate::comm::programs::ready::Ready;
use crate::comm::state::inner::Inner;
use crate::engine::{ProgressHook, ProgressState, UserMemory};
use crate::error::Error;
use crate::planted::{self, Planted};
use crate::timeline::Procedure;

/// How long the buffers of a call are registered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BufferUse {
    /// For one run; the wire may cache the registrations.
    Kept,
    /// For one run only.
    Once,
    /// For all runs, until the end.
    Held,
}

/// A call of one stage or several.
pub(crate) struct Stages {
    prepared: Prepared,
    memory: [UserMemory; 2],
    registration: BufferUse,
    /// Numbers of the operations, while the call is under way.
    active: Option<Numbers>,
    stage: usize,
    /// An error that occurred while another call of the rank advanced this one.
    failure: Option<Box<Error>>,
    /// Time of the last start in ticks, if a timeline is recorded.
    started: Option<u64>,
}

// SAFETY: the addresses are used only as long as they are valid; the creator of the value has promised that for all
// threads.
unsafe impl Send for Stages {}

impl ProgressHook for Mutex<Stages> {
    fn advance(&self) -> ProgressState {
        // If it is locked, the holder of the lock advances it.
        if let Ok(mut stages) = self.try_lock() {
            stages.advance();
        }
        ProgressState::ByPorts
    }
}

impl Stages {
    /// A call on this memory, not started.
    ///
    /// # Safety
    /// As [`Engine::start`](crate::engine::Engine::start), whenever it is under way; with [`BufferUse::Held`] the
    /// memory must stay valid until the value has been dropped.
    pub(super) unsafe fn new(
        prepared: Prepared,
        memory: [UserMemory; 2],
        registration: BufferUse,
    ) -> Self {
        let (active, failure, started) = Default::default();
        Stages { prepared, memory, registration, active, stage: 0, failure, started }
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.prepared.inner
    }

    pub(super) fn are_several(&self) -> bool {
        self.prepared.n_stages() > 1
    }

    /// Registers the memory of the current stage, unless it is registered.
    pub(super) fn hold(&mut self) -> Result<(), Error> {
        let (inner, ready) = self.prepared.at(self.stage);
        if !ready.keys.is_released() {
            return Ok(());
        }
        let (memory, keep) = (ready.memory(self.memory), self.registration == BufferUse::Kept);
        let Ready { operation, keys, .. } = ready;
        // SAFETY: the buffers stay valid until the operation is done or the value is dropped; the keys are released
        // before anybody learns of that.
        unsafe { inner.of_world.engine.register(operation, memory, keep, keys) }
    }

    /// Starts the current stage, whose memory is registered. Once the first stage is started, the call is under way.
    fn begin(&mut self) -> Result<(), Error> {
        let (stage, n_stages) = (self.stage, self.prepared.n_stages());
        let (inner, ready) = self.prepared.at(stage);
        let (engine, memory) = (&inner.of_world.engine, ready.memory(self.memory));
        let Ready { operation, keys, watch, .. } = ready;
        watch.begin();
        let (turn, numbers) = inner.numbers(self.active, n_stages);
        // SAFETY: the promise made to `Stages::new`.
        let started = unsafe {
            engine.start(operation, memory, keys, numbers.of(stage), order(stage), false)
        };
        drop(turn);
        if started.is_err() {
            engine.release(keys);
        } else {
            self.active = Some(numbers);
        }
        started
    }

    fn release(&mut self) {
        let (inner, ready) = self.prepared.at(self.stage);
        inner.of_world.engine.release(&mut ready.keys);
    }

    /// Waits for the current stage, and starts the next one. True if none follows.
    fn pass(&mut self, numbers: Numbers) -> Result<bool, Error> {
        let (stage, holds) = (self.stage, self.registration == BufferUse::Held);
        let (inner, ready) = self.prepared.at(stage);
        let engine = &inner.of_world.engine;
        let outcome = match planted::is(Planted::StageEarly) && ready.learning.is_some() {
            true => Ok(()),
            false => engine.wait(&ready.operation, numbers.of(stage), &mut ready.watch),
        };
        if !holds || outcome.is_err() || ready.learning.is_some() {
            // The buffers are the caller's again, so peers must not reach them any more.
            engine.release(&mut ready.keys);
        }
        outcome?;
        if ready.learning.is_none() || !inner.follow(ready)? {
            return Ok(true);
        }
        self.stage += 1;
        let started = self.hold().and_then(|()| self.begin());
        // Other ranks have reached this stage and wait for this rank.
        started.inspect_err(|error| self.prepared.inner.of_world.engine.fail(error))?;
        Ok(false)
    }

    /// Starts every stage that is due, without waiting.
    fn advance(&mut self) {
        let Some(numbers) = self.active else { return };
        while self.failure.is_none() && self.is_between() {
            self.failure = self.pass(numbers).err().map(Box::new);
        }
    }

    /// Whether the current stage is done and another one follows.
    fn is_between(&mut self) -> bool {
        let (_, ready) = self.prepared.at(self.stage);
        ready.learning.is_some() && ready.operation.is_done()
    }

    /// As [`pass`](Stages::pass); also notes the end of the call.
    fn moved_on(&mut self, numbers: Numbers) -> Result<bool, Error> {
        let failure = self.failure.take();
        let outcome = failure.map_or_else(|| self.pass(numbers), |failure| Err(*failure));
        if !matches!(outcome, Ok(false)) {
            self.active = None;
            if let Some(start) = self.started.take() {
                self.record(start, numbers);
            }
        }
        outcome
    }

    #[cold]
    fn record(&mut self, start: u64, numbers: Numbers) {
        let procedure = match self.registration {
            BufferUse::Held => Procedure::Persistent,
            _ => Procedure::Nonblocking,
        };
        let (inner, ready) = self.prepared.at(0);
        let by = || inner.explained(&ready.key);
        inner.record_started(&ready.key, procedure, start, numbers.of(0), by);
    }
}

impl Run for Stages {
    fn start(&mut self) -> Result<(), Error> {
        if self.active.is_some() {
            return Err(Error::Active);
        }
        self.started = self.prepared.inner.begun();
        self.hold()?;
        self.begin()
    }

    fn is_active(&self) -> bool {
        self.active.is_some()
    }

    fn has_ended(&self) -> bool {
        let ready = self.prepared.ready.as_ref();
        ready.is_some_and(|ready| ready.learning.is_none() && ready.operation.is_done())
    }

    fn has_failed(&self) -> bool {
        self.prepared.has_failed()
    }

    fn test(&mut self, moves_on: bool) -> Result<bool, Error> {
        let Some(numbers) = self.active else { return Ok(true) };
        loop {
            let id = numbers.of(self.stage);
            let (inner, Ready { operation, watch, .. }) = self.prepared.at(self.stage);
            let engine = &inner.of_world.engine;
            if self.failure.is_none() {
                if moves_on {
                    engine.progress_unless_done(operation);
                }
                if !engine.test(operation, id, watch) {
                    return Ok(false);
                }
            }
            if self.moved_on(numbers)? {
                return Ok(true);
            }
        }
    }

    fn wait(&mut self) -> Result<(), Error> {
        let Some(numbers) = self.active else { return Ok(()) };
        while !self.moved_on(numbers)? {}
        Ok(())
    }

    fn end(&mut self) {
        // A caller that ends the call without waiting does not need the outcome.
        let _ = self.wait();
        self.release();
    }
}
