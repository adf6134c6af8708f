//! Requests: start, test, wait, free.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use hopbine::Communicator;
use hopbine::world::{Call, Repeated};

use crate::failure::{Failure, HOPBINE_ERR_ARG, HOPBINE_ERR_REQUEST, entry};
use crate::handles::{REQUESTS, Request, hopbine_request_t, not_a_request, request as find};
use crate::report::Noting;

/// No request: waiting for it returns at once.
pub const HOPBINE_REQUEST_NULL: hopbine_request_t = 0;

/// An address to write a result to.
///
/// # Safety
/// `address` is null or valid for writes for as long as the result is used.
pub(crate) unsafe fn out<'a, T>(address: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise; C initialises or not what Rust only writes: the types are
    // integers and pointers, of which every value is valid.
    unsafe { address.as_mut() }
        .ok_or_else(|| Failure::new(HOPBINE_ERR_ARG, format!("the address for the {what} is null")))
}

/// Hands a request out.
fn give(address: &mut hopbine_request_t, request: Request) {
    *address = REQUESTS.insert(Mutex::new(request));
}

/// Starts a call and hands its request out.
///
/// # Safety
/// As [`Communicator::started`].
pub(crate) unsafe fn give_started(
    comm: &Communicator,
    call: &Call<'_>,
    address: &mut hopbine_request_t,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let started = unsafe { comm.started(call) }?;
    give(address, Request::Started(started, Noting::new(comm, call, false)));
    Ok(())
}

/// Prepares a call that can be started again and again, and hands its request out.
///
/// # Safety
/// As [`Communicator::repeated`].
pub(crate) unsafe fn give_repeated(
    comm: &Communicator,
    call: &Call<'_>,
    address: &mut hopbine_request_t,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let repeated = unsafe { comm.repeated(call) }?;
    give(address, Request::Repeated(repeated, Noting::new(comm, call, true)));
    Ok(())
}

/// The handle means nothing any more.
fn forget(handle: &mut hopbine_request_t) {
    drop(REQUESTS.remove(*handle));
    *handle = HOPBINE_REQUEST_NULL;
}

/// Starts the persistent collective.
///
/// # Safety
/// As the call that made the request, until it is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_start(request: hopbine_request_t) -> c_int {
    entry(|| {
        let found = find(request)?;
        let request = &mut *found.lock().unwrap_or_else(PoisonError::into_inner);
        match request {
            Request::Repeated(repeated, noting) => {
                repeated.start()?;
                noting.iter_mut().for_each(|noting| noting.begin());
                Ok(())
            }
            Request::Started(..) => {
                Err(Failure::new(HOPBINE_ERR_REQUEST, "only persistent requests can be started"))
            }
            Request::Ended => Err(not_a_request()),
        }
    })
}

/// Whether a request is done, which is then freed if it is not persistent. Moves things on if `drives`.
fn test(handle: &mut hopbine_request_t, drives: bool) -> Result<bool, Failure> {
    if *handle == HOPBINE_REQUEST_NULL {
        return Ok(true);
    }
    let found = find(*handle)?;
    let request = &mut *found.lock().unwrap_or_else(PoisonError::into_inner);
    match request {
        Request::Repeated(repeated, noting) => {
            let was_active = repeated.is_active();
            let is_done = if drives { repeated.test() } else { repeated.look() }?;
            noting.iter().filter(|_| was_active && is_done).for_each(|noting| noting.end());
            Ok(is_done)
        }
        Request::Started(started, _) => {
            let is_done = if drives { started.test() } else { started.look() };
            if is_done {
                finish(request, handle)?;
            }
            Ok(is_done)
        }
        Request::Ended => Err(not_a_request()),
    }
}

/// Sets `*done` to 1 if the collective is done, or was not started, or the request is
/// HOPBINE_REQUEST_NULL; to 0 otherwise. A non-blocking request that is done is freed, and
/// `*request` becomes HOPBINE_REQUEST_NULL. Without worker threads this is what moves it on.
///
/// # Safety
/// Both are null, or addresses to read and write.
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

/// As hopbine_test() for one of several requests of which another one was tested just now: it
/// is looked at only, so that whoever tests many does not move all of them on for each.
///
/// # Safety
/// As hopbine_test().
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

/// Waits for the end of a request that is not persistent, or whose owner is done with it.
fn finish(request: &mut Request, handle: &mut hopbine_request_t) -> Result<(), Failure> {
    let ended = std::mem::replace(request, Request::Ended);
    forget(handle);
    match ended {
        Request::Started(started, noting) => {
            started.wait()?;
            noting.iter().for_each(|noting| noting.end());
            Ok(())
        }
        Request::Repeated(mut repeated, noting) => wait_repeated(&mut repeated, noting.as_deref()),
        Request::Ended => Err(not_a_request()),
    }
}

fn wait_repeated(repeated: &mut Repeated, noting: Option<&Noting>) -> Result<(), Failure> {
    let was_active = repeated.is_active();
    repeated.wait()?;
    noting.iter().filter(|_| was_active).for_each(|noting| noting.end());
    Ok(())
}

/// Waits for one request.
fn wait(handle: &mut hopbine_request_t) -> Result<(), Failure> {
    if *handle == HOPBINE_REQUEST_NULL {
        return Ok(());
    }
    let found: Arc<Mutex<Request>> = find(*handle)?;
    let request = &mut *found.lock().unwrap_or_else(PoisonError::into_inner);
    match request {
        Request::Repeated(repeated, noting) => wait_repeated(repeated, noting.as_deref()),
        Request::Started(..) | Request::Ended => finish(request, handle),
    }
}

/// Waits until the collective is done; at once if it was not started or the request is
/// HOPBINE_REQUEST_NULL. A non-blocking request is freed then, also if the collective failed, and
/// `*request` becomes HOPBINE_REQUEST_NULL.
///
/// # Safety
/// `request` is null or an address to read and write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_wait(request: *mut hopbine_request_t) -> c_int {
    // SAFETY: the caller's promise.
    entry(|| wait(unsafe { out(request, "request") }?))
}

/// As hopbine_wait() for each of `n` requests, also if one fails; the first failure is returned.
///
/// # Safety
/// `requests` is null or the address of `n` requests to read and write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_waitall(n: c_int, requests: *mut hopbine_request_t) -> c_int {
    entry(|| {
        let Ok(n) = usize::try_from(n) else {
            return Err(Failure::new(HOPBINE_ERR_ARG, format!("{n} requests")));
        };
        if n == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise; not null, as `out` finds.
        let all = unsafe { std::slice::from_raw_parts_mut(out(requests, "requests")?, n) };
        // All of them, and then the first failure.
        let outcomes: Vec<_> = all.iter_mut().map(wait).collect();
        outcomes.into_iter().collect()
    })
}

/// Frees a request, after waiting for its collective if it is under way; `*request` becomes
/// HOPBINE_REQUEST_NULL. Freeing HOPBINE_REQUEST_NULL does nothing.
///
/// # Safety
/// `request` is null or an address to read and write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_request_free(request: *mut hopbine_request_t) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { out(request, "request") }?;
        if *handle == HOPBINE_REQUEST_NULL {
            return Ok(());
        }
        let found = find(*handle)?;
        let request = &mut *found.lock().unwrap_or_else(PoisonError::into_inner);
        finish(request, handle)
    })
}
