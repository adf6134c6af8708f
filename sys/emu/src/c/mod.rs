//! The C interface: every function of uTofu and jTofu, with the C signatures, to be called from
//! Rust or exported under the C names by a crate that does just that.
//!
//! Functions return 0 or a negative code; `utofu_get_last_error` explains the last error of the
//! thread. None of them unwinds: a panic becomes `UTOFU_ERR_FATAL`.
//!
//! # Safety (of all functions)
//! Pointers are null or point to memory of the size that the uTofu manual asks for. Without
//! THREAD_SAFE a VCQ is used by one thread at a time for posting and polling the TCQ, and by one
//! thread at a time for polling the MRQ. Registered memory stays mapped while operations on it
//! are in flight. A function that asks for more says so.

// Stated above, once for all.
#![allow(clippy::missing_safety_doc)]

mod gate;
mod jtofu;
mod memory;
mod poll;
mod post;
mod query;
mod vcq;

pub use gate::*;
pub use jtofu::*;
pub use memory::*;
pub use poll::*;
pub use post::*;
pub use query::*;
pub use vcq::*;

use crate::limits::error::{Result, fail, record};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use utofu_sys::*;

/// Runs the body of a C function.
#[inline]
fn call(body: impl FnOnce() -> Result<()>) -> c_int {
    // Nothing is used again that a panic could have left half changed, but the device's own
    // queues, whose writers do not panic between their steps.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => UTOFU_SUCCESS,
        Ok(Err(code)) => code.0,
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            record(format!("internal error: {}", text.unwrap_or_else(|| "unknown".into())));
            UTOFU_ERR_FATAL
        }
    }
}

/// Writes a result through a pointer of the caller.
///
/// # Safety
/// `to` is null or valid for a T.
#[inline]
unsafe fn store<T>(to: *mut T, value: T, what: &str) -> Result<()> {
    if to.is_null() {
        return null(what);
    }
    // SAFETY: not null, hence valid by the caller's promise.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Reads an array of the caller.
///
/// # Safety
/// `from` is null or valid for a T.
unsafe fn load<T: Copy>(from: *const T, what: &str) -> Result<T> {
    if from.is_null() {
        return null(what);
    }
    // SAFETY: not null, hence valid by the caller's promise.
    Ok(unsafe { from.read_unaligned() })
}

#[cold]
fn null<T>(what: &str) -> Result<T> {
    fail(UTOFU_ERR_INVALID_POINTER, format!("{what} is NULL"))
}

fn not_null<T>(p: *const T, what: &str) -> Result<()> {
    if p.is_null() { null(what) } else { Ok(()) }
}
