//! The collectives, blocking: each returns when its buffers are the caller's again.
//!
//! A vector is a slice; a block is a slice too, and `p` blocks are one slice of `p` times its
//! length, in rank order. Lengths must be the same on all ranks; any length is allowed.

use crate::Rank;
use hopbine_torus::collectives::Collective;

use crate::comm::call::{Call, whole_blocks};
use crate::comm::communicator::Communicator;
use crate::error::Error;
use crate::reduce::{Datatype, Dtype, Op};

/// # Errors of all collectives
/// [`Error::BufferLength`], [`Error::UnevenBlocks`], [`Error::Root`] and [`Error::Reduce`] if
/// the call makes no sense; nothing has been sent then. [`Error::UnknownAlgorithm`],
/// [`Error::NotServed`], [`Error::Setting`] and [`Error::Plan`] if the options do not.
/// [`Error::Timeout`] and [`Error::Wire`] if it fails, and [`Error::Poisoned`] for every call
/// after that.
impl Communicator {
    #[inline]
    pub(crate) fn blocking(&self, call: &Call) -> Result<(), Error> {
        // SAFETY: the addresses come from slices that the calling method borrows until this
        // returns, that is until the operation is done.
        unsafe { self.call(call) }
    }

    /// Combines the vectors of all ranks; everyone gets the result, bit for bit the same.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn allreduce<T: Datatype>(&self, send: &[T], recv: &mut [T], op: Op) -> Result<(), Error> {
        self.blocking(&Call::of(Collective::Allreduce, send.len(), send, recv).op(op))
    }

    /// [`allreduce`](Communicator::allreduce) with the input in the receive buffer.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn allreduce_in_place<T: Datatype>(&self, buffer: &mut [T], op: Op) -> Result<(), Error> {
        let count = buffer.len();
        self.blocking(&Call::of(Collective::Allreduce, count, &[], buffer).op(op).in_place())
    }

    /// Combines all ranks' `p` blocks; rank x gets block x of the result.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn reduce_scatter<T: Datatype>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: Op,
    ) -> Result<(), Error> {
        self.blocking(&Call::of(Collective::ReduceScatter, recv.len(), send, recv).op(op))
    }

    /// [`reduce_scatter`](Communicator::reduce_scatter) with the `p` blocks in `buffer`, the
    /// first of which takes the result; the others are left as they are.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn reduce_scatter_in_place<T: Datatype>(
        &self,
        buffer: &mut [T],
        op: Op,
    ) -> Result<(), Error> {
        let caller = self.caller();
        self.blocking(&Call::of_blocks(Collective::ReduceScatter, caller, buffer)?.op(op))
    }

    /// Everyone gets everyone's block.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn allgather<T: Datatype>(&self, send: &[T], recv: &mut [T]) -> Result<(), Error> {
        self.blocking(&Call::of(Collective::Allgather, send.len(), send, recv))
    }

    /// [`allgather`](Communicator::allgather) with the own block in its place in `buffer`.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn allgather_in_place<T: Datatype>(&self, buffer: &mut [T]) -> Result<(), Error> {
        self.blocking(&Call::of_blocks(Collective::Allgather, self.caller(), buffer)?)
    }

    /// Everyone gets the root's vector.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn bcast<T: Datatype>(&self, buffer: &mut [T], root: Rank) -> Result<(), Error> {
        let count = buffer.len();
        self.blocking(&Call::of(Collective::Bcast, count, &[], buffer).root(root))
    }

    /// Combines the vectors of all ranks; the root gets the result. `recv` may be empty on the
    /// others.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn reduce<T: Datatype>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: Op,
        root: Rank,
    ) -> Result<(), Error> {
        self.blocking(&Call::of(Collective::Reduce, send.len(), send, recv).op(op).root(root))
    }

    /// [`reduce`](Communicator::reduce) with the root's result in place of its input; the
    /// others' buffers keep theirs.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn reduce_in_place<T: Datatype>(
        &self,
        buffer: &mut [T],
        op: Op,
        root: Rank,
    ) -> Result<(), Error> {
        let count = buffer.len();
        let call = if self.rank() == root {
            Call::of(Collective::Reduce, count, &[], buffer).in_place()
        } else {
            Call::of(Collective::Reduce, count, buffer, &mut [])
        };
        self.blocking(&call.op(op).root(root))
    }

    /// The root gets everyone's block. `recv` may be empty on the others.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn gather<T: Datatype>(&self, send: &[T], recv: &mut [T], root: Rank) -> Result<(), Error> {
        self.blocking(&Call::of(Collective::Gather, send.len(), send, recv).root(root))
    }

    /// Rank x gets the root's block x. `send` may be empty on the others.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn scatter<T: Datatype>(
        &self,
        send: &[T],
        recv: &mut [T],
        root: Rank,
    ) -> Result<(), Error> {
        self.blocking(&Call::of(Collective::Scatter, recv.len(), send, recv).root(root))
    }

    /// Rank x gets everyone's block x, in rank order.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn alltoall<T: Datatype>(&self, send: &[T], recv: &mut [T]) -> Result<(), Error> {
        let count = whole_blocks(Collective::Alltoall, self.caller(), send.len())?;
        self.blocking(&Call::of(Collective::Alltoall, count, send, recv))
    }

    /// [`alltoall`](Communicator::alltoall) within one buffer.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn alltoall_in_place<T: Datatype>(&self, buffer: &mut [T]) -> Result<(), Error> {
        self.blocking(&Call::of_blocks(Collective::Alltoall, self.caller(), buffer)?)
    }

    /// Combines the vectors of the ranks up to this one, in their order.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn scan<T: Datatype>(&self, send: &[T], recv: &mut [T], op: Op) -> Result<(), Error> {
        self.blocking(&Call::of(Collective::Scan, send.len(), send, recv).op(op))
    }

    /// [`scan`](Communicator::scan) with the input in the receive buffer.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn scan_in_place<T: Datatype>(&self, buffer: &mut [T], op: Op) -> Result<(), Error> {
        let count = buffer.len();
        self.blocking(&Call::of(Collective::Scan, count, &[], buffer).op(op).in_place())
    }

    /// Combines the vectors of the ranks before this one, in their order. What the receive
    /// buffer of rank 0 holds stays as it is.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn exscan<T: Datatype>(&self, send: &[T], recv: &mut [T], op: Op) -> Result<(), Error> {
        self.blocking(&Call::of(Collective::Exscan, send.len(), send, recv).op(op))
    }

    /// [`exscan`](Communicator::exscan) with the input in the receive buffer.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn exscan_in_place<T: Datatype>(&self, buffer: &mut [T], op: Op) -> Result<(), Error> {
        let count = buffer.len();
        self.blocking(&Call::of(Collective::Exscan, count, &[], buffer).op(op).in_place())
    }

    /// Returns when all ranks have called it.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn barrier(&self) -> Result<(), Error> {
        self.blocking(&Call::new(Collective::Barrier, 0, Dtype::U8))
    }
}
