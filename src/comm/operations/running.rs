//! Calls, and the operations that perform them.
//!
//! A call consists of one operation or, if ranks exchange sizes first ([`super::size_exchange`]), of several, one
//! after the other: its *stages*.

use std::ops::Deref;
use std::sync::Arc;

use crate::comm::call::Call;
use crate::comm::call::options::CallOptions;
use crate::comm::communicator::Communicator;
use crate::comm::programs::cache::CacheHit;
use crate::comm::programs::key::Key;
use crate::comm::programs::ready::{Compiled, Ready, SizeExchange};
use crate::comm::state::inner::Inner;
use crate::comm::state::ticket_lock::Ticket;
use crate::endpoint::Tag;
use crate::engine::{Admitted, Engine, Operation, OperationWatch, StartOrder, UserMemory};
use crate::error::Error;

impl Communicator {
    /// Performs a call whose buffers are given as addresses, and waits for it.
    ///
    /// The interfaces to other languages use this. It checks lengths, root, operator and overlap; it cannot check
    /// that the addresses are right.
    ///
    /// # Safety
    /// The send buffer must be valid for reads of `send_count` elements and the receive buffer for reads and writes
    /// of `recv_count` elements, for the whole call. Nobody may write the send buffer or access the receive buffer
    /// meanwhile.
    ///
    /// # Errors
    /// As for the method named after the collective; [`Error::Address`], [`Error::Overlap`].
    #[inline]
    pub unsafe fn call(&self, call: &Call) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.call_normalized(&call.normalized(self.caller())) }
    }

    /// As [`call`](Communicator::call), for a normalized call.
    ///
    /// # Safety
    /// As [`call`](Communicator::call).
    #[inline]
    pub(crate) unsafe fn call_normalized(&self, call: &Call) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.with_trace(call, || unsafe { self.perform(call) })
    }

    /// Performs a normalized call by `perform`, and records it if there is a timeline. Defined in this file, so that a
    /// call without a timeline passes through no further file.
    #[inline]
    pub(crate) fn with_trace(
        &self,
        call: &Call,
        perform: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self.inner.world.engine.tracer() {
            None => perform(),
            Some(tracer) => self.trace_call(tracer, call, perform),
        }
    }

    /// # Safety
    /// As [`call`](Communicator::call).
    #[inline]
    unsafe fn perform(&self, call: &Call) -> Result<(), Error> {
        let small = self.gates_for(call)?;
        let memory = call.check(self.caller())?;
        let mut handed_back = None;
        if let Some(small) = small {
            // SAFETY: the caller's promise.
            handed_back = unsafe { self.perform_by_hardware(small, call) }?;
            if handed_back.is_none() {
                return Ok(());
            }
        }
        // SAFETY: the caller's promise, and `check` as in `launch`.
        unsafe { self.run_by_plan(call, memory, handed_back) }
    }

    /// Performs a checked, normalized call on its memory by a plan, perhaps one that has been admitted.
    ///
    /// # Safety
    /// As [`launch_prepared`](Communicator::launch_prepared), until this returns.
    #[inline]
    pub(crate) unsafe fn run_by_plan(
        &self,
        call: &Call,
        memory: [UserMemory; 2],
        admitted: Option<Admitted>,
    ) -> Result<(), Error> {
        if admitted.is_none() {
            self.inner.world.engine.check()?;
        }
        let prepared = Prepared::new(&*self.inner, self.inner.ready(call, &self.options)?);
        // SAFETY: the caller's promise.
        unsafe { prepared.run(memory, !self.options.register_anew, admitted) }
    }

    /// Checks a normalized call and gets an operation for it with `options`: those of the communicator, or a copy
    /// with changes. Also returns the call's memory.
    pub(crate) fn prepare(
        &self,
        call: &Call,
        options: &Arc<CallOptions>,
    ) -> Result<(Prepared, [UserMemory; 2]), Error> {
        let memory = call.check(self.caller())?;
        self.inner.world.engine.check()?;
        let ready = self.inner.ready(call, options)?;
        Ok((Prepared::new(self.inner.clone(), ready), memory))
    }
}

/// An operation that a caller has taken from the cache. Dropping it puts it back. `H` owns the communicator or
/// borrows it.
pub(crate) struct Prepared<H: Deref<Target = Inner> = Arc<Inner>> {
    pub(crate) inner: H,
    /// `None` only while being dropped.
    pub(crate) ready: Option<Box<Ready>>,
}

/// The numbers of a call's operations: the context and the number of the first.
#[derive(Clone, Copy)]
pub(crate) struct OperationNumbers((u64, u32));

impl OperationNumbers {
    pub(crate) fn of(self, stage: usize) -> (u64, u32) {
        let OperationNumbers((context, first)) = self;
        (context, (first + stage as u32) % Tag::OPERATIONS)
    }
}

/// Start order of a stage. Later stages start when the previous one is done, perhaps after later calls.
pub(crate) fn start_order(stage: usize) -> StartOrder {
    if stage == 0 { StartOrder::InOrder } else { StartOrder::Late }
}

impl Inner {
    /// Gets an operation for a normalized and checked call. The caller must put it back.
    pub(crate) fn ready(
        &self,
        call: &Call,
        options: &Arc<CallOptions>,
    ) -> Result<Box<Ready>, Error> {
        let cache = &self.members.programs;
        if let Some(ready) = cache.take(call, options) {
            return Ok(ready);
        }
        self.ready_for(Key::new(call, options))
    }

    /// As [`ready`](Inner::ready), for the call with this key.
    pub(crate) fn ready_for(&self, key: Key) -> Result<Box<Ready>, Error> {
        let cache = &self.members.programs;
        let compiled = match cache.find(&key) {
            Some(CacheHit::Idle(ready)) => return Ok(ready),
            Some(CacheHit::Program(compiled)) => compiled,
            // Compiles without the lock: other threads continue meanwhile, and may compile the same call.
            None => cache.insert(&key, self.compile(&key)?),
        };
        let Compiled { program, reducer, after_sizes } = compiled;
        self.make_room(&program);
        let operation = self.world.engine.prepare(program, reducer)?;
        let size_exchange = after_sizes.map(|after_sizes| Box::new(SizeExchange::new(after_sizes)));
        Ok(Box::new(Ready::new(key, operation, size_exchange)))
    }

    /// The numbers of a call's operations: those it has, or new ones if its first operation is about to start, which
    /// must happen before the ticket is dropped. From then on other ranks rely on this one; before, the call can be
    /// abandoned and repeated.
    #[inline]
    pub(crate) fn numbers(
        &self,
        of_call: Option<OperationNumbers>,
        n_stages: u32,
    ) -> (Option<Ticket<'_>>, OperationNumbers) {
        if let Some(numbers) = of_call {
            return (None, numbers);
        }
        let (ticket, numbers) = self.next_operations(n_stages);
        (Some(ticket), OperationNumbers(numbers))
    }
}

impl Ready {
    /// The operation of a stage that has been reached.
    #[inline]
    fn stage(&mut self, stage: usize) -> &mut Ready {
        if stage == 0 { self } else { self.later_stage(stage) }
    }

    #[cold]
    fn later_stage(&mut self, stage: usize) -> &mut Ready {
        let next = self.size_exchange.as_mut().and_then(|size_exchange| size_exchange.next());
        let Some(next) = next else { unreachable!("a stage is reached from the one before") };
        next.stage(stage - 1)
    }

    /// The memory that the operation works on: the call's, unless the operation moves sizes only.
    #[inline]
    pub(crate) fn memory(&mut self, of_call: [UserMemory; 2]) -> [UserMemory; 2] {
        self.size_exchange.as_mut().map_or(of_call, |size_exchange| size_exchange.memory())
    }
}

impl<H: Deref<Target = Inner>> Prepared<H> {
    pub(crate) fn new(inner: H, ready: Box<Ready>) -> Self {
        Prepared { inner, ready: Some(ready) }
    }

    /// Performs the operation; returns when it is done. `keep` allows the wire to cache the registrations of the
    /// memory.
    ///
    /// # Safety
    /// As [`Engine::start`], until this returns.
    ///
    /// # Errors
    /// As [`Engine::admit`], [`Engine::register`], [`Engine::start`], [`Engine::wait`] and [`Inner::prepare_next`].
    pub(crate) unsafe fn run(
        mut self,
        memory: [UserMemory; 2],
        keep: bool,
        mut admitted: Option<Admitted>,
    ) -> Result<(), Error> {
        let n_stages = self.n_stages();
        if n_stages > 1 && admitted.is_none() {
            admitted = Some(self.inner.world.engine.admit()?);
        }
        let (mut numbers, mut stage) = (None, 0);
        loop {
            let (inner, ready) = self.stage(stage);
            let (engine, memory) = (&inner.world.engine, ready.memory(memory));
            let Ready { operation, keys, watch, size_exchange, .. } = &mut *ready;
            // SAFETY: the buffers stay valid until the keys have been released, here.
            let registered = unsafe { engine.register(operation, memory, keep, keys) };
            registered.inspect_err(|error| {
                // Other ranks have reached this stage and wait for this rank.
                if stage > 0 {
                    engine.fail(error);
                }
            })?;
            let outcome = {
                let (ticket, of_call) = inner.numbers(numbers, n_stages);
                numbers = Some(of_call);
                let id = of_call.of(stage);
                let _under_way = WaitGuard { engine, operation, id };
                // SAFETY: the caller's promise; also if there is a panic, `_under_way` waits until the operation is
                // done.
                let started =
                    unsafe { engine.start(operation, memory, keys, id, start_order(stage), true) };
                drop(ticket);
                if size_exchange.is_none() {
                    drop(admitted.take());
                }
                started.and_then(|()| engine.wait(operation, id, watch))
            };
            engine.release(keys);
            outcome?;
            if ready.size_exchange.is_none() || !inner.prepare_next(ready)? {
                return Ok(());
            }
            stage += 1;
        }
    }

    /// The communicator, and the operation of a stage.
    #[inline]
    pub(crate) fn stage(&mut self, stage: usize) -> (&Inner, &mut Ready) {
        let Some(ready) = self.ready.as_deref_mut() else { unreachable!("taken in drop only") };
        (&self.inner, ready.stage(stage))
    }

    /// The most operations that the call may consist of; the same on all ranks.
    #[inline]
    pub(crate) fn n_stages(&self) -> u32 {
        let size_exchange = self.ready.as_ref().and_then(|ready| ready.size_exchange.as_deref());
        size_exchange.map_or(1, SizeExchange::n_stages)
    }
}

impl<H: Deref<Target = Inner>> Drop for Prepared<H> {
    fn drop(&mut self) {
        if let Some(ready) = self.ready.take() {
            self.inner.members.programs.put(ready);
        }
    }
}

/// An operation under way. Dropping it waits for the operation, also in a panic.
struct WaitGuard<'a> {
    engine: &'a Engine,
    operation: &'a Arc<Operation>,
    id: (u64, u32),
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        // It is done, unless there was a panic.
        if !self.operation.is_done() {
            let _ = self.engine.wait(self.operation, self.id, &mut OperationWatch::default());
        }
    }
}
