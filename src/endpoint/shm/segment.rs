//! The memory segment that the ranks of one host share.
//!
//! The rank that creates the segment publishes its process number in `/proc` and its file descriptor. The other ranks
//! open `/proc/PID/fd/N` and verify that the file has the same user, no access for others, the right length, seals,
//! and the right token in its first word. Ranks of the same process share one mapping.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use hopbine_meet::{Mapping, create_memory, open_memory};

use crate::sync::lock;

/// Segments in use that this process has created, by their tokens.
static MADE: Mutex<Vec<(u64, Weak<Segment>)>> = Mutex::new(Vec::new());

/// A mapping of the shared memory.
#[derive(Debug)]
pub(super) struct Segment(Mapping);

impl Segment {
    /// Creates a segment of `len` zeroed bytes. Other processes can open it while the file lives.
    pub(super) fn create(len: usize, token: u64) -> io::Result<(Arc<Segment>, File)> {
        let file = create_memory("hopbine", len as u64)?;
        let segment = Arc::new(Segment(Mapping::shared(&file, len)?));
        // Relaxed: other ranks learn of the segment through other channels.
        segment.word(0).store(token, Ordering::Relaxed);
        let mut made = lock(&MADE);
        made.retain(|(_, segment)| segment.strong_count() > 0);
        made.push((token, Arc::downgrade(&segment)));
        Ok((segment, file))
    }

    /// The segment with this token, if a rank of this process has created it and it is in use.
    pub(super) fn made_here(token: u64) -> Option<Arc<Segment>> {
        lock(&MADE).iter().find(|(other, _)| *other == token)?.1.upgrade()
    }

    /// Opens the segment that is descriptor `fd` of the process `pid` in `/proc`.
    pub(super) fn open(pid: u32, fd: u32, len: usize, token: u64) -> io::Result<Arc<Segment>> {
        let file = open_memory(pid, fd, len as u64)?;
        let segment = Segment(Mapping::shared(&file, len)?);
        // Relaxed: see `create`.
        match segment.word(0).load(Ordering::Relaxed) == token {
            true => Ok(Arc::new(segment)),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "it belongs to another job")),
        }
    }

    /// The address of `len` bytes at `offset`.
    ///
    /// # Panics
    /// If the bytes are not all within the segment.
    pub(super) fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.0.n_bytes()));
        // SAFETY: within the mapping, as checked.
        unsafe { self.0.base().as_ptr().add(offset) }
    }

    /// The word at `offset`, a multiple of 8.
    pub(super) fn word(&self, offset: usize) -> &AtomicU64 {
        let ptr = self.at(offset, 8).cast::<u64>();
        assert!(ptr.is_aligned());
        // SAFETY: aligned memory within the mapping, which lives as long as `self`; all accesses to this part of it
        // are atomic words.
        unsafe { AtomicU64::from_ptr(ptr) }
    }
}

impl Segment {
    /// The half word at `offset`, a multiple of 4.
    pub(super) fn word32(&self, offset: usize) -> &AtomicU32 {
        let ptr = self.at(offset, 4).cast::<u32>();
        assert!(ptr.is_aligned());
        // SAFETY: as in `word`.
        unsafe { AtomicU32::from_ptr(ptr) }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn what_is_opened_is_the_same_memory_and_nothing_else_is_opened() {
        let (made, file) = Segment::create(8192, 7).unwrap();
        let (pid, fd) = (std::process::id(), file.as_raw_fd() as u32);
        let opened = Segment::open(pid, fd, 8192, 7).unwrap();
        made.word(4096).store(9, Ordering::Relaxed);
        assert_eq!(opened.word(4096).load(Ordering::Relaxed), 9);
        assert!(Arc::ptr_eq(&made, &Segment::made_here(7).unwrap()));
        assert!(Segment::open(pid, fd, 4096, 7).is_err(), "another length");
        assert!(Segment::open(pid, fd, 8192, 8).is_err(), "another token");
        drop(file);
        assert!(Segment::open(pid, fd, 8192, 7).is_err(), "closed");
        // An ordinary file of this user is refused, too.
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let refusal = Segment::open(pid, file.as_raw_fd() as u32, 8192, 7).unwrap_err().to_string();
        // Its mode depends on the system.
        let reasons = ["other users can access it", "it is not sealed"];
        assert!(reasons.iter().any(|reason| refusal.contains(reason)), "{refusal}");
        assert_eq!(made.word(0).load(Ordering::Relaxed), 7);
        drop(made);
        assert!(Segment::made_here(7).is_none(), "nobody uses it");
    }
}
