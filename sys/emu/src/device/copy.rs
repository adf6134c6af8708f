//! Moving bytes between ranks: within one address space by copying, between processes by the
//! kernel (`process_vm_readv`, `process_vm_writev`), never through a third place.
//!
//! A put within one line of 256 bytes is one event on Tofu: programs watch a word near its beginning,
//! and read the rest as soon as that has changed. Here such a put is written from its end to its
//! beginning, so that what is watched comes last. (No processor writes 256 bytes at once; who
//! watches the *end* of such a put, without a notice, may see it before the beginning is there.)

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

/// What a put writes as one event if it lies within it, in bytes.
const LINE: u64 = 256;
/// What the processor moves between its caches as a whole, in bytes.
const CACHE_LINE: u64 = 64;
/// What one store can write, in bytes.
const STORE: u64 = 32;

/// How many bytes of a put to `to` come last: its part of the first cache line, if it lies in one
/// [`LINE`] and in more than one cache line; else 0.
#[inline]
fn last_part(to: u64, len: usize) -> usize {
    let end = to + len as u64;
    let head = (CACHE_LINE - to % CACHE_LINE) as usize;
    if len > head && (to ^ (end - 1)) < LINE { head } else { 0 }
}

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
        _ if (to ^ (to + len as u64 - 1)) < LINE && from.abs_diff(to) >= len as u64 => {
            // SAFETY: mapped by the caller's promise; they do not overlap.
            unsafe { copy_line(from, to, len as u64) };
        }
        // SAFETY: mapped by the caller's promise; `copy` allows overlap.
        _ => unsafe { std::ptr::copy(from as *const u8, to as *mut u8, len) },
    }
}

/// Copies a put within one [`LINE`] from its end to its beginning.
///
/// # Safety
/// Both ranges are mapped and do not overlap.
unsafe fn copy_line(from: u64, to: u64, len: u64) {
    let mut end = len;
    while end > 0 {
        let start = ((to + end - 1) / STORE * STORE).max(to) - to;
        let (piece, place) = ((from + start) as *const u8, (to + start) as *mut u8);
        // SAFETY: within the ranges, which the caller vouches for.
        unsafe {
            if end - start == STORE {
                let words = piece.cast::<[u64; 4]>().read_unaligned();
                place.cast::<[u64; 4]>().write_unaligned(words);
            } else {
                std::ptr::copy_nonoverlapping(piece, place, (end - start) as usize);
            }
        }
        // Release: who sees a piece, sees those behind it.
        fence(Ordering::Release);
        end = start;
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
        Space::Process(pid) => {
            let last = last_part(to, len);
            if last > 0 && write_line(pid, from, to, len, last) {
                return Ok(());
            }
            across(libc::process_vm_writev, pid, from, to, len)
        }
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

/// Writes `len` bytes to another process, the first `last` of them last. False if that did not go
/// well.
fn write_line(pid: u32, here: u64, there: u64, len: usize, last: usize) -> bool {
    let parts = |start: u64| {
        [(last, len - last), (0, last)].map(|(at, len)| libc::iovec {
            iov_base: (start + at as u64) as *mut libc::c_void,
            iov_len: len,
        })
    };
    let (local, remote) = (parts(here), parts(there));
    let (from, to) = (local.as_ptr(), remote.as_ptr());
    // SAFETY: the kernel checks all ranges itself; it takes them in their order.
    let n = unsafe { libc::process_vm_writev(pid as libc::pid_t, from, 2, to, 2, 0) };
    n == len as isize
}

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
pub(crate) fn exists(pid: u32) -> bool {
    // Nothing is mapped at address 0: whoever exists has no memory there.
    match probe(pid, 0) {
        Err(error) => error.raw_os_error() != Some(libc::ESRCH),
        Ok(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layout of memory decides what comes last, and every byte arrives.
    #[test]
    fn puts_within_a_line_are_complete() {
        #[repr(align(256))]
        struct Lines([u8; 768]);
        let from = Lines(std::array::from_fn(|i| i as u8 | 1));
        for at in [0usize, 1, 18, 31, 63, 64, 200, 255] {
            for len in [1usize, 7, 9, 31, 32, 33, 64, 100, 192, 256, 300] {
                let mut to = Lines([0; 768]);
                let (a, b) = (from.0.as_ptr() as u64 + 3, to.0.as_mut_ptr() as u64 + at as u64);
                // SAFETY: both ranges lie in the arrays.
                unsafe { copy_here(a, b, len) };
                let mut want = [0; 768];
                want[at..at + len].copy_from_slice(&from.0[3..3 + len]);
                assert_eq!(to.0, want, "{len} bytes at {at}");
                let last = last_part(b, len);
                let is_line = at % 256 + len <= 256;
                assert_eq!(last > 0, is_line && at % 64 + len > 64);
                assert!(last <= 64 && last <= len);
            }
        }
    }
}
