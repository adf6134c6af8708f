//! Reads of memory that a peer exposes: by a copy within this process, or by the kernel (`process_vm_readv`) between
//! processes.
//!
//! After a failure an owner revokes access to its memory, and must know that no rank reads it afterwards. So a reader
//! first sets a mark that it reads, and then checks that the memory is still exposed. The owner first marks its
//! memory as revoked, and then waits until no mark of a reader is left. Readers in other processes set their marks in
//! the segment. The owner waits only for a limited time for them, since they may have been stopped, or have written
//! anything. Readers in this process hold a lock of the process, which no other process can hold. The owner waits for
//! them without limit, because they would otherwise read freed memory.
//!
//! The kernel identifies the owner by its process number, which another process may get once the owner has ended. So
//! bytes read are valid only if the owner is still alive after the read.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use hopbine_torus::PortId;

use super::layout::ShmLayout;
use super::process::{Process, Watch};
use super::segment::Segment;

/// How long an owner waits for readers: a read takes a few milliseconds at most while its process runs.
const PATIENCE: Duration = Duration::from_millis(80);

/// Locks that threads of this process hold while they read memory exposed by another thread of it. Each rank uses one
/// of them, so that ranks rarely share a cache line.
static LOCAL_READ_LOCKS: [CachePadded<RwLock<()>>; 16] =
    [const { CachePadded::new(RwLock::new(())) }; 16];

/// Cross-memory attach: the reads of one port, and the exposure of its own memory.
#[derive(Debug)]
pub(super) struct Cma {
    segment: Arc<Segment>,
    layout: ShmLayout,
    port: PortId,
    me: usize,
}

/// Offsets of the words in a port's line.
const READING: usize = 0;
const REVOKED: usize = 8;

impl Cma {
    pub(super) fn new(segment: Arc<Segment>, layout: ShmLayout, port: PortId, me: usize) -> Self {
        Cma { segment, layout, port, me }
    }

    fn word(&self, rank: usize, word: usize) -> &std::sync::atomic::AtomicU64 {
        self.segment.word(self.layout.reads(self.port, rank) + word)
    }

    /// Reads up to `len` bytes at `from` in the memory of `owner`, and returns their number.
    ///
    /// # Safety
    /// The bytes at `into` must be valid for writes, and no other code may use them. The owner must have exposed this
    /// memory, and must not have received `Done` yet.
    ///
    /// # Errors
    /// The operating system's error; [`io::ErrorKind::BrokenPipe`] if the memory is not exposed any more,
    /// [`io::ErrorKind::NotFound`] if the owner has ended. After an error the bytes at `into` are meaningless.
    pub(super) unsafe fn read(
        &self,
        (rank, owner): (usize, &Watch),
        from: u64,
        into: *mut u8,
        len: usize,
    ) -> io::Result<usize> {
        let process = owner.process();
        if process.pid == std::process::id() {
            let lock = &LOCAL_READ_LOCKS[self.me % LOCAL_READ_LOCKS.len()];
            let _reading = lock.read().unwrap_or_else(PoisonError::into_inner);
            self.check_exposed(rank)?;
            // SAFETY: the caller's promise; the owner acquires the lock before it revokes access. A thread of this
            // process has exposed the address.
            unsafe { std::ptr::copy(std::ptr::with_exposed_provenance(from as usize), into, len) };
            return Ok(len);
        }
        let reading = self.word(self.me, READING);
        // SeqCst: this store and the load after it, against the store and the loads in `revoke`: at least one of the
        // two sides sees the other's store.
        reading.store(rank as u64 + 1, Ordering::SeqCst);
        // SAFETY: the caller's promise.
        let read = unsafe {
            self.check_exposed(rank).and_then(|()| read_process(process, from, into, len))
        };
        // Release: pairs with the Acquire in `revoke`.
        reading.store(0, Ordering::Release);
        read.and_then(|read| if owner.is_alive() { Ok(read) } else { Err(ended()) })
    }

    /// Fails if `owner` has revoked access to its memory.
    fn check_exposed(&self, owner: usize) -> io::Result<()> {
        // SeqCst: see `read`.
        match self.word(owner, REVOKED).load(Ordering::SeqCst) {
            0 => Ok(()),
            _ => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    }

    /// Revokes access to all memory that this port has exposed. Afterwards no process reads it, except for a process
    /// that has not run for some time.
    pub(super) fn revoke(&self) {
        // SeqCst: see `read`.
        self.word(self.me, REVOKED).store(1, Ordering::SeqCst);
        // A reader that acquires one of the locks afterwards sees the mark.
        for lock in &LOCAL_READ_LOCKS {
            drop(lock.write().unwrap_or_else(PoisonError::into_inner));
        }
        let start = Instant::now();
        let is_read = |rank: usize| {
            // SeqCst: see `read`; as an Acquire, pairs with the Release there.
            self.word(rank, READING).load(Ordering::SeqCst) == self.me as u64 + 1
        };
        while start.elapsed() < PATIENCE && (0..self.layout.n_ranks).any(is_read) {
            std::thread::sleep(PATIENCE / 1000);
        }
    }
}

#[cold]
fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the process that has exposed the memory has ended")
}

/// Reads another process's memory.
///
/// # Safety
/// The bytes at `into` must be valid for writes, and no other code may use them.
///
/// # Errors
/// The operating system's error.
pub(super) unsafe fn read_process(
    process: Process,
    from: u64,
    into: *mut u8,
    len: usize,
) -> io::Result<usize> {
    let has_ended = |read: &io::Result<usize>| matches!(read, Err(error) if error.raw_os_error() == Some(libc::ESRCH));
    // SAFETY: the caller's promise.
    let read_by = |thread| unsafe { read_by(thread, from, into, len) };
    let read = read_by(process.pid);
    if !has_ended(&read) {
        return read;
    }
    // The process's number is its first thread's, which may have ended before the others.
    process.threads().map(read_by).find(|read| !has_ended(read)).unwrap_or(read)
}

/// Reads the memory of the process that has this thread.
///
/// # Safety
/// As [`read_process`].
///
/// # Errors
/// As [`read_process`].
unsafe fn read_by(thread: u32, from: u64, into: *mut u8, len: usize) -> io::Result<usize> {
    let local = libc::iovec { iov_base: into.cast(), iov_len: len };
    let remote = libc::iovec { iov_base: from as *mut libc::c_void, iov_len: len };
    // SAFETY: the caller's promise; the remote address means nothing in this process.
    let read = unsafe { libc::process_vm_readv(thread as libc::pid_t, &local, 1, &remote, 1, 0) };
    match usize::try_from(read) {
        Ok(0) if len > 0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        Ok(read) => Ok(read),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The owner is a process with another start time: its number belongs to a process that has exposed nothing.
    #[test]
    fn what_was_read_from_a_stranger_is_not_believed() {
        let layout = ShmLayout { n_ranks: 2, n_ports: 1, flats_per_rank: 0 };
        let (segment, _file) = Segment::create(layout.len(), 1).unwrap();
        let reader = Cma::new(segment, layout, PortId(0), 1);
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap();
        let from = u64::from_str_radix(maps.split('-').next().unwrap(), 16).unwrap();
        let read = |process| {
            let mut word = [0u8; 8];
            // SAFETY: a buffer of the length given. That process exposes nothing, and does not write there.
            unsafe { reader.read((0, &Watch::new(process)), from, word.as_mut_ptr(), 8) }
        };
        let process = Process::of(child.id());
        assert_eq!(read(process).unwrap(), 8);
        let owner = Process { started: process.started - 1, ..process };
        assert_eq!(read(owner).unwrap_err().kind(), io::ErrorKind::NotFound);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(read(process).is_err());
    }

    #[test]
    fn memory_is_not_taken_back_from_a_thread_that_reads_it() {
        let layout = ShmLayout { n_ranks: 2, n_ports: 1, flats_per_rank: 0 };
        let (segment, _file) = Segment::create(layout.len(), 1).unwrap();
        let owner = Cma::new(segment, layout, PortId(0), 0);
        let reading = LOCAL_READ_LOCKS[1].read().unwrap();
        std::thread::scope(|threads| {
            let revoked = threads.spawn(|| owner.revoke());
            std::thread::sleep(3 * PATIENCE);
            assert!(!revoked.is_finished());
            drop(reading);
        });
    }

    /// A process may have been stopped while it read, or may have written the mark of a rank of this process.
    #[test]
    fn no_mark_in_shared_memory_keeps_an_owner_waiting_for_ever() {
        let layout = ShmLayout { n_ranks: 2, n_ports: 1, flats_per_rank: 0 };
        let (segment, _file) = Segment::create(layout.len(), 1).unwrap();
        let [owner, reader] = [0, 1].map(|me| Cma::new(segment.clone(), layout, PortId(0), me));
        reader.word(1, READING).store(1, Ordering::Relaxed);
        owner.revoke();
        let me = Watch::new(Process::of(std::process::id()));
        let (exposed, mut into) = (7u64, 0u64);
        let from = (&raw const exposed).expose_provenance() as u64;
        // SAFETY: two numbers of this length.
        let read = unsafe { reader.read((0, &me), from, (&raw mut into).cast(), 8) };
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
