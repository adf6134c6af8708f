//! Compares the conversions of 16-bit floats with the software conversions of the `half` crate.

use half::{bf16, f16};

use crate::reduce::half_float::HalfFloat;

/// All bit patterns of a type are converted as `wide` converts them, and back to the same bits; every NaN becomes
/// `nan`.
fn all_come_back<T: HalfFloat>(
    of: fn(u16) -> T,
    bits_of: fn(T) -> u16,
    wide: fn(u16) -> f32,
    nan: u16,
) {
    for bits in 0..=u16::MAX {
        let widened = of(bits).widen();
        let back = bits_of(T::narrow(widened));
        if wide(bits).is_nan() {
            assert!(widened.is_nan() && back == nan, "{bits:#06x}");
        } else {
            assert_eq!((widened.to_bits(), back), (wide(bits).to_bits(), bits), "{bits:#06x}");
        }
    }
}

#[test]
fn all_halves_widen_exactly_and_come_back() {
    let wide = |bits| f16::from_bits(bits).to_f32_const();
    all_come_back(f16::from_bits, f16::to_bits, wide, 0x7e00);
    let wide = |bits| f32::from_bits(u32::from(bits) << 16);
    all_come_back(bf16::from_bits, bf16::to_bits, wide, 0x7fc0);
}

/// For each f16 and bf16: the midpoint to the next value and the midpoint's neighbours; f32 values between, at a
/// stride.
#[test]
fn narrowing_rounds_to_nearest_with_ties_to_even() {
    let check = |bits: u32| {
        let wide = f32::from_bits(bits);
        if !wide.is_nan() {
            assert_eq!(
                f16::narrow(wide).to_bits(),
                f16::from_f32_const(wide).to_bits(),
                "{bits:#010x}"
            );
            assert_eq!(
                bf16::narrow(wide).to_bits(),
                bf16::from_f32(wide).to_bits(),
                "{bits:#010x}"
            );
        }
    };
    // All ties of normal f16 and of bf16 end in these bits; ties of subnormal f16 are found by value.
    for upper in 0..1_u32 << 20 {
        for lower in [0x000, 0x001, 0x7ff, 0x800, 0x801, 0xfff] {
            check(upper << 12 | lower);
        }
    }
    for multiple in 0..2048_u16 {
        let tie = f32::from(multiple) * 2.0_f32.powi(-25);
        for bits in [tie.to_bits().saturating_sub(1), tie.to_bits(), tie.to_bits() + 1] {
            check(bits);
            check(bits | 1 << 31);
        }
    }
    for bits in (0..u32::MAX).step_by(1009) {
        check(bits);
    }
}
