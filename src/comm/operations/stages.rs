//! Calls by plans that are started once or again and again, and that others may start meanwhile.

use std::sync::{Arc, Mutex};

use super::run::Run;
use super::running::{Numbers, Prepared, order};
use crate::comm::programs::ready::Ready;
use crate::comm::state::inner::Inner;
use crate::engine::{Advance, Advanced, UserMemory};
use crate::error::Error;
use crate::planted::{self, Planted};
use crate::timeline::Procedure;

/// How the wire sees the buffers of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BufferUse {
    /// For one run, and it may remember them.
    Kept,
    /// For one run.
    Once,
    /// For all runs, until the end.
    Held,
}

/// A call of one stage or several.
pub(crate) struct Stages {
    prepared: Prepared,
    memory: [UserMemory; 2],
    registration: BufferUse,
    /// The operations, while it is under way.
    active: Option<Numbers>,
    stage: usize,
    /// What went wrong while somebody else moved it on.
    failure: Option<Box<Error>>,
    /// When it was started last, ticks, if a timeline is recorded.
    started: Option<u64>,
}

// SAFETY: the addresses are used only as long as they are valid, which whoever made the value
// has promised for all threads.
unsafe impl Send for Stages {}

impl Advance for Mutex<Stages> {
    fn advance(&self) -> Advanced {
        // Whoever holds it moves it on.
        if let Ok(mut stages) = self.try_lock() {
            stages.advance();
        }
        Advanced::ByPorts
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

    /// Registers the memory of the stage at hand, unless it is registered.
    pub(super) fn hold(&mut self) -> Result<(), Error> {
        let (inner, ready) = self.prepared.at(self.stage);
        if !ready.keys.is_released() {
            return Ok(());
        }
        let (memory, keep) = (ready.memory(self.memory), self.registration == BufferUse::Kept);
        let Ready { operation, keys, .. } = ready;
        // SAFETY: the buffers stay valid until the operation is done, or the value dropped;
        // whoever waits for that releases the keys before telling anybody.
        unsafe { inner.of_world.engine.register(operation, memory, keep, keys) }
    }

    /// Starts the stage at hand, whose memory is registered; with the first one the call is under way.
    fn begin(&mut self) -> Result<(), Error> {
        let (stage, n_stages) = (self.stage, self.prepared.n_stages());
        let (inner, ready) = self.prepared.at(stage);
        let (engine, memory) = (&inner.of_world.engine, ready.memory(self.memory));
        let Ready { operation, keys, watch, .. } = ready;
        watch.begin();
        let (turn, numbers) = inner.numbers(self.active, n_stages);
        // SAFETY: the promise made to `Running::new`.
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

    /// Waits for the stage at hand, and starts the next. True if there is none.
    fn pass(&mut self, numbers: Numbers) -> Result<bool, Error> {
        let (stage, holds) = (self.stage, self.registration == BufferUse::Held);
        let (inner, ready) = self.prepared.at(stage);
        let engine = &inner.of_world.engine;
        let outcome = match planted::is(Planted::StageEarly) && ready.learning.is_some() {
            true => Ok(()),
            false => engine.wait(&ready.operation, numbers.of(stage), &mut ready.watch),
        };
        if !holds || outcome.is_err() || ready.learning.is_some() {
            // Peers must not reach the buffers any more, which are the caller's now.
            engine.release(&mut ready.keys);
        }
        outcome?;
        if ready.learning.is_none() || !inner.follow(ready)? {
            return Ok(true);
        }
        self.stage += 1;
        let started = self.hold().and_then(|()| self.begin());
        // Others have come as far, and wait for this rank.
        started.inspect_err(|error| self.prepared.inner.of_world.engine.fail(error))?;
        Ok(false)
    }

    /// Starts the stages that are due, as long as there are any, without waiting.
    fn advance(&mut self) {
        let Some(numbers) = self.active else { return };
        while self.failure.is_none() && self.is_between() {
            self.failure = self.pass(numbers).err().map(Box::new);
        }
    }

    /// Whether the stage at hand is done, and another one follows.
    fn is_between(&mut self) -> bool {
        let (_, ready) = self.prepared.at(self.stage);
        ready.learning.is_some() && ready.operation.is_done()
    }

    /// As [`pass`](Stages::pass), and notes the end.
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
                    engine.move_on(operation);
                }
                if !engine.look(operation, id, watch) {
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
        // Whoever ends it without waiting does not want to know how it went.
        let _ = self.wait();
        self.release();
    }
}
