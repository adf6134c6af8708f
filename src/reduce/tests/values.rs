//! Test vectors from a seed: edge cases of each type among ordinary and arbitrary values.

use half::{bf16, f16};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::reduce::Dtype;

fn one_of<T: Copy>(random: &mut SmallRng, values: &[T]) -> T {
    *values.choose(random).expect("there are some")
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
    match dtype {
        Dtype::F16 => bytes.extend(
            match kind {
                0 => f16::from_bits(one_of(
                    random,
                    &[
                        0, 0x8000, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 1, 0x83ff, 0x0400,
                        0x7bff, 0xfbff,
                    ],
                )),
                1 => f16::from_bits(arbitrary as u16),
                _ => f16::from_f64(moderate / 256.0),
            }
            .to_ne_bytes(),
        ),
        Dtype::Bf16 => bytes.extend(
            match kind {
                0 => bf16::from_bits(one_of(
                    random,
                    &[
                        0, 0x8000, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81, 1, 0x807f, 0x0080,
                        0x7f7f, 0xff7f,
                    ],
                )),
                1 => bf16::from_bits(arbitrary as u16),
                _ => bf16::from_f64(moderate),
            }
            .to_ne_bytes(),
        ),
        Dtype::F32 | Dtype::ComplexF32 => bytes.extend(
            match kind {
                0 => f32::from_bits(one_of(
                    random,
                    &[
                        0,
                        0x8000_0000,
                        0x7f80_0000,
                        0xff80_0000,
                        0x7fc0_0000,
                        0xffc0_0001,
                        0x7f80_0001,
                        1,
                        0x807f_ffff,
                        0x0080_0000,
                        0x7f7f_ffff,
                        0xff7f_ffff,
                    ],
                )),
                1 => f32::from_bits(arbitrary as u32),
                _ => moderate as f32,
            }
            .to_ne_bytes(),
        ),
        Dtype::F64 | Dtype::ComplexF64 => bytes.extend(
            match kind {
                0 => f64::from_bits(one_of(
                    random,
                    &[
                        0,
                        1 << 63,
                        0x7ff0 << 48,
                        0xfff0 << 48,
                        0x7ff8 << 48,
                        0xfff8_0000_0000_0001,
                        0x7ff0_0000_0000_0001,
                        1,
                        0x800f_ffff_ffff_ffff,
                        0x0010 << 48,
                        0x7fef_ffff_ffff_ffff,
                        0xffef_ffff_ffff_ffff,
                    ],
                )),
                1 => f64::from_bits(arbitrary),
                _ => moderate,
            }
            .to_ne_bytes(),
        ),
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
