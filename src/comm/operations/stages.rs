//! Calls by plans that are started once or repeatedly. Other calls of the rank may start their later stages.

use std::sync::{Arc, Mutex};

use super::run::Run;
use super::running::{OperationNumbers, Prepared, start_order};
use crate::comm::programs::ready::Ready;
use crate::comm::state::inner::Inner;
use crate::engine::{Admitted, ProgressHook, ProgressState, UserMemory};
use crate::error::Error;
use crate::planted::{self, Planted};
use crate::timeline::Procedure;

/// How long the buffers of a call are registered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegistrationLifetime {
    /// For one run; the wire may cache the registrations.
    Cached,
    /// For one run only.
    Once,
    /// For all runs, until the end.
    Held,
}

/// A call of one stage or several.
pub(crate) struct Stages {
    prepared: Prepared,
    memory: [UserMemory; 2],
    registration: RegistrationLifetime,
    /// Numbers of the operations, while the call is under way.
    active: Option<OperationNumbers>,
    /// Held until the last of several stages has started.
    admitted: Option<Admitted>,
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
    /// As [`Engine::start`](crate::engine::Engine::start), whenever it is under way; with
    /// [`RegistrationLifetime::Held`] the memory must stay valid until the value has been dropped.
    pub(super) unsafe fn new(
        prepared: Prepared,
        memory: [UserMemory; 2],
        registration: RegistrationLifetime,
    ) -> Self {
        let (active, admitted, failure, started) = Default::default();
        Stages { prepared, memory, registration, active, admitted, stage: 0, failure, started }
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.prepared.inner
    }

    pub(super) fn has_several_stages(&self) -> bool {
        self.prepared.n_stages() > 1
    }

    /// Registers the memory of the current stage, unless it is registered and the process has not forked since.
    pub(super) fn register(&mut self) -> Result<(), Error> {
        let (inner, ready) = self.prepared.stage(self.stage);
        if ready.keys.are_current() {
            return Ok(());
        }
        inner.world.engine.release(&mut ready.keys);
        let (memory, keep) =
            (ready.memory(self.memory), self.registration == RegistrationLifetime::Cached);
        let Ready { operation, keys, .. } = ready;
        // SAFETY: the buffers stay valid until the operation is done or the value is dropped; the keys are released
        // before anybody learns of that.
        unsafe { inner.world.engine.register(operation, memory, keep, keys) }
    }

    /// Starts the current stage, whose memory is registered. Once the first stage is started, the call is under way.
    fn start_stage(&mut self) -> Result<(), Error> {
        let (stage, n_stages) = (self.stage, self.prepared.n_stages());
        let (inner, ready) = self.prepared.stage(stage);
        let (engine, memory) = (&inner.world.engine, ready.memory(self.memory));
        let Ready { operation, keys, watch, size_exchange, .. } = ready;
        watch.begin();
        let (ticket, numbers) = inner.numbers(self.active, n_stages);
        // SAFETY: the promise made to `Stages::new`.
        let started = unsafe {
            engine.start(operation, memory, keys, numbers.of(stage), start_order(stage), false)
        };
        drop(ticket);
        if started.is_err() {
            engine.release(keys);
        } else {
            self.active = Some(numbers);
        }
        if size_exchange.is_none() {
            self.admitted = None;
        }
        started
    }

    fn release(&mut self) {
        let (inner, ready) = self.prepared.stage(self.stage);
        inner.world.engine.release(&mut ready.keys);
    }

    /// Waits for the current stage, and starts the next one. True if none follows.
    fn finish_stage(&mut self, numbers: OperationNumbers) -> Result<bool, Error> {
        let (stage, holds) = (self.stage, self.registration == RegistrationLifetime::Held);
        let (inner, ready) = self.prepared.stage(stage);
        let engine = &inner.world.engine;
        let outcome = match planted::is(Planted::StageEarly) && ready.size_exchange.is_some() {
            true => Ok(()),
            false => engine.wait(&ready.operation, numbers.of(stage), &mut ready.watch),
        };
        if !holds || outcome.is_err() || ready.size_exchange.is_some() {
            // The buffers are the caller's again, so peers must not reach them any more.
            engine.release(&mut ready.keys);
        }
        outcome?;
        if ready.size_exchange.is_none() || !inner.prepare_next(ready)? {
            return Ok(true);
        }
        self.stage += 1;
        let started = self.register().and_then(|()| self.start_stage());
        // Other ranks have reached this stage and wait for this rank.
        started.inspect_err(|error| self.prepared.inner.world.engine.fail(error))?;
        Ok(false)
    }

    /// Starts every stage that is due, without waiting.
    fn advance(&mut self) {
        let Some(numbers) = self.active else { return };
        while self.failure.is_none() && self.is_next_due() {
            self.failure = self.finish_stage(numbers).err().map(Box::new);
        }
        if self.failure.is_some() {
            self.admitted = None;
        }
    }

    /// Whether the current stage is done and another one follows.
    fn is_next_due(&mut self) -> bool {
        let (_, ready) = self.prepared.stage(self.stage);
        ready.size_exchange.is_some() && ready.operation.is_done()
    }

    /// As [`finish_stage`](Stages::finish_stage); also notes the end of the call.
    fn finish_and_note(&mut self, numbers: OperationNumbers) -> Result<bool, Error> {
        let failure = self.failure.take();
        let outcome = failure.map_or_else(|| self.finish_stage(numbers), |failure| Err(*failure));
        if !matches!(outcome, Ok(false)) {
            (self.active, self.admitted) = (None, None);
            if let Some(start) = self.started.take() {
                self.record(start, numbers);
            }
        }
        outcome
    }

    #[cold]
    fn record(&mut self, start: u64, numbers: OperationNumbers) {
        let procedure = match self.registration {
            RegistrationLifetime::Held => Procedure::Persistent,
            _ => Procedure::Nonblocking,
        };
        let (inner, ready) = self.prepared.stage(0);
        let by = || inner.explained(&ready.key);
        inner.record_started(&ready.key, procedure, start, numbers.of(0), by);
    }
}

impl Run for Stages {
    fn start(&mut self) -> Result<(), Error> {
        if self.active.is_some() {
            return Err(Error::Active);
        }
        let (inner, ready) = self.prepared.stage(self.stage);
        match ready.size_exchange {
            Some(_) => self.admitted = Some(inner.world.engine.admit()?),
            None => inner.world.engine.check()?,
        }
        self.started = self.prepared.inner.start_ticks();
        let started = self.register().and_then(|()| self.start_stage());
        if started.is_err() {
            self.admitted = None;
        }
        started
    }

    fn is_active(&self) -> bool {
        self.active.is_some()
    }

    fn has_ended(&self) -> bool {
        let ready = self.prepared.ready.as_ref();
        ready.is_some_and(|ready| ready.size_exchange.is_none() && ready.operation.is_done())
    }

    fn test(&mut self, advances_others: bool) -> Result<bool, Error> {
        let Some(numbers) = self.active else { return Ok(true) };
        loop {
            let id = numbers.of(self.stage);
            let (inner, Ready { operation, watch, .. }) = self.prepared.stage(self.stage);
            let engine = &inner.world.engine;
            if self.failure.is_none() {
                if advances_others {
                    engine.progress_unless_done(operation);
                }
                if !engine.test(operation, id, watch) {
                    return Ok(false);
                }
            }
            if self.finish_and_note(numbers)? {
                return Ok(true);
            }
        }
    }

    fn wait(&mut self) -> Result<(), Error> {
        let Some(numbers) = self.active else { return Ok(()) };
        while !self.finish_and_note(numbers)? {}
        Ok(())
    }

    fn end(&mut self) -> bool {
        // A caller that ends the call without waiting does not need the outcome.
        let _ = self.wait();
        self.release();
        self.inner().world.engine.has_failed()
    }
}
