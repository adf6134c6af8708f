//! Registration of memory at a port, if its wire needs it.

use std::sync::Arc;

use crate::endpoint::{MemoryRange, Owner};
use crate::error::Error;

use super::port::Port;

impl Port {
    /// Whether messages of `wire_bytes` need registered memory here.
    pub(crate) fn needs_key(&self, wire_bytes: u64) -> bool {
        wire_bytes > self.keyless_bytes
    }

    /// Registers memory if messages of `wire_bytes` need it.
    ///
    /// # Safety
    /// The memory must stay valid until it is released.
    pub(crate) unsafe fn register_if_needed(
        &self,
        range: MemoryRange,
        wire_bytes: u64,
        owner: Owner<'_>,
    ) -> Result<Option<u64>, Error> {
        if !self.needs_key(wire_bytes) {
            return Ok(None);
        }
        let state = &mut *self.lock_state();
        let Some(registry) = state.endpoint.registry() else { return Ok(None) };
        // SAFETY: the caller's promise.
        let key = unsafe { registry.register(range, owner) };
        key.map(Some).map_err(|source| {
            // A port that has been given up registers nothing.
            let reason = self.failure.reason();
            reason.map_or_else(
                || self.wire_error(None, source),
                |reason| Error::Poisoned(Arc::new(reason)),
            )
        })
    }

    /// Releases a registration. An error fails the rank, since no caller could handle it.
    pub(crate) fn release(&self, key: u64) {
        let released = self.lock_state().endpoint.registry().map_or(Ok(()), |r| r.release(key));
        if let Err(source) = released {
            self.failure.set(&self.wire_error(None, source));
        }
    }
}
