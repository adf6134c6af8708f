//! The user's memory, and its registration for one operation.

use crate::endpoint::Owner;
use crate::error::Error;

use super::request::Operation;
use super::workers::Engine;

/// Memory of the user, as handed to [`Engine::start`].
#[derive(Clone, Copy, Debug)]
pub struct UserMemory {
    /// First byte.
    pub ptr: *mut u8,
    /// Number of bytes.
    pub len: u64,
}

/// The keys of the user's memory at every port of an operation.
///
/// Made by [`Engine::register`], used by [`Engine::start`], given back to [`Engine::settle`]
/// when the operation is done. Keeps its capacity.
#[derive(Default, Debug)]
pub struct UserKeys(pub(super) Vec<[Option<u64>; 2]>);

impl UserKeys {
    /// True if nothing is registered: there is no operation to be waited for.
    pub fn is_settled(&self) -> bool {
        self.0.is_empty()
    }
}

impl Engine {
    /// Registers the user's memory wherever `operation` puts it on the wire. `keep` allows the
    /// wire to remember it for the next time.
    ///
    /// # Safety
    /// The memory must stay valid until `keys` have been settled.
    ///
    /// # Errors
    /// [`Error::Poisoned`] after an earlier failure, [`Error::Wire`] if registration fails.
    pub unsafe fn register(
        &self,
        operation: &Operation,
        memory: [UserMemory; 2],
        keep: bool,
        keys: &mut UserKeys,
    ) -> Result<(), Error> {
        self.check()?;
        // One proof for all ports: they were all asked after the memory was handed over.
        let mut settled = None;
        for (code, port) in operation.program().ports.iter().zip(self.ports.iter()) {
            keys.0.push([None; 2]);
            for (at, UserMemory { ptr, len }) in memory.into_iter().enumerate() {
                // Send and receive buffer come first among the buffers.
                let owner = if keep { Owner::User(&mut settled) } else { Owner::UserOnce };
                let wire_bytes = code.wire_bytes[at];
                // SAFETY: the caller's promise.
                let key = unsafe { port.register_if_needed(ptr, len as usize, wire_bytes, owner) };
                match (key, keys.0.last_mut()) {
                    (Ok(key), Some(keys)) => keys[at] = key,
                    (Err(error), _) => {
                        self.settle(keys);
                        return Err(error);
                    }
                    (Ok(_), None) => unreachable!("pushed above"),
                }
            }
        }
        Ok(())
    }

    /// Releases what [`register`](Engine::register) has registered; the operation is done.
    pub fn settle(&self, keys: &mut UserKeys) {
        for (keys, port) in keys.0.drain(..).zip(self.ports.iter()) {
            keys.into_iter().flatten().for_each(|key| port.release(key));
        }
    }
}
