//! Locking for all modules.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose data are consistent whenever it is unlocked, even by a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
