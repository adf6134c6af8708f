//! The memory that ranks of one host share: a memfd, which has no name in any file system, so
//! that nothing is left behind whatever becomes of the ranks.
//!
//! The rank that makes it says its number in `/proc` and its descriptor; the others open it through
//! `/proc/PID/fd/N` and look whether it is what they were told: of their own user, for nobody
//! else, of the right length and sealed, with the right token in its first word.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A mapping of the shared memory.
#[derive(Debug)]
pub(super) struct Segment {
    ptr: *mut u8,
    len: usize,
}

// SAFETY: plain memory; who may access which part of it when is agreed on by its users.
unsafe impl Send for Segment {}
// SAFETY: as above: a shared reference gives out addresses and atomics.
unsafe impl Sync for Segment {}

impl Segment {
    /// Makes a segment of `len` zeroed bytes that can be opened as long as the file lives.
    pub(super) fn create(len: usize, token: u64) -> io::Result<(Segment, File)> {
        let name = CString::new("hopbine").unwrap_or_default();
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        utofu_emu::lengthen(&file, len as u64)?;
        // SAFETY: no memory is involved.
        if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, utofu_emu::SEALS) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let segment = Segment::map(&file, len)?;
        // Relaxed: others are told of the segment through other channels.
        segment.word(0).store(token, Ordering::Relaxed);
        Ok((segment, file))
    }

    /// Opens the segment that the process with number `pid` in `/proc` has as descriptor `fd`.
    pub(super) fn open(pid: u32, fd: u32, len: usize, token: u64) -> io::Result<Segment> {
        let wrong = |what: String| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        let file = utofu_emu::open_memory(pid, fd)?;
        let found = file.metadata()?.len();
        if found != len as u64 {
            return wrong(format!("it has {found} bytes, not {len}"));
        }
        let segment = Segment::map(&file, len)?;
        // Relaxed: see `create`.
        match segment.word(0).load(Ordering::Relaxed) == token {
            true => Ok(segment),
            false => wrong("it is another job's".to_owned()),
        }
    }

    fn map(file: &File, len: usize) -> io::Result<Segment> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (flags, fd) = (libc::MAP_SHARED, file.as_raw_fd());
        // SAFETY: a mapping of its own, at an address that the kernel chooses.
        let ptr = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, fd, 0) };
        if ptr == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Segment { ptr: ptr.cast(), len })
    }

    /// The byte at `offset`, of `len` that are to be used.
    ///
    /// # Panics
    /// If they are not all within the segment.
    pub(super) fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len));
        // SAFETY: within the mapping, as checked.
        unsafe { self.ptr.add(offset) }
    }

    /// The word at `offset`, a multiple of 8.
    pub(super) fn word(&self, offset: usize) -> &AtomicU64 {
        let ptr = self.at(offset, 8).cast::<u64>();
        assert!(ptr.is_aligned());
        // SAFETY: aligned memory within the mapping, which lives as long as `self`; this part of
        // it is accessed as atomic words only.
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

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping that `map` made; nobody refers to it any more.
        unsafe { libc::munmap(self.ptr.cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_opened_is_the_same_memory_and_nothing_else_is_opened() {
        let (made, file) = Segment::create(8192, 7).unwrap();
        let (pid, fd) = (std::process::id(), file.as_raw_fd() as u32);
        let opened = Segment::open(pid, fd, 8192, 7).unwrap();
        made.word(4096).store(9, Ordering::Relaxed);
        assert_eq!(opened.word(4096).load(Ordering::Relaxed), 9);
        assert!(Segment::open(pid, fd, 4096, 7).is_err(), "another length");
        assert!(Segment::open(pid, fd, 8192, 8).is_err(), "another token");
        drop(file);
        assert!(Segment::open(pid, fd, 8192, 7).is_err(), "closed");
        // A file of this user's with a name, which others may not open either.
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let refusal = Segment::open(pid, file.as_raw_fd() as u32, 8192, 7).unwrap_err();
        assert!(refusal.to_string().contains("it is not"), "{refusal}");
        assert_eq!(made.word(0).load(Ordering::Relaxed), 7);
    }
}
