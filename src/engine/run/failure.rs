//! Failing together: after a failure ranks no longer agree where they are, so that nothing that
//! shares it can be used any more.
//!
//! # Failing alone
//! Where [`Failure::spare`] was said, a call that another rank makes differently fails alone, and no
//! rank has to be told before the next call. That is sound because nobody stops: the two calls have the
//! same messages by their numbers' upper halves ([`Tag::call`](crate::endpoint::Tag)), so every message
//! meets its receive, which takes it or drops it; either way both tasks finish, and every run comes
//! to its end as if all had agreed ([`PortRun::note_differing`](super::port_run::PortRun)). What a rank sends after it
//! has found out carries a number that nobody expects, so whoever gets data that depend on the
//! difference finds out as well. At the end of a run nothing of the operation is left on the wire
//! for it, and the next operation has another number. (Agreeing on a way to go on *after* ranks have stopped
//! cannot be had: a broadcast's root is done before others have begun, may then wait for one of them
//! in a call that is not ours, and learns of nothing meanwhile.)

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

    /// All ranks have ended, and nothing moves any more: memory that peers were told of can be freed.
    #[cfg(feature = "sim")]
    pub fn end(&self) {
        // Relaxed: said by the thread that frees.
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether a peer may still write to memory that it was told of.
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
