//! Requests: start, test, wait, free.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hopbine::Communicator;
use hopbine::{Call, Repeated, Started};

use crate::failure::{Failure, HOPBINE_ERR_ARG, HOPBINE_ERR_REQUEST, entry, out};
use crate::handles::{Kind, Table, find_comm, hopbine_comm_t, hopbine_request_t};
use crate::report::CallRecord;

/// The null request, on which every wait returns at once. A call that is done when it returns also has this request.
pub const HOPBINE_REQUEST_NULL: hopbine_request_t = 0;

/// The content of a request handle, with its record for the report. `None` after a thread has completed or freed the
/// request while another thread still held the handle.
pub(crate) type Request<T> = Mutex<Option<(T, Option<Box<CallRecord>>)>>;

/// Non-blocking collectives in progress in this process.
pub(crate) static NONBLOCKING: Table<Request<Started>> = Table::new(Kind::Nonblocking);

/// Persistent collectives of this process.
pub(crate) static PERSISTENT: Table<Request<Repeated>> = Table::new(Kind::Persistent);

impl<T> Table<Request<T>> {
    /// Stores a request; returns its handle. Reuses the memory of an earlier request, since most programs make many
    /// requests one after the other.
    pub(crate) fn insert_request(&self, request: T, record: Option<Box<CallRecord>>) -> u64 {
        let content = Some((request, record));
        self.insert_with(|value| match value.as_mut().and_then(Arc::get_mut) {
            Some(empty) => *empty.get_mut().unwrap_or_else(PoisonError::into_inner) = content,
            None => *value = Some(Arc::new(Mutex::new(content))),
        })
    }

    /// Removes the request of a handle and invalidates the handle, if `is_wanted` returns true and no other thread
    /// has removed the request.
    pub(crate) fn remove_request_if(
        &self,
        handle: u64,
        is_wanted: impl FnOnce(&Request<T>) -> bool,
    ) -> Option<(T, Option<Box<CallRecord>>)> {
        let removed = self.remove_with(handle, |value| {
            let request = value.as_mut().filter(|request| is_wanted(request))?;
            Some(match Arc::get_mut(request) {
                Some(own) => Ok(own.get_mut().unwrap_or_else(PoisonError::into_inner).take()),
                // Another thread is testing the request.
                None => Err(value.take()),
            })
        });
        match removed? {
            Ok(content) => content,
            Err(shared) => shared?.lock().unwrap_or_else(PoisonError::into_inner).take(),
        }
    }
}

/// The error for a handle that is not a request.
pub(crate) fn not_a_request() -> Failure {
    Failure::new(HOPBINE_ERR_REQUEST, "the handle is not a request, or one that has been freed")
}

/// Runs the body of a call that returns a request.
///
/// # Safety
/// `address` is null, or valid for reads and writes until this returns.
pub(crate) unsafe fn request_entry(
    address: *mut hopbine_request_t,
    body: impl FnOnce(&mut hopbine_request_t) -> Result<(), Failure>,
) -> c_int {
    // SAFETY: the caller's promise.
    entry(|| body(unsafe { out(address, "request") }?))
}

/// Stores the request of a call that has been started, or the null request if the call is done.
pub(crate) fn store_request(
    mut started: Started,
    record: Option<Box<CallRecord>>,
    address: &mut hopbine_request_t,
) {
    *address = if started.is_done_well() {
        record.iter().for_each(|record| record.end());
        HOPBINE_REQUEST_NULL
    } else {
        NONBLOCKING.insert_request(started, record)
    };
}

/// Starts a call and stores its request.
///
/// # Safety
/// As for [`Communicator::started`].
pub(crate) unsafe fn store_started(
    comm: &Communicator,
    call: &Call<'_>,
    address: &mut hopbine_request_t,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    store_request(unsafe { comm.started(call) }?, CallRecord::new(comm, call, false), address);
    Ok(())
}

/// Prepares a persistent call and stores its request.
///
/// # Safety
/// As for [`Communicator::repeated`].
pub(crate) unsafe fn store_persistent(
    comm: &Communicator,
    call: &Call<'_>,
    address: &mut hopbine_request_t,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let persistent = unsafe { comm.repeated(call) }?;
    *address = PERSISTENT.insert_request(persistent, CallRecord::new(comm, call, true));
    Ok(())
}

/// Removes the content of a handle and sets the handle to the null request.
fn take<T>(
    table: &Table<Request<T>>,
    handle: &mut hopbine_request_t,
) -> Result<(T, Option<Box<CallRecord>>), Failure> {
    let taken = table.remove_request_if(*handle, |_| true).ok_or_else(not_a_request)?;
    *handle = HOPBINE_REQUEST_NULL;
    Ok(taken)
}

fn lock<T>(request: &Request<T>) -> MutexGuard<'_, Option<(T, Option<Box<CallRecord>>)>> {
    request.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a persistent collective. Nothing else may use its buffers until it is done.
///
/// # Safety
/// As for the call that made the request, until the collective is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_start(request: hopbine_request_t) -> c_int {
    entry(|| {
        if NONBLOCKING.is_of(request) && NONBLOCKING.get(request).is_some() {
            let what = "only persistent requests can be started";
            return Err(Failure::new(HOPBINE_ERR_REQUEST, what));
        }
        let found = PERSISTENT.get(request).ok_or_else(not_a_request)?;
        let Some((persistent, record)) = &mut *lock(&found) else { return Err(not_a_request()) };
        persistent.start()?;
        record.iter_mut().for_each(|record| record.begin());
        Ok(())
    })
}

/// Whether a request is done; if so, frees it unless it is persistent. Makes progress if `drives`.
fn test(handle: &mut hopbine_request_t, drives: bool) -> Result<bool, Failure> {
    if *handle == HOPBINE_REQUEST_NULL {
        return Ok(true);
    }
    if NONBLOCKING.is_of(*handle) {
        if !drives
            && let Some((started, record)) = NONBLOCKING.remove_request_if(*handle, has_ended)
        {
            *handle = HOPBINE_REQUEST_NULL;
            return end(started, record).map(|()| true);
        }
        let found = NONBLOCKING.get(*handle).ok_or_else(not_a_request)?;
        let is_done = match &mut *lock(&found) {
            Some((started, _)) if drives => started.test(),
            Some((started, _)) => started.look(),
            None => return Err(not_a_request()),
        };
        drop(found);
        if is_done {
            finish(handle)?;
        }
        return Ok(is_done);
    }
    let found = PERSISTENT.get(*handle).ok_or_else(not_a_request)?;
    let Some((persistent, record)) = &mut *lock(&found) else { return Err(not_a_request()) };
    let was_active = persistent.is_active();
    let is_done = if drives { persistent.test() } else { persistent.look() }?;
    record.iter().filter(|_| was_active && is_done).for_each(|record| record.end());
    Ok(is_done)
}

/// Sets `*done` to 1 if the collective is done or was not started, or if the request is HOPBINE_REQUEST_NULL,
/// otherwise to 0. Frees a non-blocking request that is done and sets `*request` to HOPBINE_REQUEST_NULL. Without
/// worker threads, a collective makes progress only in hopbine_test(), in hopbine_progress() and in calls that wait.
///
/// # Safety
/// Both are null, or readable and writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_test(request: *mut hopbine_request_t, done: *mut c_int) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let (handle, done) = unsafe { (out(request, "request")?, out(done, "answer")?) };
        *done = 0;
        *done = c_int::from(test(handle, true)?);
        Ok(())
    })
}

/// As hopbine_test(), but makes no progress: for programs that test many requests after one call of
/// hopbine_progress().
///
/// # Safety
/// As for hopbine_test().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_look(request: *mut hopbine_request_t, done: *mut c_int) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let (handle, done) = unsafe { (out(request, "request")?, out(done, "answer")?) };
        *done = 0;
        *done = c_int::from(test(handle, false)?);
        Ok(())
    })
}

/// Makes progress on all operations of all communicators: polls up to `most` times, until something has changed since
/// `*number` was set. Changes `*number` if anything has changed; while it stays the same, no request has completed.
///
/// # Safety
/// `number` is null, or readable and writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_progress(
    comm: hopbine_comm_t,
    most: c_int,
    number: *mut u64,
) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let number = unsafe { out(number, "number") }?;
        *number = find_comm(comm)?.progress(most.max(1).cast_unsigned(), *number);
        Ok(())
    })
}

/// Waits for the end of a non-blocking request and sets the handle to the null request.
fn finish(handle: &mut hopbine_request_t) -> Result<(), Failure> {
    let (started, record) = take(&NONBLOCKING, handle)?;
    end(started, record)
}

/// Waits for the end of a non-blocking request that has been removed from the table, and records it.
fn end(started: Started, record: Option<Box<CallRecord>>) -> Result<(), Failure> {
    started.wait()?;
    record.iter().for_each(|record| record.end());
    Ok(())
}

/// Whether a request has ended, checked without waiting for its lock and without making progress.
fn has_ended(request: &Request<Started>) -> bool {
    let Ok(request) = request.try_lock() else { return false };
    request.as_ref().is_some_and(|(started, _)| started.has_ended())
}

fn wait_persistent(persistent: &mut Repeated, record: Option<&CallRecord>) -> Result<(), Failure> {
    let was_active = persistent.is_active();
    persistent.wait()?;
    record.iter().filter(|_| was_active).for_each(|record| record.end());
    Ok(())
}

/// Waits for one request.
fn wait(handle: &mut hopbine_request_t) -> Result<(), Failure> {
    if *handle == HOPBINE_REQUEST_NULL {
        return Ok(());
    }
    if NONBLOCKING.is_of(*handle) {
        return finish(handle);
    }
    let found = PERSISTENT.get(*handle).ok_or_else(not_a_request)?;
    let Some((persistent, record)) = &mut *lock(&found) else { return Err(not_a_request()) };
    wait_persistent(persistent, record.as_deref())
}

/// Waits until the collective is done; returns at once if it was not started or if the request is
/// HOPBINE_REQUEST_NULL. Then frees a non-blocking request, also if the collective failed, and sets `*request` to
/// HOPBINE_REQUEST_NULL.
///
/// # Safety
/// `request` is null, or readable and writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_wait(request: *mut hopbine_request_t) -> c_int {
    // SAFETY: the caller's promise.
    entry(|| wait(unsafe { out(request, "request") }?))
}

/// As hopbine_wait() for each of `n` requests, also after one fails. Returns the first failure.
///
/// # Safety
/// `requests` is null or points to `n` requests that may be read and written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_waitall(n: c_int, requests: *mut hopbine_request_t) -> c_int {
    entry(|| {
        let Ok(n) = usize::try_from(n) else {
            return Err(Failure::new(HOPBINE_ERR_ARG, format!("{n} requests")));
        };
        if n == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise; `out` has checked that the address is not null.
        let all = unsafe { std::slice::from_raw_parts_mut(out(requests, "requests")?, n) };
        // Waits for all requests, and returns the first failure.
        let mut outcome = Ok(());
        for request in all {
            outcome = outcome.and(wait(request));
        }
        outcome
    })
}

/// Frees a request, after waiting for its collective if this is in progress, and sets `*request` to
/// HOPBINE_REQUEST_NULL. Does nothing for HOPBINE_REQUEST_NULL.
///
/// # Safety
/// `request` is null, or readable and writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_request_free(request: *mut hopbine_request_t) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { out(request, "request") }?;
        if *handle == HOPBINE_REQUEST_NULL {
            return Ok(());
        }
        if NONBLOCKING.is_of(*handle) {
            return finish(handle);
        }
        let (mut persistent, record) = take(&PERSISTENT, handle)?;
        wait_persistent(&mut persistent, record.as_deref())
    })
}

#[cfg(test)]
mod tests {
    use super::{Kind, Request, Table};

    #[test]
    fn a_request_is_taken_once() {
        let table: Table<Request<&str>> = Table::new(Kind::Nonblocking);
        let first = table.insert_request("first", None);
        let is_first = |request: &Request<&str>| {
            request.lock().unwrap().as_ref().is_some_and(|(name, _)| *name == "first")
        };
        assert!(table.remove_request_if(first, |request| !is_first(request)).is_none());
        let taken = |handle| table.remove_request_if(handle, |_| true).map(|(name, _)| name);
        assert_eq!((taken(first), taken(first)), (Some("first"), None));
        // The second request uses the same memory; the old handle does not lead to it.
        let second = table.insert_request("second", None);
        assert!(table.get(first).is_none());
        // Takes the request while another thread holds it.
        let looked_at = table.get(second).unwrap();
        assert_eq!((taken(second), taken(second)), (Some("second"), None));
        assert!(looked_at.lock().unwrap().is_none());
        let third = table.insert_request("third", None);
        assert!(looked_at.lock().unwrap().is_none());
        assert_eq!(taken(third), Some("third"));
    }
}
