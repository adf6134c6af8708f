//! Short calls that are made again: what follows from everything but the addresses is found out once.

use super::call::{Call, Caller};
use super::communicator::Communicator;
use crate::Rank;
use crate::error::Error;

/// A call that the hardware performs, checked: see [`Communicator::short`].
#[derive(Clone, Copy, Debug)]
pub struct Short {
    /// Normalized.
    call: Call<'static>,
    /// Bytes that this rank sends and receives.
    sent: usize,
    received: usize,
}

impl Communicator {
    /// What calls like this one have in common, whatever their addresses, if the hardware performs
    /// them: for [`again`](Communicator::again).
    pub fn short(&self, call: &Call) -> Option<Short> {
        let caller = self.caller();
        let call = call.normalized(caller);
        self.gates_for(&call).ok()??;
        call.check(caller).ok()?;
        let [send, recv] = call.memory(caller);
        let call = Call { send_blocks: None, recv_blocks: None, ..call };
        Some(Short { call, sent: send.len as usize, received: recv.len as usize })
    }

    /// Performs a call like that of `short`, which this handle has made, on other addresses and, if
    /// this rank stays the root or stays none, with another root. Returns `None`, and does nothing, where
    /// the root or the addresses need a closer look: [`call`](Communicator::call) then says what is wrong.
    ///
    /// # Safety
    /// As [`call`](Communicator::call).
    #[inline]
    pub unsafe fn again(
        &self,
        short: &mut Short,
        root: Rank,
        (send, recv): (*const u8, *mut u8),
    ) -> Option<Result<(), Error>> {
        let Short { call, sent, received } = short;
        let Caller { rank, n_ranks } = self.caller();
        let (from, to) = (send.addr(), recv.addr());
        // No buffer wraps round; the C interface's mark for in place would.
        let (from_end, to_end) = (from.checked_add(*sent)?, to.checked_add(*received)?);
        let is_apart = from_end <= to || to_end <= from || *sent == 0 || *received == 0;
        let is_there = (from != 0 || *sent == 0) && (to != 0 || *received == 0);
        let is_like = root < n_ranks && (root == rank) == (call.root == rank);
        if !(is_apart && is_there && is_like) {
            return None;
        }
        let small = self.small_collectives().ok()?;
        (call.root, call.send, call.recv) = (root, send, recv);
        // SAFETY: the caller's promise.
        Some(self.by_hardware(|caller, waiter| unsafe { small.perform(call, caller, waiter) }))
    }
}
