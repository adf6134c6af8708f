//! Memory that the user registers explicitly.

use std::sync::Arc;

use crate::comm::communicator::Communicator;
use crate::comm::state::world_state::WorldState;
use crate::engine::{UserKeys, UserMemory};
use crate::error::Error;

/// Memory that stays registered until this is dropped; see [`Communicator::register`].
#[must_use = "the memory is registered only as long as this lives"]
pub struct Registered {
    world: Arc<WorldState>,
    keys: UserKeys,
}

impl Communicator {
    /// Registers memory with the network, so that calls of all communicators of the world need not register buffers
    /// in it. If the system reports unmapped memory (`hopbine info` says whether it does), the registration cache
    /// does this automatically; otherwise each call registers and releases its buffers. Local; does nothing on wires
    /// without registration.
    ///
    /// After a `fork` of this process, drop the value and register again before the next call: the network may reach
    /// the child's pages by a registration that is older.
    ///
    /// Registering costs a system call for each port, so it pays for buffers that are used often. Whole pages are
    /// registered. `len` is in bytes and may be 0.
    ///
    /// # Safety
    /// The memory must stay mapped, readable and writable until the returned value is dropped, and no call may use
    /// it when that happens.
    ///
    /// # Errors
    /// [`Error::Wire`] if the device refuses the memory, for example read-only memory; [`Error::Poisoned`] after an
    /// earlier failure.
    pub unsafe fn register(&self, ptr: *mut u8, len: u64) -> Result<Registered, Error> {
        let world = self.inner.world.clone();
        let keys = match len {
            0 => UserKeys::default(),
            // SAFETY: the caller's promise.
            _ => unsafe { world.engine.register_explicitly(UserMemory { ptr, len }) }?,
        };
        Ok(Registered { world, keys })
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.world.engine.release(&mut self.keys);
    }
}
