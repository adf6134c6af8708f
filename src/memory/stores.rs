//! Copies and prefetches that pay regard to the caches: by non-temporal stores, which leave the caches to other data,
//! and out of memory that another core writes.

/// The shortest copy with non-temporal stores: a processor hides the latency of fewer lines.
pub(crate) const LEAST_BYTES: usize = 4096;

/// Whether this processor has non-temporal stores that were measured. On Arm they are a hint, which was not measured.
pub(crate) const CAN_STREAM: bool = cfg!(target_arch = "x86_64");

/// Whether a copy of `len` bytes may use non-temporal stores.
#[inline]
pub(crate) fn can_stream(len: usize) -> bool {
    CAN_STREAM && len >= LEAST_BYTES
}

/// Copies with non-temporal stores.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[cfg(target_arch = "x86_64")]
unsafe fn stream(from: *const u8, into: *mut u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const LINE: usize = 64;
    let head = into.align_offset(LINE).min(len);
    let end = head + (len - head) / LINE * LINE;
    // SAFETY: within the bytes that the caller promises; whole lines at multiples of a line. The fence orders the
    // non-temporal stores before all later stores, as Rust's memory model assumes.
    unsafe {
        std::ptr::copy_nonoverlapping(from, into, head);
        for line in (head..end).step_by(LINE) {
            let part = |i: usize| _mm_loadu_si128(from.add(line + 16 * i).cast::<__m128i>());
            let parts = [part(0), part(1), part(2), part(3)];
            for (i, part) in parts.into_iter().enumerate() {
                _mm_stream_si128(into.add(line + 16 * i).cast::<__m128i>(), part);
            }
        }
        std::ptr::copy_nonoverlapping(from.add(end), into.add(end), len - end);
        _mm_sfence();
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(_: *const u8, _: *mut u8, _: usize) {
    unreachable!("this processor does not stream")
}

/// Takes the cache line at `line` from other cores' caches, so that a later store need not wait for it. Changes no
/// memory; `line` may be any address.
#[inline]
pub(crate) fn prefetch_write<T>(line: *const T) {
    // SAFETY: a prefetch, which changes no memory and never faults. `_mm_prefetch` would become a prefetch for a load
    // on processors of before 2014, and so in what is compiled for all. There this instruction does nothing.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
    let _ = line;
}

/// The shortest copy by vector loads: `memcpy` does not use `rep movsb` for shorter ones.
#[cfg(any(target_arch = "x86_64", test))]
const LEAST_SHARED: usize = 2048;

/// Copies bytes that another core wrote, and will write again; otherwise as [`copy`].
///
/// glibc's `memcpy` copies by `rep movsb`. On AMD's Zen 4 a line that was read so may take the core that wrote it up to
/// three times as long to write again: 256 KiB into 24 slots took 10 to 22 us, and 8 to 10 us if the reader used vector
/// loads.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline]
pub(crate) unsafe fn copy_shared(from: *const u8, into: *mut u8, len: usize, past_caches: bool) {
    #[cfg(target_arch = "x86_64")]
    if !past_caches && len >= LEAST_SHARED && is_x86_feature_detected!("avx") {
        // SAFETY: the caller's promise; the processor has these instructions.
        return unsafe { load_lines(from, into, len) };
    }
    // SAFETY: the caller's promise.
    unsafe { copy(from, into, len, past_caches) }
}

/// Copies by vector loads.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn load_lines(from: *const u8, into: *mut u8, len: usize) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256};
    const PART: usize = size_of::<__m256i>();
    const LINES: usize = 4 * PART;
    let end = len / LINES * LINES;
    // SAFETY: within the bytes that the caller promises.
    unsafe {
        for lines in (0..end).step_by(LINES) {
            let part = |i: usize| _mm256_loadu_si256(from.add(lines + PART * i).cast::<__m256i>());
            let parts = [part(0), part(1), part(2), part(3)];
            for (i, part) in parts.into_iter().enumerate() {
                _mm256_storeu_si256(into.add(lines + PART * i).cast::<__m256i>(), part);
            }
        }
        std::ptr::copy_nonoverlapping(from.add(end), into.add(end), len - end);
    }
}

/// Copies bytes that do not overlap; by non-temporal stores if `past_caches` and if [`can_stream`].
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline]
pub(crate) unsafe fn copy(from: *const u8, into: *mut u8, len: usize, past_caches: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        match past_caches && can_stream(len) {
            true => stream(from, into, len),
            false => std::ptr::copy_nonoverlapping(from, into, len),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Copies bytes of many lengths, from and to many places, by `copy`, and checks all bytes around them.
    pub(crate) fn copies_all_lengths_and_places(mut copy: impl FnMut(*const u8, *mut u8, usize)) {
        let from: Vec<u8> = (0..3 * LEAST_BYTES).map(|i| (i % 251) as u8).collect();
        let lens = [LEAST_SHARED, LEAST_BYTES]
            .into_iter()
            .flat_map(|least| (0..400).map(move |i| (i % 67, i * 7 % 131, least - 3 + i * 19)));
        for (skipped, at, len) in lens {
            let mut into = vec![255; len + 131 + 1];
            copy(from[skipped..][..len].as_ptr(), into[at..][..len].as_mut_ptr(), len);
            assert_eq!(into[at..][..len], from[skipped..][..len]);
            assert!(into[..at].iter().chain(&into[at + len..]).all(|&byte| byte == 255));
        }
    }

    #[test]
    fn what_is_shared_is_copied_whole() {
        // SAFETY: both have the room.
        copies_all_lengths_and_places(|from, into, len| unsafe {
            copy_shared(from, into, len, false);
        });
    }
}
