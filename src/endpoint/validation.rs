//! Validation of records that another process has written: each field is checked before it is used.
//!
//! For each record type one function decodes bytes to checked values. The function depends only on these bytes and on
//! limits of this rank, so that fuzzing can call it with arbitrary bytes (`fuzz`).

use std::fmt;

use super::{Rank, WireError};

/// An invalid value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// The field and its record.
    pub field: &'static str,
    /// The value found.
    pub found: u64,
    /// The least and the greatest valid value.
    pub valid: (u64, u64),
}

impl fmt::Display for InvalidField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InvalidField { field, found, valid: (least, most) } = self;
        write!(f, "a garbled message: {field} is {found}, it must be from {least} to {most}")
    }
}

impl InvalidField {
    /// The error of `call`, which has found the invalid value in a record written by `rank`.
    #[cold]
    pub(super) fn wire_error_from(self, rank: Rank, call: &'static str) -> WireError {
        WireError::new(call, format!("rank {rank} sent {self}"))
    }

    /// As [`wire_error_from`](InvalidField::wire_error_from), for a record that any rank may have written.
    #[cold]
    pub(super) fn wire_error(self, call: &'static str) -> WireError {
        WireError::new(call, format!("a rank sent {self}"))
    }
}

/// `found`, if it is from `least` to `most`.
///
/// # Errors
/// [`InvalidField`] otherwise.
#[inline]
pub(super) fn check_range(
    field: &'static str,
    found: u64,
    (least, most): (u64, u64),
) -> Result<u64, InvalidField> {
    if (least..=most).contains(&found) {
        return Ok(found);
    }
    Err(InvalidField { field, found, valid: (least, most) })
}

/// As [`check_range`], from 0 to `most`, for a number of bytes or objects in this rank's memory.
///
/// # Errors
/// [`InvalidField`] otherwise.
#[inline]
pub(super) fn check_max(
    field: &'static str,
    found: u64,
    most: usize,
) -> Result<usize, InvalidField> {
    check_range(field, found, (0, most as u64)).map(|found| found as usize)
}
