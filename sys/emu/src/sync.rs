//! Atomics (loom's under `cfg(loom)`) and the spin lock of the arena.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A lock that works between processes and is unlocked when its memory is zero.
///
/// Held for a few memory accesses only. A process that dies while holding it leaves it held; the
/// other ranks of the job are lost then anyway.
#[cfg(not(loom))]
#[repr(transparent)]
#[derive(Default)]
pub(crate) struct SpinLock(AtomicU32);

#[cfg(not(loom))]
pub(crate) struct SpinGuard<'a>(&'a SpinLock);

#[cfg(not(loom))]
impl SpinLock {
    #[inline]
    pub(crate) fn lock(&self) -> SpinGuard<'_> {
        let mut tries = 0u32;
        // Acquire pairs with the Release in drop: what the last holder wrote is visible.
        while self.0.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            tries += 1;
            // With more ranks than cores the holder may be waiting for this very core.
            if tries.is_multiple_of(64) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        SpinGuard(self)
    }
}

#[cfg(not(loom))]
impl Drop for SpinGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release pairs with the Acquire in lock.
        self.0.0.store(0, Ordering::Release);
    }
}
