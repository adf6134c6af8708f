//! State that a VCQ and the late device share.

use crate::job::core::Job;
use crate::sync::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// State that a VCQ and the device's thread share.
#[derive(Default)]
pub(crate) struct LateVcq {
    /// TCQ codes of operations that were sent, in the order of their posts.
    completions: Mutex<VecDeque<c_int>>,
    pub(crate) in_flight: AtomicUsize,
    /// Operations whose local notice, if any, is in the queue.
    pub(crate) local_done: AtomicU64,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LateVcq {
    /// Records that an operation was sent, or the code of its failure.
    pub(crate) fn complete(&self, code: c_int) {
        held(&self.completions).push_back(code);
    }

    /// Returns the code of the next operation that was sent.
    pub(crate) fn completion(&self) -> Option<c_int> {
        held(&self.completions).pop_front()
    }

    /// Waits until all posted operations are over.
    pub(crate) fn flush(&self, job: &Job) {
        // Acquire pairs with the Release in `Posted::retire`: the effects of the operations are visible.
        while self.in_flight.load(Ordering::Acquire) > 0 {
            match &job.stepping {
                None => std::thread::sleep(Duration::from_micros(50)),
                Some(_) => drop(job.due().and_then(|due| job.step(due))),
            }
        }
    }
}
