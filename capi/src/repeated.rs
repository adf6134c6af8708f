//! Calls that a library keeps to repeat them on other addresses: it needs no look-up, and the thread's cache of calls
//! (`regular.rs`) none either.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, Weak};

use hopbine::torus::Collective;
use hopbine::{Communicator, Short};

use crate::calls::Arguments;
use crate::failure::{Failure, HOPBINE_ERR_ARG, entry};
use crate::handles::{find_comm, hopbine_comm_t, hopbine_request_t};
use crate::report;
use crate::requests::{request_entry, store_request};

/// `cbindgen.toml` writes it into the header: Fortran's module must have every constant that cbindgen makes, but has
/// none of these functions.
const HOPBINE_NOT_REPEATED: c_int = -1;

/// A call with equal blocks that can be repeated on other addresses: see hopbine_repeat().
#[expect(non_camel_case_types, reason = "named as C names types")]
pub struct hopbine_repeated_t {
    /// Weak: the communicator's memory goes with its handle.
    comm: Weak<Communicator>,
    short: Short,
}

impl hopbine_repeated_t {
    /// Whether the communicator still exists, its handle, and the call.
    ///
    /// # Safety
    /// Until the result is no longer used, no other thread frees the communicator or ends hopbine.
    #[inline]
    unsafe fn parts(&mut self) -> Option<(&Communicator, &mut Short)> {
        // `upgrade` would take two locked instructions, a tenth of a short call.
        if self.comm.strong_count() == 0 {
            return None;
        }
        // SAFETY: the communicator exists, and by the caller's promise it stays.
        Some((unsafe { &*self.comm.as_ptr() }, &mut self.short))
    }
}

macro_rules! is_regular {
    (regular) => {
        true
    };
    (vector) => {
        false
    };
}

macro_rules! functions {
    ($(
        $collective:ident $form:ident
        rust $rust:tt
        c { $(#[doc = $doc:literal])* $blocking:ident, $nonblocking:ident, $persistent:ident $arguments:tt }
        fortran $fortran:tt
    )*) => {
        /// Names of the blocking functions, what they perform, and whether their blocks are equal.
        const FUNCTIONS: &[(&str, Collective, bool)] =
            &[$((stringify!($blocking), Collective::$collective, is_regular!($form))),*];
    };
}

hopbine::collectives!(functions);

/// The collective of a function whose blocks are equal.
fn collective_of(function: &str) -> Option<Collective> {
    let mut all = FUNCTIONS.iter().filter(|(.., is_regular)| *is_regular);
    all.find(|(name, ..)| *name == function).map(|(_, collective, _)| *collective)
}

/// Prepares a call that this rank has made to be repeated by hopbine_repeat() and hopbine_repeat_start(): for libraries
/// that know themselves which calls are alike. `function` is the name of the blocking function, for instance
/// "hopbine_allreduce"; arguments that it does not have are null or 0, and `op` is -1. Stores null in `*repeated` if
/// each such call needs its checks, or if a report is wanted. hopbine_repeat_free() frees the result.
///
/// # Safety
/// `function` is null or a string; `repeated` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_repeat_prepare(
    function: *const c_char,
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    datatype: c_int,
    op: c_int,
    root: c_int,
    comm: hopbine_comm_t,
    repeated: *mut *mut hopbine_repeated_t,
) -> c_int {
    entry(|| {
        let wrong = |what: &str| Failure::new(HOPBINE_ERR_ARG, what);
        if function.is_null() || repeated.is_null() {
            return Err(wrong(
                "the function's name and the address of the result must not be null",
            ));
        }
        // SAFETY: the caller's promise.
        let (function, repeated) = unsafe { (CStr::from_ptr(function), &mut *repeated) };
        *repeated = std::ptr::null_mut();
        let collective = function.to_str().ok().and_then(collective_of).ok_or_else(|| {
            wrong(&format!("{function:?} is not the name of a blocking function with equal blocks"))
        })?;
        let comm = find_comm(comm)?;
        let op = (op >= 0).then_some(op);
        let arguments = Arguments {
            send,
            recv,
            count,
            dtype: datatype,
            op,
            root,
            ..Arguments::new(collective)
        };
        if report::is_wanted() {
            return Ok(());
        }
        if let Some(short) = comm.short(&arguments.call(&comm)?) {
            let comm = Arc::downgrade(&comm);
            *repeated = Box::into_raw(Box::new(hopbine_repeated_t { comm, short }));
        }
        Ok(())
    })
}

/// Repeats a call, blocking, on these buffers and with this root. Returns HOPBINE_NOT_REPEATED, and has done nothing,
/// if the buffers or the root need the checks of the function, or the communicator has been freed. Meanwhile no other
/// thread may free the communicator or end hopbine.
///
/// # Safety
/// `repeated` is of hopbine_repeat_prepare(), and no other thread uses it. Each buffer is valid for the bytes that the
/// collective accesses, and nothing else uses it during the call. No other thread frees the communicator or ends
/// hopbine during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_repeat(
    repeated: *mut hopbine_repeated_t,
    send: *const c_void,
    recv: *mut c_void,
    root: c_int,
) -> c_int {
    let mut is_done = true;
    let code = entry(|| {
        // SAFETY: the caller's promise.
        let outcome = unsafe { (*repeated).parts() }.and_then(|(comm, short)| {
            // SAFETY: the caller's promise.
            unsafe { comm.again(short, root.cast_unsigned(), (send.cast(), recv.cast())) }
        });
        is_done = outcome.is_some();
        Ok(outcome.unwrap_or(Ok(()))?)
    });
    if is_done { code } else { HOPBINE_NOT_REPEATED }
}

/// Starts a call as hopbine_repeat() repeats it, and stores its request.
///
/// # Safety
/// As for hopbine_repeat(), the buffers until the request is done; `request` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_repeat_start(
    repeated: *mut hopbine_repeated_t,
    send: *const c_void,
    recv: *mut c_void,
    root: c_int,
    request: *mut hopbine_request_t,
) -> c_int {
    let mut is_done = true;
    let body = |request: &mut hopbine_request_t| {
        // SAFETY: the caller's promise.
        let started = unsafe { (*repeated).parts() }.and_then(|(comm, short)| {
            // SAFETY: the caller's promise.
            unsafe { comm.started_again(short, root.cast_unsigned(), (send.cast(), recv.cast())) }
        });
        is_done = started.is_some();
        if let Some(started) = started {
            store_request(started?, None, request);
        }
        Ok(())
    };
    // SAFETY: the caller's promise.
    let code = unsafe { request_entry(request, body) };
    if is_done { code } else { HOPBINE_NOT_REPEATED }
}

/// Frees what hopbine_repeat_prepare() has stored; null is permitted. The communicator may have been freed before.
///
/// # Safety
/// `repeated` is null, or of hopbine_repeat_prepare() and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopbine_repeat_free(repeated: *mut hopbine_repeated_t) {
    if !repeated.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(repeated) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_with_equal_blocks_are_found() {
        assert_eq!(collective_of("hopbine_reduce_scatter_block"), Some(Collective::ReduceScatter));
        assert_eq!(collective_of("hopbine_barrier"), Some(Collective::Barrier));
        assert_eq!(collective_of("hopbine_allgatherv"), None);
        assert_eq!(collective_of("allreduce"), None);
    }
}
