//! Conversion of the 16-bit floats to `f32` and back. The code has no branches, so that loops over it vectorise: all
//! cases are computed, with wrapping arithmetic where they do not apply, and one is selected.
//!
//! The `half` crate's conversions are as exact, but call a function for a handful of elements at a time (F16C, fp16)
//! or branch (on other processors). No step here reads or yields a subnormal `f32` on behalf of an f16, so f16
//! results do not change if a program runs with subnormals flushed to zero.

use half::{bf16, f16};

/// A 16-bit float that is computed as an `f32`.
pub(super) trait HalfFloat: bytemuck::Pod {
    /// The same value as an `f32`; exact.
    fn widen(self) -> f32;
    /// The nearest value, ties to even; any NaN becomes the canonical one.
    fn narrow(wide: f32) -> Self;
}

const SIGN: u32 = 0x8000_0000;

impl HalfFloat for bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    fn narrow(wide: f32) -> bf16 {
        let bits = wide.to_bits();
        // Half of the last kept place, less one if that place is even: the carry rounds ties to even, and turns the
        // largest finite numbers into infinity as required.
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
        let bits = if wide.is_nan() { 0x7fc0 } else { rounded };
        bf16::from_bits(bits as u16)
    }
}

/// Difference of the exponent biases of binary32 and binary16, at the exponent's place in a binary32.
const REBIAS: u32 = (127 - 15) << 23;
/// 2^-14, the smallest normal f16, as binary32.
const SMALLEST_NORMAL: u32 = (127 - 14) << 23;

impl HalfFloat for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        let half = u32::from(self.to_bits());
        let magnitude = half & 0x7fff;
        let shifted = magnitude << 13;
        let normal = shifted + REBIAS;
        // The exponent of infinity and NaN must become all ones: rebias once more.
        let special = normal + REBIAS;
        // A subnormal f16 is m x 2^-24: put m behind the leading one of 2^-14, and subtract 2^-14 again.
        let subnormal =
            (f32::from_bits(shifted + SMALLEST_NORMAL) - f32::from_bits(SMALLEST_NORMAL)).to_bits();
        let finite = if magnitude < 0x0400 { subnormal } else { normal };
        let bits = if magnitude >= 0x7c00 { special } else { finite };
        f32::from_bits(bits | (half & 0x8000) << 16)
    }

    #[inline(always)]
    fn narrow(wide: f32) -> f16 {
        let bits = wide.to_bits();
        let magnitude = bits & !SIGN;
        // Normal results: round the integer, as for bf16; the carry may reach infinity.
        let normal =
            magnitude.wrapping_sub(REBIAS).wrapping_add(0x0fff + ((magnitude >> 13) & 1)) >> 13;
        // Below 2^-14 a step of f16 is 2^-24, the step of binary32 between 0.5 and 1: adding 0.5 rounds to it.
        let half = 0.5_f32;
        let subnormal = (f32::from_bits(magnitude) + half).to_bits().wrapping_sub(half.to_bits());
        let finite = if magnitude < SMALLEST_NORMAL { subnormal } else { normal };
        // 65520 is halfway between the largest f16 and the next power of two, to which ties round.
        let large = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
        let result = if magnitude >= 65520_f32.to_bits() { large } else { finite };
        let sign = if wide.is_nan() { 0 } else { (bits & SIGN) >> 16 };
        f16::from_bits((result | sign) as u16)
    }
}
