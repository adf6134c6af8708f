//! The laws by which coordinates are composed. They make patterns vertex-transitive.
//!
//! Every law is a group on the coordinates `0..size` with 0 as its neutral element. A pattern gives the targets of
//! coordinate 0; the targets of coordinate a are these targets *composed* with a. (In terms of graph theory a
//! pattern is a sequence of Cayley graphs.)

use smallvec::SmallVec;

/// A group on `0..size`.
#[derive(Clone, Debug)]
pub(super) enum Law {
    /// Digit-wise addition in a mixed radix, least significant digit first, without carry. With one digit this is
    /// the shift around the ring, with radices of 2 it is XOR.
    Digits(Digits),
    /// Even coordinates add, odd coordinates subtract: `a + b` for even `a`, `a - b` for odd `a`, around the ring.
    /// Even sizes only.
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

    /// The composition of `a` and `b`: the image of `b` under the renumbering that moves 0 to `a`.
    pub fn compose(&self, a: u32, b: u32) -> u32 {
        match self {
            Law::Digits(digits) => digits.add(a, b),
            Law::Alternating { size } if a.is_multiple_of(2) => (a + b) % size,
            Law::Alternating { size } => minus(a, b, *size),
        }
    }

    /// The inverse of `b`: `compose(b, inverse(b)) == 0`.
    pub fn inverse(&self, b: u32) -> u32 {
        match self {
            Law::Digits(digits) => digits.negate(b),
            // An odd coordinate is its own inverse.
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
pub(super) struct Digits {
    digits: SmallVec<[Digit; 4]>,
    /// The highest bit of each digit, if all radices are powers of two. Digits are then fields of bits, and all
    /// digits are computed at once.
    highest: Option<u32>,
}

/// One digit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digit {
    /// Its values are `0..radix`.
    pub radix: u32,
    /// The weight of the digit: the product of the earlier radices.
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
        let digits = radices.iter().map(|&radix| {
            let digit = Digit { radix, stride };
            stride *= radix;
            digit
        });
        Digits::from_digits(digits.collect())
    }

    /// As many digits of one radix as numbers below `size` need; the radix of the last digit is reduced to the
    /// values that occur.
    pub fn of_radix(radix: u32, size: u32) -> Self {
        let mut digits = SmallVec::new();
        let mut stride = 1;
        while stride < size {
            digits.push(Digit { radix: radix.min(size.div_ceil(stride)), stride });
            stride = stride.saturating_mul(radix);
        }
        Digits::from_digits(digits)
    }

    fn from_digits(digits: SmallVec<[Digit; 4]>) -> Self {
        let are_fields = digits.iter().all(|digit| digit.radix.is_power_of_two());
        // `stride * radix` of the last digit may be 2^32.
        let highest = |digit: &Digit| digit.stride * (digit.radix / 2);
        // A radix of 1 has no bit.
        let real = digits.iter().filter(|digit| digit.radix > 1);
        let highest = are_fields.then(|| real.map(highest).sum());
        Digits { digits, highest }
    }

    /// The digits, least significant first.
    pub fn all(&self) -> &[Digit] {
        &self.digits
    }

    fn size(&self) -> u32 {
        self.digits.last().map_or(1, |last| last.stride * last.radix)
    }

    /// The sum digit by digit, without carry.
    fn add(&self, a: u32, b: u32) -> u32 {
        match self.highest {
            // The lower bits cannot carry out of their field; the highest bits add up to their XOR.
            Some(highest) => ((a & !highest) + (b & !highest)) ^ ((a ^ b) & highest),
            None => self.zip(a, b, |a, b, radix| (a + b) % radix),
        }
    }

    /// The additive inverse digit by digit.
    fn negate(&self, a: u32) -> u32 {
        match self.highest {
            // Within each field the lower bits may borrow from a set highest bit; the XOR then corrects the highest
            // bits.
            Some(highest) => (highest - (a & !highest)) ^ (!a & highest),
            None => self.zip(0, a, |_, a, radix| (radix - a) % radix),
        }
    }

    fn zip(&self, a: u32, b: u32, combine: impl Fn(u32, u32, u32) -> u32) -> u32 {
        let digit = |digit: &Digit| combine(digit.of(a), digit.of(b), digit.radix) * digit.stride;
        self.digits.iter().map(digit).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_bits_are_digits() {
        for radices in [&[2, 2, 2, 2][..], &[4, 4], &[8, 2, 4], &[16], &[2, 1, 8], &[1]] {
            let fields = Digits::new(radices);
            let plain = Digits { highest: None, ..fields.clone() };
            assert!(fields.highest.is_some());
            for a in 0..fields.size() {
                assert_eq!(fields.negate(a), plain.negate(a), "{radices:?}: -{a}");
                for b in 0..fields.size() {
                    assert_eq!(fields.add(a, b), plain.add(a, b), "{radices:?}: {a} + {b}");
                }
            }
        }
        assert_eq!(Digits::new(&[2, 3]).highest, None);
        assert_eq!(Digits::of_radix(2, u32::MAX).highest, Some(u32::MAX));
    }
}
