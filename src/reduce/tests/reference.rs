//! The reference results of every operator, one element at a time: integers computed in `i128`, `f32` in `f64`,
//! 16-bit floats with the `half` crate's software conversions, order by `total_cmp`.

use half::{bf16, f16};

use crate::reduce::{Dtype, Op};

/// `a op b`, element by element.
pub fn combine(dtype: Dtype, op: Op, a: &[u8], b: &[u8]) -> Vec<u8> {
    let size = dtype.size_bytes();
    a.chunks(size).zip(b.chunks(size)).flat_map(|(a, b)| element(dtype, op, a, b)).collect()
}

/// The operands combined from left to right.
pub fn fold(dtype: Dtype, op: Op, operands: &[&[u8]]) -> Vec<u8> {
    let (first, others) = operands.split_first().expect("a fold has an operand");
    others.iter().fold(first.to_vec(), |sum, operand| combine(dtype, op, &sum, operand))
}

macro_rules! read {
    ($t:ty, $bytes:expr) => {
        <$t>::from_ne_bytes($bytes.try_into().expect("one element"))
    };
}

fn element(dtype: Dtype, op: Op, a: &[u8], b: &[u8]) -> Vec<u8> {
    macro_rules! integer {
        ($t:ty) => {{
            let result = wide(op, i128::from(read!($t, a)), i128::from(read!($t, b)));
            (result as $t).to_ne_bytes().to_vec()
        }};
    }
    match dtype {
        Dtype::I8 => integer!(i8),
        Dtype::I16 => integer!(i16),
        Dtype::I32 => integer!(i32),
        Dtype::I64 => integer!(i64),
        Dtype::U8 => integer!(u8),
        Dtype::U16 => integer!(u16),
        Dtype::U32 => integer!(u32),
        Dtype::U64 => integer!(u64),
        Dtype::F16 => {
            let (a, b) = (read!(f16, a).to_f32_const(), read!(f16, b).to_f32_const());
            let result = single(op, a, b);
            let bits = if result.is_nan() { 0x7e00 } else { f16::from_f32_const(result).to_bits() };
            bits.to_ne_bytes().to_vec()
        }
        Dtype::Bf16 => {
            let result = single(op, read!(bf16, a).to_f32(), read!(bf16, b).to_f32());
            let bits = if result.is_nan() { 0x7fc0 } else { bf16::from_f32(result).to_bits() };
            bits.to_ne_bytes().to_vec()
        }
        Dtype::PairI32 | Dtype::PairI64 | Dtype::PairF32 | Dtype::PairF64 | Dtype::PairF32I32 => {
            located(dtype, op, a, b)
        }
        Dtype::F32 => single_bytes(single(op, read!(f32, a), read!(f32, b))),
        Dtype::F64 => double_bytes(double(op, read!(f64, a), read!(f64, b))),
        Dtype::ComplexF32 => {
            let [a, b] = [a, b].map(|z| [read!(f32, z[..4]), read!(f32, z[4..])]);
            complex(op, a, b, single, single_bytes)
        }
        Dtype::ComplexF64 => {
            let [a, b] = [a, b].map(|z| [read!(f64, z[..8]), read!(f64, z[8..])]);
            complex(op, a, b, double, double_bytes)
        }
    }
}

/// The resulting pair, as MPI defines `MPI_MINLOC` and `MPI_MAXLOC`; MPI leaves the result for NaN open.
fn located(dtype: Dtype, op: Op, a: &[u8], b: &[u8]) -> Vec<u8> {
    use std::cmp::Ordering::{self, Equal, Greater, Less};
    let (value, location) = dtype.pair().expect("a pair");
    let half = dtype.size_bytes() / 2;
    let compare = |dtype: Dtype, a: &[u8], b: &[u8], floats: fn(f64, f64) -> Ordering| match dtype {
        Dtype::I32 => read!(i32, a).cmp(&read!(i32, b)),
        Dtype::I64 => read!(i64, a).cmp(&read!(i64, b)),
        Dtype::F32 => floats(read!(f32, a).into(), read!(f32, b).into()),
        _ => floats(read!(f64, a), read!(f64, b)),
    };
    let is_nan = |bytes: &[u8]| match value {
        Dtype::F32 => read!(f32, bytes).is_nan(),
        Dtype::F64 => read!(f64, bytes).is_nan(),
        _ => false,
    };
    let values = match (is_nan(&a[..half]), is_nan(&b[..half])) {
        (true, true) => Equal,
        (true, false) => Greater,
        (false, true) => Less,
        (false, false) => {
            let ieee = |a: f64, b: f64| a.partial_cmp(&b).expect("no NaN");
            let order = compare(value, &a[..half], &b[..half], ieee);
            if op == Op::MinLoc { order.reverse() } else { order }
        }
    };
    let nan_last = |a: f64, b: f64| {
        a.is_nan().cmp(&b.is_nan()).then(if a.is_nan() { Equal } else { a.total_cmp(&b) })
    };
    let locations = compare(location, &b[half..], &a[half..], nan_last);
    let wanted = if values.then(locations) == Less { b } else { a };
    // Zeros have one sign, NaN has one bit pattern.
    let plain = |dtype: Dtype, bytes: &[u8], has_one_zero: bool| match dtype {
        Dtype::F32 if has_one_zero => single_bytes(read!(f32, bytes) + 0.0),
        Dtype::F64 if has_one_zero => double_bytes(read!(f64, bytes) + 0.0),
        Dtype::F32 => single_bytes(read!(f32, bytes)),
        Dtype::F64 => double_bytes(read!(f64, bytes)),
        _ => bytes.to_vec(),
    };
    [plain(value, &wanted[..half], true), plain(location, &wanted[half..], false)].concat()
}

/// Wide enough for every result except a product of two `u64`, whose low half is still correct.
fn wide(op: Op, a: i128, b: i128) -> i128 {
    let truth = |condition: bool| if condition { 1 } else { 0 };
    match op {
        Op::Sum => a + b,
        Op::Product => a.wrapping_mul(b),
        Op::Min => [a, b].into_iter().min().expect("two"),
        Op::Max => [a, b].into_iter().max().expect("two"),
        Op::LogicalAnd => truth(a != 0 && b != 0),
        Op::LogicalOr => truth(a != 0 || b != 0),
        Op::LogicalXor => truth((a == 0) != (b == 0)),
        Op::BitAnd => !(!a | !b),
        Op::BitOr => !(!a & !b),
        Op::BitXor => (a & !b) | (!a & b),
        other => unreachable!("{other} of integers"),
    }
}

/// A binary64 has more than twice a binary32's digits, so rounding twice equals rounding once.
fn single(op: Op, a: f32, b: f32) -> f32 {
    double(op, f64::from(a), f64::from(b)) as f32
}

fn double(op: Op, a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    match op {
        Op::Sum => a + b,
        Op::Product => a * b,
        Op::Min => [a, b].into_iter().min_by(f64::total_cmp).expect("two"),
        Op::Max => [a, b].into_iter().max_by(f64::total_cmp).expect("two"),
        other => unreachable!("{other} of floats"),
    }
}

fn complex<T: Copy + std::ops::Neg<Output = T>>(
    op: Op,
    [a, b]: [T; 2],
    [c, d]: [T; 2],
    real: fn(Op, T, T) -> T,
    bytes: fn(T) -> Vec<u8>,
) -> Vec<u8> {
    let (re, im) = match op {
        Op::Sum => (real(Op::Sum, a, c), real(Op::Sum, b, d)),
        Op::Product => {
            let [ac, bd, ad, bc] =
                [(a, c), (b, d), (a, d), (b, c)].map(|(x, y)| real(Op::Product, x, y));
            (real(Op::Sum, ac, -bd), real(Op::Sum, ad, bc))
        }
        other => unreachable!("{other} of complex numbers"),
    };
    [bytes(re), bytes(im)].concat()
}

fn single_bytes(x: f32) -> Vec<u8> {
    let bits = if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() };
    bits.to_ne_bytes().to_vec()
}

fn double_bytes(x: f64) -> Vec<u8> {
    let bits = if x.is_nan() { 0x7ff8 << 48 } else { x.to_bits() };
    bits.to_ne_bytes().to_vec()
}
