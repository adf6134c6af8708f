//! Operations in somebody's hands, and under way.

use std::ops::Deref;
use std::sync::Arc;

use super::cache::Ready;
use super::inner::Inner;
use crate::engine::{Engine, Operation, TestWatch, UserMemory};
use crate::error::Error;

/// An operation in somebody's hands, not under way. `H` holds the communicator, or borrows it.
pub(super) struct Prepared<H: Deref<Target = Inner> = Arc<Inner>> {
    inner: H,
    /// `None` only while being dropped.
    ready: Option<Box<Ready>>,
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
    /// As [`Engine::register`], [`Engine::start`] and [`Engine::wait`].
    pub(super) unsafe fn run(mut self, memory: [UserMemory; 2], keep: bool) -> Result<(), Error> {
        let id = self.inner.next_operation();
        self.with(|engine, Ready { operation, keys, .. }| {
            // SAFETY: the buffers stay valid until the keys have been released, here.
            unsafe { engine.register(operation, memory, keep, keys) }?;
            let outcome = {
                let _under_way = UnderWay { engine, operation, id };
                // SAFETY: the caller's promise; also a panic does not get past `_under_way`
                // before the operation is done.
                let started = unsafe { engine.start(operation, memory, keys, id, true) };
                started.and_then(|()| engine.wait(operation, id))
            };
            engine.release(keys);
            outcome
        })
    }

    /// Starts the operation. `keep` allows the wire to remember the memory.
    ///
    /// # Safety
    /// As [`Engine::start`], until the operation is done.
    ///
    /// # Errors
    /// As [`Engine::register`] and [`Engine::start`].
    pub(super) unsafe fn start(
        mut self,
        memory: [UserMemory; 2],
        keep: bool,
    ) -> Result<Running<H>, Error> {
        let id = self.inner.next_operation();
        self.with(|engine, Ready { operation, keys, .. }| {
            // SAFETY: the buffers stay valid until the operation is done, and whoever waits
            // for that releases the keys before telling anybody.
            unsafe { engine.register(operation, memory, keep, keys) }?;
            // SAFETY: the caller's promise.
            let started = unsafe { engine.start(operation, memory, keys, id, false) };
            if started.is_err() {
                engine.release(keys);
            }
            started
        })?;
        Ok(Running { prepared: self, id, watch: TestWatch::default() })
    }

    /// Gives access to the engine and the operation.
    pub(super) fn with<R>(&mut self, f: impl FnOnce(&Engine, &mut Ready) -> R) -> R {
        let Some(ready) = self.ready.as_deref_mut() else { unreachable!("taken in drop only") };
        f(&self.inner.of_world.engine, ready)
    }

    /// Names the next operation of the communicator.
    pub(super) fn next_operation(&self) -> (u64, u32) {
        self.inner.next_operation()
    }

    /// Whether something has failed.
    pub(super) fn has_failed(&self) -> bool {
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
            let _ = self.engine.wait(self.operation, self.id);
        }
    }
}

/// An operation under way. Dropping it waits for it.
pub(super) struct Running<H: Deref<Target = Inner> = Arc<Inner>> {
    prepared: Prepared<H>,
    /// Context and number of the operation.
    id: (u64, u32),
    watch: TestWatch,
}

impl<H: Deref<Target = Inner>> Running<H> {
    /// Moves things on a little; true if the operation is done.
    pub(super) fn test(&mut self) -> bool {
        let Running { prepared, id, watch } = self;
        prepared.with(|engine, ready| engine.test(&ready.operation, *id, watch))
    }

    /// Waits for the end.
    pub(super) fn wait(mut self) -> Result<(), Error> {
        self.finish()
    }

    fn finish(&mut self) -> Result<(), Error> {
        let id = self.id;
        self.prepared.with(|engine, Ready { operation, keys, .. }| {
            let outcome = engine.wait(operation, id);
            engine.release(keys);
            outcome
        })
    }
}

impl<H: Deref<Target = Inner>> Drop for Running<H> {
    fn drop(&mut self) {
        let ready = self.prepared.ready.as_ref();
        if ready.is_some_and(|ready| !ready.keys.is_released()) {
            // Whoever drops an operation without waiting does not want to know.
            let _ = self.finish();
        }
    }
}
