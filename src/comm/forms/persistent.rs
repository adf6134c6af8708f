//! Persistent collectives: planned, allocated and registered once, started many times.
//!
//! They own their buffers, so that starting is safe without a scope: forgetting a [`Persistent`] leaks
//! the buffers, and operations under way still find them.

use std::ptr::NonNull;

use bytemuck::allocation::try_zeroed_vec;

use crate::Rank;
use hopbine_torus::collectives::Collective;

use super::raw::Repeated;
use crate::comm::call::{Call, whole_blocks};
use crate::comm::communicator::Communicator;
use crate::error::Error;
use crate::reduce::{Datatype, Dtype, Op};

/// Elements that are accessed by reference only while no operation is under way. (A `Vec`
/// promises that nobody else has access, whenever it is moved.)
struct Owned<T>(NonNull<[T]>);

// SAFETY: owns its elements, like a Vec.
unsafe impl<T: Send> Send for Owned<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Owned<T> {}

impl<T> Owned<T> {
    fn new(elements: Vec<T>) -> Self {
        Owned(NonNull::from(Box::leak(elements.into_boxed_slice())))
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: leaked from a box in `new`; `Persistent` drops it when nothing is under way.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// A collective that can be started again and again. `start` and `wait` allocate nothing,
/// register nothing and exchange no addresses (after the first round).
pub struct Persistent<T: Datatype> {
    repeated: Repeated,
    /// Absent if the collective works in place.
    send: Option<Owned<T>>,
    recv: Owned<T>,
}

impl<T: Datatype> Persistent<T> {
    pub(crate) fn new(
        comm: &Communicator,
        call: Call,
        send: Option<Vec<T>>,
        recv: Vec<T>,
    ) -> Result<Self, Error> {
        let (send, recv) = (send.map(Owned::new), Owned::new(recv));
        let call = Call {
            send: send.as_ref().map_or(std::ptr::null(), |send| send.0.as_ptr().cast()),
            send_count: send.as_ref().map_or(0, |send| send.0.len() as u64),
            recv: recv.0.as_ptr().cast(),
            recv_count: recv.0.len() as u64,
            ..call
        };
        // SAFETY: the buffers are this value's own and are freed only after the operation has
        // ended (`drop`); nobody gets a reference to them while it is under way.
        let repeated = unsafe { comm.repeated(&call) }?;
        Ok(Persistent { repeated, send, recv })
    }

    /// Starts the collective with what the input holds.
    ///
    /// # Errors
    /// [`Error::Active`] if it is under way; [`Error::Poisoned`] after a failure.
    pub fn start(&mut self) -> Result<(), Error> {
        self.repeated.start()
    }

    /// Whether the collective is done (also if it was never started). Without workers, this is
    /// what moves it on.
    ///
    /// # Errors
    /// What went wrong with it.
    pub fn test(&mut self) -> Result<bool, Error> {
        self.repeated.test()
    }

    /// Waits until the collective is done; returns at once if it was not started.
    ///
    /// # Errors
    /// What went wrong with it.
    pub fn wait(&mut self) -> Result<(), Error> {
        self.repeated.wait()
    }

    fn inactive(&self) -> Result<(), Error> {
        if self.repeated.is_active() { Err(Error::Active) } else { Ok(()) }
    }

    /// The buffer that the result is in; in place, also the input.
    ///
    /// # Errors
    /// [`Error::Active`] if the collective is under way.
    pub fn buffer(&self) -> Result<&[T], Error> {
        self.inactive()?;
        // SAFETY: owned, and nothing is under way.
        Ok(unsafe { self.recv.0.as_ref() })
    }

    /// As [`buffer`](Persistent::buffer), to be written.
    ///
    /// # Errors
    /// [`Error::Active`] if the collective is under way.
    pub fn buffer_mut(&mut self) -> Result<&mut [T], Error> {
        self.inactive()?;
        // SAFETY: as above, and borrowed exclusively.
        Ok(unsafe { self.recv.0.as_mut() })
    }

    /// The buffer that the input is taken from.
    ///
    /// # Errors
    /// [`Error::Active`] if the collective is under way.
    pub fn input_mut(&mut self) -> Result<&mut [T], Error> {
        self.inactive()?;
        let input = self.send.as_mut().unwrap_or(&mut self.recv);
        // SAFETY: as above, and borrowed exclusively.
        Ok(unsafe { input.0.as_mut() })
    }
}

impl<T: Datatype> Drop for Persistent<T> {
    fn drop(&mut self) {
        self.repeated.end();
        if self.repeated.has_failed() {
            // A late message may still be written to what peers were told of.
            self.send.take().into_iter().for_each(std::mem::forget);
            std::mem::forget(std::mem::replace(&mut self.recv, Owned::new(Vec::new())));
        }
    }
}

/// The output buffer of a persistent collective: zeros.
///
/// # Errors
/// [`Error::Memory`].
pub(crate) fn zeros<T: Datatype>(collective: Collective, elements: u64) -> Result<Vec<T>, Error> {
    let zeros = usize::try_from(elements).ok().and_then(|len| try_zeroed_vec(len).ok());
    zeros.ok_or(Error::Memory { collective, elements, dtype: T::DTYPE })
}

/// Errors are those of the blocking methods, and [`Error::Memory`]. Output buffers start as zeros.
impl Communicator {
    /// A block of `count` elements for each rank.
    fn blocks<T: Datatype>(&self, collective: Collective, count: usize) -> Result<Vec<T>, Error> {
        zeros(collective, (count as u64).saturating_mul(u64::from(self.size())))
    }

    /// Prepares [`allreduce_in_place`](Communicator::allreduce_in_place) on `buffer`.
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn allreduce_init<T: Datatype>(
        &self,
        buffer: Vec<T>,
        op: Op,
    ) -> Result<Persistent<T>, Error> {
        let call = Call::new(Collective::Allreduce, buffer.len() as u64, T::DTYPE);
        Persistent::new(self, call.op(op).in_place(), None, buffer)
    }

    /// Prepares [`reduce_scatter`](Communicator::reduce_scatter) of `send`.
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn reduce_scatter_init<T: Datatype>(
        &self,
        send: Vec<T>,
        op: Op,
    ) -> Result<Persistent<T>, Error> {
        let count = whole_blocks(Collective::ReduceScatter, self.caller(), send.len())?;
        let call = Call::new(Collective::ReduceScatter, count as u64, T::DTYPE).op(op);
        Persistent::new(self, call, Some(send), zeros(Collective::ReduceScatter, count as u64)?)
    }

    /// Prepares [`allgather`](Communicator::allgather) of `send`.
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn allgather_init<T: Datatype>(&self, send: Vec<T>) -> Result<Persistent<T>, Error> {
        let count = send.len();
        let call = Call::new(Collective::Allgather, count as u64, T::DTYPE);
        Persistent::new(self, call, Some(send), self.blocks(Collective::Allgather, count)?)
    }

    /// Prepares [`bcast`](Communicator::bcast) on `buffer`.
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn bcast_init<T: Datatype>(
        &self,
        buffer: Vec<T>,
        root: Rank,
    ) -> Result<Persistent<T>, Error> {
        let call = Call::new(Collective::Bcast, buffer.len() as u64, T::DTYPE).root(root);
        Persistent::new(self, call, None, buffer)
    }

    /// Prepares [`reduce`](Communicator::reduce) of `send`.
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn reduce_init<T: Datatype>(
        &self,
        send: Vec<T>,
        op: Op,
        root: Rank,
    ) -> Result<Persistent<T>, Error> {
        let count = send.len();
        let recv = zeros(Collective::Reduce, if self.rank() == root { count as u64 } else { 0 })?;
        let call = Call::new(Collective::Reduce, count as u64, T::DTYPE).op(op).root(root);
        Persistent::new(self, call, Some(send), recv)
    }

    /// Prepares [`gather`](Communicator::gather) of `send`.
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn gather_init<T: Datatype>(
        &self,
        send: Vec<T>,
        root: Rank,
    ) -> Result<Persistent<T>, Error> {
        let count = send.len();
        let recv = self.blocks(Collective::Gather, if self.rank() == root { count } else { 0 })?;
        let call = Call::new(Collective::Gather, count as u64, T::DTYPE).root(root);
        Persistent::new(self, call, Some(send), recv)
    }

    /// Prepares [`scatter`](Communicator::scatter) of `send`, which only the root gives, into
    /// blocks of `count` elements.
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn scatter_init<T: Datatype>(
        &self,
        send: Vec<T>,
        count: usize,
        root: Rank,
    ) -> Result<Persistent<T>, Error> {
        let call = Call::new(Collective::Scatter, count as u64, T::DTYPE).root(root);
        Persistent::new(self, call, Some(send), zeros(Collective::Scatter, count as u64)?)
    }

    /// Prepares [`alltoall`](Communicator::alltoall) of `send`.
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn alltoall_init<T: Datatype>(&self, send: Vec<T>) -> Result<Persistent<T>, Error> {
        let count = whole_blocks(Collective::Alltoall, self.caller(), send.len())?;
        let call = Call::new(Collective::Alltoall, count as u64, T::DTYPE);
        Persistent::new(self, call, Some(send), self.blocks(Collective::Alltoall, count)?)
    }

    /// Prepares [`scan`](Communicator::scan) of `send`.
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn scan_init<T: Datatype>(&self, send: Vec<T>, op: Op) -> Result<Persistent<T>, Error> {
        let count = send.len();
        let call = Call::new(Collective::Scan, count as u64, T::DTYPE).op(op);
        Persistent::new(self, call, Some(send), zeros(Collective::Scan, count as u64)?)
    }

    /// Prepares [`exscan`](Communicator::exscan) of `send`.
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn exscan_init<T: Datatype>(&self, send: Vec<T>, op: Op) -> Result<Persistent<T>, Error> {
        let count = send.len();
        let call = Call::new(Collective::Exscan, count as u64, T::DTYPE).op(op);
        Persistent::new(self, call, Some(send), zeros(Collective::Exscan, count as u64)?)
    }

    /// Prepares [`barrier`](Communicator::barrier).
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn barrier_init(&self) -> Result<Persistent<u8>, Error> {
        let call = Call::new(Collective::Barrier, 0, Dtype::U8);
        Persistent::new(self, call, None, Vec::new())
    }
}
