//! Requests on the flat buffer: started calls, which all waits and tests of the rank advance.
//!
//! A started call takes the next number on the flat buffer, as a blocking one does, so that both match in the order
//! in which ranks make them. It then does the same as a blocking call, without waiting: it contributes as soon as
//! its place is free, usually at its start, and reads its result as soon as all contributions have arrived.
//!
//! *Order.* On each rank all calls contribute in the order of their numbers, and started calls end in that order. So
//! the only state of ended calls is the number up to which all have ended. Requests may be waited for in any order:
//! a call that all ranks have started ends as soon as the calls before it have, which all ranks have started, too.
//!
//! *Places.* The number of places does not depend on how many calls are under way. A call whose place is not free
//! waits until the other ranks have read the place's old contents. They do that in any call on the communicator, in
//! any wait or test of anything ([`ProgressHook`](crate::engine::ProgressHook)), and when they enter later calls. How
//! far other ranks are decides only when a call contributes, so ranks need not agree on that.
//!
//! *Blocking calls in between.* A blocking call contributes only after all calls started before it, and advances
//! these while it waits: another rank may need them before it can make the same blocking call. The blocking call may
//! end before them.
//!
//! *Threads.* All this is under the flat buffer's lock, which a blocking call holds while it waits. A thread that
//! tests a request meanwhile finds it under way, and the thread with the lock advances it.
//!
//! *Buffers.* A contribution is copied from the user's memory when the call contributes. When the call ends, the own
//! part of the result is copied, and only then is the output written. So the input must stay until the end, as MPI
//! demands.
//!
//! *Failures.* A rank that has made another call is detected as in a blocking call. The call ends with that error,
//! which is kept until its owner asks. If the world has failed, calls that cannot end any more are given up, and
//! their buffers are not touched afterwards.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, TryLockError};

use super::flat_buffer::{Flat, MOST_RANKS, SharedFlatBuffer};
use super::regular::block_bytes;
use super::started_calls::{StartedCall, StartedCalls};
use crate::Rank;
use crate::comm::call::blocks::Form;
use crate::comm::call::{Call, Caller};
use crate::comm::state::small::{CallStatus, Requests, StartStatus, Waiter};
use crate::endpoint::shm::{Contribution, Entered, FlatBuffer};
use crate::engine::ProgressState;
use crate::error::Error;
use crate::sync::lock;

impl SharedFlatBuffer {
    /// Whether this rank may contribute to a call behind started ones: only after these have contributed.
    ///
    /// # Errors
    /// The rank that is waited for.
    #[cold]
    pub(super) fn is_free_behind(&self, flat: &mut Flat, call: Entered) -> Result<(), usize> {
        self.advance_calls(flat);
        let Flat { buffer, started } = flat;
        if started.n_contributed < started.calls.len() {
            return Err(started.awaited);
        }
        let me = buffer.me();
        buffer.is_free(call).map_err(|rank| if rank == me { started.awaited } else { rank })
    }

    /// Advances the started calls as far as possible.
    pub(super) fn advance_calls(&self, flat: &mut Flat) {
        while self.contribute_next(flat) | self.complete_next(flat) {
            // Relaxed: only a hint that there is something to look at.
            self.status.has_moved.store(true, Ordering::Relaxed);
        }
    }

    fn caller(&self, buffer: &FlatBuffer) -> Caller {
        Caller { rank: buffer.me() as Rank, n_ranks: self.n_ranks as u32 }
    }

    /// Contributes to the first started call that has not contributed, if its place is free.
    #[inline]
    fn contribute_next(&self, Flat { buffer, started }: &mut Flat) -> bool {
        let Some(next) = started.calls.get(started.n_contributed) else { return false };
        if let Err(rank) = self.contribute_started(buffer, next) {
            started.awaited = rank;
            return false;
        }
        started.n_contributed += 1;
        true
    }

    /// Ends the first started call, if it has contributed and all contributions that it reads have arrived.
    #[inline]
    fn complete_next(&self, Flat { buffer, started }: &mut Flat) -> bool {
        if started.n_contributed == 0 {
            return false;
        }
        let Some(first) = started.calls.front_mut() else { return false };
        let outcome = match self.complete_started(buffer, first) {
            Ok(outcome) => outcome,
            Err(rank) => {
                started.awaited = rank;
                return false;
            }
        };
        let number = first.entered.number();
        started.calls.pop_front();
        started.n_contributed -= 1;
        let next = started.calls.front().map(|next| next.entered);
        buffer.has_read(next);
        if next.is_none() {
            // Relaxed: a thread that does not see it yet finds nothing to do.
            self.status.are_under_way.store(false, Ordering::Relaxed);
        }
        if let Err(error) = outcome {
            started.failures.push((number, error));
            // Relaxed: ordered by the next store.
            self.status.has_failures.store(true, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `has_ended`: the output has been written.
        self.status.ended.store(number + 1, Ordering::Release);
        true
    }

    /// Contributes to a call.
    ///
    /// # Errors
    /// The rank that may still read what the place held before.
    #[inline]
    fn contribute_started(
        &self,
        buffer: &mut FlatBuffer,
        started: &StartedCall,
    ) -> Result<(), usize> {
        let &StartedCall { ref call, entered, .. } = started;
        let caller = self.caller(buffer);
        let task = self.task(call, caller);
        if task.contributes {
            buffer.is_free(entered)?;
            // SAFETY: the call is under way, so that its input is there, and the place is free.
            unsafe { self.contribute(buffer, entered, (call, caller), &task) };
        }
        Ok(())
    }

    /// Reads this rank's result of a call, once all contributions have arrived.
    ///
    /// # Errors
    /// The first rank that has not contributed.
    #[inline]
    fn complete_started(
        &self,
        buffer: &mut FlatBuffer,
        started: &mut StartedCall,
    ) -> Result<Result<(), Error>, usize> {
        let &mut StartedCall { ref call, entered, ref mut next } = started;
        let caller = self.caller(buffer);
        let task = self.task(call, caller);
        let (sources, len) = task.sources();
        for rank in sources.start.max(*next)..sources.end {
            *next = rank;
            if rank != buffer.me() {
                match buffer.of(entered, rank, len) {
                    Contribution::At(_) => {}
                    Contribution::Other(rank) => return Ok(Err(self.other_call(rank, caller))),
                    Contribution::Missing => return Err(rank),
                }
            }
        }
        let reducer = match task.reducer(call) {
            Ok(reducer) => reducer,
            Err(error) => return Ok(Err(error)),
        };
        let given = buffer.own(entered, len);
        let find = |(rank, len)| match buffer.of(entered, rank, len) {
            Contribution::At(ptr) => Ok(ptr),
            // A contribution stays, unless another process overwrites memory that is not its own.
            _ => Err(self.other_call(rank, caller)),
        };
        // SAFETY: the call is under way, so that its buffers are valid, and nobody else uses them.
        Ok(unsafe { self.read_result((call, caller), (&task, reducer.as_ref()), given, find) })
    }

    /// Gives up the calls that have not ended; their buffers are not touched any more.
    #[cold]
    fn give_up(&self, flat: &mut Flat) {
        let Flat { buffer, started } = flat;
        let Some(first) = started.calls.front() else { return };
        started.given_up.get_or_insert(first.entered.number());
        started.calls.clear();
        started.n_contributed = 0;
        buffer.has_read(None);
        self.status.are_under_way.store(false, Ordering::Relaxed);
        self.status.has_failures.store(true, Ordering::Relaxed);
        // Release: as in `complete_next`.
        self.status.ended.store(buffer.call() + 1, Ordering::Release);
    }

    /// The outcome of a call that has ended.
    #[cold]
    fn outcome(&self, flat: &mut Flat, number: u64) -> CallStatus {
        let StartedCalls { failures, given_up, .. } = &mut flat.started;
        if let Some(at) = failures.iter().position(|(of, _)| *of == number) {
            return CallStatus::Failed(failures.swap_remove(at).1);
        }
        match given_up {
            Some(first) if number >= *first => CallStatus::GivenUp,
            _ => CallStatus::Ended,
        }
    }

    /// Locks the flat buffer, unless the lock is held.
    fn try_lock(&self) -> Option<MutexGuard<'_, Flat>> {
        match self.flat.try_lock() {
            Ok(flat) => Some(flat),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Requests for SharedFlatBuffer {
    #[inline]
    fn starts(&self, call: &Call) -> bool {
        // Started calls are not performed in groups: all ranks read all contributions.
        let are_read = || block_bytes(call).saturating_mul(self.n_ranks) <= self.limits.flat_read;
        call.form == Form::Regular
            && (!self.is_in_groups(call) || self.n_ranks <= MOST_RANKS as u64 && are_read())
    }

    #[inline]
    unsafe fn start(
        &self,
        call: &Call<'static>,
        waiter: &mut dyn Waiter,
    ) -> Result<StartStatus, Error> {
        let flat = &mut *lock(&self.flat);
        let entered = self.enter(flat, call, block_bytes(call), waiter)?;
        flat.buffer.read_later();
        flat.started.calls.push_back(StartedCall { call: *call, entered, next: 0 });
        self.advance_calls(flat);
        let started = &flat.started;
        if started.is_empty() && !self.status.has_failures.load(Ordering::Relaxed) {
            return Ok(StartStatus::Ended);
        }
        // SeqCst: as in `advance`.
        self.status.are_under_way.store(!started.is_empty(), Ordering::SeqCst);
        let needs_hook = !started.is_empty() && !self.status.is_hooked.swap(true, Ordering::SeqCst);
        Ok(StartStatus::UnderWay { number: entered.number(), needs_hook })
    }

    #[inline]
    fn has_ended(&self, number: u64) -> bool {
        // Acquire: pairs with the Release in `complete_next`.
        self.status.ended.load(Ordering::Acquire) > number
    }

    #[inline]
    fn poll(&self, number: u64, spins: bool, has_failed: bool) -> CallStatus {
        // Relaxed: ordered by `has_ended`.
        if self.has_ended(number) && !self.status.has_failures.load(Ordering::Relaxed) {
            return CallStatus::Ended;
        }
        let Some(mut flat) = self.try_lock() else { return CallStatus::Waits(None) };
        let spins = if spins { self.spins } else { 0 };
        for n_polls in 0.. {
            self.advance_calls(&mut flat);
            if self.has_ended(number) {
                return self.outcome(&mut flat, number);
            }
            if n_polls == spins {
                break;
            }
            std::hint::spin_loop();
        }
        if has_failed {
            self.give_up(&mut flat);
            return self.outcome(&mut flat, number);
        }
        CallStatus::Waits(Some(flat.started.awaited))
    }

    fn advance(&self) -> ProgressState {
        if self.status.are_under_way.load(Ordering::Relaxed)
            && let Some(mut flat) = self.try_lock()
        {
            self.advance_calls(&mut flat);
        }
        if self.status.has_moved.load(Ordering::Relaxed) {
            self.status.has_moved.store(false, Ordering::Relaxed);
            return ProgressState::Moved;
        }
        if self.status.are_under_way.load(Ordering::Relaxed) {
            return ProgressState::Waits;
        }
        // SeqCst: a thread that starts a call stores `are_under_way` and then sees that the hook is gone, or its
        // store is seen here. Not under the lock, which a blocking call may hold.
        self.status.is_hooked.store(false, Ordering::SeqCst);
        let is_hooked_again = self.status.are_under_way.load(Ordering::SeqCst)
            && !self.status.is_hooked.swap(true, Ordering::SeqCst);
        if is_hooked_again { ProgressState::Waits } else { ProgressState::Idle }
    }
}
