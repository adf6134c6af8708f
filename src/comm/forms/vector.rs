//! The vector forms: blocks of any size, at any place. Blocking, non-blocking and persistent.
//!
//! Sizes of an allgather's and a reduce-scatter's blocks must be the same on all ranks. In an
//! alltoall a rank says what it sends to each and receives from each, in a gather and a scatter
//! the root knows all sizes and the others their own: if two ranks do not agree about a block,
//! both fail with an error that names the other. Ranks may have different displacements.

use hopbine_torus::collectives::Collective;

use super::persistent::{Persistent, zeros};
use super::scope::{Request, Scope};
use crate::Rank;
use crate::comm::call::Call;
use crate::comm::call::blocks::{Blocks, Form};
use crate::comm::communicator::Communicator;
use crate::error::Error;
use crate::reduce::{Datatype, Op};

fn allgatherv<'a, T: Datatype>(send: &[T], recv: &mut [T], blocks: Blocks<'a>) -> Call<'a> {
    Call::of(Collective::Allgather, send.len(), send, recv).vector(None, Some(blocks))
}

fn gatherv<'a, T: Datatype>(
    send: &[T],
    recv: &mut [T],
    blocks: Option<Blocks<'a>>,
    root: Rank,
) -> Call<'a> {
    Call::of(Collective::Gather, send.len(), send, recv).root(root).vector(None, blocks)
}

fn scatterv<'a, T: Datatype>(
    send: &[T],
    blocks: Option<Blocks<'a>>,
    recv: &mut [T],
    root: Rank,
) -> Call<'a> {
    Call::of(Collective::Scatter, recv.len(), send, recv).root(root).vector(blocks, None)
}

fn reduce_scatterv<'a, T: Datatype>(
    send: &[T],
    recv: &mut [T],
    counts: &'a [u64],
    op: Op,
) -> Call<'a> {
    let call = Call::of(Collective::ReduceScatter, recv.len(), send, recv).op(op);
    call.vector(Some(Blocks::new(counts)), None)
}

fn alltoallv<'a, T: Datatype>(
    send: &[T],
    send_blocks: Blocks<'a>,
    recv: &mut [T],
    recv_blocks: Blocks<'a>,
) -> Call<'a> {
    let call = Call::of(Collective::Alltoall, 0, send, recv);
    call.vector(Some(send_blocks), Some(recv_blocks))
}

fn in_place<'a, T: Datatype>(
    collective: Collective,
    buffer: &mut [T],
    send: Option<Blocks<'a>>,
    recv: Option<Blocks<'a>>,
) -> Call<'a> {
    Call::of(collective, 0, &[], buffer).vector(send, recv).in_place()
}

fn known(call: Call<'_>) -> Call<'_> {
    Call { form: Form::VectorKnown, ..call }
}

/// # Errors of the vector forms
/// Those of the other blocking methods; and [`Error::Blocks`] if the blocks make no sense,
/// before anything is sent. Buffers may be longer than their blocks reach.
impl Communicator {
    /// Everyone gets everyone's block, into its place in `recv`. All ranks must give the same
    /// counts.
    ///
    /// # Errors
    /// Those [of the vector forms](Communicator#errors-of-the-vector-forms).
    pub fn allgatherv<T: Datatype>(
        &self,
        send: &[T],
        recv: &mut [T],
        blocks: Blocks<'_>,
    ) -> Result<(), Error> {
        self.blocking(&allgatherv(send, recv, blocks))
    }

    /// [`allgatherv`](Communicator::allgatherv) with the own block in its place in `buffer`.
    ///
    /// # Errors
    /// Those [of the vector forms](Communicator#errors-of-the-vector-forms).
    pub fn allgatherv_in_place<T: Datatype>(
        &self,
        buffer: &mut [T],
        blocks: Blocks<'_>,
    ) -> Result<(), Error> {
        self.blocking(&in_place(Collective::Allgather, buffer, None, Some(blocks)))
    }

    /// The root gets everyone's block, into its place in `recv`. Only the root gives `blocks`;
    /// where blocks pass through others, it tells these first.
    ///
    /// # Errors
    /// Those [of the vector forms](Communicator#errors-of-the-vector-forms).
    pub fn gatherv<T: Datatype>(
        &self,
        send: &[T],
        recv: &mut [T],
        blocks: Option<Blocks<'_>>,
        root: Rank,
    ) -> Result<(), Error> {
        self.blocking(&gatherv(send, recv, blocks, root))
    }

    /// [`gatherv`](Communicator::gatherv) with the same counts given on all ranks, so that
    /// nobody needs to be told.
    ///
    /// # Errors
    /// Those [of the vector forms](Communicator#errors-of-the-vector-forms).
    pub fn gatherv_known<T: Datatype>(
        &self,
        send: &[T],
        recv: &mut [T],
        blocks: Blocks<'_>,
        root: Rank,
    ) -> Result<(), Error> {
        self.blocking(&known(gatherv(send, recv, Some(blocks), root)))
    }

    /// Rank x gets the root's block x. Only the root gives `blocks`; where they pass through
    /// others, all say first what they expect.
    ///
    /// # Errors
    /// Those [of the vector forms](Communicator#errors-of-the-vector-forms).
    pub fn scatterv<T: Datatype>(
        &self,
        send: &[T],
        blocks: Option<Blocks<'_>>,
        recv: &mut [T],
        root: Rank,
    ) -> Result<(), Error> {
        self.blocking(&scatterv(send, blocks, recv, root))
    }

    /// [`scatterv`](Communicator::scatterv) with the same counts given on all ranks, so that
    /// nobody needs to be told.
    ///
    /// # Errors
    /// Those [of the vector forms](Communicator#errors-of-the-vector-forms).
    pub fn scatterv_known<T: Datatype>(
        &self,
        send: &[T],
        blocks: Blocks<'_>,
        recv: &mut [T],
        root: Rank,
    ) -> Result<(), Error> {
        self.blocking(&known(scatterv(send, Some(blocks), recv, root)))
    }

    /// Combines all ranks' vectors; rank x gets block x of the result, of `counts[x]` elements.
    /// All ranks must give the same counts.
    ///
    /// # Errors
    /// Those [of the vector forms](Communicator#errors-of-the-vector-forms).
    pub fn reduce_scatterv<T: Datatype>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[u64],
        op: Op,
    ) -> Result<(), Error> {
        self.blocking(&reduce_scatterv(send, recv, counts, op))
    }

    /// [`reduce_scatterv`](Communicator::reduce_scatterv) with the blocks in `buffer`, the start
    /// of which takes the result; what is behind it is left as it is.
    ///
    /// # Errors
    /// Those [of the vector forms](Communicator#errors-of-the-vector-forms).
    pub fn reduce_scatterv_in_place<T: Datatype>(
        &self,
        buffer: &mut [T],
        counts: &[u64],
        op: Op,
    ) -> Result<(), Error> {
        let blocks = Some(Blocks::new(counts));
        self.blocking(&in_place(Collective::ReduceScatter, buffer, blocks, None).op(op))
    }

    /// Rank x gets everyone's block x, each into its place in `recv`. How long the block for x
    /// is here and the block from here is there must agree for every pair of ranks.
    ///
    /// # Errors
    /// Those [of the vector forms](Communicator#errors-of-the-vector-forms).
    pub fn alltoallv<T: Datatype>(
        &self,
        send: &[T],
        send_blocks: Blocks<'_>,
        recv: &mut [T],
        recv_blocks: Blocks<'_>,
    ) -> Result<(), Error> {
        self.blocking(&alltoallv(send, send_blocks, recv, recv_blocks))
    }

    /// [`alltoallv`](Communicator::alltoallv) within one buffer: a block goes from where another
    /// of the same size comes. All ranks must call this form.
    ///
    /// # Errors
    /// Those [of the vector forms](Communicator#errors-of-the-vector-forms).
    pub fn alltoallv_in_place<T: Datatype>(
        &self,
        buffer: &mut [T],
        blocks: Blocks<'_>,
    ) -> Result<(), Error> {
        self.blocking(&in_place(Collective::Alltoall, buffer, None, Some(blocks)))
    }
}

/// Errors are those of the blocking methods; what goes wrong later is returned by
/// [`Request::wait`].
impl<'scope> Scope<'scope, '_> {
    /// See [`Communicator::allgatherv`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn allgatherv<T: Datatype>(
        &'scope self,
        send: &'scope [T],
        recv: &'scope mut [T],
        blocks: Blocks<'_>,
    ) -> Result<Request<'scope, T>, Error> {
        self.start(&allgatherv(send, recv, blocks), recv.into())
    }

    /// See [`Communicator::gatherv`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn gatherv<T: Datatype>(
        &'scope self,
        send: &'scope [T],
        recv: &'scope mut [T],
        blocks: Option<Blocks<'_>>,
        root: Rank,
    ) -> Result<Request<'scope, T>, Error> {
        self.start(&gatherv(send, recv, blocks, root), recv.into())
    }

    /// See [`Communicator::scatterv`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn scatterv<T: Datatype>(
        &'scope self,
        send: &'scope [T],
        blocks: Option<Blocks<'_>>,
        recv: &'scope mut [T],
        root: Rank,
    ) -> Result<Request<'scope, T>, Error> {
        self.start(&scatterv(send, blocks, recv, root), recv.into())
    }

    /// See [`Communicator::reduce_scatterv`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn reduce_scatterv<T: Datatype>(
        &'scope self,
        send: &'scope [T],
        recv: &'scope mut [T],
        counts: &[u64],
        op: Op,
    ) -> Result<Request<'scope, T>, Error> {
        self.start(&reduce_scatterv(send, recv, counts, op), recv.into())
    }

    /// See [`Communicator::alltoallv`].
    ///
    /// # Errors
    /// Those of the blocking call; what goes wrong later is returned by [`Request::wait`].
    pub fn alltoallv<T: Datatype>(
        &'scope self,
        send: &'scope [T],
        send_blocks: Blocks<'_>,
        recv: &'scope mut [T],
        recv_blocks: Blocks<'_>,
    ) -> Result<Request<'scope, T>, Error> {
        self.start(&alltoallv(send, send_blocks, recv, recv_blocks), recv.into())
    }
}

/// Errors are those of the blocking methods, and [`Error::Memory`]. Output buffers start as zeros, and
/// reach to the end of the last block.
impl Communicator {
    /// Prepares [`allgatherv`](Communicator::allgatherv) of `send`.
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn allgatherv_init<T: Datatype>(
        &self,
        send: Vec<T>,
        blocks: Blocks<'_>,
    ) -> Result<Persistent<T>, Error> {
        let recv = zeros(Collective::Allgather, blocks.extent())?;
        Persistent::new(self, allgatherv(&send, &mut [], blocks), Some(send), recv)
    }

    /// Prepares [`gatherv`](Communicator::gatherv) of `send`.
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn gatherv_init<T: Datatype>(
        &self,
        send: Vec<T>,
        blocks: Option<Blocks<'_>>,
        root: Rank,
    ) -> Result<Persistent<T>, Error> {
        let blocks = blocks.filter(|_| self.rank() == root);
        let recv = zeros(Collective::Gather, blocks.map_or(0, |blocks| blocks.extent()))?;
        Persistent::new(self, gatherv(&send, &mut [], blocks, root), Some(send), recv)
    }

    /// Prepares [`scatterv`](Communicator::scatterv) of `send`, which only the root gives, into
    /// a block of `count` elements.
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn scatterv_init<T: Datatype>(
        &self,
        send: Vec<T>,
        blocks: Option<Blocks<'_>>,
        count: usize,
        root: Rank,
    ) -> Result<Persistent<T>, Error> {
        let mut recv = zeros(Collective::Scatter, count as u64)?;
        let call = scatterv(&send, blocks, &mut recv, root);
        Persistent::new(self, call, Some(send), recv)
    }

    /// Prepares [`reduce_scatterv`](Communicator::reduce_scatterv) of `send`.
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn reduce_scatterv_init<T: Datatype>(
        &self,
        send: Vec<T>,
        counts: &[u64],
        op: Op,
    ) -> Result<Persistent<T>, Error> {
        let own = counts.get(self.rank() as usize).copied().unwrap_or(0);
        let mut recv = zeros(Collective::ReduceScatter, own)?;
        let call = reduce_scatterv(&send, &mut recv, counts, op);
        Persistent::new(self, call, Some(send), recv)
    }

    /// Prepares [`alltoallv`](Communicator::alltoallv) of `send`.
    ///
    /// # Errors
    /// Those of the blocking call, and [`Error::Memory`].
    pub fn alltoallv_init<T: Datatype>(
        &self,
        send: Vec<T>,
        send_blocks: Blocks<'_>,
        recv_blocks: Blocks<'_>,
    ) -> Result<Persistent<T>, Error> {
        let recv = zeros(Collective::Alltoall, recv_blocks.extent())?;
        let call = alltoallv(&send, send_blocks, &mut [], recv_blocks);
        Persistent::new(self, call, Some(send), recv)
    }
}
