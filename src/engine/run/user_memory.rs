//! The user's memory, and its registration for one operation.

use std::sync::Arc;

use crate::endpoint::{Access, Owner};
use crate::error::Error;

use super::operation::Operation;
use super::port::Port;

/// Memory of the user, as handed to [`Engine::start`](crate::engine::Engine::start).
#[derive(Clone, Copy, Debug)]
pub struct UserMemory {
    /// First byte.
    pub ptr: *mut u8,
    /// Number of bytes.
    pub len: u64,
}

/// The keys of the user's memory at every port of an operation.
///
/// Made by [`Engine::register`](crate::engine::Engine::register), used by [`Engine::start`](crate::engine::Engine::start), given back to
/// [`Engine::release`](crate::engine::Engine::release)
/// when the operation is done. Keeps its capacity.
#[derive(Default, Debug)]
pub struct UserKeys(pub(crate) Vec<[Option<u64>; 2]>);

impl UserKeys {
    /// True if nothing is registered: there is no operation to be waited for.
    #[inline]
    pub fn is_released(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys of send and receive buffer at a port.
    #[inline]
    pub(crate) fn of_port(&self, port: usize) -> [Option<u64>; 2] {
        self.0.get(port).copied().unwrap_or_default()
    }
}

/// Whether `operation` puts any of the user's memory on the wire so that it must be registered.
#[inline]
pub(crate) fn needs_keys(ports: &[Arc<Port>], operation: &Operation) -> bool {
    let mut programs = operation.program().ports.iter().zip(ports);
    programs.any(|(code, port)| code.wire_bytes[..2].iter().any(|&bytes| port.needs_key(bytes)))
}

/// Registers the user's memory wherever `operation` puts it on the wire.
///
/// # Safety
/// See [`Engine::register`](crate::engine::Engine::register).
pub(crate) unsafe fn register(
    ports: &[Arc<Port>],
    operation: &Operation,
    memory: [UserMemory; 2],
    keep: bool,
    keys: &mut UserKeys,
) -> Result<(), Error> {
    // One proof for all ports: they were all asked after the memory was handed over.
    let mut settled = None;
    for (code, port) in operation.program().ports.iter().zip(ports) {
        let mut of_port = [None; 2];
        for (at, UserMemory { ptr, len }) in memory.into_iter().enumerate() {
            // Send and receive buffer come first among the buffers.
            let access = if at == 0 { Access::Read } else { Access::Write };
            let wire_bytes = code.wire_bytes[at];
            if !port.needs_key(wire_bytes) {
                continue;
            }
            let owner = if keep { Owner::User(&mut settled) } else { Owner::UserOnce };
            // SAFETY: the caller's promise.
            let key =
                unsafe { port.register_if_needed(ptr, len as usize, wire_bytes, access, owner) };
            match key {
                Ok(key) => of_port[at] = key,
                Err(error) => {
                    keys.0.push(of_port);
                    release(ports, keys);
                    return Err(error);
                }
            }
        }
        keys.0.push(of_port);
    }
    Ok(())
}

/// Registers memory at all ports, for operations to find.
///
/// # Safety
/// See [`Engine::register_explicitly`](crate::engine::Engine::register_explicitly).
pub(crate) unsafe fn register_explicitly(
    ports: &[Arc<Port>],
    UserMemory { ptr, len }: UserMemory,
) -> Result<UserKeys, Error> {
    let mut keys = UserKeys::default();
    for port in ports {
        // SAFETY: the caller's promise.
        let key = unsafe {
            port.register_if_needed(ptr, len as usize, len, Access::Write, Owner::Explicit)
        };
        match key {
            Ok(key) => keys.0.push([key, None]),
            Err(error) => {
                release(ports, &mut keys);
                return Err(error);
            }
        }
    }
    Ok(keys)
}

/// Releases what [`register`] or [`register_explicitly`] has registered; nothing uses it.
pub(crate) fn release(ports: &[Arc<Port>], keys: &mut UserKeys) {
    for (keys, port) in keys.0.drain(..).zip(ports) {
        keys.into_iter().flatten().for_each(|key| port.release(key));
    }
}
