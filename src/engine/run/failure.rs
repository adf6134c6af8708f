//! A failure that ports or ranks share: after it ranks no longer agree on their state, so nothing that shares it can
//! be used any more.
//!
//! # Calls that fail alone
//! After [`Failure::allow_mismatch`], a call that differs between ranks fails alone, and no rank has to be told before
//! the next call. This is sound because no rank stops. If the upper halves of two calls' numbers
//! ([`Tag::call`](crate::endpoint::Tag)) are equal, the calls have the same messages, and every message matches a
//! receive, which takes it or drops it. In either case both tasks finish, and every run completes as if all ranks had
//! agreed ([`PortRun::note_differing`](super::port_run::PortRun)). A rank that has detected the difference sends with
//! a number that no rank expects, so every rank detects it that gets data which depend on the difference. At the end
//! of a run no message of the operation is left on the wire for it, and the next operation has another number.
//! (Agreement *after* ranks have stopped is impossible: a broadcast's root is done before others have begun, may then
//! wait for one of them in a call outside hopbine, and learns of nothing meanwhile.)

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
    /// Whether a call that differs between ranks fails alone.
    allows_mismatch: AtomicBool,
    /// Whether all ranks have ended.
    #[cfg(feature = "sim")]
    is_over: AtomicBool,
}

impl Failure {
    /// Whether something has failed.
    pub fn is_set(&self) -> bool {
        // Acquire: pairs with the Release in `set`.
        self.is_set.load(Ordering::Acquire)
    }

    /// From now on a call that differs from other ranks' call fails alone, if all messages of the two calls match.
    pub fn allow_mismatch(&self) {
        // Relaxed: called before the first collective.
        self.allows_mismatch.store(true, Ordering::Relaxed);
    }

    /// Whether [`allow_mismatch`](Failure::allow_mismatch) was called.
    pub fn allows_mismatch(&self) -> bool {
        // Relaxed: see there.
        self.allows_mismatch.load(Ordering::Relaxed)
    }

    /// Declares that all ranks have ended and no message is in flight: memory that peers can address may be freed.
    #[cfg(feature = "sim")]
    pub fn end(&self) {
        // Relaxed: called by the thread that frees the memory.
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether a peer may still write to memory whose address it knows.
    pub fn may_be_written(&self) -> bool {
        #[cfg(feature = "sim")]
        if self.is_over.load(Ordering::Relaxed) {
            return false;
        }
        self.is_set()
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
