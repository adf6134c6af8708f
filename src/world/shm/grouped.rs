//! Barriers and reductions in groups of ranks that share a cache or a memory: leaders fold their groups'
//! contributions, then each other's (`endpoint::shm::stages`). All ranks get the same bits.

use hopbine_torus::Collective;

use super::flat_buffer::{Flat, ReadPart, SharedFlatBuffer};
use super::regular::input;
use crate::comm::call::blocks::Form;
use crate::comm::call::{Call, Caller};
use crate::comm::state::small::Waiter;
use crate::endpoint::shm::{Contribution, Entered, LeaderStage};
use crate::error::Error;
use crate::reduce::Reducer;
use crate::sync::lock;

/// Number of looks for what a leader writes after which a rank checks that the leader makes the same call.
const POLLS_PER_CHECK: u32 = 1024;

impl SharedFlatBuffer {
    /// Whether a blocking call is performed in groups.
    #[inline]
    pub(super) fn is_in_groups(&self, call: &Call) -> bool {
        self.read_in_groups > 0
            && call.form == Form::Regular
            && matches!(
                call.collective,
                Collective::Barrier | Collective::Allreduce | Collective::Reduce
            )
    }

    /// As [`perform`](crate::comm::state::small::SmallCollectives::perform), for a call
    /// [in groups](SharedFlatBuffer::is_in_groups).
    ///
    /// # Safety
    /// As `perform`.
    pub(super) unsafe fn perform_in_groups(
        &self,
        call: &Call,
        caller: Caller,
        waiter: &mut dyn Waiter,
    ) -> Result<(), Error> {
        let task = self.task(call, caller);
        let flat = &mut *lock(&self.flat);
        // SAFETY: the caller's promise.
        let entered = unsafe { self.enter_and_contribute(flat, (call, caller), &task, waiter)? };
        let (reducer, (_, len)) = (task.reducer(call)?, task.sources());
        // SAFETY: the caller's promise.
        let done = unsafe {
            self.run_stages((flat, entered), (call, caller), (reducer.as_ref(), len), waiter)
        };
        done.inspect_err(|_| flat.buffer.end_stages(entered, len))
    }

    /// Performs a call in groups to which this rank has contributed `len` bytes.
    ///
    /// # Safety
    /// As `perform`.
    #[inline]
    unsafe fn run_stages(
        &self,
        (flat, entered): (&mut Flat, Entered),
        (call, caller): (&Call, Caller),
        (reducer, len): (Option<&Reducer>, usize),
        waiter: &mut dyn Waiter,
    ) -> Result<(), Error> {
        let me = caller.rank as usize;
        let (group, n_groups) = (flat.buffer.own_group(), flat.buffer.n_groups());
        let ranks = flat.buffer.ranks_of_group(group).clone();
        let is_leader = ranks[0] == me;
        let part = |_| ReadPart { len, part: 0..len, place: 0 };
        let folded = flat.buffer.stage(entered, LeaderStage::Group, group, len);
        if is_leader {
            let given = flat.buffer.own(entered, len);
            let own = if call.in_place { given } else { input(call, caller, len) };
            let find = |found| self.await_contribution(flat, entered, found, caller, waiter);
            // SAFETY: every contribution has `len` bytes, and the leader's stage has room for as many; no rank reads
            // the stage before it is stamped.
            unsafe { self.read((me, ranks.iter().copied()), part, own, (folded, reducer), find)? };
            flat.buffer.stage_is_there(entered, LeaderStage::Group);
        }
        let is_result_here = match call.collective {
            Collective::Reduce => call.root == caller.rank,
            _ => is_leader,
        };
        if is_result_here {
            let own = if is_leader { group } else { usize::MAX };
            let find = |(group, _)| {
                self.await_stage((flat, entered), (LeaderStage::Group, group), len, caller, waiter)
            };
            let output = (call.recv, reducer);
            // SAFETY: what each leader has written has `len` bytes, and the output has room for them, by the
            // caller's promise.
            unsafe { self.read((own, 0..n_groups), part, folded, output, find)? };
        }
        if call.collective == Collective::Reduce {
            return Ok(());
        }
        if is_leader {
            let result = flat.buffer.stage(entered, LeaderStage::All, group, len);
            // SAFETY: the stage has room for `len` bytes, as above; the output has `len` bytes.
            unsafe { copy(call.recv, result, len) };
            flat.buffer.stage_is_there(entered, LeaderStage::All);
            return Ok(());
        }
        let result =
            self.await_stage((flat, entered), (LeaderStage::All, group), len, caller, waiter)?;
        // SAFETY: the leader has written `len` bytes, and the output has room for them.
        unsafe { copy(result, call.recv, len) };
        Ok(())
    }

    /// Waits for the `len` bytes of a stage that a group's leader writes.
    #[inline]
    fn await_stage(
        &self,
        (flat, call): (&mut Flat, Entered),
        (stage, group): (LeaderStage, usize),
        len: usize,
        caller: Caller,
        waiter: &mut dyn Waiter,
    ) -> Result<*const u8, Error> {
        let leader = flat.buffer.ranks_of_group(group)[0];
        let mut polls = 0u32;
        self.await_from(flat, leader, caller, waiter, |buffer| {
            polls = polls.wrapping_add(1);
            match buffer.of_stage(call, stage, group, len) {
                // Not at once: the leader contributes sooner if no other rank has fetched the line of its
                // contribution.
                Contribution::Missing if polls.is_multiple_of(POLLS_PER_CHECK) => {
                    match buffer.of(call, leader, len) {
                        Contribution::At(_) => Contribution::Missing,
                        found => found,
                    }
                }
                found => found,
            }
        })
    }
}

/// # Safety
/// If `len` is not 0, so many bytes must be valid for reads at `from` and for writes at `into`.
unsafe fn copy(from: *const u8, into: *mut u8, len: usize) {
    if len > 0 {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, into, len) };
    }
}
