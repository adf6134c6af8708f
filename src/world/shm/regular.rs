//! Collectives of vectors, and of blocks of one size, on the flat buffer.

use std::ops::Range;

use hopbine_torus::Collective;

use super::flat_buffer::{Flat, ReadPart, SharedFlatBuffer, slice};
use crate::comm::call::{Call, Caller};
use crate::comm::state::small::{Refusal, Waiter};
use crate::endpoint::shm::{Entered, FlatBuffer, GROUP_BYTES};
use crate::error::Error;
use crate::reduce::Reducer;
use crate::sync::lock;

/// Up to this length in bytes a contribution is copied whole, with the part that no other rank reads: two copies
/// take longer.
pub(super) const SHORT_BYTES: usize = 1024;

/// What a rank contributes to a call, and what it reads.
pub(super) struct FlatTask {
    /// The ranks whose contributions this one may read.
    from: Range<usize>,
    /// Whether this rank contributes.
    pub(super) contributes: bool,
    /// Bytes of a contribution.
    len: usize,
    /// Offset in each contribution of the bytes that this rank reads.
    offset: usize,
    /// Number of these bytes, if this rank reads any.
    part: Option<usize>,
    /// Whether this rank folds them; else it puts them side by side.
    folds: bool,
    /// Bytes from `offset` on of its own contribution that no other rank reads; this rank reads them in the user's
    /// memory.
    unread: Option<usize>,
}

impl SharedFlatBuffer {
    /// The longest contribution of a collective in bytes.
    #[inline]
    fn longest_contribution(&self, collective: Collective) -> u64 {
        match collective {
            Collective::Allreduce | Collective::Reduce if self.read_in_groups > 0 => {
                GROUP_BYTES as u64
            }
            Collective::Allreduce
            | Collective::Allgather
            | Collective::Scan
            | Collective::Exscan => self.limits.flat,
            _ => self.capacity,
        }
    }

    /// Bytes of the longest contribution, and the most bytes that a rank reads of all contributions, for elements of
    /// `bytes` bytes in all.
    fn volume(&self, collective: Collective, bytes: u64) -> (u64, u64) {
        let all = bytes.saturating_mul(self.n_ranks);
        match collective {
            Collective::Barrier => (0, 0),
            Collective::Bcast => (bytes, bytes),
            Collective::Allreduce | Collective::Reduce => match self.read_in_groups {
                0 => (bytes, all),
                read => (bytes, bytes.saturating_mul(read)),
            },
            Collective::Scan | Collective::Exscan => (bytes, all),
            Collective::Allgather | Collective::Gather => (bytes, all),
            Collective::Scatter => (all, bytes),
            // A rank does not contribute its own block.
            Collective::Alltoall => (all - bytes, all - bytes),
            Collective::ReduceScatter => (all, all),
        }
    }

    /// As [`serves`](crate::comm::state::small::SmallCollectives::serves).
    #[inline]
    pub(super) fn serves_regular(&self, call: &Call) -> Result<(), Refusal> {
        let size = call.dtype.size_bytes() as u64;
        let bytes = call.count.saturating_mul(size);
        // Both are in proportion to the bytes.
        let (given, read) = self.volume(call.collective, 1);
        // On the path of every call: a division would take a tenth of the time of a short one.
        let longest_contribution = self.longest_contribution(call.collective);
        if bytes.saturating_mul(given) <= longest_contribution
            && bytes.saturating_mul(read) <= self.limits.flat_read
        {
            return Ok(());
        }
        let most = (longest_contribution / given.max(1)).min(self.limits.flat_read / read.max(1));
        Err(Refusal::Count { most: most / size, count: call.count })
    }

    #[inline(always)]
    pub(super) fn task(&self, call: &Call, caller: Caller) -> FlatTask {
        let block = block_bytes(call) as usize;
        let all = block * self.n_ranks as usize;
        let (me, root) = (caller.rank as usize, call.root as usize);
        let (is_root, is_last) = (me == root, me + 1 == self.n_ranks as usize);
        let everybody = FlatTask {
            from: 0..self.n_ranks as usize,
            contributes: true,
            len: block,
            offset: 0,
            part: Some(block),
            folds: false,
            unread: None,
        };
        match call.collective {
            Collective::Barrier => FlatTask { len: 0, part: Some(0), ..everybody },
            Collective::Allreduce => FlatTask { folds: true, ..everybody },
            // Only the last rank itself reads its contribution, and only in place.
            Collective::Scan => FlatTask {
                from: 0..me + 1,
                contributes: !is_last || call.in_place,
                folds: true,
                ..everybody
            },
            Collective::Exscan => FlatTask {
                from: 0..me,
                contributes: !is_last,
                part: (me > 0).then_some(block),
                folds: true,
                ..everybody
            },
            // A contribution has several blocks: see `contribute_alltoall`.
            Collective::Alltoall => FlatTask { len: 0, ..everybody },
            // Only the root itself reads its contribution, and only in place; in groups its leader reads it.
            Collective::Reduce => FlatTask {
                contributes: !is_root || call.in_place || self.is_in_groups(call),
                folds: true,
                part: is_root.then_some(block),
                ..everybody
            },
            Collective::Allgather => everybody,
            Collective::Gather => {
                FlatTask { contributes: !is_root, part: is_root.then_some(block), ..everybody }
            }
            Collective::Bcast => FlatTask {
                from: root..root + 1,
                contributes: is_root,
                part: (!is_root).then_some(block),
                ..everybody
            },
            Collective::Scatter => FlatTask {
                from: root..root + 1,
                contributes: is_root,
                len: all,
                offset: me * block,
                part: (!is_root || !call.in_place).then_some(block),
                folds: false,
                unread: Some(block),
            },
            Collective::ReduceScatter => FlatTask {
                len: all,
                offset: me * block,
                folds: true,
                unread: (!call.in_place).then_some(block),
                ..everybody
            },
        }
    }

    /// As [`perform`](crate::comm::state::small::SmallCollectives::perform).
    ///
    /// # Safety
    /// As `perform`.
    #[inline]
    pub(super) unsafe fn perform_regular(
        &self,
        call: &Call,
        caller: Caller,
        waiter: &mut dyn Waiter,
    ) -> Result<(), Error> {
        let task = self.task(call, caller);
        let flat = &mut *lock(&self.flat);
        // SAFETY: the caller's promise.
        let entered = unsafe { self.enter_and_contribute(flat, (call, caller), &task, waiter)? };
        // Made while the contributions of other ranks arrive.
        let reducer = task.reducer(call)?;
        let given = flat.buffer.own(entered, task.len);
        let find = |found| self.await_contribution(flat, entered, found, caller, waiter);
        // SAFETY: the caller's promise.
        unsafe { self.read_result((call, caller), (&task, reducer.as_ref()), given, find) }
    }

    /// Enters a blocking call, and contributes to it if its task says so.
    ///
    /// # Safety
    /// The call's input must be valid.
    #[inline(always)]
    pub(super) unsafe fn enter_and_contribute(
        &self,
        flat: &mut Flat,
        (call, caller): (&Call, Caller),
        task: &FlatTask,
        waiter: &mut dyn Waiter,
    ) -> Result<Entered, Error> {
        let entered = self.enter(flat, call, block_bytes(call), waiter)?;
        if task.contributes {
            self.wait_for_room(flat, entered, waiter)?;
            // SAFETY: the caller's promise, and the place is free.
            unsafe { self.contribute(&mut flat.buffer, entered, (call, caller), task) };
        }
        Ok(entered)
    }

    /// Writes this rank's contribution to a call.
    ///
    /// # Safety
    /// The call's input must be valid, and the place be free.
    #[inline(always)]
    pub(super) unsafe fn contribute(
        &self,
        flat: &mut FlatBuffer,
        entered: Entered,
        (call, caller): (&Call, Caller),
        task: &FlatTask,
    ) {
        if call.collective == Collective::Alltoall {
            // SAFETY: the caller's promise.
            return unsafe { self.contribute_alltoall(flat, entered, call) };
        }
        // SAFETY: the caller's promise; a call without elements may have no buffer.
        let given = unsafe { slice(input(call, caller, task.len), task.len) };
        match task.unread {
            Some(own) if task.len > SHORT_BYTES => {
                flat.contribute_without(entered, given, task.offset..task.offset + own);
            }
            _ => flat.contribute(entered, given),
        }
    }

    /// Reads this rank's result of a call. `given` is this rank's contribution; `find` gets a rank and the length of
    /// its contribution in bytes, and returns the contribution.
    ///
    /// # Safety
    /// The call's buffers must be valid, and nobody else may use the output or change the input.
    #[inline(always)]
    pub(super) unsafe fn read_result(
        &self,
        (call, caller): (&Call, Caller),
        (task, reducer): (&FlatTask, Option<&Reducer>),
        given: *const u8,
        find: impl FnMut((usize, usize)) -> Result<*const u8, Error>,
    ) -> Result<(), Error> {
        if call.collective == Collective::Alltoall {
            // SAFETY: the caller's promise.
            return unsafe { self.read_alltoall(call, caller.rank as usize, find) };
        }
        let &FlatTask { ref from, len, offset, part, folds, .. } = task;
        let Some(part) = part else { return Ok(()) };
        let (me, start) = (caller.rank as usize, from.start);
        let input = input(call, caller, len);
        let is_copied = !folds && from.contains(&me);
        if is_copied && !call.in_place && part > 0 {
            // Copied while the contributions of other ranks arrive.
            let own = input.wrapping_add(offset);
            // SAFETY: the caller's promise: the input has what is contributed, and the output has room for
            // every part, apart from it.
            unsafe {
                std::ptr::copy_nonoverlapping(own, call.recv.add((me - start) * part), part);
            }
        }
        let of = |rank| {
            let read = if is_copied && rank == me { 0 } else { part };
            ReadPart { len, part: offset..offset + read, place: (rank - start) * part }
        };
        let own = if call.in_place { given } else { input };
        let output = (call.recv, reducer);
        // SAFETY: the caller's promise: the output has room for every part, and is apart from an input that is
        // not in place. Every contribution has `len` bytes, of which the part lies within.
        unsafe { self.read((me, from.clone()), of, own, output, find) }
    }
}

impl FlatTask {
    /// The reducer, if this rank folds.
    ///
    /// # Errors
    /// [`Error::Reduce`].
    #[inline]
    pub(super) fn reducer(&self, call: &Call) -> Result<Option<Reducer>, Error> {
        let op = call.op.filter(|_| self.folds);
        Ok(op.map(|op| Reducer::new(call.dtype, op)).transpose()?)
    }

    /// The ranks whose contributions this one reads, and the bytes of each contribution.
    pub(super) fn sources(&self) -> (Range<usize>, usize) {
        (self.part.map_or(0..0, |_| self.from.clone()), self.len)
    }
}

/// Bytes of the vector, or of a block.
#[inline]
pub(super) fn block_bytes(call: &Call) -> u64 {
    call.count * call.dtype.size_bytes() as u64
}

/// The address of this rank's contribution in the user's memory.
#[inline(always)]
pub(super) fn input(call: &Call, caller: Caller, len: usize) -> *const u8 {
    match call.collective {
        Collective::Bcast => call.recv.cast_const(),
        // In place the own block is at its place in the receive buffer.
        Collective::Allgather | Collective::Gather if call.in_place => {
            call.recv.cast_const().wrapping_add(caller.rank as usize * len)
        }
        // A scatter's root has its input in the send buffer, also in place.
        Collective::Scatter => call.send,
        _ if call.in_place => call.recv.cast_const(),
        _ => call.send,
    }
}
