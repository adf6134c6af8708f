//! Working memory of operations: allocated and registered once, when an operation is made.

use std::sync::Arc;

use crate::endpoint::{Access, Owner};
use crate::error::Error;
use crate::memory::Pages;

use super::memories::Memory;
use super::port::Port;
use super::program::{Buffer, Program};

/// Working space and staging of one operation, with their keys at every port.
pub struct WorkMemory {
    ports: Vec<PortMemory>,
    /// Freed after all registrations have been released: see `drop`.
    work: Option<Pages>,
}

struct PortMemory {
    port: Arc<Port>,
    /// What to release.
    keys: Vec<u64>,
    work: Memory,
    staging: Memory,
    staging_pages: Option<Pages>,
}

// SAFETY: the pointers in `Memory` are addresses of the pages owned here.
unsafe impl Send for WorkMemory {}
// SAFETY: as above: nothing is accessed through them here.
unsafe impl Sync for WorkMemory {}

impl WorkMemory {
    /// The memory that `program` needs, registered where the wire wants it.
    pub(super) fn new(program: &Program, ports: &[Arc<Port>]) -> Result<Self, Error> {
        let pages = |port: &Port, len: u64| {
            let pages = (len > 0).then(|| Pages::new(len)).transpose();
            pages.map_err(|source| port.wire_error(None, source))
        };
        let work = pages(&ports[0], program.work_bytes)?;
        let mut memory = WorkMemory { ports: Vec::new(), work };
        for (code, port) in program.ports.iter().zip(ports) {
            // What is registered is noted at once, so that a later failure releases it.
            memory.ports.push(PortMemory {
                port: port.clone(),
                keys: Vec::new(),
                work: Memory::NONE,
                staging: Memory::NONE,
                staging_pages: pages(port, code.needs[Buffer::Staging as usize])?,
            });
            let WorkMemory { ports, work } = &mut memory;
            let Some(PortMemory { keys, work: work_memory, staging, staging_pages, .. }) =
                ports.last_mut()
            else {
                unreachable!("pushed above");
            };
            for (pages, described, buffer) in
                [(work, work_memory, Buffer::Work), (staging_pages, staging, Buffer::Staging)]
            {
                let Some(pages) = pages else { continue };
                let wire_bytes = code.wire_bytes[buffer as usize];
                // SAFETY: the pages are freed by `drop`, after the release.
                let key = unsafe {
                    let (ptr, len) = (pages.ptr(), pages.len());
                    port.register_if_needed(ptr, len, wire_bytes, Access::Write, Owner::Library)
                }?;
                keys.extend(key);
                let (ptr, len) = (pages.ptr(), pages.len() as u64);
                *described = Memory { ptr, len, key: key.unwrap_or(0) };
            }
        }
        Ok(memory)
    }

    /// Working space and staging as port `port` sees them.
    pub(super) fn of_port(&self, port: usize) -> (Memory, Memory) {
        (self.ports[port].work, self.ports[port].staging)
    }
}

impl Drop for WorkMemory {
    fn drop(&mut self) {
        // After a failure a late message may still be written to what peers were told of.
        let leaks = self.ports.iter().any(|memory| memory.port.has_failed());
        for memory in self.ports.iter().filter(|_| !leaks) {
            memory.keys.iter().for_each(|&key| memory.port.release(key));
        }
        // Nothing addresses the memory any more.
        let staging = self.ports.iter_mut().map(|memory| memory.staging_pages.take());
        let pages = staging.chain([self.work.take()]).flatten();
        pages.for_each(|pages| {
            if leaks {
                std::mem::forget(pages)
            }
        });
    }
}
