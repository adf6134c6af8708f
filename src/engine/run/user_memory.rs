//! The user's memory, and its registration for one operation.

use std::sync::Arc;

use hopbine_torus::PortId;

use crate::endpoint::{Access, MemoryRange, Owner};
use crate::error::Error;
use crate::memory::forks;

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

impl UserMemory {
    fn range(self, access: Access) -> MemoryRange {
        MemoryRange { ptr: self.ptr, len: self.len as usize, access }
    }
}

/// Keys of the user's memory at every port of an operation.
///
/// [`Engine::register`](crate::engine::Engine::register) creates keys,
/// [`Engine::start`](crate::engine::Engine::start) uses them, and [`Engine::release`](crate::engine::Engine::release)
/// releases them when the operation is done. Keeps its capacity.
#[derive(Default, Debug)]
pub struct UserKeys {
    of_ports: Vec<[Option<u64>; 2]>,
    /// The forks of this process before the registration.
    forks: usize,
}

impl UserKeys {
    /// True if nothing is registered, so that there is no operation to wait for.
    #[inline]
    pub fn is_released(&self) -> bool {
        self.of_ports.is_empty()
    }

    /// True if memory is registered, and the process has not forked since: a fork may have left the registered pages
    /// to the child.
    pub(crate) fn are_current(&self) -> bool {
        !self.is_released() && self.forks == forks::generation()
    }

    /// The keys of send and receive buffer at a port.
    #[inline]
    pub(crate) fn of_port(&self, port: PortId) -> [Option<u64>; 2] {
        self.of_ports.get(port.index()).copied().unwrap_or_default()
    }
}

/// Whether `operation` sends from or receives into the user's memory in messages that need registered memory.
#[inline]
pub(crate) fn needs_keys(ports: &[Arc<Port>], operation: &Operation) -> bool {
    let mut programs = operation.program().ports.iter().zip(ports);
    programs.any(|(code, port)| code.wire_bytes[..2].iter().any(|&bytes| port.needs_key(bytes)))
}

/// Registers the user's memory at each port where `operation` puts it on the wire: all of it, since a port's part
/// would be another one in a shorter call, which would not find the registration. The caller's thread does this: if
/// there is no room, the call can be made again, since no peer knows of it yet.
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
    keys.forks = forks::generation();
    // One proof for all ports: each port registers after the memory was handed over.
    let mut settled = None;
    for (code, port) in operation.program().ports.iter().zip(ports) {
        let mut of_port = [None; 2];
        // Send and receive buffer come first among the buffers.
        for (at, access) in [Access::Read, Access::Write].into_iter().enumerate() {
            let wire_bytes = code.wire_bytes[at];
            if !port.needs_key(wire_bytes) {
                continue;
            }
            let owner = if keep { Owner::User(&mut settled) } else { Owner::UserOnce };
            let range = memory[at].range(access);
            // SAFETY: the caller's promise.
            match unsafe { port.register_if_needed(range, wire_bytes, owner) } {
                Ok(key) => of_port[at] = key,
                Err(error) => {
                    keys.of_ports.push(of_port);
                    release(ports, keys);
                    return Err(error);
                }
            }
        }
        keys.of_ports.push(of_port);
    }
    Ok(())
}

/// Registers memory at all ports, for later operations to find.
///
/// # Safety
/// See [`Engine::register_explicitly`](crate::engine::Engine::register_explicitly).
pub(crate) unsafe fn register_explicitly(
    ports: &[Arc<Port>],
    memory: UserMemory,
) -> Result<UserKeys, Error> {
    let mut keys = UserKeys::default();
    for port in ports {
        let range = memory.range(Access::Write);
        // SAFETY: the caller's promise.
        match unsafe { port.register_if_needed(range, memory.len, Owner::Explicit) } {
            Ok(key) => keys.of_ports.push([key, None]),
            Err(error) => {
                release(ports, &mut keys);
                return Err(error);
            }
        }
    }
    Ok(keys)
}

/// Releases the keys from [`register`] or [`register_explicitly`]; no operation under way may use them.
pub(crate) fn release(ports: &[Arc<Port>], keys: &mut UserKeys) {
    for (keys, port) in keys.of_ports.drain(..).zip(ports) {
        keys.into_iter().flatten().for_each(|key| port.release(key));
    }
}
