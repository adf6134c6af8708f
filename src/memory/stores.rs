//! Copies by non-temporal stores, which leave the caches to other data.

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
