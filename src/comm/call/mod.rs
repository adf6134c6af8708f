//! A call of a collective, checked: its buffers, counts and options.
//!
//! Blocking, non-blocking and persistent forms all go through here, and so does the C interface.

pub(crate) mod blocks;
pub(crate) mod options;

use crate::Rank;
use hopbine_torus::collectives::{Collective, Collective as C};

use self::blocks::{Blocks, Form};
use crate::engine::UserMemory;
use crate::error::{BlockProblem, Error};
use crate::reduce::{Datatype, Dtype, Op, ReduceError};

/// The calling rank and the number of ranks of its communicator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) rank: Rank,
    pub(crate) n_ranks: u32,
}

/// A call with its buffers as addresses; see [`Communicator::call`](crate::Communicator::call)
/// for what the caller promises about them.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The collective.
    pub collective: Collective,
    /// Elements of the vector, or of one block. In a vector form, elements of this rank's own block: sent in an
    /// allgather or gather, received in a scatter or reduce-scatter, unused in an alltoall.
    pub count: u64,
    /// The type of the elements.
    pub dtype: Dtype,
    /// The operator, for reductions.
    pub op: Option<Op>,
    /// The root, for rooted collectives.
    pub root: Rank,
    /// The input is in the receive buffer. For a scatter's root: its own block stays in the
    /// send buffer.
    pub in_place: bool,
    /// First byte of the send buffer; bcast has none. May be null where nothing is sent.
    pub send: *const u8,
    /// Elements of the send buffer.
    pub send_count: u64,
    /// First byte of the receive buffer. May be null where nothing is received.
    pub recv: *mut u8,
    /// Elements of the receive buffer.
    pub recv_count: u64,
    /// Whether blocks have one size or several. In a vector form the buffers may be longer than needed.
    pub form: Form,
    /// In a vector form, the blocks of the send buffer: for a reduce-scatter (in place, of the
    /// receive buffer), an alltoall that is not in place, and a scatter's root.
    pub send_blocks: Option<Blocks<'a>>,
    /// In a vector form, the blocks of the receive buffer: for an allgather, an alltoall, and a
    /// gather's root.
    pub recv_blocks: Option<Blocks<'a>>,
}

impl<'a> Call<'a> {
    /// A call without buffers.
    #[inline]
    pub fn new(collective: Collective, count: u64, dtype: Dtype) -> Self {
        Call {
            collective,
            count,
            dtype,
            op: None,
            root: 0,
            in_place: false,
            send: std::ptr::null(),
            send_count: 0,
            recv: std::ptr::null_mut(),
            recv_count: 0,
            form: Form::Regular,
            send_blocks: None,
            recv_blocks: None,
        }
    }

    /// A call with blocks of one size, without arguments; the methods below set these.
    #[inline]
    pub(crate) fn regular(collective: Collective, dtype: Dtype) -> Self {
        Call::new(collective, 0, dtype)
    }

    #[inline]
    pub(crate) fn regular_in_place(collective: Collective, dtype: Dtype) -> Self {
        Call { in_place: true, ..Call::new(collective, 0, dtype) }
    }

    #[inline]
    pub(crate) fn vector(collective: Collective, dtype: Dtype) -> Self {
        Call { form: Form::Vector, ..Call::new(collective, 0, dtype) }
    }

    #[inline]
    pub(crate) fn vector_in_place(collective: Collective, dtype: Dtype) -> Self {
        Call { in_place: true, ..Call::vector(collective, dtype) }
    }

    /// A call in a vector form whose block sizes all ranks know.
    #[inline]
    pub(crate) fn vector_known(collective: Collective, dtype: Dtype) -> Self {
        Call { form: Form::VectorKnown, ..Call::new(collective, 0, dtype) }
    }

    #[inline]
    pub(crate) fn send<T: Datatype>(self, send: &[T]) -> Self {
        Call { send: send.as_ptr().cast(), send_count: send.len() as u64, ..self }
    }

    #[inline]
    pub(crate) fn recv<T: Datatype>(self, recv: &mut [T]) -> Self {
        Call { recv: recv.as_mut_ptr().cast(), recv_count: recv.len() as u64, ..self }
    }

    /// Sets the buffer of a call that has only one.
    #[inline]
    pub(crate) fn buffer<T: Datatype>(self, buffer: &mut [T]) -> Self {
        self.recv(buffer)
    }

    /// The same call for any lifetime, without lists of blocks; for a call that has none.
    #[inline]
    pub(crate) fn without_blocks(&self) -> Call<'static> {
        Call { send_blocks: None, recv_blocks: None, ..*self }
    }

    pub(crate) fn send_blocks(self, blocks: Blocks<'a>) -> Self {
        Call { send_blocks: Some(blocks), ..self }
    }

    pub(crate) fn recv_blocks(self, blocks: Blocks<'a>) -> Self {
        Call { recv_blocks: Some(blocks), ..self }
    }

    /// Sets the blocks of the send buffer for a scatter or reduce-scatter, else those of the receive buffer.
    pub(crate) fn blocks(self, blocks: impl Into<Option<Blocks<'a>>>) -> Self {
        match self.collective {
            C::Scatter | C::ReduceScatter => Call { send_blocks: blocks.into(), ..self },
            _ => Call { recv_blocks: blocks.into(), ..self },
        }
    }

    pub(crate) fn counts(self, counts: &'a [u64]) -> Self {
        self.blocks(Blocks::new(counts))
    }

    pub(crate) fn count(self, count: usize) -> Self {
        Call { count: count as u64, ..self }
    }

    /// Sets the count that follows from the lengths of the buffers.
    ///
    /// # Errors
    /// [`Error::UnevenBlocks`].
    #[inline]
    pub(crate) fn infer_count(self, caller: Caller) -> Result<Self, Error> {
        let Call { collective, send_count, recv_count, .. } = self;
        let is_regular = self.form == Form::Regular;
        let count = match collective {
            C::Allgather | C::Alltoall | C::ReduceScatter if self.in_place && is_regular => {
                elements_per_block(collective, caller, recv_count)?
            }
            C::Alltoall if is_regular => elements_per_block(collective, caller, send_count)?,
            // `normalized_blocks` takes the count from the blocks.
            C::Allgather | C::Alltoall | C::ReduceScatter if self.in_place => 0,
            C::Bcast | C::ReduceScatter | C::Scatter => recv_count,
            _ if self.in_place => recv_count,
            _ => send_count,
        };
        Ok(Call { count, ..self })
    }

    /// Sets the count from the send buffer, for a call without a receive buffer; a scatter keeps its count.
    ///
    /// # Errors
    /// [`Error::UnevenBlocks`].
    pub(crate) fn infer_count_from_send(self, caller: Caller) -> Result<Self, Error> {
        let count = match (self.collective, self.send_blocks) {
            (C::Scatter, _) => self.count,
            (C::ReduceScatter, Some(blocks)) => {
                blocks.counts.get(caller.rank as usize).copied().unwrap_or(0)
            }
            (C::ReduceScatter, None) => {
                elements_per_block(self.collective, caller, self.send_count)?
            }
            _ => return self.infer_count(caller),
        };
        Ok(Call { count, ..self })
    }

    #[inline]
    pub(crate) fn op(self, op: Op) -> Self {
        Call { op: Some(op), ..self }
    }

    #[inline]
    pub(crate) fn root(self, root: Rank) -> Self {
        Call { root, ..self }
    }

    /// The call without the arguments that have no meaning for this collective on this rank.
    #[inline]
    pub(crate) fn normalized(mut self, caller: Caller) -> Self {
        self.normalize(caller);
        self
    }

    /// As [`normalized`](Call::normalized), in place.
    #[inline]
    pub(crate) fn normalize(&mut self, caller: Caller) {
        self.in_place &= match self.collective {
            C::Bcast | C::Barrier => false,
            C::Reduce | C::Gather | C::Scatter => caller.rank == self.root,
            _ => true,
        };
        if !self.collective.is_reduction() {
            self.op = None;
        }
        if !self.collective.is_rooted() {
            self.root = 0;
        }
        if self.form != Form::Regular {
            *self = self.normalized_blocks(caller);
        }
    }

    /// For the send and the receive buffer: whether this rank must know the blocks in it.
    fn block_buffers(&self, Caller { rank, .. }: Caller) -> [bool; 2] {
        let counts = rank == self.root || self.form == Form::VectorKnown;
        match self.collective {
            C::Allgather => [false, true],
            C::ReduceScatter => [true, false],
            C::Alltoall => [!self.in_place, true],
            C::Gather => [false, counts],
            C::Scatter => [counts, false],
            _ => [false, false],
        }
    }

    fn normalized_blocks(self, caller: Caller) -> Self {
        let [send, recv] = self.block_buffers(caller);
        let send_blocks = self.send_blocks.filter(|_| send);
        let recv_blocks = self.recv_blocks.filter(|_| recv);
        let listed = send_blocks.or(recv_blocks);
        let listed = listed.and_then(|blocks| blocks.counts.get(caller.rank as usize));
        let count = match listed {
            _ if self.collective == C::Alltoall => 0,
            Some(&count) if self.in_place => count,
            _ => self.count,
        };
        // Only gather and scatter distinguish `VectorKnown` from `Vector`.
        let form = match self.collective {
            C::Gather | C::Scatter => self.form,
            _ => Form::Vector,
        };
        Call { count, form, send_blocks, recv_blocks, ..self }
    }

    /// Checks the blocks of a vector form: one for each rank, and the same size of this rank's own block on both
    /// sides.
    fn check_blocks(&self, caller: Caller) -> Result<(), Error> {
        let collective = self.collective;
        let needed = self.block_buffers(caller);
        if needed == [false; 2] && !matches!(collective, C::Gather | C::Scatter) {
            return Err(BlockProblem::NoForm.of(collective));
        }
        let lists = [self.send_blocks, self.recv_blocks];
        for ((blocks, needed), which) in lists.into_iter().zip(needed).zip(["send", "receive"]) {
            match blocks {
                Some(blocks) => blocks.check_len(collective, which, caller.n_ranks)?,
                None if needed => return Err(BlockProblem::Missing { which }.of(collective)),
                None => {}
            }
        }
        if let Some(blocks) = self.recv_blocks {
            blocks.check_disjoint(collective)?;
        }
        let own = |blocks: Option<Blocks<'_>>| Some(blocks?.counts[caller.rank as usize]);
        let (sent, received) = match collective {
            C::Allgather | C::Gather => (Some(self.count), own(self.recv_blocks)),
            C::Alltoall => (own(self.send_blocks), own(self.recv_blocks)),
            _ => (own(self.send_blocks), Some(self.count)),
        };
        match (sent, received) {
            (Some(given), Some(taken)) if given != taken => {
                let rank = caller.rank;
                Err(BlockProblem::Own { rank, given, taken }.of(collective))
            }
            _ => Ok(()),
        }
    }

    /// Checks all that this rank can check about a normalized call. Returns the buffers for the engine; a buffer
    /// that this rank does not use has length 0.
    #[inline]
    pub(crate) fn check(&self, caller: Caller) -> Result<[UserMemory; 2], Error> {
        let collective = self.collective;
        let Caller { rank, n_ranks } = caller;
        if collective.is_reduction() && self.op.is_none() {
            return Err(Error::NoOperator { collective });
        }
        if let Some(op) = self.op.filter(|op| !op.defined_for(self.dtype)) {
            return Err(ReduceError::Undefined { op, dtype: self.dtype }.into());
        }
        if collective.is_rooted() && self.root >= n_ranks {
            return Err(Error::Root { collective, root: self.root, n_ranks });
        }
        if self.form != Form::Regular {
            self.check_blocks(caller)?;
        }
        let (send, recv) = self.needed(caller);
        for (which, found, needed) in
            [("send", self.send_count, send), ("receive", self.recv_count, recv)]
        {
            if self.form != Form::Regular {
                if found < needed {
                    return Err(BlockProblem::Beyond { which, found, needed }.of(collective));
                }
                continue;
            }
            // A buffer that only other ranks use may have any length here.
            let is_used = match collective {
                C::Exscan => rank != 0,
                _ => !collective.is_rooted() || rank == self.root,
            };
            if found != needed && (needed > 0 || is_used) {
                return Err(Error::BufferLength { collective, which, found, needed });
            }
        }
        let size = self.dtype.size_bytes() as u64;
        let memory = |ptr, count: u64| UserMemory { ptr, len: count.saturating_mul(size) };
        // The engine only reads the send buffer.
        let memory = [memory(self.send.cast_mut(), send), memory(self.recv, recv)];
        self.check_memory(memory)?;
        Ok(memory)
    }

    /// Checks that the buffers lie within the address space and do not overlap.
    #[inline]
    pub(crate) fn check_memory(&self, [send, recv]: [UserMemory; 2]) -> Result<(), Error> {
        let collective = self.collective;
        let end = |which, UserMemory { ptr, len }: UserMemory| {
            let address = ptr.addr() as u64;
            // Also refuses the C interface's in-place marker: a buffer there ends beyond the address space.
            match address.checked_add(len) {
                Some(end) if address != 0 || len == 0 => Ok(end),
                _ => Err(Error::Address { collective, which, address, bytes: len }),
            }
        };
        let (send_end, recv_end) = (end("send", send)?, end("receive", recv)?);
        let is_apart = send_end <= recv.ptr.addr() as u64 || recv_end <= send.ptr.addr() as u64;
        if is_apart || send.len == 0 || recv.len == 0 {
            Ok(())
        } else {
            Err(Error::Overlap { collective })
        }
    }

    /// Elements that the send and the receive buffer of a rank must hold.
    #[inline]
    pub(crate) fn needed(&self, Caller { rank, n_ranks }: Caller) -> (u64, u64) {
        let one = self.count;
        let all = match (self.form, self.send_blocks, self.recv_blocks) {
            (Form::Regular, ..) => one.saturating_mul(u64::from(n_ranks)),
            (_, Some(send), Some(recv)) => return (send.extent(), recv.extent()),
            (_, Some(blocks), _) | (_, _, Some(blocks)) => blocks.extent(),
            (_, None, None) => 0,
        };
        let is_root = rank == self.root;
        let at_root = |count: u64| if is_root { count } else { 0 };
        let (send, recv) = match self.collective {
            // Rank 0 has no result, and input in the receive buffer only in place.
            C::Exscan if rank == 0 && !self.in_place => (one, 0),
            C::Allreduce | C::Scan | C::Exscan => (one, one),
            C::ReduceScatter if self.in_place => return (0, all),
            C::ReduceScatter => (all, one),
            C::Allgather => (one, all),
            C::Alltoall => (all, all),
            C::Bcast => (0, one),
            C::Reduce => (one, at_root(one)),
            C::Gather => (one, at_root(all)),
            C::Scatter if self.in_place && is_root => return (all, 0),
            C::Scatter => (at_root(all), one),
            C::Barrier => (0, 0),
        };
        if self.in_place { (0, recv) } else { (send, recv) }
    }
}

/// Elements per block if `len` elements are one block for each rank.
fn elements_per_block(collective: Collective, caller: Caller, len: u64) -> Result<u64, Error> {
    let n_ranks = caller.n_ranks;
    if !len.is_multiple_of(u64::from(n_ranks)) {
        return Err(Error::UnevenBlocks { collective, found: len, n_ranks });
    }
    Ok(len / u64::from(n_ranks))
}
