//! The laws by which coordinates are composed: what makes a pattern look the same from
//! everywhere.
//!
//! Every law is a group on the coordinates `0..size` with 0 as its neutral element. A pattern
//! says whom coordinate 0 may send to; everyone else sends to the same, *composed* with where
//! it stands. (In the words of graph theory a pattern is a sequence of Cayley graphs.)

use smallvec::SmallVec;

/// A group on `0..size`.
#[derive(Clone, Debug)]
pub(super) enum Law {
    /// Digit-wise addition in a mixed radix, least significant digit first, without carry. With
    /// one digit it is the shift around the ring, with radices of 2 it is XOR.
    Digits(Digits),
    /// Even coordinates go one way, odd ones the other: `a + b` for even `a`, `a - b` for odd
    /// `a`, round the ring. Even sizes only.
    Alternating {
        /// Number of coordinates.
        size: u32,
    },
}

impl Law {
    /// The shift around a ring.
    pub fn cyclic(size: u32) -> Self {
        Law::Digits(Digits::new(&[size]))
    }

    /// Number of coordinates.
    pub fn size(&self) -> u32 {
        match self {
            Law::Digits(digits) => digits.size(),
            Law::Alternating { size } => *size,
        }
    }

    /// Where `b`, seen from `a`, is.
    pub fn compose(&self, a: u32, b: u32) -> u32 {
        match self {
            Law::Digits(digits) => digits.zip(a, b, |a, b, radix| (a + b) % radix),
            Law::Alternating { size } if a.is_multiple_of(2) => (a + b) % size,
            Law::Alternating { size } => minus(a, b, *size),
        }
    }

    /// From where 0 is seen as `b` is from 0: `compose(b, inverse(b)) == 0`.
    pub fn inverse(&self, b: u32) -> u32 {
        match self {
            Law::Digits(digits) => digits.zip(0, b, |_, b, radix| (radix - b) % radix),
            // An odd coordinate sees back the way it is seen.
            Law::Alternating { .. } if !b.is_multiple_of(2) => b,
            Law::Alternating { size } => minus(0, b, *size),
        }
    }
}

fn minus(a: u32, b: u32, size: u32) -> u32 {
    if a >= b { a - b } else { a + size - b }
}

/// A mixed-radix number system, least significant digit first.
#[derive(Clone, Debug)]
pub(super) struct Digits(SmallVec<[Digit; 4]>);

/// One digit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digit {
    /// Its values are `0..radix`.
    pub radix: u32,
    /// What a value of 1 stands for: the product of the earlier radices.
    pub stride: u32,
}

impl Digit {
    /// The value of this digit in a number.
    pub fn of(self, number: u32) -> u32 {
        number / self.stride % self.radix
    }
}

impl Digits {
    /// Digits of the given radices.
    pub fn new(radices: &[u32]) -> Self {
        let mut stride = 1;
        Digits(
            radices
                .iter()
                .map(|&radix| {
                    let digit = Digit { radix, stride };
                    stride *= radix;
                    digit
                })
                .collect(),
        )
    }

    /// As many digits of one radix as numbers below `size` have; the last has a smaller radix
    /// if they do not need all of it.
    pub fn of_radix(radix: u32, size: u32) -> Self {
        let mut digits = SmallVec::new();
        let mut stride = 1;
        while stride < size {
            digits.push(Digit { radix: radix.min(size.div_ceil(stride)), stride });
            stride = stride.saturating_mul(radix);
        }
        Digits(digits)
    }

    /// The digits, least significant first.
    pub fn all(&self) -> &[Digit] {
        &self.0
    }

    fn size(&self) -> u32 {
        self.0.last().map_or(1, |last| last.stride * last.radix)
    }

    fn zip(&self, a: u32, b: u32, combine: impl Fn(u32, u32, u32) -> u32) -> u32 {
        let digit = |digit: &Digit| combine(digit.of(a), digit.of(b), digit.radix) * digit.stride;
        self.0.iter().map(digit).sum()
    }
}
