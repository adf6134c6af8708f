//! Operations in somebody's hands, and under way.
//!
//! A call is one operation, or where sizes have to be learnt a few, one after the other
//! ([`super::learning`]): its *stages*.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use super::inner::Inner;
use super::ready::{Learning, Ready};
use crate::endpoint::Tag;
use crate::engine::{Advance, Engine, Operation, OperationWatch, Order, UserMemory};
use crate::error::Error;
use crate::planted::{self, Planted};
use crate::sync::lock;

/// An operation in somebody's hands, not under way. `H` holds the communicator, or borrows it.
pub(super) struct Prepared<H: Deref<Target = Inner> = Arc<Inner>> {
    inner: H,
    /// `None` only while being dropped.
    ready: Option<Box<Ready>>,
}

/// The operations of a call, by context and the number of the first.
#[derive(Clone, Copy)]
struct Numbers((u64, u32));

impl Numbers {
    fn of(self, stage: usize) -> (u64, u32) {
        let Numbers((context, first)) = self;
        (context, (first + stage as u32) % Tag::OPERATIONS)
    }
}

/// Stages but the first start when the one before is done, perhaps after later calls.
fn order(stage: usize) -> Order {
    if stage == 0 { Order::Kept } else { Order::Late }
}

impl Inner {
    /// Has `start` start an operation of a call. The first one of the call has no `numbers` yet, and names
    /// all of them. From then on other ranks count on this one; before, the call can be given up and made
    /// again.
    #[inline]
    fn in_order<R>(
        &self,
        numbers: Option<Numbers>,
        n_stages: u32,
        start: impl FnOnce(Numbers) -> R,
    ) -> (Numbers, R) {
        let (_turn, numbers) = match numbers {
            Some(numbers) => (None, numbers),
            None => {
                let (turn, numbers) = self.next_operations(n_stages);
                (Some(turn), Numbers(numbers))
            }
        };
        (numbers, start(numbers))
    }
}

impl Ready {
    /// The operation of a stage that has been reached.
    fn stage(&mut self, stage: usize) -> &mut Ready {
        if stage == 0 {
            return self;
        }
        let next = self.learning.as_mut().and_then(|learning| learning.next());
        let Some(next) = next else { unreachable!("a stage is reached from the one before") };
        next.stage(stage - 1)
    }

    /// The memory that the operation works on, the call's unless sizes are all that it moves.
    fn memory(&mut self, of_call: [UserMemory; 2]) -> [UserMemory; 2] {
        self.learning.as_mut().map_or(of_call, |learning| learning.memory())
    }
}

impl<H: Deref<Target = Inner>> Prepared<H> {
    pub(super) fn new(inner: H, ready: Box<Ready>) -> Self {
        Prepared { inner, ready: Some(ready) }
    }

    /// Performs the operation; returns when it is done. `keep` allows the wire to remember the
    /// memory.
    ///
    /// # Safety
    /// As [`Engine::start`], until this returns.
    ///
    /// # Errors
    /// As [`Engine::register`], [`Engine::start`], [`Engine::wait`] and [`Inner::follow`].
    pub(super) unsafe fn run(mut self, memory: [UserMemory; 2], keep: bool) -> Result<(), Error> {
        let n_stages = self.n_stages();
        let (mut numbers, mut stage) = (None, 0);
        loop {
            let is_last = self.with(stage, |inner, ready| {
                let (engine, memory) = (&inner.of_world.engine, ready.memory(memory));
                let Ready { operation, keys, watch, .. } = ready;
                // SAFETY: the buffers stay valid until the keys have been released, here.
                let registered = unsafe { engine.register(operation, memory, keep, keys) };
                registered.inspect_err(|error| {
                    // Others have come as far, and wait for this rank.
                    if stage > 0 {
                        engine.fail(error);
                    }
                })?;
                let outcome = {
                    let (of_call, (under_way, started)) =
                        inner.in_order(numbers, n_stages, |numbers| {
                            let id = numbers.of(stage);
                            let under_way = UnderWay { engine, operation, id };
                            // SAFETY: the caller's promise; also a panic does not get past
                            // `under_way` before the operation is done.
                            let started = unsafe {
                                engine.start(operation, memory, keys, id, order(stage), true)
                            };
                            (under_way, started)
                        });
                    numbers = Some(of_call);
                    started.and_then(|()| engine.wait(operation, under_way.id, watch))
                };
                engine.release(keys);
                outcome.and_then(|()| Ok(ready.learning.is_none() || !inner.follow(ready)?))
            })?;
            if is_last {
                return Ok(());
            }
            stage += 1;
        }
    }

    /// Gives access to the communicator and the operation of a stage.
    fn with<R>(&mut self, stage: usize, f: impl FnOnce(&Inner, &mut Ready) -> R) -> R {
        let Some(ready) = self.ready.as_deref_mut() else { unreachable!("taken in drop only") };
        f(&self.inner, ready.stage(stage))
    }

    /// How many operations the call may consist of, the same on all ranks.
    fn n_stages(&self) -> u32 {
        let learning = self.ready.as_ref().and_then(|ready| ready.learning.as_deref());
        learning.map_or(1, Learning::n_stages)
    }

    /// Whether something has failed.
    fn has_failed(&self) -> bool {
        self.inner.of_world.engine.has_failed()
    }
}

impl<H: Deref<Target = Inner>> Drop for Prepared<H> {
    fn drop(&mut self) {
        if let Some(ready) = self.ready.take() {
            self.inner.members.programs.put(ready);
        }
    }
}

/// An operation that somebody waits for, also if a panic comes between.
struct UnderWay<'a> {
    engine: &'a Engine,
    operation: &'a Arc<Operation>,
    id: (u64, u32),
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        // It is done, unless there was a panic.
        if !self.operation.is_done() {
            let _ = self.engine.wait(self.operation, self.id, &mut OperationWatch::default());
        }
    }
}

/// How the wire sees the buffers of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Registration {
    /// For one run, and it may remember them.
    Kept,
    /// For one run.
    Once,
    /// For all runs, until the end.
    Held,
}

/// A call that is started once or again and again, and that others may start meanwhile.
/// Dropping it waits for it.
pub(super) struct Running(Kept);

enum Kept {
    /// One stage: it moves on by itself.
    One(Stages),
    /// Several: whoever waits for anything starts those that are due ([`Advance`]), since other ranks
    /// may wait for this call while this one waits for another.
    Several(Arc<Mutex<Stages>>),
}

impl Running {
    /// A call on this memory, not started.
    ///
    /// # Safety
    /// As [`Engine::start`], whenever it is under way; with [`Registration::Held`] the memory must
    /// stay valid until the value has been dropped.
    pub(super) unsafe fn new(
        prepared: Prepared,
        memory: [UserMemory; 2],
        registration: Registration,
    ) -> Self {
        let has_several = prepared.n_stages() > 1;
        let inner = prepared.inner.clone();
        let stages =
            Stages { prepared, memory, registration, active: None, stage: 0, failure: None };
        if !has_several {
            return Running(Kept::One(stages));
        }
        let stages = Arc::new(Mutex::new(stages));
        let advance: Arc<dyn Advance> = stages.clone();
        inner.of_world.engine.advances(Arc::downgrade(&advance));
        Running(Kept::Several(stages))
    }

    #[inline]
    fn with<R>(&mut self, f: impl FnOnce(&mut Stages) -> R) -> R {
        match &mut self.0 {
            Kept::One(stages) => f(stages),
            Kept::Several(stages) => f(&mut lock(stages)),
        }
    }

    fn see<R>(&self, f: impl FnOnce(&Stages) -> R) -> R {
        match &self.0 {
            Kept::One(stages) => f(stages),
            Kept::Several(stages) => f(&lock(stages)),
        }
    }

    /// Starts the call. What has been learnt before, with the memory held, need not be learnt
    /// again.
    ///
    /// # Errors
    /// As [`Engine::register`] and [`Engine::start`]; [`Error::Active`].
    pub(super) fn start(&mut self) -> Result<(), Error> {
        self.with(Stages::start)
    }

    /// Registers the memory of the stage at hand, unless it is registered.
    pub(super) fn hold(&mut self) -> Result<(), Error> {
        self.with(Stages::hold)
    }

    /// Whether its end has not been seen yet.
    pub(super) fn is_active(&self) -> bool {
        self.see(|stages| stages.active.is_some())
    }

    /// Whether the last stage is done, if it is known to be the last.
    pub(super) fn has_ended(&self) -> bool {
        self.see(Stages::has_ended)
    }

    /// Moves things on a little; true if the call is done, or was not started.
    ///
    /// # Errors
    /// What went wrong with it.
    pub(super) fn test(&mut self) -> Result<bool, Error> {
        self.with(|stages| stages.test_by(Engine::test))
    }

    /// As [`test`](Running::test), without moving others on.
    pub(super) fn look(&mut self) -> Result<bool, Error> {
        self.with(|stages| stages.test_by(Engine::look))
    }

    /// Waits for the end; returns at once if it was not started.
    ///
    /// # Errors
    /// What went wrong with it.
    pub(super) fn wait(&mut self) -> Result<(), Error> {
        self.with(Stages::wait)
    }

    /// Waits for the end and lets go of the buffers; nothing can be started any more.
    pub(super) fn end(&mut self) {
        self.with(Stages::end);
    }

    /// Whether something has failed: a late message may then still be written to the buffers.
    pub(super) fn has_failed(&self) -> bool {
        self.see(|stages| stages.prepared.has_failed())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// A call of one stage or several.
struct Stages {
    prepared: Prepared,
    memory: [UserMemory; 2],
    registration: Registration,
    /// The operations, while it is under way.
    active: Option<Numbers>,
    stage: usize,
    /// What went wrong while somebody else moved it on.
    failure: Option<Error>,
}

// SAFETY: the addresses are used only as long as they are valid, which whoever made the value
// has promised for all threads.
unsafe impl Send for Stages {}

impl Advance for Mutex<Stages> {
    fn advance(&self) {
        // Whoever holds it moves it on.
        if let Ok(mut stages) = self.try_lock() {
            stages.advance();
        }
    }
}

impl Stages {
    fn start(&mut self) -> Result<(), Error> {
        if self.active.is_some() {
            return Err(Error::Active);
        }
        self.hold()?;
        self.active = Some(self.begin(None)?);
        Ok(())
    }

    fn hold(&mut self) -> Result<(), Error> {
        let (of_call, keep) = (self.memory, self.registration == Registration::Kept);
        self.prepared.with(self.stage, |inner, ready| {
            let memory = ready.memory(of_call);
            let Ready { operation, keys, .. } = ready;
            if !keys.is_released() {
                return Ok(());
            }
            // SAFETY: the buffers stay valid until the operation is done, or the value dropped;
            // whoever waits for that releases the keys before telling anybody.
            unsafe { inner.of_world.engine.register(operation, memory, keep, keys) }
        })
    }

    /// Starts the stage at hand, whose memory is registered. Returns the call's numbers, which the first
    /// stage gets.
    fn begin(&mut self, numbers: Option<Numbers>) -> Result<Numbers, Error> {
        let (stage, of_call, n_stages) = (self.stage, self.memory, self.prepared.n_stages());
        let (numbers, started) = self.prepared.with(stage, |inner, ready| {
            let memory = ready.memory(of_call);
            let Ready { operation, keys, watch, .. } = ready;
            watch.begin();
            inner.in_order(numbers, n_stages, |numbers| {
                let (engine, id) = (&inner.of_world.engine, numbers.of(stage));
                // SAFETY: the promise made to `Running::new`.
                unsafe { engine.start(operation, memory, keys, id, order(stage), false) }
            })
        });
        if started.is_err() {
            self.release();
        }
        started.map(|()| numbers)
    }

    fn release(&mut self) {
        self.prepared
            .with(self.stage, |inner, ready| inner.of_world.engine.release(&mut ready.keys));
    }

    /// Waits for the stage at hand, and starts the next. True if there is none.
    fn pass(&mut self, numbers: Numbers) -> Result<bool, Error> {
        let (stage, holds) = (self.stage, self.registration == Registration::Held);
        let more = self.prepared.with(stage, |inner, ready| {
            let engine = &inner.of_world.engine;
            let outcome = match planted::is(Planted::StageEarly) && ready.learning.is_some() {
                true => Ok(()),
                false => engine.wait(&ready.operation, numbers.of(stage), &mut ready.watch),
            };
            if !holds || outcome.is_err() || ready.learning.is_some() {
                // Peers must not reach the buffers any more, which are the caller's now.
                engine.release(&mut ready.keys);
            }
            outcome.and_then(|()| inner.follow(ready))
        })?;
        if !more {
            return Ok(true);
        }
        self.stage += 1;
        let started = self.hold().and_then(|()| self.begin(Some(numbers)));
        // Others have come as far, and wait for this rank.
        started.inspect_err(|error| self.prepared.inner.of_world.engine.fail(error))?;
        Ok(false)
    }

    /// Starts the stages that are due, as long as there are any, without waiting.
    fn advance(&mut self) {
        let Some(numbers) = self.active else { return };
        while self.failure.is_none() && self.is_between() {
            self.failure = self.pass(numbers).err();
        }
    }

    /// Whether the stage at hand is done, and another one follows.
    fn is_between(&mut self) -> bool {
        let stage = self.stage;
        self.prepared.with(stage, |_, ready| ready.learning.is_some() && ready.operation.is_done())
    }

    fn has_ended(&self) -> bool {
        let ready = self.prepared.ready.as_ref();
        ready.is_some_and(|ready| ready.learning.is_none() && ready.operation.is_done())
    }

    fn test_by(
        &mut self,
        test: fn(&Engine, &Arc<Operation>, (u64, u32), &mut OperationWatch) -> bool,
    ) -> Result<bool, Error> {
        let Some(numbers) = self.active else { return Ok(true) };
        loop {
            let id = numbers.of(self.stage);
            let is_done = self.failure.is_some()
                || self.prepared.with(self.stage, |inner, Ready { operation, watch, .. }| {
                    test(&inner.of_world.engine, operation, id, watch)
                });
            if !is_done {
                return Ok(false);
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

    /// As [`pass`](Stages::pass), and notes the end.
    fn moved_on(&mut self, numbers: Numbers) -> Result<bool, Error> {
        let outcome = self.failure.take().map_or_else(|| self.pass(numbers), Err);
        if !matches!(outcome, Ok(false)) {
            self.active = None;
        }
        outcome
    }

    fn end(&mut self) {
        // Whoever ends it without waiting does not want to know how it went.
        let _ = self.wait();
        self.release();
    }
}
