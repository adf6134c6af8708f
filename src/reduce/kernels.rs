//! The loops for one element type and operator, and their versions: one for each set of vector instructions.

use half::f16;

use super::loops::{self, block_lanes};
use super::operators::{Element, Operator};

type TwoAddress = unsafe fn(&mut [u8], &[u8]);
type ThreeAddress = unsafe fn(&mut [u8], &[u8], &[u8]);

/// The loops for one element type and operator. All slices of one call have the same length, a multiple of the
/// element's size.
#[derive(Clone, Copy)]
pub(super) struct Kernels {
    two: TwoAddress,
    three: ThreeAddress,
}

impl Kernels {
    /// # Safety
    /// The processor must have the instructions that these functions were compiled for.
    pub(super) unsafe fn new(two: TwoAddress, three: ThreeAddress) -> Kernels {
        Kernels { two, three }
    }

    /// `dst = dst op src`
    pub(super) fn two(&self, dst: &mut [u8], src: &[u8]) {
        // SAFETY: the promise of `new`; the loops have no other requirement.
        unsafe { (self.two)(dst, src) }
    }

    /// `dst = a op b`
    pub(super) fn three(&self, dst: &mut [u8], a: &[u8], b: &[u8]) {
        // SAFETY: the promise of `new`; the loops have no other requirement.
        unsafe { (self.three)(dst, a, b) }
    }
}

/// The loops compiled for one set of vector instructions. A value of such a type exists only on a processor that has
/// these instructions.
pub(super) trait Isa: Copy {
    /// The loops for `T` and `O`, where `B` is `block_lanes::<T>()`.
    fn kernels<T: Element, O: Operator<T>, const B: usize>(self) -> Kernels;
    /// The loops for f16, which are computed in f32.
    fn f16_kernels<O: Operator<f16> + Operator<f32>>(self) -> Kernels;
}

/// The instructions that every processor of the target has.
#[derive(Clone, Copy)]
pub(super) struct Baseline;

impl Isa for Baseline {
    fn kernels<T: Element, O: Operator<T>, const B: usize>(self) -> Kernels {
        // SAFETY: these are compiled for the target's baseline.
        unsafe { Kernels::new(loops::two::<T, O, B>, loops::three::<T, O, B>) }
    }

    fn f16_kernels<O: Operator<f16> + Operator<f32>>(self) -> Kernels {
        self.kernels::<f16, O, { block_lanes::<f16>() }>()
    }
}
