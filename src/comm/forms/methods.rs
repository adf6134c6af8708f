//! The collectives as methods, generated from the table of the collectives: blocking ones of [`Communicator`], which
//! return when the caller can use their buffers again, non-blocking ones of [`Scope`], and those that prepare a
//! [`Persistent`].
//!
//! A vector or a block is a slice; `p` blocks are one slice of `p` times the block's length, in rank order. Lengths
//! must be the same on all ranks; any length is allowed.
//!
//! In the vector forms blocks may have any size and place. The sizes of an allgather's and a reduce-scatter's blocks
//! must be the same on all ranks. In an alltoall a rank gives the sizes that it sends to and receives from each
//! rank. In a gather and a scatter the root gives all sizes, every other rank its own. If two ranks disagree about a
//! block, both fail with an error that names the other. Displacements may differ between ranks.

use hopbine_torus::collectives::Collective;

use super::persistent::Persistent;
use super::scope::{Request, Scope};
use crate::Rank;
use crate::comm::call::Call;
use crate::comm::call::blocks::Blocks;
use crate::comm::communicator::Communicator;
use crate::error::Error;
use crate::reduce::{Datatype, Dtype, Op};

/// The type of an argument of the table; buffers are borrowed for `$life`.
macro_rules! argument {
    (In $life:lifetime) => { &$life [T] };
    (Out $life:lifetime) => { &$life mut [T] };
    (Own $life:lifetime) => { Vec<T> };
    (Count $life:lifetime) => { usize };
    (Op $life:lifetime) => { Op };
    (Rank $life:lifetime) => { Rank };
    (Counts $life:lifetime) => { &[u64] };
    (Blocks $life:lifetime) => { Blocks<'_> };
    (BlocksOfRoot $life:lifetime) => { Option<Blocks<'_>> };
}

/// The receive buffer among the arguments of a method.
macro_rules! received {
    ($argument:ident: Out $(, $($rest:tt)*)?) => { $argument };
    ($other:ident: $kind:ident, $($rest:tt)*) => { received!($($rest)*) };
}

/// The constructor of a [`Persistent`] for the buffer argument with this name.
macro_rules! owning {
    (send) => {
        Persistent::of_send
    };
    (buffer) => {
        Persistent::of_buffer
    };
}

macro_rules! blocking {
    ($(#[doc = $doc:literal])* $collective:ident $form:ident $name:ident()) => {
        $(#[doc = $doc])*
        ///
        /// # Errors
        /// Those [of all collectives](Communicator#errors-of-all-collectives).
        pub fn $name(&self) -> Result<(), Error> {
            self.blocking(&mut Call::$form(Collective::$collective, Dtype::U8))
        }
    };
    (
        $(#[doc = $doc:literal])*
        $collective:ident $form:ident $name:ident($($argument:ident: $kind:ident),*)
    ) => {
        $(#[doc = $doc])*
        ///
        /// # Errors
        /// Those [of all collectives](Communicator#errors-of-all-collectives).
        pub fn $name<T: Datatype>(&self, $($argument: argument!($kind '_)),*) -> Result<(), Error> {
            let call = Call::$form(Collective::$collective, T::DTYPE)$(.$argument($argument))*;
            self.blocking(&mut call.infer_count(self.caller())?)
        }
    };
}

macro_rules! nonblocking {
    ($collective:ident $form:ident $name:ident()) => {
        #[doc = concat!("See [`Communicator::", stringify!($name), "`].")]
        ///
        /// # Errors
        /// Those of the blocking call; [`Request::wait`] returns later errors.
        pub fn $name(&'scope self) -> Result<Request<'scope, u8>, Error> {
            let nothing: &mut [u8] = &mut [];
            self.start(&Call::$form(Collective::$collective, Dtype::U8), nothing.into())
        }
    };
    ($collective:ident $form:ident $name:ident($($argument:ident: $kind:ident),*)) => {
        #[doc = concat!("See [`Communicator::", stringify!($name), "`].")]
        ///
        /// # Errors
        /// Those of the blocking call; [`Request::wait`] returns later errors.
        pub fn $name<T: Datatype>(
            &'scope self,
            $($argument: argument!($kind 'scope)),*
        ) -> Result<Request<'scope, T>, Error> {
            let call = Call::$form(Collective::$collective, T::DTYPE)$(.$argument($argument))*;
            self.start(&call.infer_count(self.caller())?, received!($($argument: $kind),*).into())
        }
    };
}

macro_rules! persistent {
    ($(#[doc = $doc:literal])* $collective:ident $form:ident $name:ident()) => {
        $(#[doc = $doc])*
        ///
        /// # Errors
        /// Those of the blocking call, and [`Error::Memory`].
        pub fn $name(&self) -> Result<Persistent<u8>, Error> {
            let call = Call::$form(Collective::$collective, Dtype::U8);
            Persistent::new(self, call, None, Vec::new())
        }
    };
    (
        $(#[doc = $doc:literal])*
        $collective:ident $form:ident $name:ident($owned:ident: Own $(, $argument:ident: $kind:ident)*)
    ) => {
        $(#[doc = $doc])*
        ///
        /// # Errors
        /// Those of the blocking call, and [`Error::Memory`].
        pub fn $name<T: Datatype>(
            &self,
            $owned: Vec<T>,
            $($argument: argument!($kind '_)),*
        ) -> Result<Persistent<T>, Error> {
            let call = Call::$form(Collective::$collective, T::DTYPE)$(.$argument($argument))*;
            owning!($owned)(self, call, $owned)
        }
    };
}

macro_rules! methods {
    ($(
        $collective:ident $form:ident
        rust {
            $(#[doc = $doc:literal])* $name:ident $arguments:tt
            $(#[doc = $init_doc:literal])* $init:ident $init_arguments:tt
        }
        c $c:tt
        fortran $fortran:tt
    )*) => {
        /// # Errors of all collectives
        /// [`Error::BufferLength`], [`Error::UnevenBlocks`], [`Error::Root`] and [`Error::Reduce`] if an argument is
        /// invalid; nothing has been sent then. [`Error::UnknownAlgorithm`], [`Error::NotServed`],
        /// [`Error::Setting`] and [`Error::Plan`] if an option is invalid. [`Error::Timeout`] and [`Error::Wire`] if
        /// the call fails, and [`Error::Poisoned`] for every later call.
        ///
        /// In the vector forms also [`Error::Blocks`] if the blocks are invalid; nothing has been sent then. Buffers
        /// may be longer than their blocks need.
        ///
        /// The buffers that a [`Persistent`] writes to are initially zero, and extend to the end of the last block.
        impl Communicator {
            $(blocking! { $(#[doc = $doc])* $collective $form $name $arguments })*
            $(persistent! { $(#[doc = $init_doc])* $collective $form $init $init_arguments })*
        }

        /// Errors are those of the blocking methods; [`Request::wait`] returns later errors.
        impl<'scope> Scope<'scope, '_> {
            $(nonblocking! { $collective $form $name $arguments })*
        }
    };
}

crate::collectives!(methods);

/// In-place calls, and vector forms whose block sizes all ranks know.
impl Communicator {
    #[inline]
    fn blocking(&self, call: &mut Call) -> Result<(), Error> {
        call.normalize(self.caller());
        // SAFETY: the addresses come from slices that the calling method borrows until this
        // returns, that is until the operation is done.
        unsafe { self.call_normalized(call) }
    }

    blocking! {
        /// [`allreduce`](Communicator::allreduce) with the input in the receive buffer.
        Allreduce regular_in_place allreduce_in_place(buffer: Out, op: Op)
    }

    /// [`reduce`](Communicator::reduce) with the root's result in place of its input. The buffers of the other ranks
    /// are unchanged.
    ///
    /// # Errors
    /// Those [of all collectives](Communicator#errors-of-all-collectives).
    pub fn reduce_in_place<T: Datatype>(
        &self,
        buffer: &mut [T],
        op: Op,
        root: Rank,
    ) -> Result<(), Error> {
        let call = if self.rank() == root {
            Call::regular_in_place(Collective::Reduce, T::DTYPE).buffer(buffer)
        } else {
            Call::regular(Collective::Reduce, T::DTYPE).send(buffer)
        };
        self.blocking(&mut call.op(op).root(root).infer_count(self.caller())?)
    }

    blocking! {
        /// [`reduce_scatter`](Communicator::reduce_scatter) with the `p` blocks in `buffer`. The result replaces the
        /// first block; the others are unchanged.
        ReduceScatter regular_in_place reduce_scatter_in_place(buffer: Out, op: Op)
    }

    blocking! {
        /// [`allgather`](Communicator::allgather) with this rank's block in its place in `buffer`.
        Allgather regular_in_place allgather_in_place(buffer: Out)
    }

    blocking! {
        /// [`alltoall`](Communicator::alltoall) within one buffer.
        Alltoall regular_in_place alltoall_in_place(buffer: Out)
    }

    blocking! {
        /// [`scan`](Communicator::scan) with the input in the receive buffer.
        Scan regular_in_place scan_in_place(buffer: Out, op: Op)
    }

    blocking! {
        /// [`exscan`](Communicator::exscan) with the input in the receive buffer.
        Exscan regular_in_place exscan_in_place(buffer: Out, op: Op)
    }

    blocking! {
        /// [`allgatherv`](Communicator::allgatherv) with this rank's block in its place in `buffer`.
        Allgather vector_in_place allgatherv_in_place(buffer: Out, blocks: Blocks)
    }

    blocking! {
        /// [`reduce_scatterv`](Communicator::reduce_scatterv) with the blocks in `buffer`. The result replaces the
        /// start of `buffer`; the rest is unchanged.
        ReduceScatter vector_in_place reduce_scatterv_in_place(buffer: Out, counts: Counts, op: Op)
    }

    blocking! {
        /// [`alltoallv`](Communicator::alltoallv) within one buffer: the block from a rank replaces the block for
        /// that rank, which has the same size. All ranks must call this form.
        Alltoall vector_in_place alltoallv_in_place(buffer: Out, blocks: Blocks)
    }

    blocking! {
        /// [`gatherv`](Communicator::gatherv) with the same counts given on all ranks, so that no sizes are sent.
        Gather vector_known gatherv_known(send: In, recv: Out, blocks: Blocks, root: Rank)
    }

    blocking! {
        /// [`scatterv`](Communicator::scatterv) with the same counts given on all ranks, so that no sizes are sent.
        Scatter vector_known scatterv_known(send: In, blocks: Blocks, recv: Out, root: Rank)
    }
}

impl<'scope> Scope<'scope, '_> {
    nonblocking! { Allreduce regular_in_place allreduce_in_place(buffer: Out, op: Op) }
}
