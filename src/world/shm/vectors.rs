//! Vector forms on the flat buffer whose sizes all ranks know: allgathers and reduce-scatters. So all ranks decide
//! alike whether the flat buffer serves a call.

use std::hash::Hasher;

use hopbine_torus::Collective;
use hopbine_torus::choose::ShmLimits;
use rustc_hash::FxHasher;

use super::alltoall::block_ranges;
use super::flat_buffer::{ReadPart, SharedFlatBuffer, slice};
use crate::comm::call::blocks::Blocks;
use crate::comm::call::{Call, Caller};
use crate::comm::state::small::{Refusal, Waiter};
use crate::error::Error;
use crate::reduce::Reducer;
use crate::sync::lock;

/// The blocks of a call that the flat buffer may serve.
fn known<'a>(call: &Call<'a>) -> Option<Blocks<'a>> {
    match call.collective {
        Collective::Allgather => call.recv_blocks,
        Collective::ReduceScatter => call.send_blocks,
        _ => None,
    }
}

impl SharedFlatBuffer {
    /// As [`serves`](crate::comm::state::small::SmallCollectives::serves), for a vector form.
    pub(super) fn serves_blocks(&self, call: &Call) -> Result<(), Refusal> {
        let counts = known(call).ok_or(Refusal::Sizes)?.counts;
        let sum = counts.iter().fold(0u64, |sum, &count| sum.saturating_add(count));
        let longest = counts.iter().copied().max().unwrap_or(0);
        // The most elements that a rank contributes and reads, each with its limit in bytes.
        let ShmLimits { flat, flat_read, .. } = self.limits;
        let [given, read] = match call.op {
            Some(_) => [(sum, self.capacity), (longest.saturating_mul(self.n_ranks), flat_read)],
            None => [(longest, flat), (sum, flat_read)],
        };
        let size = call.dtype.size_bytes() as u64;
        for (count, most) in [given, read] {
            if count.saturating_mul(size) > most {
                return Err(Refusal::Count { most: most / size, count });
            }
        }
        Ok(())
    }

    /// As [`perform`](crate::comm::state::small::SmallCollectives::perform), for a vector form.
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn perform_blocks(
        &self,
        call: &Call,
        caller: Caller,
        waiter: &mut dyn Waiter,
    ) -> Result<(), Error> {
        let Some(blocks) = known(call) else { unreachable!("`serves_blocks` has refused it") };
        let (me, size) = (caller.rank as usize, call.dtype.size_bytes());
        let bytes = |count: u64| count as usize * size;
        let reducer = call.op.map(|op| Reducer::new(call.dtype, op)).transpose()?;
        let own = bytes(blocks.counts[me]);
        let (before, all) = (blocks.counts[..me].iter().sum(), blocks.counts.iter().sum());
        let flat = &mut *lock(&self.flat);
        let mut hasher = FxHasher::default();
        blocks.counts.iter().for_each(|&count| hasher.write_usize(bytes(count)));
        let entered = self.enter(flat, call, hasher.finish(), waiter)?;
        self.wait_for_room(flat, entered, waiter)?;
        let ranks = 0..flat.buffer.n_ranks();
        if reducer.is_some() {
            let input = if call.in_place { call.recv.cast_const() } else { call.send };
            let pieces = block_ranges(&blocks).map(|(start, count)| {
                // SAFETY: the caller's promise: the input has all blocks.
                unsafe { slice(input.wrapping_add(bytes(start)), bytes(count)) }
            });
            flat.buffer.contribute_pieces(entered, bytes(all), pieces);
            let (len, offset) = (bytes(all), bytes(before));
            let of = |_| ReadPart { len, part: offset..offset + own, place: 0 };
            let given = flat.buffer.own(entered, len);
            let find = |found| self.await_contribution(flat, entered, found, caller, waiter);
            // SAFETY: the own block lies within every contribution, and the output has room for it.
            let done =
                unsafe { self.read((me, ranks), of, given, (call.recv, reducer.as_ref()), find) };
            return done;
        }
        let start = block_ranges(&blocks).nth(me).map_or(0, |(start, _)| bytes(start));
        let input =
            if call.in_place { call.recv.wrapping_add(start).cast_const() } else { call.send };
        // SAFETY: the caller's promise: the own block is there.
        flat.buffer.contribute(entered, unsafe { slice(input, own) });
        let mut block_ranges = block_ranges(&blocks);
        let find = |found| self.await_contribution(flat, entered, found, caller, waiter);
        let of = |rank| {
            let (start, count) = block_ranges.next().unwrap_or((0, 0));
            let (len, place) = (bytes(count), bytes(start));
            // In place the own block is already in its place.
            let part = if rank == me && call.in_place { 0 } else { len };
            ReadPart { len, part: 0..part, place }
        };
        // SAFETY: every rank contributes its block, and the output has room for it, apart from an input that is
        // not in place, by the caller's promise.
        unsafe { self.read((me, ranks), of, input, (call.recv, None), find) }
    }
}
