//! BFPSUM: a sum of doubles that does not depend on the order of the addends.
//!
//! The gates sum in fixed point on a grid of 80-bit digits. With T the binary exponent of the largest addend, the
//! digits of weight 2^(80 floor(T/80)) and 2^(80 (floor(T/80) - 1)) are kept. Everything below is lost, even if the
//! large addends cancel (as measured on Fujitsu's library). Each addend is split at the absolute grid and the digits
//! are summed without carries, so every order and every tree gives the same digits. The end result is rounded once,
//! to nearest even.

/// Bits of a digit.
const DIGIT: i32 = 80;
const MASK: u128 = (1 << DIGIT) - 1;

/// Set if an addend was not zero, so that `grid` is meaningful.
const SOME: u32 = 1;
const NAN: u32 = 2;
const PLUS_INF: u32 = 4;
const MINUS_INF: u32 = 8;

/// A partial sum. The digits have room for more than 2^40 addends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartialSum {
    /// Sum of the digits of weight 2^(80 grid).
    high: i128,
    /// Sum of the digits of weight 2^(80 (grid - 1)).
    low: i128,
    grid: i32,
    flags: u32,
}

/// 64-bit words of a stored sum.
pub(crate) const WORDS: usize = 5;

impl PartialSum {
    /// Returns the sum of one addend.
    pub(crate) fn of(x: f64) -> PartialSum {
        let special = |flags| PartialSum { flags, ..PartialSum::default() };
        if x.is_nan() {
            return special(NAN);
        }
        if x.is_infinite() {
            return special(if x > 0.0 { PLUS_INF } else { MINUS_INF });
        }
        let bits = x.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        let (m, e) = match (bits >> 52 & 0x7ff) as i32 {
            0 => (fraction, -1074),
            biased => (fraction | 1 << 52, biased - 1075),
        };
        if m == 0 {
            return PartialSum::default();
        }
        let top = e + 63 - m.leading_zeros() as i32;
        let grid = top.div_euclid(DIGIT);
        // In units of the lower digit the number is m << shift; 28 <= shift < 160, since the top
        // bit lies in the upper digit and m has at most 53 bits.
        let shift = e - DIGIT * (grid - 1);
        let m = u128::from(m);
        let (high, low) = if shift >= DIGIT {
            (m << (shift - DIGIT), 0)
        } else {
            (m >> (DIGIT - shift), m << shift & MASK)
        };
        let sign = if x < 0.0 { -1 } else { 1 };
        PartialSum { high: sign * high as i128, low: sign * low as i128, grid, flags: SOME }
    }

    /// Returns the sum of two sums.
    pub(crate) fn merge(self, other: PartialSum) -> PartialSum {
        let flags = self.flags | other.flags;
        let (a, b) = match (self.flags & SOME != 0, other.flags & SOME != 0) {
            (true, true) if self.grid >= other.grid => (self, other),
            (true, true) | (false, true) => (other, self),
            _ => (self, other),
        };
        let mut sum = PartialSum { flags, ..a };
        if b.flags & SOME != 0 {
            match a.grid - b.grid {
                0 => {
                    sum.high += b.high;
                    sum.low += b.low;
                }
                1 => sum.low += b.high,
                _ => {}
            }
        }
        sum
    }

    /// Returns the sum as a double, rounded once.
    pub(crate) fn round(self) -> f64 {
        let (plus, minus) = (self.flags & PLUS_INF != 0, self.flags & MINUS_INF != 0);
        if self.flags & NAN != 0 || (plus && minus) {
            return f64::NAN;
        }
        if plus || minus {
            return if plus { f64::INFINITY } else { f64::NEG_INFINITY };
        }
        // Carry, so that 0 <= low < 2^80, then negate a negative sum.
        let mut high = self.high + (self.low >> DIGIT);
        let mut low = self.low as u128 & MASK;
        let negative = high < 0;
        if negative {
            high = if low == 0 { -high } else { -high - 1 };
            low = if low == 0 { 0 } else { MASK + 1 - low };
        }
        let high = high as u128;
        let magnitude = magnitude(high, low, DIGIT * (self.grid - 1));
        if negative { -magnitude } else { magnitude }
    }

    /// Returns the sum as words, for the gates' packets.
    pub(crate) fn store(self) -> [u64; WORDS] {
        [
            self.high as u64,
            (self.high >> 64) as u64,
            self.low as u64,
            (self.low >> 64) as u64,
            u64::from(self.grid as u32) << 32 | u64::from(self.flags),
        ]
    }

    /// Returns the sum from words.
    pub(crate) fn load(w: &[u64; WORDS]) -> PartialSum {
        PartialSum {
            high: i128::from(w[0]) | i128::from(w[1] as i64) << 64,
            low: i128::from(w[2]) | i128::from(w[3] as i64) << 64,
            grid: (w[4] >> 32) as i32,
            flags: w[4] as u32,
        }
    }
}

/// Returns (high << 80 | low) * 2^base, rounded to nearest even.
fn magnitude(high: u128, low: u128, base: i32) -> f64 {
    if high == 0 && low == 0 {
        return 0.0;
    }
    let length = |v: u128| 128 - v.leading_zeros() as i32;
    let top = if high > 0 { DIGIT + length(high) - 1 } else { length(low) - 1 };
    // Exponent of the last bit of the resulting double; the same for all denormals.
    let last = (top + base - 52).max(-1074);
    let drop = last - base;
    let mut m = if drop <= 0 {
        low << -drop
    } else {
        let bit = |i: i32| match i >= DIGIT {
            true => high.checked_shr((i - DIGIT) as u32).unwrap_or(0) & 1,
            false => low >> i & 1,
        };
        let below = |i: i32| match i >= DIGIT {
            true if i - DIGIT >= 128 => low != 0 || high != 0,
            true => low != 0 || high & ((1 << (i - DIGIT)) - 1) != 0,
            false => low & ((1 << i) - 1) != 0,
        };
        let kept = if drop >= DIGIT {
            high.checked_shr((drop - DIGIT) as u32).unwrap_or(0)
        } else {
            high << (DIGIT - drop) | low >> drop
        };
        let up = bit(drop - 1) == 1 && (below(drop - 1) || kept & 1 == 1);
        kept + u128::from(up)
    };
    let mut exponent = last;
    if m == 1 << 53 {
        m >>= 1;
        exponent += 1;
    }
    if m < 1 << 52 {
        // A denormal: its bits are its fraction.
        return f64::from_bits(m as u64);
    }
    let biased = exponent + 1075;
    if biased >= 0x7ff {
        return f64::INFINITY;
    }
    f64::from_bits((biased as u64) << 52 | (m as u64 & ((1 << 52) - 1)))
}

#[cfg(test)]
#[path = "bfpsum_tests.rs"]
mod tests;
