//! Short collectives on the flat buffer: each rank writes its contribution once, the ranks that need it read it, and
//! reductions fold contributions in the order of ranks.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use hopbine_torus::Collective;
use hopbine_torus::choose::ShmLimits;

use super::started_calls::{StartedCalls, StartedStatus};
use crate::Rank;
use crate::comm::call::blocks::Form;
use crate::comm::call::{Call, Caller};
use crate::comm::state::small::{GatesInfo, Refusal, Requests, SmallCollectives, Terms, Waiter};
use crate::endpoint::shm::{Contribution, Entered, FlatBuffer, FlatBufferLease};
use crate::error::{Blame, Error, Fault};
use crate::memory::stores;
use crate::reduce::Reducer;
use crate::sync::lock;

/// The most ranks of a flat buffer without groups. All ranks read all contributions, so plans are faster with more.
pub(super) const MOST_RANKS: usize = 64;
/// Number of looks for a contribution before the rank does other work, if every rank can have a core of its own.
const SPINS: u32 = 32;

/// The flat buffer of a communicator.
pub(super) struct SharedFlatBuffer {
    pub(super) flat: Mutex<Flat>,
    pub(super) status: StartedStatus,
    /// The lease of a flat buffer that is not the world's; `None` while being dropped.
    lease: Option<FlatBufferLease>,
    /// The members, as ranks of the world.
    pub(super) ranks: Box<[Rank]>,
    pub(super) n_ranks: u64,
    /// The longest contribution in bytes: what a place holds.
    pub(super) capacity: u64,
    pub(super) limits: ShmLimits,
    n_groups: usize,
    /// The most contributions that a rank reads in a call in groups; 0 if there are no groups.
    pub(super) read_in_groups: u64,
    pub(super) spins: u32,
    /// See [`alltoall`](super::alltoall).
    pub(super) calls_to_skip: AtomicU64,
    /// Bytes of other ranks' contributions that this rank has read.
    #[cfg(test)]
    pub(super) n_read: AtomicU64,
}

/// This rank's view of the flat buffer, and its calls that have been started and have not ended.
pub(super) struct Flat {
    pub(super) buffer: FlatBuffer,
    pub(super) started: StartedCalls,
}

/// What this rank reads of a contribution.
pub(super) struct ReadPart {
    /// The contribution's bytes.
    pub(super) len: usize,
    /// The bytes of it that this rank reads.
    pub(super) part: Range<usize>,
    /// Offset of these bytes in the output, unless they are folded.
    pub(super) place: usize,
}

impl SharedFlatBuffer {
    /// The flat buffer of the world.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) fn of_world(flat: FlatBuffer, limits: ShmLimits) -> Result<Self, String> {
        let n_ranks = flat.n_ranks();
        if n_ranks > MOST_RANKS && flat.n_groups() == 0 {
            return Err(too_many(n_ranks));
        }
        let ranks = (0..n_ranks as Rank).collect();
        Ok(SharedFlatBuffer::new(flat, None, ranks, spins(n_ranks), limits))
    }

    pub(super) fn new(
        flat: FlatBuffer,
        lease: Option<FlatBufferLease>,
        ranks: Box<[Rank]>,
        spins: u32,
        limits: ShmLimits,
    ) -> Self {
        let (n_ranks, capacity) = (flat.n_ranks() as u64, flat.capacity() as u64);
        let n_groups = flat.n_groups();
        let longest =
            (0..n_groups).map(|group| flat.ranks_of_group(group).len()).max().unwrap_or(0);
        let read_in_groups = (longest + n_groups) as u64;
        let flat = Mutex::new(Flat { buffer: flat, started: StartedCalls::default() });
        let (status, calls_to_skip) = Default::default();
        SharedFlatBuffer {
            flat,
            status,
            lease,
            ranks,
            n_ranks,
            capacity,
            limits,
            n_groups,
            read_in_groups,
            spins,
            calls_to_skip,
            #[cfg(test)]
            n_read: AtomicU64::new(0),
        }
    }

    /// Whether this rank may contribute to the call; also advances the calls started before it.
    ///
    /// # Errors
    /// The rank that is waited for.
    #[inline]
    fn is_free(&self, flat: &mut Flat, call: Entered) -> Result<(), usize> {
        if flat.started.is_empty() {
            return flat.buffer.is_free(call);
        }
        self.is_free_behind(flat, call)
    }

    /// Waits until this rank may contribute to the call.
    #[inline]
    pub(super) fn wait_for_room(
        &self,
        flat: &mut Flat,
        call: Entered,
        waiter: &mut dyn Waiter,
    ) -> Result<(), Error> {
        while let Err(rank) = self.is_free(flat, call) {
            if let Err(error) = waiter.idle(Some(rank)) {
                // As in `await_from`.
                return self.is_free(flat, call).map_err(|_| error);
            }
        }
        Ok(())
    }

    /// Waits for the contribution of `len` bytes of a rank.
    #[inline]
    pub(super) fn await_contribution(
        &self,
        flat: &mut Flat,
        call: Entered,
        (rank, len): (usize, usize),
        caller: Caller,
        waiter: &mut dyn Waiter,
    ) -> Result<*const u8, Error> {
        self.await_from(flat, rank, caller, waiter, |buffer| buffer.of(call, rank, len))
    }

    /// Waits until `look` finds a contribution of a rank.
    #[inline]
    pub(super) fn await_from(
        &self,
        flat: &mut Flat,
        rank: usize,
        caller: Caller,
        waiter: &mut dyn Waiter,
        mut look: impl FnMut(&mut FlatBuffer) -> Contribution,
    ) -> Result<*const u8, Error> {
        let mut spins = 0;
        loop {
            match look(&mut flat.buffer) {
                Contribution::At(ptr) => return Ok(ptr),
                Contribution::Other(rank) => return Err(self.other_call(rank, caller)),
                Contribution::Missing if spins < self.spins => {
                    spins += 1;
                    std::hint::spin_loop();
                }
                Contribution::Missing => {
                    // The rank may itself wait for a call that was started here.
                    if !flat.started.is_empty() {
                        self.advance_calls(flat);
                    }
                    if let Err(error) = waiter.idle(Some(rank)) {
                        // A contribution may arrive during the diagnosis: then there is no failure.
                        match look(&mut flat.buffer) {
                            Contribution::At(ptr) => return Ok(ptr),
                            _ => return Err(error),
                        }
                    }
                }
            }
        }
    }

    /// Enters a call. `bytes` is a part of its signature, and the same on all ranks that make the call.
    ///
    /// # Errors
    /// As [`Waiter::may_start`].
    #[inline]
    pub(super) fn enter(
        &self,
        flat: &mut Flat,
        call: &Call,
        bytes: u64,
        waiter: &mut dyn Waiter,
    ) -> Result<Entered, Error> {
        let number = waiter.may_start()?;
        Ok(flat.buffer.enter(signature(call, bytes, number)))
    }

    /// The error for a rank that has made another call.
    #[cold]
    pub(super) fn other_call(&self, rank: usize, caller: Caller) -> Error {
        let (rank, by) = (self.ranks[rank], self.ranks[caller.rank as usize]);
        let blame = Blame { rank, fault: Fault::Elsewhere, by };
        Error::Lost { rank: by, blame }
    }

    /// Reads the contributions of some ranks, and copies them to their places in the output or, with a reducer,
    /// folds them at its start. `own` is the contribution of this rank, number `me`, in the user's memory or in the
    /// flat buffer.
    ///
    /// # Safety
    /// Every part must lie within its contribution and have room in the output, which must be valid for reads and
    /// writes and used by nobody else. `own` must have this rank's part, apart from the output.
    ///
    /// # Errors
    /// Those of `find`, which gets a rank and the length of its contribution in bytes, and returns the contribution.
    #[inline]
    pub(super) unsafe fn read(
        &self,
        (me, ranks): (usize, impl ExactSizeIterator<Item = usize>),
        mut of: impl FnMut(usize) -> ReadPart,
        own: *const u8,
        (output, reducer): (*mut u8, Option<&Reducer>),
        mut find: impl FnMut((usize, usize)) -> Result<*const u8, Error>,
    ) -> Result<(), Error> {
        let is_alone = ranks.len() == 1;
        // The first operand, until the second has arrived.
        let mut first: &[u8] = &[];
        for (index, rank) in ranks.enumerate() {
            let ReadPart { len, part, place } = of(rank);
            let there = if rank == me { own } else { find((rank, len))? };
            // SAFETY: the caller's promise: the part lies within the contribution, which stays until
            // this rank has read it, or is the user's and apart from the output.
            let operand = unsafe { slice(there.wrapping_add(part.start), part.len()) };
            if part.is_empty() {
                continue;
            }
            #[cfg(test)]
            if rank != me {
                self.n_read.fetch_add(part.len() as u64, std::sync::atomic::Ordering::Relaxed);
            }
            let Some(reducer) = reducer else {
                // SAFETY: the caller's promise.
                unsafe {
                    stores::copy_shared(operand.as_ptr(), output.add(place), part.len(), false);
                }
                continue;
            };
            // SAFETY: the caller's promise. In place this rank's operand is its contribution in the flat buffer, not
            // its input, so that no operand overlaps the output.
            let target = unsafe { std::slice::from_raw_parts_mut(output, part.len()) };
            match index {
                0 if is_alone => target.copy_from_slice(operand),
                0 => first = operand,
                1 => reducer.reduce3(target, first, operand),
                _ => reducer.reduce_into(target, operand),
            }
        }
        Ok(())
    }
}

/// The signature of a call: the same on all ranks that make the same call, and most likely different for another
/// call. `number` is what [`Waiter::may_start`] returns. It differs between two ranks if one has made an earlier
/// call by a plan and the other on the flat buffer.
#[inline]
fn signature(call: &Call, bytes: u64, number: u32) -> u16 {
    let mut mixed = bytes << 8 | call.collective as u64;
    if let Some(op) = call.op {
        mixed ^= (op as u64) << 52 | (call.dtype as u64) << 58;
    }
    mixed = (mixed ^ u64::from(call.root) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 48) as u16).wrapping_add(number as u16)
}

impl Drop for SharedFlatBuffer {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.end(&mut lock(&self.flat).buffer);
        }
    }
}

pub(super) fn too_many(n_ranks: usize) -> String {
    format!("it is for up to {MOST_RANKS} ranks, not {n_ranks}")
}

/// Number of successive looks for a contribution, in a world of `n_ranks` ranks.
pub(super) fn spins(n_ranks: usize) -> u32 {
    let n_cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if n_ranks <= n_cores { SPINS } else { 0 }
}

impl SmallCollectives for SharedFlatBuffer {
    #[inline]
    fn serves(&self, call: &Call, terms: Terms) -> Result<(), Refusal> {
        if self.n_ranks > MOST_RANKS as u64 && !self.is_in_groups(call) {
            return Err(Refusal::Ranks { most: MOST_RANKS });
        }
        match call.collective {
            _ if call.form == Form::Regular => self.serves_regular(call),
            Collective::Alltoall if !terms.always => Ok(()),
            _ => self.serves_blocks(call),
        }
    }

    fn between_calls(&self, f: &mut dyn FnMut()) {
        let _flat = lock(&self.flat);
        f();
    }

    fn describe(&self) -> GatesInfo {
        GatesInfo::FlatBuffer { bytes: self.capacity, groups: self.n_groups }
    }

    fn requests(&self) -> Option<&dyn Requests> {
        Some(self)
    }

    unsafe fn perform(
        &self,
        call: &Call,
        caller: Caller,
        waiter: &mut dyn Waiter,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            match (call.form, call.collective) {
                (Form::Regular, _) if self.is_in_groups(call) => {
                    self.perform_in_groups(call, caller, waiter)
                }
                (Form::Regular, _) => self.perform_regular(call, caller, waiter),
                (_, Collective::Alltoall) => self.perform_alltoallv(call, caller, waiter),
                _ => self.perform_blocks(call, caller, waiter),
            }
        }
    }
}

/// # Safety
/// If there are any bytes, they must be valid for reads and unchanged for as long as the slice lives.
pub(super) unsafe fn slice<'a>(ptr: *const u8, len: usize) -> &'a [u8] {
    match len {
        0 => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(ptr, len) },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopbine_meet::LocalExchange;

    use super::*;
    use crate::endpoint::shm::{ShmConfig, connect};
    use crate::reduce::Dtype;

    /// Lets the other rank enter all calls, then gives up.
    struct Late(FlatBuffer);

    impl Waiter for Late {
        fn may_start(&mut self) -> Result<u32, Error> {
            Ok(0)
        }

        fn hand_back(&mut self) -> Result<(), Error> {
            unreachable!("only an alltoall is handed back")
        }

        fn idle(&mut self, _: Option<usize>) -> Result<(), Error> {
            (0..10).for_each(|_| _ = self.0.enter(0));
            Err(Error::Closed)
        }
    }

    #[test]
    fn what_comes_while_a_cause_is_looked_for_is_no_failure() {
        let exchanges = LocalExchange::group(2, Duration::from_secs(60));
        let [own, other] = std::thread::scope(|threads| {
            let open = |mut exchange| {
                threads.spawn(move || {
                    let (limits, node) = (ShmLimits::default(), 0);
                    let config =
                        ShmConfig { n_ports: 1, node, may_read: true, own_cores: true, limits };
                    connect(&mut exchange, config).unwrap().flat.unwrap()
                })
            };
            let opened: Vec<_> = exchanges.into_iter().map(open).collect();
            let flats: Vec<_> = opened.into_iter().map(|one| one.join().unwrap()).collect();
            flats.try_into().unwrap()
        });
        let (flat, mut late) =
            (SharedFlatBuffer::of_world(own, ShmLimits::default()).unwrap(), Late(other));
        let mut byte = 7u8;
        let mut call = Call::new(Collective::Bcast, 1, Dtype::U8);
        (call.recv, call.recv_count) = (&raw mut byte, 1);
        let caller = Caller { rank: 0, n_ranks: 2 };
        // More calls than it has places.
        for _ in 0..5 {
            // SAFETY: the buffer is there, and nobody else uses it.
            unsafe { flat.perform(&call, caller, &mut late) }.unwrap();
        }
    }
}
