//! Collectives under way on addresses: what interfaces to other languages hold.

use super::cache::Ready;
use super::call::Call;
use super::communicator::Communicator;
use super::running::{Prepared, Running};
use crate::engine::{TestWatch, UserMemory};
use crate::error::Error;

/// A non-blocking collective under way. Dropping it waits for it.
pub struct Started(Running);

/// A persistent collective on somebody's buffers. Dropping it waits for it.
pub struct Repeated {
    prepared: Prepared,
    memory: [UserMemory; 2],
    /// Context and number of the operation, while it is under way.
    active: Option<(u64, u32)>,
    watch: TestWatch,
}

// SAFETY: the addresses are used only as long as they are valid, which whoever made the value
// has promised for all threads.
unsafe impl Send for Repeated {}

impl Communicator {
    /// Starts a call whose buffers are given as addresses, checked as by
    /// [`call`](Communicator::call).
    ///
    /// # Safety
    /// The promise of [`call`](Communicator::call), until the operation is done: that is until
    /// [`Started::wait`] has returned or the value has been dropped.
    ///
    /// # Errors
    /// As for the method of [`Scope`](super::Scope) named after the collective.
    pub unsafe fn started(&self, call: &Call) -> Result<Started, Error> {
        // SAFETY: the caller's promise.
        unsafe { self.launch(call) }.map(Started)
    }

    /// Prepares a call whose buffers are given as addresses, to be started again and again.
    ///
    /// # Safety
    /// The promise of [`call`](Communicator::call), whenever the operation is under way; and the
    /// buffers must be there until the value has been dropped.
    ///
    /// # Errors
    /// As for the method of [`Persistent`](super::Persistent) named after the collective.
    pub unsafe fn repeated(&self, call: &Call) -> Result<Repeated, Error> {
        let call = call.normalized(self.caller());
        let mut prepared = self.prepare(&call)?;
        let memory = call.memory(self.caller());
        prepared.with(|engine, Ready { operation, keys, .. }| {
            // SAFETY: `end` releases the keys while the buffers are still there.
            unsafe { engine.register(operation, memory, false, keys) }
        })?;
        Ok(Repeated { prepared, memory, active: None, watch: TestWatch::default() })
    }
}

impl Started {
    /// Moves things on a little; true if the collective is done.
    pub fn test(&mut self) -> bool {
        self.0.test()
    }

    /// Waits until the collective is done.
    ///
    /// # Errors
    /// What went wrong with it.
    pub fn wait(self) -> Result<(), Error> {
        self.0.wait()
    }
}

impl Repeated {
    /// Starts the collective with what the input holds.
    ///
    /// # Errors
    /// [`Error::Active`] if it is under way; [`Error::Poisoned`] after a failure.
    pub fn start(&mut self) -> Result<(), Error> {
        if self.active.is_some() {
            return Err(Error::Active);
        }
        let (id, memory) = (self.prepared.next_operation(), self.memory);
        self.prepared.with(|engine, Ready { operation, keys, .. }| {
            // SAFETY: the promise made to `Communicator::repeated`; the call was checked there.
            unsafe { engine.start(operation, memory, keys, id, false) }
        })?;
        self.active = Some(id);
        Ok(())
    }

    /// Whether the collective is under way as far as its owner knows: started, and its end not
    /// yet seen.
    pub fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// Whether the collective is done (also if it was never started). Without workers, this is
    /// what moves it on.
    ///
    /// # Errors
    /// What went wrong with it.
    pub fn test(&mut self) -> Result<bool, Error> {
        let Some(id) = self.active else { return Ok(true) };
        let Repeated { prepared, watch, .. } = self;
        let done = prepared.with(|engine, ready| engine.test(&ready.operation, id, watch));
        if done {
            self.wait()?;
        }
        Ok(done)
    }

    /// Waits until the collective is done; returns at once if it was not started.
    ///
    /// # Errors
    /// What went wrong with it.
    pub fn wait(&mut self) -> Result<(), Error> {
        let Some(id) = self.active.take() else { return Ok(()) };
        self.prepared.with(|engine, Ready { operation, keys, .. }| {
            let outcome = engine.wait(operation, id);
            if outcome.is_err() {
                // Peers must not reach the buffers any more, which are the caller's now.
                engine.release(keys);
            }
            outcome
        })
    }

    /// Waits for the end and lets go of the buffers; nothing can be started any more.
    pub(super) fn end(&mut self) {
        // Whoever ends it without waiting does not want to know how it went.
        let _ = self.wait();
        self.prepared.with(|engine, ready| engine.release(&mut ready.keys));
    }

    /// Whether something has failed: a late message may then still be written to the buffers.
    pub(super) fn has_failed(&self) -> bool {
        self.prepared.has_failed()
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        self.end();
    }
}
