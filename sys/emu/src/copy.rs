//! Moving bytes between ranks: within one address space by copying, between processes by the
//! kernel (`process_vm_readv`, `process_vm_writev`), never through a third place.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Why another process's memory could not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyError {
    /// The address is not mapped there.
    Memory,
    /// There is no such process any more, or it cannot be reached.
    Peer,
}

/// Whose memory an address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// This process's.
    Here,
    /// That of the process with this id.
    Process(u32),
}

/// Copies within this process. Aligned accesses of a machine word's size are indivisible, so that
/// flags can be put into memory that another thread watches.
///
/// # Safety
/// Both ranges are mapped (the contract of registration); they may overlap.
#[inline]
unsafe fn copy_here(from: u64, to: u64, len: usize) {
    macro_rules! word {
        ($atomic:ty) => {{
            // SAFETY: mapped by the caller's promise, aligned as checked below.
            unsafe {
                let v = (*(from as *const $atomic)).load(Ordering::Relaxed);
                // Release: who sees the flag sees what this thread has put before.
                (*(to as *const $atomic)).store(v, Ordering::Release);
            }
        }};
    }
    match len {
        0 => {}
        1 => word!(AtomicU8),
        2 if (from | to) & 1 == 0 => word!(AtomicU16),
        4 if (from | to) & 3 == 0 => word!(AtomicU32),
        8 if (from | to) & 7 == 0 => word!(AtomicU64),
        // SAFETY: mapped by the caller's promise; `copy` allows overlap.
        _ => unsafe { std::ptr::copy(from as *const u8, to as *mut u8, len) },
    }
}

/// Writes `len` bytes at `from` (here) to `to` in `space`.
///
/// # Safety
/// `from` is readable here; if `space` is here, `to` is mapped writable.
#[inline]
pub(crate) unsafe fn write(space: Space, from: u64, to: u64, len: usize) -> Result<(), CopyError> {
    match space {
        Space::Here => {
            // SAFETY: the caller's promise.
            unsafe { copy_here(from, to, len) };
            Ok(())
        }
        Space::Process(pid) => across(libc::process_vm_writev, pid, from, to, len),
    }
}

/// Reads `len` bytes at `from` in `space` to `to` (here).
///
/// # Safety
/// `to` is writable here; if `space` is here, `from` is mapped readable.
#[inline]
pub(crate) unsafe fn read(space: Space, from: u64, to: u64, len: usize) -> Result<(), CopyError> {
    match space {
        Space::Here => {
            // SAFETY: the caller's promise.
            unsafe { copy_here(from, to, len) };
            Ok(())
        }
        Space::Process(pid) => across(libc::process_vm_readv, pid, to, from, len),
    }
}

type VmCall = unsafe extern "C" fn(
    libc::pid_t,
    *const libc::iovec,
    libc::c_ulong,
    *const libc::iovec,
    libc::c_ulong,
    libc::c_ulong,
) -> libc::ssize_t;

/// Calls until all is moved; the kernel may stop early in large transfers.
fn across(call: VmCall, pid: u32, here: u64, there: u64, len: usize) -> Result<(), CopyError> {
    let mut done = 0usize;
    while done < len {
        let part = |start: u64| libc::iovec {
            iov_base: (start + done as u64) as *mut libc::c_void,
            iov_len: len - done,
        };
        let (local, remote) = (part(here), part(there));
        // SAFETY: the kernel checks both ranges itself and answers EFAULT for what is unmapped.
        let n = unsafe { call(pid as libc::pid_t, &local, 1, &remote, 1, 0) };
        if n > 0 {
            done += n as usize;
            continue;
        }
        match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EFAULT) | Some(libc::ENOMEM) => return Err(CopyError::Memory),
            _ => return Err(CopyError::Peer),
        }
    }
    Ok(())
}

/// Reads one word of another process, to see whether that is possible at all.
pub(crate) fn probe(pid: u32, addr: u64) -> std::io::Result<u64> {
    let mut word = 0u64;
    let local = libc::iovec { iov_base: (&raw mut word).cast(), iov_len: 8 };
    let remote = libc::iovec { iov_base: addr as *mut libc::c_void, iov_len: 8 };
    // SAFETY: `local` is `word`; the kernel checks the remote address.
    let n = unsafe { libc::process_vm_readv(pid as libc::pid_t, &local, 1, &remote, 1, 0) };
    match n {
        8 => Ok(word),
        n if n < 0 => Err(std::io::Error::last_os_error()),
        n => Err(std::io::Error::other(format!("{n} of 8 bytes read"))),
    }
}

/// Whether there still is a process with this id whose memory can be asked for. One that has
/// ended is not there, whether or not its parent has asked how it ended.
#[cfg(not(loom))]
pub(crate) fn exists(pid: u32) -> bool {
    // Nothing is mapped at address 0: whoever exists has no memory there.
    match probe(pid, 0) {
        Err(error) => error.raw_os_error() != Some(libc::ESRCH),
        Ok(_) => true,
    }
}
