//! A call on a flat buffer, and the stamps that tell its contributions from those of other calls.

use super::layout::{APART, DEPTH, STRIDE};

/// A stamp: the call's signature (bits 0 to 15), whether its rank had read all earlier calls (16), its number (17
/// on).
pub(super) const NUMBER_BIT: u32 = 17;
pub(super) const HAS_READ: u64 = 1 << 16;

/// A call that this rank has entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    pub(super) number: u64,
    signature: u16,
}

impl Entered {
    pub(super) fn new(number: u64, signature: u16) -> Self {
        Entered { number, signature }
    }

    /// The call's number on the flat buffer.
    pub fn number(self) -> u64 {
        self.number
    }

    /// The stamp of all ranks' contributions to the call, without [`HAS_READ`].
    #[inline]
    pub(super) fn stamp(self) -> u64 {
        self.number << NUMBER_BIT | u64::from(self.signature)
    }

    /// The place that the call uses, of [`DEPTH`].
    #[inline]
    pub(super) fn turn(self) -> usize {
        (self.number % DEPTH) as usize
    }

    /// Offset of that place in a rank's part.
    #[inline]
    pub(super) fn place(self) -> usize {
        APART + self.turn() * STRIDE
    }

    /// Offset of the place of the next call.
    #[inline]
    pub(super) fn next_place(self) -> usize {
        Entered { number: self.number + 1, ..self }.place()
    }
}

/// The contribution of a rank to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contribution {
    /// The rank has not contributed yet.
    Missing,
    /// The contribution starts here. It stays until this rank enters another call, or, after
    /// [`read_later`](super::FlatBuffer::read_later), until this rank reports it as read.
    At(*const u8),
    /// This rank makes another call, with another signature.
    Other(usize),
}
