//! Validation of records that another process has written: each field is checked before it is used.
//!
//! For each record type one function decodes bytes to checked values. The function depends only on these bytes and on
//! limits of this rank, so that fuzzing can call it with arbitrary bytes (`fuzz`).

use std::fmt;

use super::{Rank, WireError};

/// An invalid value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbled {
    /// The field and its record.
    pub field: &'static str,
    /// The value found.
    pub found: u64,
    /// The least and the greatest valid value.
    pub valid: (u64, u64),
}

impl fmt::Display for Garbled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Garbled { field, found, valid: (least, most) } = self;
        write!(f, "a garbled message: {field} is {found}, it must be from {least} to {most}")
    }
}

impl Garbled {
    /// The error of `call`, which has found the invalid value in a record written by `rank`.
    #[cold]
    pub(super) fn by(self, rank: Rank, call: &'static str) -> WireError {
        WireError::new(call, format!("rank {rank} sent {self}"))
    }

    /// As [`by`](Garbled::by), for a record that any rank may have written.
    #[cold]
    pub(super) fn by_any(self, call: &'static str) -> WireError {
        WireError::new(call, format!("a rank sent {self}"))
    }
}

/// `found`, if it is from `least` to `most`.
///
/// # Errors
/// [`Garbled`] otherwise.
#[inline]
pub(super) fn within(
    field: &'static str,
    found: u64,
    (least, most): (u64, u64),
) -> Result<u64, Garbled> {
    if (least..=most).contains(&found) {
        return Ok(found);
    }
    Err(Garbled { field, found, valid: (least, most) })
}

/// As [`within`], from 0 to `most`, for a number of bytes or objects in this rank's memory.
///
/// # Errors
/// [`Garbled`] otherwise.
#[inline]
pub(super) fn at_most(field: &'static str, found: u64, most: usize) -> Result<usize, Garbled> {
    within(field, found, (0, most as u64)).map(|found| found as usize)
}
