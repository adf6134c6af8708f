//! The packets between barrier gates, and their reduction.

use crate::gates::bfpsum::{self, PartialSum};
use crate::limits::error::{Result, fail};
use std::ffi::c_int;
use utofu_sys::*;

/// Most integers in one reduction.
pub(crate) const MAX_INTEGERS: usize = 6;
/// Most doubles in one reduction.
pub(crate) const MAX_DOUBLES: usize = 3;

/// Words of a packet: the largest payload is three BFPSUM sums.
const WORDS: usize = MAX_DOUBLES * bfpsum::WORDS;

/// One packet. Valid when zeroed.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Packet {
    op: utofu_reduce_op,
    /// Elements.
    count: u32,
    /// Not 0 if packets of different operations were combined.
    mismatch: u32,
    words: [u64; WORDS],
}

/// Kinds of operations that a poll can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Barrier,
    Integers,
    Doubles,
}

impl Packet {
    pub(crate) fn barrier() -> Packet {
        Packet { op: UTOFU_REDUCE_OP_BARRIER, count: 0, mismatch: 0, words: [0; WORDS] }
    }

    /// Returns the packet of a rank's integers. Errors: INVALID_OP, INVALID_NUMBER.
    pub(crate) fn integers(op: utofu_reduce_op, data: &[u64]) -> Result<Packet> {
        if !(UTOFU_REDUCE_OP_BAND..=UTOFU_REDUCE_OP_SUM).contains(&op) {
            return fail(
                UTOFU_ERR_INVALID_OP,
                format!("operator {op} on integers: must be BAND to SUM (2 to 7)"),
            );
        }
        if op == UTOFU_REDUCE_OP_MAXLOC && !data.len().is_multiple_of(2) {
            return fail(
                UTOFU_ERR_INVALID_NUMBER,
                "MAXLOC works on pairs: the number must be even",
            );
        }
        let mut packet = Packet { op, ..Packet::barrier() };
        packet.count = data.len() as u32;
        packet.words[..data.len()].copy_from_slice(data);
        Ok(packet)
    }

    /// Returns the packet of a rank's doubles. Error: INVALID_OP.
    pub(crate) fn doubles(op: utofu_reduce_op, data: &[f64]) -> Result<Packet> {
        if op != UTOFU_REDUCE_OP_BFPSUM {
            return fail(
                UTOFU_ERR_INVALID_OP,
                format!("operator {op} on doubles: must be BFPSUM (8)"),
            );
        }
        let mut packet = Packet { op, ..Packet::barrier() };
        packet.count = data.len() as u32;
        for (words, x) in packet.words.as_chunks_mut().0.iter_mut().zip(data) {
            *words = PartialSum::of(*x).store();
        }
        Ok(packet)
    }

    /// Returns the kind of the packet's operation.
    pub(crate) fn kind(&self) -> Kind {
        match self.op {
            UTOFU_REDUCE_OP_BARRIER => Kind::Barrier,
            UTOFU_REDUCE_OP_BFPSUM => Kind::Doubles,
            _ => Kind::Integers,
        }
    }

    /// Returns the packet, with a mismatch if `other` has one or is of a different operation or length.
    pub(crate) fn compared(mut self, other: &Packet) -> Packet {
        let differs = (self.op, self.count) != (other.op, other.count);
        self.mismatch |= other.mismatch | u32::from(differs);
        self
    }

    /// Combines two packets; a different operation or length is a mismatch.
    pub(crate) fn merge(mut self, other: &Packet) -> Packet {
        self = self.compared(other);
        let n = self.count as usize;
        match self.op {
            UTOFU_REDUCE_OP_BARRIER => {}
            UTOFU_REDUCE_OP_BFPSUM => {
                let theirs = other.words.as_chunks().0;
                for (a, b) in self.words.as_chunks_mut().0.iter_mut().zip(theirs).take(n) {
                    *a = PartialSum::load(a).merge(PartialSum::load(b)).store();
                }
            }
            UTOFU_REDUCE_OP_MAXLOC => {
                let theirs = other.words.as_chunks::<2>().0;
                let mine = self.words.as_chunks_mut::<2>().0;
                for (a, b) in mine.iter_mut().zip(theirs).take(n / 2) {
                    if b[0] > a[0] || (b[0] == a[0] && b[1] < a[1]) {
                        *a = *b;
                    }
                }
            }
            op => {
                for (a, b) in self.words.iter_mut().zip(&other.words).take(n) {
                    *a = match op {
                        UTOFU_REDUCE_OP_BAND => *a & b,
                        UTOFU_REDUCE_OP_BOR => *a | b,
                        UTOFU_REDUCE_OP_BXOR => *a ^ b,
                        UTOFU_REDUCE_OP_MAX => (*a).max(*b),
                        _ => a.wrapping_add(*b),
                    };
                }
            }
        }
        self
    }

    /// Returns the integers of a result.
    pub(crate) fn as_integers(&self) -> &[u64] {
        &self.words[..self.count as usize]
    }

    /// Returns the doubles of a result.
    pub(crate) fn as_doubles(&self) -> impl Iterator<Item = f64> {
        let sums = self.words.as_chunks().0.iter();
        sums.take(self.count as usize).map(|w| PartialSum::load(w).round())
    }

    /// Returns 0 or BARRIER_MISMATCH.
    pub(crate) fn code(&self) -> c_int {
        if self.mismatch == 0 { UTOFU_SUCCESS } else { UTOFU_ERR_BARRIER_MISMATCH }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduce(op: utofu_reduce_op, a: &[u64], b: &[u64]) -> Vec<u64> {
        let (a, b) = (Packet::integers(op, a).unwrap(), Packet::integers(op, b).unwrap());
        let ab = a.merge(&b);
        assert_eq!(ab, b.merge(&a), "operator {op} commutes");
        ab.as_integers().to_vec()
    }

    #[test]
    fn integer_operators() {
        let (a, b) = ([0b1100, u64::MAX, 5], [0b1010, 2, 5]);
        assert_eq!(reduce(UTOFU_REDUCE_OP_BAND, &a, &b), [0b1000, 2, 5]);
        assert_eq!(reduce(UTOFU_REDUCE_OP_BOR, &a, &b), [0b1110, u64::MAX, 5]);
        assert_eq!(reduce(UTOFU_REDUCE_OP_BXOR, &a, &b), [0b0110, u64::MAX - 2, 0]);
        assert_eq!(reduce(UTOFU_REDUCE_OP_MAX, &a, &b), [0b1100, u64::MAX, 5]);
        assert_eq!(reduce(UTOFU_REDUCE_OP_SUM, &a, &b), [0b10110, 1, 10]);
    }

    #[test]
    fn maxloc_takes_the_smallest_location_of_the_largest_value() {
        let got = reduce(UTOFU_REDUCE_OP_MAXLOC, &[7, 3, 9, 1, 2, 8], &[7, 2, 8, 0, 5, 6]);
        assert_eq!(got, [7, 2, 9, 1, 5, 6]);
        assert!(Packet::integers(UTOFU_REDUCE_OP_MAXLOC, &[1]).is_err());
    }

    #[test]
    fn different_operations_are_a_mismatch_for_good() {
        let sum = Packet::integers(UTOFU_REDUCE_OP_SUM, &[1]).unwrap();
        let or = Packet::integers(UTOFU_REDUCE_OP_BOR, &[1]).unwrap();
        assert_eq!(sum.merge(&or).code(), UTOFU_ERR_BARRIER_MISMATCH);
        assert_eq!(sum.merge(&sum.merge(&or)).code(), UTOFU_ERR_BARRIER_MISMATCH);
        assert_eq!(sum.merge(&sum).code(), 0);
    }
}
