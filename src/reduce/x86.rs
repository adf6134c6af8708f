//! The loops in AVX2 and F16C. Measured reasons: 16-bit floats are fifteen times as fast if the processor converts
//! them, and sums of vectors larger than the cache come a tenth nearer to the memory's speed.

use std::arch::x86_64::{
    __m128i, __m256, _MM_FROUND_TO_NEAREST_INT, _mm256_cvtph_ps, _mm256_cvtps_ph,
};

use half::f16;

use super::kernels::{Isa, Kernels};
use super::loops::{self, block_lanes};
use super::operators::{Element, Operator};

/// Proof that this processor has AVX2 and F16C.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    pub(super) fn detect() -> Option<Avx2> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c")).then_some(Avx2(()))
    }
}

impl Isa for Avx2 {
    fn kernels<T: Element, O: Operator<T>, const B: usize>(self) -> Kernels {
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe { Kernels::new(two::<T, O, B>, three::<T, O, B>) }
    }

    fn f16_kernels<O: Operator<f16> + Operator<f32>>(self) -> Kernels {
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe { Kernels::new(f16_two::<O>, f16_three::<O>) }
    }
}

#[target_feature(enable = "avx2,f16c")]
fn two<T: Element, O: Operator<T>, const B: usize>(dst: &mut [u8], src: &[u8]) {
    loops::two::<T, O, B>(dst, src);
}

#[target_feature(enable = "avx2,f16c")]
fn three<T: Element, O: Operator<T>, const B: usize>(dst: &mut [u8], a: &[u8], b: &[u8]) {
    loops::three::<T, O, B>(dst, a, b);
}

/// Eight f16 as stored in memory, at any address.
type Eight = [u8; 16];

const F16_LANES: usize = block_lanes::<f16>();

#[target_feature(enable = "avx2,f16c")]
fn f16_two<O: Operator<f16> + Operator<f32>>(dst: &mut [u8], src: &[u8]) {
    let (dst_eights, dst_rest) = dst.as_chunks_mut();
    let (src_eights, src_rest) = src.as_chunks();
    for (d, s) in dst_eights.iter_mut().zip(src_eights) {
        *d = f16_eight::<O>(d, s);
    }
    loops::two::<f16, O, F16_LANES>(dst_rest, src_rest);
}

#[target_feature(enable = "avx2,f16c")]
fn f16_three<O: Operator<f16> + Operator<f32>>(dst: &mut [u8], a: &[u8], b: &[u8]) {
    let (dst_eights, dst_rest) = dst.as_chunks_mut();
    let (a_eights, a_rest) = a.as_chunks();
    let (b_eights, b_rest) = b.as_chunks();
    for ((d, a), b) in dst_eights.iter_mut().zip(a_eights).zip(b_eights) {
        *d = f16_eight::<O>(a, b);
    }
    loops::three::<f16, O, F16_LANES>(dst_rest, a_rest, b_rest);
}

/// Eight results, rounded to nearest, ties to even: the same bits as `HalfFloat::narrow`.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn f16_eight<O: Operator<f32>>(a: &Eight, b: &Eight) -> Eight {
    let a = widen_eight(a);
    let b = widen_eight(b);
    let mut results = [0.0_f32; 8];
    for i in 0..8 {
        results[i] = O::apply(a[i], b[i]).canonical();
    }
    let results: __m256 = bytemuck::cast(results);
    bytemuck::cast(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(results))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn widen_eight(halves: &Eight) -> [f32; 8] {
    bytemuck::cast::<__m256, _>(_mm256_cvtph_ps(bytemuck::cast::<Eight, __m128i>(*halves)))
}
