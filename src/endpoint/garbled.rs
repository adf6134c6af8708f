//! Fields of records that another process has written: checked before they are used.
//!
//! Each record has one function that makes checked values of its bytes. It depends on nothing but
//! these bytes and the limits of this side, so that fuzzing can call it with any bytes (`fuzz`).

use std::fmt;

use super::{Rank, WireError};

/// A field with a value that it cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbled {
    /// Which field, of which record.
    pub field: &'static str,
    /// Its value.
    pub found: u64,
    /// The least and the greatest value that it can have.
    pub valid: (u64, u64),
}

impl fmt::Display for Garbled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Garbled { field, found, valid: (least, most) } = self;
        write!(f, "a garbled message: {field} is {found}, it must be from {least} to {most}")
    }
}

impl Garbled {
    /// As the failure of the call that has found the record, which `rank` has written.
    #[cold]
    pub(super) fn by(self, rank: Rank, call: &'static str) -> WireError {
        WireError::new(call, format!("rank {rank} sent {self}"))
    }

    /// As [`by`](Garbled::by), of a record that any rank may have written.
    #[cold]
    pub(super) fn by_any(self, call: &'static str) -> WireError {
        WireError::new(call, format!("a rank sent {self}"))
    }
}

/// `found`, if it is a value that the field can have.
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

/// As [`within`], from 0 on, for what counts memory here.
///
/// # Errors
/// [`Garbled`] otherwise.
#[inline]
pub(super) fn at_most(field: &'static str, found: u64, most: usize) -> Result<usize, Garbled> {
    within(field, found, (0, most as u64)).map(|found| found as usize)
}
