//! Alltoalls of short blocks on the flat buffer. A rank contributes all its blocks except its own, in order of
//! ranks.
//!
//! If blocks have different sizes, the contribution begins with two sizes for every rank: the bytes that the sender
//! has for it and the bytes that it expects from it. So sizes travel with the data. A rank whose blocks are too long
//! says so in place of the first size, and then all ranks use messages. All ranks know how a call went, so all skip
//! the flat buffer in the same number of following calls: twice as many after each consecutive failure.

use std::sync::atomic::Ordering;

use super::flat_buffer::{MOST_RANKS, ReadPart, SharedFlatBuffer, slice};
use super::regular::block_bytes;
use crate::comm::call::blocks::Blocks;
use crate::comm::call::{Call, Caller};
use crate::comm::state::small::Waiter;
use crate::endpoint::shm::{Entered, FlatBuffer};
use crate::error::Error;
use crate::memory::stores;
use crate::sync::lock;

/// In place of the first size: the blocks are too long for the flat buffer.
const TOO_LONG: u32 = u32::MAX;
/// Bytes of a size.
const WORD: usize = size_of::<u32>();
/// The most calls that skip the flat buffer before it is tried again.
const MOST_SKIPPED: u64 = 64;
/// Shift in `calls_to_skip`: the upper half has the number of calls to skip after the next failure, the lower half
/// that of the calls still to skip.
const NEXT_SKIP_SHIFT: u32 = 32;

impl SharedFlatBuffer {
    /// Contributes to an alltoall of blocks of one size.
    ///
    /// # Safety
    /// As [`contribute`](SharedFlatBuffer::contribute).
    pub(super) unsafe fn contribute_alltoall(
        &self,
        flat: &mut FlatBuffer,
        entered: Entered,
        call: &Call,
    ) {
        let (block, input) = blocks_of(call);
        let (me, n) = (flat.me(), self.n_ranks as usize);
        let others = [(0, me), (me + 1, n - me - 1)].map(|(start, count)| {
            // SAFETY: the caller's promise: the input has all blocks.
            unsafe { slice(input.wrapping_add(start * block), count * block) }
        });
        flat.contribute_pieces(entered, (n - 1) * block, others.into_iter());
    }

    /// Reads what this rank receives in an alltoall of blocks of one size.
    ///
    /// # Safety
    /// As [`read_result`](SharedFlatBuffer::read_result).
    pub(super) unsafe fn read_alltoall(
        &self,
        call: &Call,
        me: usize,
        find: impl FnMut((usize, usize)) -> Result<*const u8, Error>,
    ) -> Result<(), Error> {
        let (block, input) = blocks_of(call);
        let n = self.n_ranks as usize;
        let of = |rank| {
            // A contribution lacks its rank's own block, which would come before or after the block for this rank.
            // This rank's own block is in the input, which has all blocks; in place it is where it belongs.
            let before = if rank < me { me - 1 } else { me };
            let part = if rank == me && call.in_place { 0 } else { block };
            let start = before * block;
            ReadPart { len: (n - 1) * block, part: start..start + part, place: rank * block }
        };
        // SAFETY: the block for this rank lies within every contribution and the input, and the output has room
        // for all, apart from an input that is not in place, by the caller's promise.
        unsafe { self.read((me, 0..n), of, input, (call.recv, None), find) }
    }

    /// Performs an alltoall of blocks of any size, or hands it back if its blocks are too long on some rank.
    ///
    /// # Safety
    /// As [`perform`](crate::comm::state::small::SmallCollectives::perform).
    pub(super) unsafe fn perform_alltoallv(
        &self,
        call: &Call,
        caller: Caller,
        waiter: &mut dyn Waiter,
    ) -> Result<(), Error> {
        let (Some(recv), size) = (call.recv_blocks, call.dtype.size_bytes() as u64) else {
            return waiter.hand_back();
        };
        let (send, input) = match call.send_blocks {
            Some(send) if !call.in_place => (send, call.send),
            _ => (recv, call.recv.cast_const()),
        };
        let (me, n) = (caller.rank as usize, self.n_ranks as usize);
        let flat = &mut *lock(&self.flat);
        // Relaxed: under the flat buffer's lock.
        let calls_to_skip = self.calls_to_skip.load(Ordering::Relaxed);
        if calls_to_skip as u32 > 0 {
            self.calls_to_skip.store(calls_to_skip - 1, Ordering::Relaxed);
            return waiter.hand_back();
        }
        let entered = self.enter(flat, call, u64::MAX, waiter)?;
        self.wait_for_room(flat, entered, waiter)?;
        let others = |blocks: &Blocks<'_>| {
            let all = blocks.counts.iter().enumerate().filter(|(rank, _)| *rank != me);
            all.fold(0, |sum: u64, (_, &count)| sum.saturating_add(count.saturating_mul(size)))
        };
        let head = 2 * n * WORD;
        let mut words = [0u32; 2 * MOST_RANKS];
        if others(&send).saturating_add(head as u64) > self.capacity
            || others(&recv) > self.limits.flat_read
        {
            words[0] = TOO_LONG;
            flat.buffer.contribute_pieces(entered, 0, std::iter::once(bytes_of(&words[..2 * n])));
        } else {
            for (word, count) in words.iter_mut().zip(send.counts.iter().chain(recv.counts)) {
                // Only the own block, which is not contributed, may be longer.
                *word = u32::try_from(count * size).unwrap_or(0);
            }
            words[me] = 0;
            words[n + me] = 0;
            let blocks = block_ranges(&send).enumerate().filter(|(to, _)| *to != me);
            let blocks = blocks.map(|(_, (start, count))| {
                // SAFETY: the caller's promise: the block lies within the input.
                unsafe {
                    slice(input.wrapping_add((start * size) as usize), (count * size) as usize)
                }
            });
            flat.buffer.contribute_pieces(
                entered,
                0,
                std::iter::once(bytes_of(&words[..2 * n])).chain(blocks),
            );
        }
        let mut found = [std::ptr::null::<u8>(); MOST_RANKS];
        let mut is_too_long = false;
        for (rank, found) in found[..n].iter_mut().enumerate() {
            *found = self.await_contribution(flat, entered, (rank, 0), caller, waiter)?;
            // SAFETY: every contribution begins with the words.
            is_too_long |= unsafe { word(*found, 0) } == TOO_LONG;
        }
        if is_too_long {
            let next = (calls_to_skip >> NEXT_SKIP_SHIFT).max(1);
            self.calls_to_skip
                .store((2 * next).min(MOST_SKIPPED) << NEXT_SKIP_SHIFT | next, Ordering::Relaxed);
            return waiter.hand_back();
        }
        self.calls_to_skip.store(0, Ordering::Relaxed);
        // SAFETY: as above.
        let sent_size = |rank: usize, at: usize| u64::from(unsafe { word(found[rank], at) });
        for rank in (0..n).filter(|&rank| rank != me) {
            let [given, taken] = [send.counts[rank] * size, recv.counts[rank] * size];
            for (from, to, sent, expected) in
                [(rank, me, sent_size(rank, me), taken), (me, rank, given, sent_size(rank, n + me))]
            {
                if sent != expected {
                    let (rank, peer) = (self.ranks[to], self.ranks[from]);
                    return Err(Error::Disagree { rank, peer, sent, expected });
                }
            }
        }
        for (from, (start, count)) in block_ranges(&recv).enumerate() {
            let len = (count * size) as usize;
            if len == 0 || from == me && call.in_place {
                continue;
            }
            let source = if from == me {
                input.wrapping_add(
                    (block_ranges(&send).nth(me).map_or(0, |(start, _)| start) * size) as usize,
                )
            } else {
                let before = (0..me).map(|to| sent_size(from, to) as usize).sum::<usize>();
                // The sender may have made another call with the same signature.
                if (head + before + len) as u64 > self.capacity {
                    return Err(self.other_call(from, caller));
                }
                found[from].wrapping_add(head + before)
            };
            // SAFETY: both ranks have given the block `len` bytes, for which the sender's place has room, and the
            // contribution stays until this rank enters another call; the output has room for the block, by the
            // caller's promise, and neither overlaps the input nor is the flat buffer.
            unsafe {
                let into = call.recv.add((start * size) as usize);
                stores::copy_shared(source, into, len, false);
            }
        }
        Ok(())
    }
}

/// The bytes of a block, and the address of the input.
fn blocks_of(call: &Call) -> (usize, *const u8) {
    let input = if call.in_place { call.recv.cast_const() } else { call.send };
    (block_bytes(call) as usize, input)
}

/// By rank, the start and the length of its block in elements.
pub(super) fn block_ranges<'a>(blocks: &Blocks<'a>) -> impl Iterator<Item = (u64, u64)> + use<'a> {
    let Blocks { counts, displacements } = *blocks;
    let mut next = 0;
    counts.iter().enumerate().map(move |(rank, &count)| {
        let start = match displacements {
            // The displacement of an empty block is ignored, and may be any number.
            Some(starts) if count > 0 => starts[rank],
            Some(_) => 0,
            None => next,
        };
        next = start + count;
        (start, count)
    })
}

fn bytes_of(words: &[u32]) -> &[u8] {
    bytemuck::cast_slice(words)
}

/// # Safety
/// There must be a word with the index `at`.
unsafe fn word(start: *const u8, at: usize) -> u32 {
    // SAFETY: the caller's promise; it need not be aligned.
    unsafe { start.add(at * WORD).cast::<u32>().read_unaligned() }
}
