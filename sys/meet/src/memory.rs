//! Memory that ranks of one host share: memfds, which have no name in any file system, so that no files remain
//! however the ranks end.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::ptr::{NonNull, null_mut};

use rustix::fs::{MemfdFlags, OFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use rustix::process::{Resource, getrlimit};

use crate::user_files::euid;

/// Seals of shared memory: it can neither shrink nor grow, and its seals cannot change.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Creates memory of `len` zeroed bytes, sealed, for this user alone. Other processes can open it ([`open_memory`])
/// as long as the file is open. `/proc` shows it under `name`.
///
/// # Errors
/// The system's error.
pub fn create_memory(name: &str, len: u64) -> io::Result<File> {
    let file = File::from(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.set_permissions(Permissions::from_mode(0o600))?;
    // If this length exceeds the process's file size limit, `set_len` would end the process with a signal.
    if let Some(most) = getrlimit(Resource::Fsize).current.filter(|most| *most < len) {
        let kind = io::ErrorKind::FileTooLarge;
        return Err(io::Error::new(kind, format!("files may have {most} bytes only (ulimit -f)")));
    }
    file.set_len(len)?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file)
}

/// Opens the memory of `len` bytes that the process with number `pid` in `/proc` has as descriptor `fd`. A descriptor
/// of anything else is not opened for writing.
///
/// # Errors
/// The system's error, or an error of kind [`io::ErrorKind::InvalidData`] that says what is wrong with the
/// descriptor.
pub fn open_memory(pid: u32, fd: u32, len: u64) -> io::Result<File> {
    let path = path_of(pid, fd);
    let wrong = |what: String| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    let about = std::fs::metadata(&path)?;
    if !about.is_file() || about.nlink() != 0 {
        return wrong("it is not an anonymous memory file".to_owned());
    }
    if about.uid() != euid() || about.mode() & 0o077 != 0 {
        return wrong("other users can access it".to_owned());
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let memory = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path)?;
    // A file of a file system without seals is refused as well.
    if fcntl_get_seals(&memory).ok() != Some(SEALS) {
        return wrong("it is not sealed".to_owned());
    }
    match memory.metadata()?.len() {
        found if found == len => Ok(memory),
        found => wrong(format!("it has {found} bytes, not {len}")),
    }
}

/// The path of a process's descriptor. A process is shown as its first thread, which has none once it has ended; the
/// others still have those of the process.
fn path_of(pid: u32, fd: u32) -> PathBuf {
    let of_process = PathBuf::from(format!("/proc/{pid}/fd/{fd}"));
    if of_process.is_symlink() {
        return of_process;
    }
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut of_threads = threads.map(|thread| thread.path().join(format!("fd/{fd}")));
    of_threads.find(|path| path.is_symlink()).unwrap_or(of_process)
}

/// Memory mapped for reading and writing at an address that the kernel has chosen.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: plain memory; its users agree on who may access which part of it at which time.
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared reference gives only addresses.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of shared memory.
    ///
    /// # Errors
    /// The system's error.
    pub fn shared(memory: &File, len: usize) -> io::Result<Mapping> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        let flags = flags | MapFlags::NORESERVE;
        // SAFETY: a mapping of its own.
        let base = unsafe { mmap(null_mut(), len, protection, flags, memory, 0) }?;
        Mapping::at(base.cast(), len)
    }

    /// Maps zeroed memory for this process alone, which costs only the pages that are touched.
    ///
    /// # Errors
    /// The system's error.
    pub fn private(len: usize) -> io::Result<Mapping> {
        Mapping::anonymous(len, MapFlags::NORESERVE)
    }

    /// As [`Mapping::private`], but a system that accounts for reserved memory must have this much.
    ///
    /// # Errors
    /// The system's error.
    pub fn committed(len: usize) -> io::Result<Mapping> {
        Mapping::anonymous(len, MapFlags::empty())
    }

    fn anonymous(len: usize, flags: MapFlags) -> io::Result<Mapping> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | flags);
        // SAFETY: a mapping of its own.
        let base = unsafe { mmap_anonymous(null_mut(), len, protection, flags) }?;
        Mapping::at(base.cast(), len)
    }

    /// Excludes the mapping from children of this process: after a fork, copy-on-write would otherwise give the
    /// registered pages to either process, depending on which writes last. If the system refuses, programs that fork
    /// must avoid this themselves.
    #[must_use]
    pub fn without_fork(self) -> Mapping {
        // SAFETY: the advice changes nothing in this process.
        let _ = unsafe { madvise(self.base.as_ptr().cast(), self.len, Advice::LinuxDontFork) };
        self
    }

    fn at(base: *mut u8, len: usize) -> io::Result<Mapping> {
        let base = NonNull::new(base).ok_or_else(|| io::Error::other("mapped at 0"))?;
        Ok(Mapping { base, len })
    }

    /// Address of the first byte, which starts a page.
    #[inline]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns the length of the mapping in bytes.
    #[inline]
    pub fn n_bytes(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // After a failure the memory stays mapped, which is harmless.
        // SAFETY: this value has made the mapping; no reference to it is left.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    const LEN: u64 = 8192;

    fn open(file: &impl AsRawFd) -> io::Result<File> {
        open_memory(std::process::id(), file.as_raw_fd() as u32, LEN)
    }

    #[test]
    fn memory_is_shared_and_nobody_can_cut_it() {
        let made = create_memory("hopbine-test", LEN).unwrap();
        let opened = open(&made).unwrap();
        let about = opened.metadata().unwrap();
        assert_eq!((about.mode() & 0o777, about.nlink()), (0o600, 0));
        assert!(opened.set_len(10).is_err(), "memory that shrinks kills whoever touches it");
        assert!(opened.set_len(2 * LEN).is_err());
        let [mine, theirs] = [&made, &opened].map(|file| Mapping::shared(file, 8192).unwrap());
        // SAFETY: both map the same live bytes; one thread.
        unsafe {
            mine.base().add(4096).write(9);
            assert_eq!(theirs.base().add(4096).read(), 9);
        }
    }

    #[test]
    fn what_is_something_else_is_not_opened() {
        let refused = |file: &File, wanted: &str| {
            let error = open(file).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        };
        for other in ["/dev/null", "/proc/self/exe"] {
            refused(&File::open(other).unwrap(), "not an anonymous memory file");
        }
        let file = tempfile::tempfile().unwrap();
        file.set_len(LEN).unwrap();
        file.set_permissions(Permissions::from_mode(0o644)).unwrap();
        refused(&file, "other users can access it");
        let loose = File::from(memfd_create("loose", MemfdFlags::ALLOW_SEALING).unwrap());
        loose.set_permissions(Permissions::from_mode(0o600)).unwrap();
        loose.set_len(LEN).unwrap();
        refused(&loose, "it is not sealed");
        refused(&create_memory("short", 4096).unwrap(), "it has 4096 bytes, not 8192");
        let open_to_all = create_memory("open", LEN).unwrap();
        open_to_all.set_permissions(Permissions::from_mode(0o644)).unwrap();
        refused(&open_to_all, "other users can access it");
        let closed = create_memory("closed", LEN).unwrap().as_raw_fd() as u32;
        // Another test may have the descriptor by now, but for memory of another length.
        assert!(open_memory(std::process::id(), closed, LEN + 1).is_err());
    }
}
