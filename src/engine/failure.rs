//! Failing together: after a failure ranks no longer agree where they are, so that nothing that
//! shares it can be used any more.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;
use crate::sync::lock;

/// Whether something has failed, and why: shared by the ports of a rank, or by ranks that are
/// threads of one process.
#[derive(Debug, Default)]
pub struct Failure {
    is_set: AtomicBool,
    reason: Mutex<Option<Error>>,
    /// Whether a call that others make differently fails alone.
    spares: AtomicBool,
}

impl Failure {
    /// Whether something has failed.
    pub fn is_set(&self) -> bool {
        // Acquire: pairs with the Release in `set`.
        self.is_set.load(Ordering::Acquire)
    }

    /// From now on a call that others make differently fails alone, where all its messages meet.
    pub fn spare(&self) {
        // Relaxed: said before there are any calls.
        self.spares.store(true, Ordering::Relaxed);
    }

    /// Whether [`spare`](Failure::spare) was called.
    pub fn is_sparing(&self) -> bool {
        // Relaxed: see there.
        self.spares.load(Ordering::Relaxed)
    }

    /// The reason, if there is one.
    pub fn reason(&self) -> Option<Error> {
        if !self.is_set() {
            return None;
        }
        lock(&self.reason).clone()
    }

    /// Sets the reason, unless there is one already.
    pub fn set(&self, error: &Error) {
        lock(&self.reason).get_or_insert_with(|| error.clone());
        // Release: pairs with the Acquire in `is_set`.
        self.is_set.store(true, Ordering::Release);
    }
}
