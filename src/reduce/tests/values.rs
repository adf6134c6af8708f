//! Test vectors from a seed: edge cases of each type among ordinary and arbitrary values.

use half::{bf16, f16};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::reduce::Dtype;

fn one_of(random: &mut SmallRng, values: &[u64]) -> u64 {
    *values.choose(random).expect("there are some")
}

/// The bits of a floating-point type's edge cases, from those of its infinity: zeros, infinities, quiet NaNs, a
/// signalling NaN, the least and the largest subnormal number, and the extremes of normal numbers.
fn edge_cases(infinity: u64) -> [u64; 12] {
    // The exponent's lowest bit, which is next to the quiet bit of NaNs.
    let normal = infinity & infinity.wrapping_neg();
    let (sign, quiet) = (infinity + normal, infinity + normal / 2);
    [
        0,
        sign,
        infinity,
        sign + infinity,
        quiet,
        sign + quiet + 1,
        infinity + 1,
        1,
        sign + normal - 1,
        normal,
        infinity - 1,
        sign + infinity - 1,
    ]
}

fn small(dtype: Dtype, number: u8, bytes: &mut Vec<u8>) {
    match dtype {
        Dtype::I32 => bytes.extend(i32::from(number).to_ne_bytes()),
        Dtype::I64 => bytes.extend(i64::from(number).to_ne_bytes()),
        Dtype::F32 => bytes.extend(f32::from(number).to_ne_bytes()),
        _ => bytes.extend(f64::from(number).to_ne_bytes()),
    }
}

/// `count` elements of type `dtype`.
pub fn vector(dtype: Dtype, count: usize, seed: u64) -> Vec<u8> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut bytes = Vec::new();
    while bytes.len() < count * dtype.size_bytes() {
        number(dtype, &mut random, &mut bytes);
    }
    bytes
}

/// Appends one number, or for a complex element one of its two; for a pair, mostly small numbers, many of them
/// equal.
fn number(dtype: Dtype, random: &mut SmallRng, bytes: &mut Vec<u8>) {
    if let Some((value, location)) = dtype.pair() {
        for part in [value, location] {
            match random.random_range(0..3) {
                0 => number(part, random, bytes),
                _ => small(part, random.random_range(0..3), bytes),
            }
        }
        return;
    }
    let kind = random.random_range(0..4);
    let moderate = (random.random::<i64>() >> 40) as f64 / 64.0;
    let arbitrary = random.random::<u64>();
    macro_rules! float {
        ($float:ident as $bits:ident, $moderate:expr) => {{
            let float = match kind {
                0 => one_of(random, &edge_cases($float::INFINITY.to_bits().into())),
                1 => arbitrary,
                _ => $moderate.to_bits().into(),
            };
            bytes.extend((float as $bits).to_ne_bytes());
        }};
    }
    match dtype {
        Dtype::F16 => float!(f16 as u16, f16::from_f64(moderate / 256.0)),
        Dtype::Bf16 => float!(bf16 as u16, bf16::from_f64(moderate)),
        Dtype::F32 | Dtype::ComplexF32 => float!(f32 as u32, moderate as f32),
        Dtype::F64 | Dtype::ComplexF64 => float!(f64 as u64, moderate),
        integer => {
            let value = match kind {
                // The extremes of each width, of both signs, cut to size below.
                0 => one_of(
                    random,
                    &[
                        0,
                        1,
                        u64::MAX,
                        0x7f,
                        0x80,
                        0x7fff,
                        0x8000,
                        0x7fff_ffff,
                        0x8000_0000,
                        i64::MAX as u64,
                        1 << 63,
                    ],
                ),
                1 => arbitrary % 3,
                _ => arbitrary,
            };
            let size = integer.size_bytes();
            let shift = 64 - 8 * size as u32;
            // The value's low bytes, in native byte order.
            let cut = (value << shift).to_ne_bytes();
            if cfg!(target_endian = "little") {
                bytes.extend(&cut[8 - size..]);
            } else {
                bytes.extend(&cut[..size]);
            }
        }
    }
}
