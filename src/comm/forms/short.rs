//! Repeated calls: everything that does not depend on the addresses is determined once.

use super::raw::Started;
use crate::Rank;
use crate::comm::call::blocks::Form;
use crate::comm::call::options::Hardware;
use crate::comm::call::{Call, Caller};
use crate::comm::communicator::Communicator;
use crate::comm::operations::running::Prepared;
use crate::engine::UserMemory;
use crate::error::Error;

/// A checked call with equal blocks: see [`Communicator::short`].
#[derive(Clone, Copy, Debug)]
pub struct Short {
    /// The normalized call.
    call: Call<'static>,
    /// Whether the hardware performs it as a blocking call, and whether it starts it as a non-blocking one.
    is_by_hardware: bool,
    is_started_short: bool,
    /// Bytes that this rank sends and receives.
    sent: u64,
    received: u64,
}

impl Short {
    /// Sets the addresses and the root. False if the addresses need a full check, or if the root is out of range or
    /// changes whether this rank is the root.
    #[inline]
    fn set_buffers(&mut self, caller: Caller, root: Rank, addresses: (*const u8, *mut u8)) -> bool {
        let Caller { rank, n_ranks } = caller;
        (self.call.send, self.call.recv) = addresses;
        let is_like = root < n_ranks && (root == rank) == (self.call.root == rank);
        if !is_like || self.call.check_memory(self.memory()).is_err() {
            return false;
        }
        self.call.root = root;
        true
    }

    /// The buffers for the engine.
    #[inline]
    fn memory(&self) -> [UserMemory; 2] {
        let Short { call, sent, received, .. } = self;
        // The engine only reads the send buffer.
        [(call.send.cast_mut(), *sent), (call.recv, *received)]
            .map(|(ptr, len)| UserMemory { ptr, len })
    }
}

impl Communicator {
    /// Prepares [`again`](Communicator::again) and [`started_again`](Communicator::started_again) for calls that
    /// differ from this one in their addresses only. `None` if each of them needs a full check.
    pub fn short(&self, call: &Call) -> Option<Short> {
        let caller = self.caller();
        let call = call.normalized(caller);
        if call.form != Form::Regular {
            return None;
        }
        let [send, recv] = call.check(caller).ok()?;
        let is_by_hardware = self.gates_for(&call).ok()?.is_some();
        let is_started_short = matches!(self.requests_for(&call), Ok(Some(_)));
        let call = call.without_blocks();
        Some(Short { call, is_by_hardware, is_started_short, sent: send.len, received: recv.len })
    }

    /// Performs a call like that of `short`, which this handle has made, on other addresses and perhaps with another
    /// root, if that does not change whether this rank is the root. Returns `None`, without any effect, if the root
    /// or the addresses need a full check: [`call`](Communicator::call) then says what is wrong.
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
        if !short.set_buffers(self.caller(), root, addresses) {
            return None;
        }
        let call = &short.call;
        let memory = short.memory();
        let small = if short.is_by_hardware { Some(self.small_collectives().ok()?) } else { None };
        // SAFETY: the caller's promise; `set_buffers` has checked the buffers. The hardware never hands back blocks of
        // one size.
        Some(self.with_trace(call, || unsafe {
            match small {
                Some(small) => self.perform_by_hardware(small, call).map(drop),
                None => self.run_by_plan(call, memory, None),
            }
        }))
    }

    /// Starts a call like that of `short`, which this handle has made, under the conditions of
    /// [`again`](Communicator::again).
    ///
    /// # Safety
    /// As [`started`](Communicator::started).
    pub unsafe fn started_again(
        &self,
        short: &mut Short,
        root: Rank,
        addresses: (*const u8, *mut u8),
    ) -> Option<Result<Started, Error>> {
        let is_served = short.is_started_short || self.options.hardware != Hardware::Always;
        if !(is_served && short.set_buffers(self.caller(), root, addresses)) {
            return None;
        }
        if short.is_started_short {
            // SAFETY: the caller's promise; `set_buffers` has checked the buffers.
            let running = unsafe { self.launch_short(&short.call) };
            return Some(running.map(Started::new));
        }
        let ready = match self.inner.ready(&short.call, &self.options) {
            Ok(ready) => ready,
            Err(error) => return Some(Err(error)),
        };
        let prepared = Prepared::new(self.inner.clone(), ready);
        // SAFETY: the caller's promise; `set_buffers` has checked the buffers.
        let running = unsafe { self.launch_prepared(prepared, short.memory()) };
        Some(running.map(Started::new))
    }
}
