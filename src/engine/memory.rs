//! Working memory of operations: allocated and registered once, when an operation is made.

use std::sync::Arc;

use crate::endpoint::{Owner, Pages};
use crate::error::Error;

use super::port::Port;
use super::program::{Buffer, Program};
use super::run::Memory;

/// Working space and staging of one operation, with their keys at every port.
pub struct WorkMemory {
    ports: Vec<PortMemory>,
    /// Freed after all registrations have been released: see `drop`.
    work: Option<Pages>,
}

struct PortMemory {
    port: Arc<Port>,
    work: Memory,
    work_key: Option<u64>,
    staging: Memory,
    staging_key: Option<u64>,
    staging_pages: Option<Pages>,
}

// SAFETY: the pointers in `Memory` are addresses of the pages owned here.
unsafe impl Send for WorkMemory {}
// SAFETY: as above: nothing is accessed through them here.
unsafe impl Sync for WorkMemory {}

impl WorkMemory {
    /// The memory that `program` needs, registered where the wire wants it.
    pub(super) fn new(program: &Program, ports: &[Arc<Port>]) -> Result<Self, Error> {
        let pages = |len: u64| (len > 0).then(|| Pages::new(len));
        let work = pages(program.work_bytes);
        let mut memory = WorkMemory { ports: Vec::new(), work };
        for (code, port) in program.ports.iter().zip(ports) {
            let staging_pages = pages(code.needs[Buffer::Staging as usize]);
            let describe = |pages: &Option<Pages>, buffer: Buffer| -> Result<_, Error> {
                let Some(pages) = pages else { return Ok((Memory::NONE, None)) };
                let (ptr, len) = (pages.ptr(), pages.len());
                let wire_bytes = code.wire_bytes[buffer as usize];
                let key = port.register_if_needed(ptr, len, wire_bytes, Owner::Library)?;
                Ok((Memory { ptr, len: len as u64, key: key.unwrap_or(0) }, key))
            };
            let (work, work_key) = describe(&memory.work, Buffer::Work)?;
            let (staging, staging_key) = describe(&staging_pages, Buffer::Staging)?;
            let port = port.clone();
            memory.ports.push(PortMemory {
                port,
                work,
                work_key,
                staging,
                staging_key,
                staging_pages,
            });
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
        for memory in &self.ports {
            for key in memory.work_key.into_iter().chain(memory.staging_key) {
                memory.port.release(key);
            }
        }
        // Nothing addresses the memory any more.
        self.ports.iter_mut().for_each(|memory| drop(memory.staging_pages.take()));
        self.work = None;
    }
}
