//! Short calls that are made again: what follows from everything but the addresses is found out once.

use super::blocks::Form;
use super::call::{Call, Caller};
use super::communicator::Communicator;
use super::options::Hardware;
use super::raw::Started;
use super::running::Prepared;
use crate::Rank;
use crate::engine::UserMemory;
use crate::error::Error;

/// A checked call with equal blocks: see [`Communicator::short`] and
/// [`Communicator::short_started`].
#[derive(Clone, Copy, Debug)]
pub struct Short {
    /// Normalized.
    call: Call<'static>,
    /// Bytes that this rank sends and receives.
    sent: usize,
    received: usize,
}

impl Short {
    /// Checks a normalized call.
    fn new(call: &Call, caller: Caller) -> Option<Self> {
        call.check(caller).ok()?;
        let [send, recv] = call.memory(caller);
        let call = Call { send_blocks: None, recv_blocks: None, ..*call };
        Some(Short { call, sent: send.len as usize, received: recv.len as usize })
    }

    /// The call with other addresses and, if this rank stays the root or stays none, with another root;
    /// `None` if the root or the addresses need a closer look.
    #[inline]
    fn at(
        &mut self,
        caller: Caller,
        root: Rank,
        addresses: (*const u8, *mut u8),
    ) -> Option<&Call<'static>> {
        let Short { call, sent, received } = self;
        let Caller { rank, n_ranks } = caller;
        let (send, recv) = addresses;
        let (from, to) = (send.addr(), recv.addr());
        // No buffer wraps round; the C interface's mark for in place would.
        let (from_end, to_end) = (from.checked_add(*sent)?, to.checked_add(*received)?);
        let is_apart = from_end <= to || to_end <= from || *sent == 0 || *received == 0;
        let is_there = (from != 0 || *sent == 0) && (to != 0 || *received == 0);
        let is_like = root < n_ranks && (root == rank) == (call.root == rank);
        if !(is_apart && is_there && is_like) {
            return None;
        }
        (call.root, call.send, call.recv) = (root, send, recv);
        Some(call)
    }

    /// The buffers as the engine takes them.
    fn memory(&self) -> [UserMemory; 2] {
        let Short { call, sent, received } = self;
        // The engine only reads the send buffer.
        [(call.send.cast_mut(), *sent), (call.recv, *received)]
            .map(|(ptr, len)| UserMemory { ptr, len: len as u64 })
    }
}

impl Communicator {
    /// What calls like this one have in common, whatever their addresses, if the hardware performs
    /// them: for [`again`](Communicator::again).
    pub fn short(&self, call: &Call) -> Option<Short> {
        let caller = self.caller();
        let call = call.normalized(caller);
        self.gates_for(&call).ok()??;
        Short::new(&call, caller)
    }

    /// The same for calls that are started: for [`started_again`](Communicator::started_again).
    pub fn short_started(&self, call: &Call) -> Option<Short> {
        let call = call.normalized(self.caller());
        let is_served = call.form == Form::Regular && self.options.hardware != Hardware::Always;
        if is_served { Short::new(&call, self.caller()) } else { None }
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
        addresses: (*const u8, *mut u8),
    ) -> Option<Result<(), Error>> {
        let call = short.at(self.caller(), root, addresses)?;
        let small = self.small_collectives().ok()?;
        // SAFETY: the caller's promise.
        Some(self.by_hardware(|caller, waiter| unsafe { small.perform(call, caller, waiter) }))
    }

    /// Starts a call like that of `short`, which is this handle's, as [`again`](Communicator::again)
    /// performs one.
    ///
    /// # Safety
    /// As [`started`](Communicator::started).
    pub unsafe fn started_again(
        &self,
        short: &mut Short,
        root: Rank,
        addresses: (*const u8, *mut u8),
    ) -> Option<Result<Started, Error>> {
        let call = short.at(self.caller(), root, addresses)?;
        let ready = match self.inner.ready(call, &self.options) {
            Ok(ready) => ready,
            Err(error) => return Some(Err(error)),
        };
        let prepared = Prepared::new(self.inner.clone(), ready);
        // SAFETY: the caller's promise; `at` has made sure that the buffers are there and apart.
        let running = unsafe { self.launch_prepared(prepared, short.memory()) };
        Some(running.map(Started::new))
    }
}
