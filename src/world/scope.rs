//! Non-blocking collectives on borrowed buffers.
//!
//! A borrow ends when the compiler says so, also if the value that stands for it is forgotten
//! (`mem::forget`). So requests live in a scope, like threads in [`std::thread::scope`]: the
//! scope does not return, not even by a panic, before everything started in it is done.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Mutex;

use crate::Rank;
use hopbine_torus::collectives::Collective;

use super::call::{Call, whole_blocks};
use super::communicator::Communicator;
use super::raw::Started;
use crate::error::Error;
use crate::reduce::{Datatype, Dtype, Op};
use crate::sync::lock;

/// A place to start non-blocking collectives in; see [`Communicator::scope`].
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
    running: Mutex<Vec<Option<Started>>>,
    /// Invariant in both, as in `std::thread::Scope`: or 'scope could be shrunk and a buffer
    /// be borrowed for less than the scope.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// A collective under way. Dropping it, or forgetting it, leaves the waiting to the scope.
#[must_use = "the scope waits in any case, but only `wait` gives the buffer back"]
pub struct Request<'scope, T> {
    running: &'scope Mutex<Vec<Option<Started>>>,
    index: usize,
    /// The receive buffer, not as a reference while the collective writes to it.
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
    /// What `f` returns; else the failure of a collective that `f` has not waited for.
    pub fn scope<'env, R>(
        &self,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let scope = Scope {
            comm: self,
            running: Mutex::new(Vec::new()),
            scope: PhantomData,
            env: PhantomData,
        };
        // If `f` panics, `scope` is dropped by the unwinding, and with it everything that is
        // running: that waits.
        let result = f(&scope);
        let left = std::mem::take(&mut *lock(&scope.running));
        let mut failure = None;
        for running in left.into_iter().flatten() {
            if let Err(error) = running.wait() {
                failure.get_or_insert(error);
            }
        }
        match failure {
            Some(error) => result.and(Err(error)),
            None => result,
        }
    }
}

/// Errors are those of the blocking methods; what goes wrong later is returned by
/// [`Request::wait`].
impl<'scope> Scope<'scope, '_> {
    pub(super) fn start<T: Datatype>(
        &'scope self,
        call: &Call,
        recv: NonNull<[T]>,
    ) -> Result<Request<'scope, T>, Error> {
        // SAFETY: the addresses come from slices that the calling method borrows for 'scope,
        // and `scope` does not return before everything in `running` is done.
        let running = unsafe { self.comm.started(call) }?;
        let all = &mut *lock(&self.running);
        let free = all.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            all.push(None);
            all.len() - 1
        });
        all[index] = Some(running);
        Ok(Request { running: &self.running, index, recv, buffer: PhantomData })
    }

    /// See [`Communicator::allreduce`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn allreduce<T: Datatype>(
        &'scope self,
        send: &'scope [T],
        recv: &'scope mut [T],
        op: Op,
    ) -> Result<Request<'scope, T>, Error> {
        let call = Call::of(Collective::Allreduce, send.len(), send, recv).op(op);
        self.start(&call, recv.into())
    }

    /// See [`Communicator::allreduce_in_place`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn allreduce_in_place<T: Datatype>(
        &'scope self,
        buffer: &'scope mut [T],
        op: Op,
    ) -> Result<Request<'scope, T>, Error> {
        let call = Call::of(Collective::Allreduce, buffer.len(), &[], buffer).op(op).in_place();
        self.start(&call, buffer.into())
    }

    /// See [`Communicator::reduce_scatter`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn reduce_scatter<T: Datatype>(
        &'scope self,
        send: &'scope [T],
        recv: &'scope mut [T],
        op: Op,
    ) -> Result<Request<'scope, T>, Error> {
        let call = Call::of(Collective::ReduceScatter, recv.len(), send, recv).op(op);
        self.start(&call, recv.into())
    }

    /// See [`Communicator::allgather`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn allgather<T: Datatype>(
        &'scope self,
        send: &'scope [T],
        recv: &'scope mut [T],
    ) -> Result<Request<'scope, T>, Error> {
        let call = Call::of(Collective::Allgather, send.len(), send, recv);
        self.start(&call, recv.into())
    }

    /// See [`Communicator::bcast`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn bcast<T: Datatype>(
        &'scope self,
        buffer: &'scope mut [T],
        root: Rank,
    ) -> Result<Request<'scope, T>, Error> {
        let call = Call::of(Collective::Bcast, buffer.len(), &[], buffer).root(root);
        self.start(&call, buffer.into())
    }

    /// See [`Communicator::reduce`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn reduce<T: Datatype>(
        &'scope self,
        send: &'scope [T],
        recv: &'scope mut [T],
        op: Op,
        root: Rank,
    ) -> Result<Request<'scope, T>, Error> {
        let call = Call::of(Collective::Reduce, send.len(), send, recv).op(op).root(root);
        self.start(&call, recv.into())
    }

    /// See [`Communicator::gather`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn gather<T: Datatype>(
        &'scope self,
        send: &'scope [T],
        recv: &'scope mut [T],
        root: Rank,
    ) -> Result<Request<'scope, T>, Error> {
        let call = Call::of(Collective::Gather, send.len(), send, recv).root(root);
        self.start(&call, recv.into())
    }

    /// See [`Communicator::scatter`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn scatter<T: Datatype>(
        &'scope self,
        send: &'scope [T],
        recv: &'scope mut [T],
        root: Rank,
    ) -> Result<Request<'scope, T>, Error> {
        let call = Call::of(Collective::Scatter, recv.len(), send, recv).root(root);
        self.start(&call, recv.into())
    }

    /// See [`Communicator::alltoall`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn alltoall<T: Datatype>(
        &'scope self,
        send: &'scope [T],
        recv: &'scope mut [T],
    ) -> Result<Request<'scope, T>, Error> {
        let count = whole_blocks(Collective::Alltoall, self.comm.caller(), send.len())?;
        self.start(&Call::of(Collective::Alltoall, count, send, recv), recv.into())
    }

    /// See [`Communicator::scan`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn scan<T: Datatype>(
        &'scope self,
        send: &'scope [T],
        recv: &'scope mut [T],
        op: Op,
    ) -> Result<Request<'scope, T>, Error> {
        let call = Call::of(Collective::Scan, send.len(), send, recv).op(op);
        self.start(&call, recv.into())
    }

    /// See [`Communicator::exscan`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn exscan<T: Datatype>(
        &'scope self,
        send: &'scope [T],
        recv: &'scope mut [T],
        op: Op,
    ) -> Result<Request<'scope, T>, Error> {
        let call = Call::of(Collective::Exscan, send.len(), send, recv).op(op);
        self.start(&call, recv.into())
    }

    /// See [`Communicator::barrier`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn barrier(&'scope self) -> Result<Request<'scope, u8>, Error> {
        let nothing: &mut [u8] = &mut [];
        self.start(&Call::new(Collective::Barrier, 0, Dtype::U8), nothing.into())
    }
}

impl<'scope, T> Request<'scope, T> {
    /// Whether the collective is done. Without workers, this is what moves it on.
    pub fn test(&self) -> bool {
        // Not under the lock, which others of the scope need.
        let Some(mut running) = lock(self.running)[self.index].take() else { return true };
        let done = running.test();
        lock(self.running)[self.index] = Some(running);
        done
    }

    /// Waits until the collective is done, and gives the receive buffer back.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::Wire`], or [`Error::Poisoned`].
    pub fn wait(self) -> Result<&'scope mut [T], Error> {
        let running = lock(self.running)[self.index].take();
        running.map_or(Ok(()), Started::wait)?;
        // SAFETY: made from a `&'scope mut [T]`, which nobody uses any more: the collective is
        // done, and this request is consumed.
        Ok(unsafe { &mut *self.recv.as_ptr() })
    }
}
