//! Reading memory that a peer exposes: with a copy if it is this process's own, through the
//! kernel if it is another's.
//!
//! An owner takes its memory back after a failure, and must know then that nobody reads it. So each
//! port first shows that it is about to read, then looks whether the memory is still exposed. The owner
//! first marks its memory as not exposed, then waits until nobody shows a read of it any more. Ranks of other
//! processes show it in the shared segment: the owner waits for them for some time, since they may
//! have stopped, or have written anything. Threads of this process show it by locks of this process,
//! which nobody else can hold, and are waited for to the end: they would read memory that is gone.
//!
//! The kernel finds the owner by its number, which is another process's once the owner has ended. So
//! what was read counts only if the owner still lives afterwards.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use hopbine_torus::PortId;

use super::layout::ShmLayout;
use super::process::Watch;
use super::segment::Segment;

/// How long an owner waits for readers: a read takes a few milliseconds at most, if its process
/// runs.
const PATIENCE: Duration = Duration::from_millis(80);

/// Held by threads of this process while they read memory that another of its threads exposes. Each rank uses one
/// of them, so that ranks seldom share a cache line.
static OWN_READS: [CachePadded<RwLock<()>>; 16] = [const { CachePadded::new(RwLock::new(())) }; 16];

/// One port's reads, and what it exposes.
#[derive(Debug)]
pub(super) struct Reads {
    segment: Arc<Segment>,
    layout: ShmLayout,
    port: PortId,
    me: usize,
}

/// The words in a port's line.
const READING: usize = 0;
const REVOKED: usize = 8;

impl Reads {
    pub(super) fn new(segment: Arc<Segment>, layout: ShmLayout, port: PortId, me: usize) -> Self {
        Reads { segment, layout, port, me }
    }

    fn word(&self, rank: usize, word: usize) -> &std::sync::atomic::AtomicU64 {
        self.segment.word(self.layout.reads(self.port, rank) + word)
    }

    /// Reads `len` bytes at `from` in the memory of `owner`, or some of them: returns how many.
    ///
    /// # Safety
    /// The bytes at `into` must be valid for writes and nobody else's. The owner must have exposed
    /// this memory, and not have been answered yet.
    ///
    /// # Errors
    /// The operating system's reason; [`io::ErrorKind::BrokenPipe`] if the memory is not exposed any
    /// more, [`io::ErrorKind::NotFound`] if the owner has ended: what is at `into` means nothing then.
    pub(super) unsafe fn read(
        &self,
        (rank, owner): (usize, &Watch),
        from: u64,
        into: *mut u8,
        len: usize,
    ) -> io::Result<usize> {
        let pid = owner.process().pid;
        if pid == std::process::id() {
            let lock = &OWN_READS[self.me % OWN_READS.len()];
            let _reading = lock.read().unwrap_or_else(PoisonError::into_inner);
            self.check_exposed(rank)?;
            // SAFETY: the caller's promise; the owner waits for the lock before it takes its memory
            // back. The address was exposed by a thread of this process.
            unsafe { std::ptr::copy(std::ptr::with_exposed_provenance(from as usize), into, len) };
            return Ok(len);
        }
        let reading = self.word(self.me, READING);
        // SeqCst: this store and the load after it, against the store and the loads in `revoke`:
        // one of the two sides sees what the other has written.
        reading.store(rank as u64 + 1, Ordering::SeqCst);
        // SAFETY: the caller's promise.
        let read =
            self.check_exposed(rank).and_then(|()| unsafe { read_process(pid, from, into, len) });
        // Release: pairs with the Acquire in `revoke`.
        reading.store(0, Ordering::Release);
        read.and_then(|read| if owner.is_alive() { Ok(read) } else { Err(ended()) })
    }

    /// Fails if `owner` has taken its memory back.
    fn check_exposed(&self, owner: usize) -> io::Result<()> {
        // SeqCst: see `read`.
        match self.word(owner, REVOKED).load(Ordering::SeqCst) {
            0 => Ok(()),
            _ => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    }

    /// Takes back whatever this port has exposed: when this returns nobody reads it, or does so in
    /// another process, which has not run for some time.
    pub(super) fn revoke(&self) {
        // SeqCst: see `read`.
        self.word(self.me, REVOKED).store(1, Ordering::SeqCst);
        // Whoever takes one of the locks after this sees the mark.
        for lock in &OWN_READS {
            drop(lock.write().unwrap_or_else(PoisonError::into_inner));
        }
        let start = Instant::now();
        let is_read = |rank: usize| {
            // SeqCst: see `read`; and Acquire, which pairs with the Release there.
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
/// The bytes at `into` must be valid for writes and nobody else's.
///
/// # Errors
/// The operating system's reason.
pub(super) unsafe fn read_process(
    pid: u32,
    from: u64,
    into: *mut u8,
    len: usize,
) -> io::Result<usize> {
    let local = libc::iovec { iov_base: into.cast(), iov_len: len };
    let remote = libc::iovec { iov_base: from as *mut libc::c_void, iov_len: len };
    // SAFETY: the caller's promise; the remote address means nothing in this process.
    let read = unsafe { libc::process_vm_readv(pid as libc::pid_t, &local, 1, &remote, 1, 0) };
    match usize::try_from(read) {
        Ok(0) if len > 0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        Ok(read) => Ok(read),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::shm::process::Process;

    /// A process that has exposed nothing stands for one that got the number of an owner which has ended.
    #[test]
    fn what_was_read_from_a_stranger_is_not_believed() {
        let layout = ShmLayout { n_ranks: 2, n_ports: 1, flats_per_rank: 0 };
        let (segment, _file) = Segment::create(layout.len(), 1).unwrap();
        let reader = Reads::new(segment, layout, PortId(0), 1);
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
        let owner = Reads::new(segment, layout, PortId(0), 0);
        let reading = OWN_READS[1].read().unwrap();
        std::thread::scope(|threads| {
            let revoked = threads.spawn(|| owner.revoke());
            std::thread::sleep(3 * PATIENCE);
            assert!(!revoked.is_finished());
            drop(reading);
        });
    }

    /// A process may have stopped while it read, or have written the mark of a rank of this one.
    #[test]
    fn no_mark_in_shared_memory_keeps_an_owner_waiting_for_ever() {
        let layout = ShmLayout { n_ranks: 2, n_ports: 1, flats_per_rank: 0 };
        let (segment, _file) = Segment::create(layout.len(), 1).unwrap();
        let [owner, reader] = [0, 1].map(|me| Reads::new(segment.clone(), layout, PortId(0), me));
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
