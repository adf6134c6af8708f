//! Working memory of operations: allocated with an operation, and released with it.
//!
//! Released memory is kept, with its registrations, for the next operation that it fits: calls whose sizes change
//! every time create an operation each, and fresh memory costs more than most of the work that they do with it.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hopbine_torus::PortId;

use crate::endpoint::{Access, MemoryRange, Owner};
use crate::error::Error;
use crate::memory::{Pages, page_bytes};
use crate::sync::lock;

use super::memories::Memory;
use super::port::Port;
use crate::engine::compile::program::{Buffer, PortProgram, Program};

/// Limits of the chunks kept without an operation: their number, and their bytes in all.
const KEPT_CHUNKS: usize = 16;
const KEPT_BYTES: u64 = 32 << 20;
/// An operation gets at most twice the bytes that it needs, plus this many.
const SMALL_BYTES: u64 = 64 * 1024;
/// A new chunk is up to an eighth longer than needed: the next operation may need a little more.
const SLACK: u64 = 8;

/// Memory for several buffers, on pages of its own: registration covers whole pages.
struct Chunk {
    ports: Arc<[Arc<Port>]>,
    /// By port, the key, if the chunk is registered there.
    keys: Box<[Option<u64>]>,
    /// Freed after all registrations have been released.
    pages: ManuallyDrop<Pages>,
}

impl Chunk {
    fn new(ports: &Arc<[Arc<Port>]>, len: u64) -> Result<Self, Error> {
        let pages = Pages::new(len).map_err(|source| ports[0].wire_error(None, source))?;
        let keys = vec![None; ports.len()].into();
        Ok(Chunk { ports: ports.clone(), keys, pages: ManuallyDrop::new(pages) })
    }

    fn len(&self) -> u64 {
        self.pages.len() as u64
    }

    /// The memory with its key at `port`, where `code` is the port's part of a program; registers it if necessary.
    fn at_port(&mut self, port: PortId, code: &PortProgram) -> Result<Memory, Error> {
        let (ptr, len) = (self.pages.ptr(), self.pages.len());
        let range = MemoryRange { ptr, len, access: Access::Write };
        let key = &mut self.keys[port.index()];
        if key.is_none() {
            let wire_bytes = |buffer: Buffer| code.wire_bytes[buffer as usize];
            let longest = wire_bytes(Buffer::Work).max(wire_bytes(Buffer::Staging));
            // SAFETY: the pages are freed by `drop`, after the release.
            *key = unsafe {
                self.ports[port.index()].register_if_needed(range, longest, Owner::Library)
            }?;
        }
        Ok(Memory { ptr, len: len as u64, key: key.unwrap_or(0) })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // After a failure a late message may still be written to memory that peers can address.
        if self.ports.iter().any(|port| port.may_be_written()) {
            return;
        }
        for (port, key) in self.ports.iter().zip(&self.keys) {
            if !port.has_failed() {
                key.iter().for_each(|&key| port.release(key));
            }
        }
        // SAFETY: dropped once; nothing addresses the memory any more.
        unsafe { ManuallyDrop::drop(&mut self.pages) };
    }
}

/// The working memory of a rank that no operation uses.
pub(crate) struct MemoryPool {
    ports: Arc<[Arc<Port>]>,
    /// In order of release.
    chunks: Mutex<Vec<Chunk>>,
    /// Bytes of the chunks that operations use.
    used_bytes: AtomicU64,
}

impl MemoryPool {
    pub(crate) fn new(ports: Arc<[Arc<Port>]>) -> Arc<Self> {
        Arc::new(MemoryPool { ports, chunks: Mutex::default(), used_bytes: AtomicU64::new(0) })
    }

    /// Bytes of the working memory that operations use.
    pub(crate) fn used_bytes(&self) -> u64 {
        // Relaxed: a statistic, which other threads change meanwhile.
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Takes the shortest chunk that fits, or allocates a new one.
    fn take(&self, len: u64) -> Result<Chunk, Error> {
        let fits = |chunk: &Chunk| {
            (len..=len.saturating_mul(2).saturating_add(SMALL_BYTES)).contains(&chunk.len())
        };
        let mut chunks = lock(&self.chunks);
        let fitting = chunks.iter().enumerate().filter(|(_, chunk)| fits(chunk));
        if let Some((at, _)) = fitting.min_by_key(|(_, chunk)| chunk.len()) {
            return Ok(chunks.remove(at));
        }
        drop(chunks);
        let slack = len.checked_next_power_of_two().map_or(1, |power| (power / 2 / SLACK).max(1));
        Chunk::new(&self.ports, len.checked_next_multiple_of(slack).unwrap_or(len))
    }

    /// Keeps a chunk that nothing addresses any more, and frees the oldest chunks beyond the limits.
    fn release(&self, chunk: Chunk) {
        let mut chunks = lock(&self.chunks);
        chunks.push(chunk);
        let mut bytes: u64 = chunks.iter().map(Chunk::len).sum();
        let mut n_old = 0;
        while chunks.len() - n_old > KEPT_CHUNKS || bytes > KEPT_BYTES {
            bytes -= chunks[n_old].len();
            n_old += 1;
        }
        let old: Vec<Chunk> = chunks.drain(..n_old).collect();
        // Dropping a chunk takes the ports' mutexes.
        drop(chunks);
        drop(old);
    }
}

/// Working space and staging of one operation, with their keys at every port.
pub struct WorkMemory {
    pool: Arc<MemoryPool>,
    /// The working space, which the ports share, followed by the staging of each port.
    chunk: Option<Chunk>,
    ports: Box<[[Memory; 2]]>,
}

// SAFETY: the pointers in `Memory` are addresses of the pages owned here.
unsafe impl Send for WorkMemory {}
// SAFETY: as above: nothing is accessed through them here.
unsafe impl Sync for WorkMemory {}

impl WorkMemory {
    /// Allocates the memory that `program` needs, registered where the wire needs it.
    pub(crate) fn new(program: &Program, pool: &Arc<MemoryPool>) -> Result<Self, Error> {
        WorkMemory::of(program, pool).or_else(|_| {
            // The kept chunks may take the memory that is missing.
            let kept = std::mem::take(&mut *lock(&pool.chunks));
            drop(kept);
            WorkMemory::of(program, pool)
        })
    }

    fn of(program: &Program, pool: &Arc<MemoryPool>) -> Result<Self, Error> {
        let page = page_bytes() as u64;
        // A length beyond the address space is refused below.
        let whole = |len: u64| len.checked_next_multiple_of(page).unwrap_or(u64::MAX);
        let work_len = whole(program.work_bytes);
        let staging_lens =
            program.ports.iter().map(|code| whole(code.needs[Buffer::Staging as usize]));
        let len = staging_lens.clone().fold(work_len, u64::saturating_add);
        let none = vec![[Memory::NONE; 2]; program.ports.len()].into();
        let mut memory = WorkMemory { pool: pool.clone(), chunk: None, ports: none };
        if len == 0 {
            return Ok(memory);
        }
        let chunk = memory.chunk.insert(pool.take(len)?);
        pool.used_bytes.fetch_add(chunk.len(), Ordering::Relaxed);
        let mut offset = work_len;
        let parts = program.ports.iter().zip(staging_lens).zip(&mut memory.ports);
        for (port, ((code, staging_len), of_port)) in (0..).map(PortId).zip(parts) {
            let all = chunk.at_port(port, code)?;
            let part = |offset: u64, len: u64| match len {
                0 => Memory::NONE,
                // Within the chunk, so that the offset fits a usize.
                _ => Memory {
                    ptr: all.ptr.wrapping_add(offset as usize),
                    len,
                    key: all.key.wrapping_add(offset),
                },
            };
            *of_port = [part(0, work_len), part(offset, staging_len)];
            offset += staging_len;
        }
        Ok(memory)
    }

    /// Working space and staging as port `port` sees them.
    pub(crate) fn of_port(&self, port: PortId) -> [Memory; 2] {
        self.ports[port.index()]
    }
}

impl Drop for WorkMemory {
    fn drop(&mut self) {
        if let Some(chunk) = self.chunk.take() {
            self.pool.used_bytes.fetch_sub(chunk.len(), Ordering::Relaxed);
            self.pool.release(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Rank;
    use crate::endpoint::{Registry, WireError};
    use crate::engine::Failure;
    use crate::engine::run::polled::Polled;

    /// A wire for registration only: lengths by address of the first byte.
    #[derive(Clone, Default)]
    struct Wire(Arc<Mutex<BTreeMap<u64, usize>>>);

    impl Registry for Wire {
        unsafe fn register(&mut self, range: MemoryRange, _: Owner<'_>) -> Result<u64, WireError> {
            let key = range.ptr.addr() as u64;
            assert_eq!(lock(&self.0).insert(key, range.len), None);
            Ok(key)
        }

        fn release(&mut self, key: u64) -> Result<(), WireError> {
            lock(&self.0).remove(&key).expect("registered");
            Ok(())
        }

        fn keyless_bytes(&self) -> u64 {
            100
        }

        fn fence(&mut self) -> Result<bool, WireError> {
            Ok(true)
        }

        fn unfenced(&self) -> Option<Rank> {
            None
        }
    }

    fn rank(wire: &Wire) -> (Arc<MemoryPool>, Arc<Failure>) {
        let failure = Arc::new(Failure::default());
        let port = |index| {
            let registry = Some(Box::new(wire.clone()) as _);
            let endpoint = Box::new(Polled { poll: Box::new(|| Ok(())), registry });
            Port::new(0, index, endpoint, failure.clone(), false, None)
        };
        let ports = [PortId(0), PortId(1)].map(port);
        (MemoryPool::new(Arc::new(ports)), failure)
    }

    /// A program with this much working space and staging; port 0 has messages that need keys.
    fn program(work: u64, staging: u64) -> Program {
        let port = |longest: u64| PortProgram {
            needs: [0, 0, work, staging],
            wire_bytes: [0, 0, longest, 0],
            ..PortProgram::default()
        };
        Program {
            rank: 0,
            ports: vec![port(101), port(100)],
            closing: Box::default(),
            staged_bytes: 0,
            work_bytes: work,
            n_flags: 0,
            past_caches: false,
            call: 0,
        }
    }

    #[test]
    fn what_is_given_back_serves_the_next_that_it_fits() {
        let wire = Wire::default();
        let (pool, _) = rank(&wire);
        let memory = WorkMemory::new(&program(100_000, 5000), &pool).unwrap();
        let [[work, first], [same, second]] =
            [memory.of_port(PortId(0)), memory.of_port(PortId(1))];
        assert_eq!((work.ptr, work.key), (same.ptr, work.ptr.addr() as u64));
        assert_eq!(same.key, 0, "no message of port 1 needs one");
        assert!(work.len >= 100_000 && first.len >= 5000 && second.len >= 5000);
        assert_eq!(first.ptr, work.ptr.wrapping_add(work.len as usize));
        assert_eq!(first.key, work.key + work.len);
        assert_eq!(second.ptr, first.ptr.wrapping_add(first.len as usize));
        drop(memory);

        // The chunk also fits a need that is a little larger, or smaller.
        for work_bytes in [90_000, 103_000, 60_000] {
            let again = WorkMemory::new(&program(work_bytes, 5000), &pool).unwrap();
            assert_eq!(again.of_port(PortId(0))[0].ptr, work.ptr);
            assert_eq!(lock(&wire.0).len(), 1);
        }
        // It does not fit a much larger or much smaller need, or a second operation at the same time.
        let others =
            [200_000, 8, 100_000].map(|work| WorkMemory::new(&program(work, 0), &pool).unwrap());
        assert_eq!(lock(&wire.0).len(), 3);
        drop((others, pool));
        assert_eq!(lock(&wire.0).len(), 0);
    }

    #[test]
    fn no_more_is_kept_than_the_limits_say() {
        let wire = Wire::default();
        let (pool, _) = rank(&wire);
        let many = [1 << 20; 2 * KEPT_CHUNKS]
            .map(|work| WorkMemory::new(&program(work, 0), &pool).unwrap());
        drop(many);
        assert_eq!(lock(&wire.0).len(), KEPT_CHUNKS);
        drop(WorkMemory::new(&program(KEPT_BYTES / 2, 0), &pool).unwrap());
        let kept = lock(&wire.0).values().map(|&len| len as u64).sum::<u64>();
        assert!((KEPT_BYTES / 2..=KEPT_BYTES).contains(&kept), "{kept}");
        drop(WorkMemory::new(&program(KEPT_BYTES + 1, 0), &pool).unwrap());
        assert_eq!(lock(&wire.0).len(), 0);
    }

    /// Peers may still write to the memory.
    #[test]
    fn nothing_is_let_go_of_after_a_failure() {
        let wire = Wire::default();
        let (pool, failure) = rank(&wire);
        let memory = WorkMemory::new(&program(1 << 20, 0), &pool).unwrap();
        let work = memory.of_port(PortId(0))[0];
        failure.set(&Error::Closed);
        drop((memory, pool));
        assert_eq!(lock(&wire.0).len(), 1);
        // SAFETY: the pages are still mapped; nobody else uses them.
        unsafe { work.ptr.write_volatile(1) };
    }
}
