//! Conversions of 16-bit floats against the `half` crate's software ones.

use half::{bf16, f16};

use crate::reduce::half_float::HalfFloat;

#[test]
fn every_f16_widens_exactly_and_comes_back() {
    for bits in 0..=u16::MAX {
        let half = f16::from_bits(bits);
        let wide = half.widen();
        if half.is_nan() {
            assert!(wide.is_nan(), "{bits:#06x}");
            assert_eq!(f16::narrow(wide).to_bits(), 0x7e00, "{bits:#06x}");
        } else {
            assert_eq!(wide.to_bits(), half.to_f32_const().to_bits(), "{bits:#06x}");
            assert_eq!(f16::narrow(wide).to_bits(), bits, "{bits:#06x}");
        }
    }
}

#[test]
fn every_bf16_widens_exactly_and_comes_back() {
    for bits in 0..=u16::MAX {
        let half = bf16::from_bits(bits);
        let wide = half.widen();
        if half.is_nan() {
            assert!(wide.is_nan(), "{bits:#06x}");
            assert_eq!(bf16::narrow(wide).to_bits(), 0x7fc0, "{bits:#06x}");
        } else {
            assert_eq!(wide.to_bits(), u32::from(bits) << 16, "{bits:#06x}");
            assert_eq!(bf16::narrow(wide).to_bits(), bits, "{bits:#06x}");
        }
    }
}

/// Each f16 and bf16, the midpoint to the next and that midpoint's neighbours, with the f32 in between at a stride.
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
