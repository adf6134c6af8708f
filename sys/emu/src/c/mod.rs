//! The C interface: every function of uTofu and jTofu, with the C signatures. Rust code calls the functions directly;
//! a separate crate exports them under the C names.
//!
//! Functions return 0 or a negative code; `utofu_get_last_error` explains the last error of the
//! thread. None of them unwinds: a panic becomes `UTOFU_ERR_FATAL`.
//!
//! # Safety (of all functions)
//! Pointers are null or point to memory of the size that the uTofu manual asks for. Without THREAD_SAFE one thread at
//! a time posts to a VCQ and polls its TCQ, and one thread at a time polls its MRQ. Registered memory stays mapped
//! while operations on it are in flight. A function with further requirements states them.

// The module documentation above states the requirements of all functions.
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
    // Unwind safety: the only state that outlives a panic and is used again are the device's queues, and their
    // writers do not panic between their steps.
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

/// Writes a result through the caller's pointer.
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

/// Reads a value through the caller's pointer.
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
