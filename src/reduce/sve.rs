//! The loops in SVE, whose vectors are as long as the processor's: 512 bits on an A64FX, where NEON's have 128 bits.
//! The compiler makes scalable vectors of plain loops over elements, but not of loops over blocks of fixed size. So
//! these loops check for NaNs while they compute a segment of any length, and correct the NaNs, if any, in a second
//! pass. The arithmetic is that of the other versions, element by element.

use bytemuck::cast_slice;
use half::f16;

use super::kernels::{Isa, Kernels};
use super::loops::{self, Unaligned, block_lanes};
use super::operators::{Element, Operator};

/// Elements that are checked for NaNs at once: the second pass finds them in the first-level cache.
const SEGMENT: usize = 1024;

/// Proof that this processor has SVE.
#[derive(Clone, Copy)]
pub(super) struct Sve(());

impl Sve {
    pub(super) fn detect() -> Option<Sve> {
        std::arch::is_aarch64_feature_detected!("sve").then_some(Sve(()))
    }
}

impl Isa for Sve {
    fn kernels<T: Element, O: Operator<T>, const B: usize>(self) -> Kernels {
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe { Kernels::new(two::<T, O, B>, three::<T, O, B>) }
    }

    fn f16_kernels<O: Operator<f16> + Operator<f32>>(self) -> Kernels {
        self.kernels::<f16, O, { block_lanes::<f16>() }>()
    }
}

#[target_feature(enable = "sve")]
fn two<T: Element, O: Operator<T>, const B: usize>(dst: &mut [u8], src: &[u8]) {
    if !O::NONCANONICAL_NAN {
        return loops::two::<T, O, B>(dst, src);
    }
    let (dst, src): (&mut [Unaligned<T>], &[Unaligned<T>]) =
        (bytemuck::cast_slice_mut(dst), cast_slice(src));
    for (dst, src) in dst.chunks_mut(SEGMENT).zip(src.chunks(SEGMENT)) {
        let mut nan = T::Flag::default();
        for (d, s) in dst.iter_mut().zip(src) {
            let result = O::apply(d.0, s.0);
            nan |= result.has_nan().into();
            d.0 = result;
        }
        if nan != T::Flag::default() {
            loops::make_canonical(dst);
        }
    }
}

#[target_feature(enable = "sve")]
fn three<T: Element, O: Operator<T>, const B: usize>(dst: &mut [u8], a: &[u8], b: &[u8]) {
    if !O::NONCANONICAL_NAN {
        return loops::three::<T, O, B>(dst, a, b);
    }
    let dst: &mut [Unaligned<T>] = bytemuck::cast_slice_mut(dst);
    let (a, b): (&[Unaligned<T>], &[Unaligned<T>]) = (cast_slice(a), cast_slice(b));
    let operands = a.chunks(SEGMENT).zip(b.chunks(SEGMENT));
    for (dst, (a, b)) in dst.chunks_mut(SEGMENT).zip(operands) {
        let mut nan = T::Flag::default();
        for ((d, a), b) in dst.iter_mut().zip(a).zip(b) {
            let result = O::apply(a.0, b.0);
            nan |= result.has_nan().into();
            d.0 = result;
        }
        if nan != T::Flag::default() {
            loops::make_canonical(dst);
        }
    }
}
