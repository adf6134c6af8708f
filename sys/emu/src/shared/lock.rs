//! The spin lock of the arena.

use crate::sync::Ordering;
use std::sync::atomic::AtomicU32;

/// A lock that works between processes and is unlocked when its memory is zero.
///
/// A rank holds the lock only for a few memory accesses. The word is the owner's process id. If the owner dies, a
/// waiting rank detects this, takes the lock and continues. The guarded table, marks or gate may then be half
/// changed, but never lead out of bounds; the job has lost a rank and will end. A stopped owner blocks the other
/// ranks.
#[repr(transparent)]
#[derive(Default)]
pub(crate) struct SpinLock(AtomicU32);

pub(crate) struct SpinGuard<'a>(&'a SpinLock);

/// Tries between two checks that the owner is alive; they take some milliseconds.
const TRIES_PER_CHECK: u32 = 1 << 16;

/// Returns this process's id, which is cached to avoid a system call. A child of `fork` must not use the parent's
/// device, so the id never changes.
#[inline]
fn own_id() -> u32 {
    static ID: AtomicU32 = AtomicU32::new(0);
    #[cold]
    fn ask() -> u32 {
        let id = std::process::id();
        ID.store(id, Ordering::Relaxed);
        id
    }
    // Relaxed: every thread computes the same number.
    match ID.load(Ordering::Relaxed) {
        0 => ask(),
        id => id,
    }
}

impl SpinLock {
    #[inline]
    pub(crate) fn lock(&self) -> SpinGuard<'_> {
        let me = own_id();
        // Acquire pairs with the Release in drop: what the last holder wrote is visible.
        if self.0.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait(me, crate::shared::copy::exists);
        }
        SpinGuard(self)
    }

    #[cold]
    fn wait(&self, me: u32, mut exists: impl FnMut(u32) -> bool) {
        let mut tries = 0u32;
        // Acquire as in lock.
        while let Err(owner) =
            self.0.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed)
        {
            tries = tries.wrapping_add(1);
            if tries.is_multiple_of(TRIES_PER_CHECK) && owner != 0 && !exists(owner) {
                // Only one of the ranks that detect this succeeds; Acquire as above, as far as the dead owner has
                // released anything.
                let stolen =
                    self.0.compare_exchange(owner, me, Ordering::Acquire, Ordering::Relaxed);
                if stolen.is_ok() {
                    break;
                }
            }
            // With more ranks than cores the holder may be waiting for this very core.
            if tries.is_multiple_of(64) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

impl Drop for SpinGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release pairs with the Acquire in lock.
        self.0.0.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Returns the id of a process that has ended, and the process itself, waited for if `reaped`.
    fn dead(reaped: bool) -> (u32, std::process::Child) {
        let mut child = Command::new("true").spawn().expect("every system has it");
        let id = child.id();
        if reaped {
            child.wait().expect("ends");
        } else {
            while crate::shared::copy::exists(id) {
                std::thread::yield_now();
            }
        }
        (id, child)
    }

    #[test]
    fn a_lock_outlives_its_owner() {
        for reaped in [true, false] {
            let (id, mut child) = dead(reaped);
            let lock = SpinLock(AtomicU32::new(id));
            drop(lock.lock());
            assert_eq!(lock.0.load(Ordering::Relaxed), 0);
            child.wait().expect("has ended");
        }
    }

    #[test]
    fn the_living_keep_their_lock() {
        let lock = SpinLock::default();
        let guard = lock.lock();
        let mut checks = 0;
        lock.wait(own_id(), |owner| {
            assert_eq!(owner, own_id());
            checks += 1;
            if checks == 3 {
                lock.0.store(0, Ordering::Relaxed);
            }
            crate::shared::copy::exists(owner)
        });
        assert_eq!(checks, 3);
        drop(guard);
    }
}
