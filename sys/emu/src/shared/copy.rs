//! Copies between ranks: by copying within one address space, by the kernel (`process_vm_readv`, `process_vm_writev`)
//! between processes, never through an intermediate buffer.
//!
//! A put is written in the order of a [`WriteOrder`], and aligned words of 1, 2, 4 and 8 bytes are written whole. The
//! kernel's copies write such words whole as well: tests/processes shows this for the machine on which it runs.

use crate::shared::watched::{CACHE_LINE, LINE, WriteOrder, before_tail, downwards, head, upwards};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

/// Largest number of parts that one system call writes to another process.
const PARTS: usize = 64;

/// Reason why another process's memory could not be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyError {
    /// The address is not mapped in that process.
    Memory,
    /// The process has ended, or its memory is not accessible.
    Peer,
}

/// The address space of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressSpace {
    /// This process.
    Local,
    /// The process with this id.
    Process(u32),
}

/// Stores `size` bytes (1, 2, 4 or 8) at `to`, a multiple of `size`, in one instruction. If `from` is a multiple of
/// `size` too, one instruction reads them.
///
/// # Safety
/// Both ranges are mapped.
#[inline(always)]
unsafe fn store(from: u64, to: u64, size: usize) {
    macro_rules! word {
        ($int:ty, $atomic:ty) => {{
            // SAFETY: mapped by the caller's promise; an address that is accessed as an atomic is a multiple of the
            // size.
            unsafe {
                // Relaxed: programs synchronise before they read memory that another rank writes.
                let v = match from.is_multiple_of(size_of::<$int>() as u64) {
                    true => (*(from as *const $atomic)).load(Ordering::Relaxed),
                    false => (from as *const $int).read_unaligned(),
                };
                // Release: a thread that sees this word also sees the earlier puts of this thread.
                (*(to as *const $atomic)).store(v, Ordering::Release);
            }
        }};
    }
    match size {
        1 => word!(u8, AtomicU8),
        2 => word!(u16, AtomicU16),
        4 => word!(u32, AtomicU32),
        _ => word!(u64, AtomicU64),
    }
}

/// Copies the bytes `start..end` of a put word by word, descending or ascending.
///
/// # Safety
/// Both ranges are mapped and do not overlap.
#[inline]
unsafe fn copy_words<const DESCENDING: bool>(
    from: u64,
    to: u64,
    (mut start, mut end): (usize, usize),
) {
    while start < end {
        let left = end - start;
        let edge = to + if DESCENDING { end } else { start } as u64;
        // The largest words that fit at this edge, and their number.
        let (size, n) = match edge % 8 {
            0 if left >= 8 => (8, left / 8),
            at => (1 << (at | 4).trailing_zeros().min(left.ilog2()), 1),
        };
        for _ in 0..n {
            let at = if DESCENDING { end - size } else { start };
            // SAFETY: within the ranges, by the caller's promise; the edge is a multiple of the size, so the word is
            // aligned.
            unsafe { store(from + at as u64, to + at as u64, size) };
            if DESCENDING { end = at } else { start += size }
        }
    }
}

/// Copies within this process.
///
/// # Safety
/// Both ranges are mapped (the contract of registration); they may overlap.
#[inline]
unsafe fn copy_local(from: u64, to: u64, len: usize, write_order: WriteOrder) {
    if len == 8 && to.is_multiple_of(8) {
        // SAFETY: the caller's promise.
        return unsafe { store(from, to, 8) };
    }
    // SAFETY: the caller's promise.
    unsafe { copy_many(from, to, len, write_order) }
}

/// As [`copy_local`]; a separate function so that copying a word needs no stack frame.
///
/// # Safety
/// As [`copy_local`].
#[inline(never)]
unsafe fn copy_many(mut from: u64, mut to: u64, mut len: usize, write_order: WriteOrder) {
    if from.abs_diff(to) < len as u64 {
        // SAFETY: mapped by the caller's promise; `copy` allows overlap.
        return unsafe { std::ptr::copy(from as *const u8, to as *mut u8, len) };
    }
    while write_order == WriteOrder::Lines && to % LINE + len as u64 > LINE {
        let line = LINE - to % LINE;
        // SAFETY: this is the start of both ranges.
        unsafe { copy_many(from, to, line as usize, write_order) };
        (from, to, len) = (from + line, to + line, len - line as usize);
    }
    let is_downwards = write_order == WriteOrder::HeadLast;
    if len as u64 <= CACHE_LINE && (to | len as u64).is_multiple_of(8) {
        let at = (0..len).step_by(8);
        // SAFETY: within the ranges, by the caller's promise, and aligned.
        let word = |at: usize| unsafe { store(from + at as u64, to + at as u64, 8) };
        return if is_downwards { at.rev().for_each(word) } else { at.for_each(word) };
    }
    // Between a and b the C library copies: both ends are aligned, so it writes no word in two parts.
    let end = to + len as u64;
    let (a, b) = match write_order {
        WriteOrder::Any if (to | end).is_multiple_of(8) => (0, len),
        WriteOrder::HeadLast => {
            let head = head(to, len);
            (head, head.max((end / 8 * 8).saturating_sub(to) as usize))
        }
        _ => {
            let tail = before_tail(to, len);
            (tail.min((to.next_multiple_of(8) - to) as usize), tail)
        }
    };
    let (source, target) = ((from + a as u64) as *const u8, (to + a as u64) as *mut u8);
    // SAFETY: all parts lie in the ranges, which are mapped by the caller's promise and do not overlap. Release: a
    // thread that sees the part written last sees the rest.
    unsafe {
        if is_downwards {
            copy_words::<true>(from, to, (b, len));
        } else {
            copy_words::<false>(from, to, (0, a));
        }
        if a < b {
            std::ptr::copy_nonoverlapping(source, target, b - a);
        }
        fence(Ordering::Release);
        if is_downwards {
            copy_words::<true>(from, to, (0, a));
        } else {
            copy_words::<false>(from, to, (b, len));
        }
    }
}

/// Writes `len` bytes at `from` in this process to `to` in `space`.
///
/// # Safety
/// `from` is readable in this process; if `space` is this process, `to` is mapped writable.
#[inline]
pub(crate) unsafe fn write(
    space: AddressSpace,
    from: u64,
    to: u64,
    len: usize,
    write_order: WriteOrder,
) -> Result<(), CopyError> {
    match space {
        AddressSpace::Local => {
            // SAFETY: the caller's promise.
            unsafe { copy_local(from, to, len, write_order) };
            Ok(())
        }
        AddressSpace::Process(pid) => {
            // The kernel may write the lines of one part in any order (`rep movsb`), but writes the parts one after
            // the other.
            match write_order {
                WriteOrder::Any => vm_copy(libc::process_vm_writev, pid, from, to, len),
                WriteOrder::HeadLast => {
                    let mut parts = [(0, 0); 3];
                    let taken = parts.iter_mut().zip(downwards(to, len));
                    let parts = match taken.map(|(slot, part)| *slot = part).count() {
                        0 => return Ok(()),
                        n => &parts[..n],
                    };
                    vm_write_ordered::<3>(pid, from, to, parts, parts)
                }
                WriteOrder::TailLast => {
                    let tail = before_tail(to, len);
                    let parts = [(0, tail), (tail, len)];
                    vm_write_ordered::<2>(pid, from, to, &parts, remote_parts(&parts, &[(0, len)]))
                }
                WriteOrder::Lines => {
                    let mut rest = upwards(to, len);
                    let mut parts = [(0, 0); PARTS];
                    loop {
                        let taken =
                            parts.iter_mut().zip(&mut rest).map(|(slot, part)| *slot = part);
                        let parts = match taken.count() {
                            0 => return Ok(()),
                            n => &parts[..n],
                        };
                        let whole = [(parts[0].0, parts[parts.len() - 1].1)];
                        vm_write_ordered::<PARTS>(
                            pid,
                            from,
                            to,
                            parts,
                            remote_parts(parts, &whole),
                        )?;
                    }
                }
            }
        }
    }
}

/// Returns the ranges to be written in another process for `parts`, which ascend and make up `whole`. x86 keeps
/// stores in order, so the single range `whole` suffices, which is cheaper.
fn remote_parts<'a>(
    parts: &'a [(usize, usize)],
    whole: &'a [(usize, usize)],
) -> &'a [(usize, usize)] {
    if cfg!(target_arch = "x86_64") { whole } else { parts }
}

/// Reads `len` bytes at `from` in `space` to `to` in this process.
///
/// # Safety
/// `to` is writable in this process; if `space` is this process, `from` is mapped readable.
#[inline]
pub(crate) unsafe fn read(
    space: AddressSpace,
    from: u64,
    to: u64,
    len: usize,
) -> Result<(), CopyError> {
    match space {
        AddressSpace::Local => {
            // SAFETY: the caller's promise.
            unsafe { copy_local(from, to, len, WriteOrder::HeadLast) };
            Ok(())
        }
        AddressSpace::Process(pid) => vm_copy(libc::process_vm_readv, pid, to, from, len),
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

/// Writes at most `ROOM` parts, given as start and end, to another process in their order. `theirs` divides the same
/// bytes into the ranges of the other process, in the same order.
fn vm_write_ordered<const ROOM: usize>(
    pid: u32,
    here: u64,
    there: u64,
    parts: &[(usize, usize)],
    theirs: &[(usize, usize)],
) -> Result<(), CopyError> {
    let at = |base: u64, parts: &[(usize, usize)]| {
        let mut all = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; ROOM];
        for (one, &(start, end)) in all.iter_mut().zip(parts) {
            one.iov_base = (base + start as u64) as *mut libc::c_void;
            one.iov_len = end - start;
        }
        all
    };
    let (local, remote) = (at(here, parts), at(there, theirs));
    let counts = (parts.len() as libc::c_ulong, theirs.len() as libc::c_ulong);
    let (from, to) = (local.as_ptr(), remote.as_ptr());
    // SAFETY: the kernel checks all ranges itself, and processes them in order.
    let n = unsafe { libc::process_vm_writev(pid as libc::pid_t, from, counts.0, to, counts.1, 0) };
    if n == parts.iter().map(|(start, end)| (end - start) as isize).sum() {
        return Ok(());
    }
    // The kernel has written only a part, or nothing. Writing a part again has no further effect.
    parts.iter().try_for_each(|&(start, end)| {
        let (here, there) = (here + start as u64, there + start as u64);
        vm_copy(libc::process_vm_writev, pid, here, there, end - start)
    })
}

/// Repeats the call until all bytes are moved; the kernel may stop early in large transfers.
fn vm_copy(call: VmCall, pid: u32, here: u64, there: u64, len: usize) -> Result<(), CopyError> {
    let mut done = 0usize;
    while done < len {
        let part = |start: u64| libc::iovec {
            iov_base: (start + done as u64) as *mut libc::c_void,
            iov_len: len - done,
        };
        let (local, remote) = (part(here), part(there));
        // SAFETY: the kernel checks both ranges itself and returns EFAULT for unmapped memory.
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

/// Reads one word of another process, to test whether its memory is accessible.
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

/// Returns whether a process with this id exists and its memory can be requested. A process that has ended does not
/// exist, whether or not its parent has waited for it.
pub(crate) fn exists(pid: u32) -> bool {
    // Nothing is mapped at address 0: for a process that exists the call returns EFAULT.
    match probe(pid, 0) {
        Err(error) => error.raw_os_error() != Some(libc::ESRCH),
        Ok(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte arrives, for all alignments of source and target, and no byte outside the target changes.
    #[test]
    fn copies_are_complete() {
        #[repr(align(256))]
        struct Bytes([u8; 1024]);
        let from = Bytes(std::array::from_fn(|i| i as u8 | 1));
        for write_order in
            [WriteOrder::Any, WriteOrder::HeadLast, WriteOrder::TailLast, WriteOrder::Lines]
        {
            for at in [0usize, 1, 18, 31, 63, 64, 200, 255] {
                for len in [0usize, 1, 7, 8, 9, 31, 32, 33, 64, 100, 192, 256, 257, 300, 700] {
                    let mut to = Bytes([0; 1024]);
                    let (a, b) = (from.0.as_ptr() as u64 + 3, to.0.as_mut_ptr() as u64 + at as u64);
                    // SAFETY: both ranges lie in the arrays.
                    unsafe { copy_local(a, b, len, write_order) };
                    let mut want = [0; 1024];
                    want[at..at + len].copy_from_slice(&from.0[3..3 + len]);
                    assert_eq!(to.0, want, "{len} bytes at {at}, {write_order:?}");
                }
            }
        }
    }

    /// If source and target overlap, the target gets the source's original bytes.
    #[test]
    fn overlapping_copies_are_moves() {
        for (from, to) in [(0usize, 5usize), (5, 0), (64, 60)] {
            for len in [16usize, 100, 500] {
                let mut bytes: Vec<u8> = (0..600usize).map(|i| i as u8).collect();
                let mut want = bytes.clone();
                want.copy_within(from..from + len, to);
                let start = bytes.as_mut_ptr() as u64;
                // SAFETY: both ranges lie in the vector.
                unsafe {
                    copy_local(start + from as u64, start + to as u64, len, WriteOrder::Any);
                }
                assert_eq!(bytes, want, "{len} bytes from {from} to {to}");
            }
        }
    }
}
