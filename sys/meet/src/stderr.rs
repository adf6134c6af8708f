//! Lines on standard error.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Writes a line to standard error, at once. A failure is ignored, unlike by `eprintln`, which panics: a job whose
/// file for standard error is on a full quota must not fail for a remark.
pub fn print_remark(text: impl Display) {
    let _ = stderr().lock().write_all(format!("{text}\n").as_bytes());
}
