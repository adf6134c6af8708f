//! Working memory of operations: allocated and registered once, when an operation is made.

use std::sync::Arc;

use crate::endpoint::{Access, Owner};
use crate::error::Error;
use crate::memory::{Pages, page_bytes};

use super::memories::Memory;
use super::port::Port;
use super::program::{Buffer, Program};

/// Working space and staging of one operation, with their keys at every port.
pub struct WorkMemory {
    ports: Vec<PortMemory>,
    /// The working space, which the ports share, and behind it the staging of each, all on pages of their
    /// own: pages are registered as a whole. Freed after all registrations have been released: see `drop`.
    pages: Option<Pages>,
}

struct PortMemory {
    port: Arc<Port>,
    /// What to release.
    keys: Vec<u64>,
    work: Memory,
    staging: Memory,
}

// SAFETY: the pointers in `Memory` are addresses of the pages owned here.
unsafe impl Send for WorkMemory {}
// SAFETY: as above: nothing is accessed through them here.
unsafe impl Sync for WorkMemory {}

impl WorkMemory {
    /// The memory that `program` needs, registered where the wire wants it.
    pub(super) fn new(program: &Program, ports: &[Arc<Port>]) -> Result<Self, Error> {
        let page = page_bytes() as u64;
        // What exceeds the address space is refused below.
        let whole = |len: u64| len.checked_next_multiple_of(page).unwrap_or(u64::MAX);
        let work_len = whole(program.work_bytes);
        let staging_lens =
            program.ports.iter().map(|code| whole(code.needs[Buffer::Staging as usize]));
        let len = staging_lens.clone().fold(work_len, u64::saturating_add);
        let pages = (len > 0).then(|| Pages::new(len)).transpose();
        let pages = pages.map_err(|source| ports[0].wire_error(None, source))?;
        let mut memory = WorkMemory { ports: Vec::with_capacity(ports.len()), pages };
        let mut offset = work_len;
        for ((code, port), staging_len) in program.ports.iter().zip(ports).zip(staging_lens) {
            // What is registered is noted at once, so that a later failure releases it.
            let (work, staging) = (Memory::NONE, Memory::NONE);
            memory.ports.push(PortMemory { port: port.clone(), keys: Vec::new(), work, staging });
            let WorkMemory { ports, pages } = &mut memory;
            let (Some(PortMemory { keys, work, staging, .. }), Some(pages)) =
                (ports.last_mut(), pages)
            else {
                continue;
            };
            let parts = [
                (work, Buffer::Work, 0, work_len),
                (staging, Buffer::Staging, offset, staging_len),
            ];
            for (described, buffer, offset, len) in parts.into_iter().filter(|part| part.3 > 0) {
                let wire_bytes = code.wire_bytes[buffer as usize];
                // SAFETY: the part lies within the pages, which are freed by `drop`, after the release.
                let (ptr, key) = unsafe {
                    let (ptr, bytes) = (pages.ptr().add(offset as usize), len as usize);
                    let access = Access::Write;
                    let key =
                        port.register_if_needed(ptr, bytes, wire_bytes, access, Owner::Library)?;
                    (ptr, key)
                };
                keys.extend(key);
                *described = Memory { ptr, len, key: key.unwrap_or(0) };
            }
            offset += staging_len;
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
        if leaks {
            std::mem::forget(self.pages.take());
        }
    }
}
