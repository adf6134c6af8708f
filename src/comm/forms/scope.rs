//! Non-blocking collectives on borrowed buffers.
//!
//! The compiler decides where a borrow ends, even if the value that holds it is forgotten (`mem::forget`). So
//! requests live in a scope, like threads in [`std::thread::scope`]: the scope does not return, not even by a panic,
//! before everything started in it is done.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Mutex;

use smallvec::SmallVec;

use super::raw::Started;
use crate::comm::call::{Call, Caller};
use crate::comm::communicator::Communicator;
use crate::error::Error;
use crate::reduce::Datatype;
use crate::sync::lock;

/// A scope in which non-blocking collectives are started; see [`Communicator::scope`].
///
/// Buffers are borrowed until the scope ends, or until [`Request::wait`] gives them back, so
/// this does not compile:
/// ```compile_fail,E0506
/// # use hopbine::{Communicator, Error, reduce::Op};
/// fn touch(comm: &Communicator) -> Result<(), Error> {
///     let (mine, mut sum) = ([1; 3], [0; 3]);
///     comm.scope(|scope| {
///         let request = scope.allreduce(&mine, &mut sum, Op::Sum)?;
///         sum[0] = 1;
///         request.wait().map(|_| ())
///     })
/// }
/// ```
/// and neither does this, where the buffer ends before the scope:
/// ```compile_fail,E0597
/// # use hopbine::{Communicator, Error, reduce::Op};
/// fn too_short(comm: &Communicator) -> Result<(), Error> {
///     comm.scope(|scope| {
///         let (mine, mut sum) = ([1; 3], [0; 3]);
///         std::mem::forget(scope.allreduce(&mine, &mut sum, Op::Sum)?);
///         Ok(())
///     })
/// }
/// ```
pub struct Scope<'scope, 'env: 'scope> {
    comm: &'scope Communicator,
    slots: Mutex<Slots>,
    /// Makes the type invariant in both lifetimes, as in `std::thread::Scope`: otherwise 'scope could shrink, and a
    /// buffer be borrowed for less than the scope.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The collectives of a scope. A slot belongs to one request from [`add`](Slots::add) to [`end`](Slots::end), also
/// while it is empty because a thread has taken the collective out to drive it.
#[derive(Default)]
struct Slots {
    /// Usually one, which needs no heap memory.
    started: SmallVec<[Option<Started>; 1]>,
    /// The slots that belong to no request; a few of them need no heap memory.
    free: SmallVec<[usize; 8]>,
}

impl Slots {
    /// Puts a collective into a slot of its own.
    fn add(&mut self, started: Started) -> usize {
        if let Some(index) = self.free.pop() {
            self.started[index] = Some(started);
            return index;
        }
        self.started.push(Some(started));
        self.started.len() - 1
    }

    /// Takes a collective out and frees its slot.
    fn end(&mut self, index: usize) -> Option<Started> {
        // Requests that exist one at a time need no list of free slots.
        if index + 1 == self.started.len() {
            return self.started.pop().flatten();
        }
        self.free.push(index);
        self.started[index].take()
    }
}

/// A collective under way. If it is dropped or forgotten, the scope waits for the collective.
#[must_use = "the scope waits in any case, but only `wait` gives the buffer back"]
pub struct Request<'scope, T> {
    slots: &'scope Mutex<Slots>,
    index: usize,
    /// The receive buffer; a pointer, since the collective writes to it.
    recv: NonNull<[T]>,
    buffer: PhantomData<&'scope mut [T]>,
}

// SAFETY: stands for a `&'scope mut [T]` and a shared reference to a mutex.
unsafe impl<T: Send> Send for Request<'_, T> {}

impl Communicator {
    /// Calls `f` with a scope in which non-blocking collectives can be started, and waits for
    /// them.
    ///
    /// ```
    /// # use hopbine::{EmulationConfig, emulate, reduce::Op};
    /// # use hopbine::torus::geometry::Shape;
    /// # let config = EmulationConfig::new(Shape::torus(&[2]).unwrap());
    /// let sums = emulate(&config, |comm| {
    ///     let (mine, mut sum) = ([comm.rank() + 1; 3], [0; 3]);
    ///     comm.scope(|scope| {
    ///         let request = scope.allreduce(&mine, &mut sum, Op::Sum)?;
    ///         // Compute something else here.
    ///         request.wait().map(|sum| sum[0])
    ///     })
    /// });
    /// assert_eq!(sums.unwrap(), [Ok(3), Ok(3)]);
    /// ```
    ///
    /// # Errors
    /// The error that `f` returns; else the failure of a collective that `f` has not waited for.
    pub fn scope<'env, R>(
        &self,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let scope =
            Scope { comm: self, slots: Mutex::default(), scope: PhantomData, env: PhantomData };
        // If `f` panics, unwinding drops `scope` and with it all running collectives, which waits for them.
        let result = f(&scope);
        let left = std::mem::take(&mut lock(&scope.slots).started);
        let mut failure = None;
        for started in left.into_iter().flatten() {
            if let Err(error) = started.wait() {
                failure.get_or_insert(error);
            }
        }
        match failure {
            Some(error) => result.and(Err(error)),
            None => result,
        }
    }
}

impl<'scope> Scope<'scope, '_> {
    pub(super) fn caller(&self) -> Caller {
        self.comm.caller()
    }

    pub(super) fn start<T: Datatype>(
        &'scope self,
        call: &Call,
        recv: NonNull<[T]>,
    ) -> Result<Request<'scope, T>, Error> {
        // `recv` has been made of the caller's borrow, which has ended the reborrow that the call's own pointer is of.
        let call = Call { recv: recv.as_ptr().cast(), ..*call };
        // SAFETY: the addresses come from slices that the calling method borrows for 'scope,
        // and `scope` does not return before everything in `slots` is done.
        let started = unsafe { self.comm.started(&call) }?;
        let index = lock(&self.slots).add(started);
        Ok(Request { slots: &self.slots, index, recv, buffer: PhantomData })
    }
}

impl<'scope, T> Request<'scope, T> {
    /// Whether the collective is done. Without workers, this call advances it.
    pub fn test(&self) -> bool {
        self.drive(Started::test)
    }

    /// Calls `drive` on the collective without holding the lock, which other requests of the scope need.
    fn drive(&self, drive: impl FnOnce(&mut Started) -> bool) -> bool {
        // Only a panic of an earlier `drive` leaves the slot empty: the collective has ended then.
        let Some(mut started) = lock(self.slots).started[self.index].take() else { return true };
        let done = drive(&mut started);
        lock(self.slots).started[self.index] = Some(started);
        done
    }

    /// Waits until the collective is done, and gives the receive buffer back.
    ///
    /// # Panics
    /// If [`test`](Request::test) has panicked: then the outcome of the collective is unknown.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::Wire`], or [`Error::Poisoned`].
    pub fn wait(self) -> Result<&'scope mut [T], Error> {
        let started = lock(self.slots).end(self.index);
        started.expect("a test of this request has panicked").wait()?;
        // SAFETY: made from a `&'scope mut [T]`, which nobody uses any more: the collective is
        // done, and this request is consumed.
        Ok(unsafe { &mut *self.recv.as_ptr() })
    }
}

#[cfg(test)]
mod tests {
    use hopbine_torus::geometry::Shape;

    use crate::reduce::Op;
    use crate::world::{EmulationConfig, emulate};

    /// The closure of `drive` does what another thread of the scope may do while this one drives its collective.
    #[test]
    fn a_collective_that_is_driven_keeps_its_slot() {
        let config = EmulationConfig::new(Shape::torus(&[2]).unwrap());
        let outcome = emulate(&config, |comm| {
            let mine = [comm.rank() + 1; 3];
            let [mut sum, mut max] = [[0; 3]; 2];
            comm.scope(|scope| {
                let first = scope.allreduce(&mine, &mut sum, Op::Sum)?;
                let mut second = None;
                first.drive(|_| {
                    let started = scope.allreduce(&mine, &mut max, Op::Max);
                    let index = started.as_ref().map(|second| second.index);
                    assert_ne!(index, Ok(first.index), "a slot of two collectives");
                    second = Some(started);
                    false
                });
                let second = second.expect("the first was in its slot")?;
                let mut has_ended = true;
                second.drive(|_| {
                    has_ended = first.drive(|_| false);
                    false
                });
                assert!(!has_ended, "the second was driven from the slot of the first");
                assert_eq!((second.wait()?, first.wait()?), (&mut [2; 3][..], &mut [3; 3][..]));
                // A collective that was waited for has left its slot to the next ones.
                assert!(scope.barrier()?.index < 2);
                Ok(())
            })
        });
        assert_eq!(outcome.unwrap(), [Ok(()), Ok(())]);
    }
}
