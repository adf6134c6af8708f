//! The documented results for single values.

use num_complex::Complex;

use super::reducer;
use crate::reduce::{Datatype, Op, Pair};

/// `a op b` through the bytes, in both forms, with enough elements for full blocks and a remainder.
fn apply<T: Datatype + std::fmt::Debug>(op: Op, a: T, b: T) -> T {
    let reducer = reducer(T::DTYPE, op);
    let (a, b) = (vec![a; 1001], vec![b; 1001]);
    let mut left = a.clone();
    reducer.reduce_into(bytemuck::cast_slice_mut(&mut left), bytemuck::cast_slice(&b));
    let mut right = b;
    reducer.reduce_into(bytemuck::cast_slice_mut(&mut right), bytemuck::cast_slice(&a));
    let bytes = bytemuck::bytes_of(&left[0]);
    for result in left.iter().chain(&right) {
        assert_eq!(
            bytemuck::bytes_of(result),
            bytes,
            "{result:?} in one place, {:?} in another",
            left[0]
        );
    }
    left[0]
}

#[test]
fn integers_wrap() {
    assert_eq!(apply(Op::Sum, i8::MAX, 1), i8::MIN);
    assert_eq!(apply(Op::Sum, u64::MAX, 2), 1);
    assert_eq!(apply(Op::Product, i64::MIN, -1), i64::MIN);
    assert_eq!(apply(Op::Product, 0x1_0001_u32, 0x1_0001), 0x2_0001);
}

#[test]
fn of_pairs_the_lowest_location_of_the_furthest_value_wins() {
    let pair = |value: f64, location: f64| Pair { value, location };
    assert_eq!(apply(Op::MaxLoc, pair(1.0, 5.0), pair(2.0, 9.0)), pair(2.0, 9.0));
    assert_eq!(apply(Op::MinLoc, pair(1.0, 5.0), pair(1.0, 3.0)), pair(1.0, 3.0));
    let zero = apply(Op::MaxLoc, pair(-0.0, 1.0), pair(0.0, 2.0));
    assert_eq!((zero.value.to_bits(), zero.location), (0, 1.0));
    for op in Op::LOCATIONS {
        let nan = apply(op, pair(-f64::NAN, 7.0), pair(f64::INFINITY, 2.0));
        assert_eq!((nan.value.to_bits(), nan.location), (0x7ff8 << 48, 7.0));
    }
    let one = |value, location| Pair::<i32, i32> { value, location };
    assert_eq!(apply(Op::MinLoc, one(i32::MIN, 1), one(3, -1)), one(i32::MIN, 1));
    assert_eq!(apply(Op::MaxLoc, one(-1, 0), one(-1, -4)), one(-1, -4));
}

#[test]
fn signed_and_unsigned_order_differ() {
    assert_eq!(apply(Op::Min, -1_i16, 1), -1);
    assert_eq!(apply(Op::Min, u16::MAX, 1), 1);
    assert_eq!(apply(Op::Max, i64::MIN, 0), 0);
    assert_eq!(apply(Op::Max, 1_u64 << 63, 0), 1 << 63);
}

#[test]
fn logical_operators_yield_0_or_1_of_any_values() {
    assert_eq!(apply(Op::LogicalAnd, 2_i32, 4), 1);
    assert_eq!(apply(Op::LogicalAnd, -7_i8, 0), 0);
    assert_eq!(apply(Op::LogicalOr, 0_u8, 0x80), 1);
    assert_eq!(apply(Op::LogicalOr, 0_i64, 0), 0);
    assert_eq!(apply(Op::LogicalXor, 3_u16, 5), 0);
    assert_eq!(apply(Op::LogicalXor, i64::MIN, 0), 1);
    assert_eq!(apply(Op::BitAnd, 2_i32, 4), 0);
    assert_eq!(apply(Op::BitXor, 3_u16, 5), 6);
}

#[test]
fn minimum_and_maximum_order_the_zeros_whoever_comes_first() {
    for (a, b) in [(-0.0_f32, 0.0), (0.0, -0.0)] {
        assert_eq!(apply(Op::Min, a, b).to_bits(), (-0.0_f32).to_bits());
        assert_eq!(apply(Op::Max, a, b).to_bits(), 0);
        let (a, b) = (f64::from(a), f64::from(b));
        assert_eq!(apply(Op::Min, a, b).to_bits(), (-0.0_f64).to_bits());
        assert_eq!(apply(Op::Max, a, b).to_bits(), 0);
        let (a, b) = (half::f16::from_f64(a), half::f16::from_f64(b));
        assert_eq!(apply(Op::Min, a, b).to_bits(), 0x8000);
        assert_eq!(apply(Op::Max, a, b).to_bits(), 0);
    }
}

#[test]
fn nan_wins_and_is_always_the_same_nan() {
    // Quiet and signalling NaNs, of either sign, with and without a payload.
    let nans = [0x7fc0_0000, 0xffc0_0000, 0xffc0_1234, 0x7f80_0001].map(f32::from_bits);
    for op in [Op::Sum, Op::Product, Op::Min, Op::Max] {
        for nan in nans {
            for other in [0.0, -1.0, f32::INFINITY, f32::NEG_INFINITY].into_iter().chain(nans) {
                assert_eq!(apply(op, nan, other).to_bits(), 0x7fc0_0000, "{op} {nan:?} {other}");
                assert_eq!(apply(op, other, nan).to_bits(), 0x7fc0_0000, "{op} {other} {nan:?}");
            }
        }
    }
}

#[test]
fn infinities_meet_as_in_ieee_754() {
    let infinity = f64::INFINITY;
    assert_eq!(apply(Op::Sum, infinity, 1.0), infinity);
    assert_eq!(apply(Op::Sum, infinity, -infinity).to_bits(), 0x7ff8 << 48);
    assert_eq!(apply(Op::Product, infinity, 0.0).to_bits(), 0x7ff8 << 48);
    assert_eq!(apply(Op::Min, -infinity, 0.0), -infinity);
    assert_eq!(apply(Op::Sum, f64::MAX, f64::MAX), infinity);
}

/// With a fused multiply-add the real part of this product would be the rounding error of `a * a`, which is not
/// zero.
#[test]
fn complex_products_are_not_fused() {
    let a = 1.0 + f64::EPSILON;
    let z = Complex::new(a, a);
    assert_eq!(apply(Op::Product, z, z), Complex::new(0.0, 2.0 * (a * a)));
    let i = Complex::new(0.0_f32, 1.0);
    assert_eq!(apply(Op::Product, i, i), Complex::new(-1.0, 0.0));
}

/// Only the part that is NaN becomes the canonical NaN.
#[test]
fn a_complex_sum_keeps_its_parts_apart() {
    let z = apply(Op::Sum, Complex::new(f32::from_bits(0xffc0_0001), 1.0), Complex::new(1.0, 2.0));
    assert_eq!((z.re.to_bits(), z.im), (0x7fc0_0000, 3.0));
}

#[test]
fn sixteen_bit_floats_round_once_per_operation() {
    use half::{bf16, f16};
    // The spacing of f16 at 2048, and of bf16 at 256, is 2: ties go to even.
    assert_eq!(apply(Op::Sum, f16::from_f32(2048.0), f16::from_f32(1.0)).to_f32(), 2048.0);
    assert_eq!(apply(Op::Sum, f16::from_f32(2050.0), f16::from_f32(1.0)).to_f32(), 2052.0);
    assert_eq!(apply(Op::Sum, bf16::from_f32(256.0), bf16::from_f32(1.0)).to_f32(), 256.0);
    assert_eq!(apply(Op::Sum, bf16::from_f32(258.0), bf16::from_f32(1.0)).to_f32(), 260.0);
    assert_eq!(apply(Op::Sum, f16::MAX, f16::MAX), f16::INFINITY);
}
