//! The job and the rank that a thread acts for.
//!
//! Each thread of a job of threads sets its rank ([`Job::enter`]). Only calls without a handle or an id need this
//! rank: the creation of VCQs and gates, and queries of coordinates. A thread that has not entered a job, or
//! that is ending and has no thread-local storage any more, is its process's rank in the job that the environment
//! describes.

use crate::job::core::Job;
use crate::job::env;
use crate::limits::error::{Result, fail};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};
use utofu_sys::*;

/// The job and the rank that a call acts for.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) job: Arc<Job>,
    pub(crate) rank: usize,
}

thread_local! {
    static CONTEXTS: RefCell<Vec<Context>> = const { RefCell::new(Vec::new()) };
}

/// The environment's job, or the reason why it cannot be had.
static ENVIRONMENT: OnceLock<std::result::Result<Context, String>> = OnceLock::new();

/// A guard: while it lives, the thread that created it acts as one rank of a job.
#[must_use = "the thread acts as the rank only as long as this value lives"]
pub struct RankGuard {
    /// Not Send: the guard belongs to its thread.
    thread: PhantomData<*const ()>,
}

impl Drop for RankGuard {
    fn drop(&mut self) {
        let _ = CONTEXTS.try_with(|stack| stack.borrow_mut().pop());
    }
}

impl Job {
    /// Makes the calling thread act as `rank` until the returned value is dropped. May be nested.
    ///
    /// # Panics
    /// If the job has no such rank.
    pub fn enter(self: &Arc<Self>, rank: usize) -> RankGuard {
        assert!(rank < self.size(), "rank {rank} of a job of {} ranks", self.size());
        let context = Context { job: self.clone(), rank };
        CONTEXTS.with(|stack| stack.borrow_mut().push(context));
        RankGuard { thread: PhantomData }
    }
}

/// Returns the job and the rank that the calling thread acts for; may wait for other ranks.
pub(crate) fn current() -> Result<Context> {
    match try_current() {
        Some(context) => Ok(context),
        None => environment().clone().or_else(|e| fail(UTOFU_ERR_FATAL, e)),
    }
}

/// As [`current`], but `None` instead of waiting for other ranks.
pub(crate) fn try_current() -> Option<Context> {
    let entered = CONTEXTS.try_with(|stack| stack.borrow().last().cloned());
    entered.unwrap_or_default().or_else(|| ENVIRONMENT.get()?.as_ref().ok().cloned())
}

fn environment() -> &'static std::result::Result<Context, String> {
    ENVIRONMENT.get_or_init(|| {
        let (job, rank) = env::attach().map_err(|e| e.to_string())?;
        Ok(Context { job: Arc::new(job), rank })
    })
}

/// Returns the job of a serial number in a gate id.
pub(crate) fn job_by_serial(serial: u16) -> Option<Arc<Job>> {
    let entered = CONTEXTS.try_with(|stack| {
        let stack = stack.borrow();
        // Number 0: the caller has constructed the id itself, which then belongs to the caller's job.
        let top = stack.last().filter(|c| serial == 0 || c.job.serial == serial);
        top.map(|c| c.job.clone())
    });
    entered.unwrap_or_default().or_else(|| match serial {
        0 => environment().as_ref().ok().map(|c| c.job.clone()),
        _ => Job::of_serial(serial),
    })
}
