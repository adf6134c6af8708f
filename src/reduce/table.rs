//! The table of loops: selects the loops for an element type and an operator on this processor.
//!
//! On x86-64 every loop is compiled twice: for the instructions of all such processors, and for AVX2 and F16C (module
//! `x86`). On aarch64 it is compiled for NEON and for SVE (module `sve`), of which the loops over pairs use neither: the
//! compiler makes scalar code of them. All versions yield the same bits. Other targets have one version, for the
//! target's baseline.

use half::bf16;
use num_complex::Complex;

use super::kernels::{Baseline, Isa, Kernels};
use super::locations::{MaxLoc, MinLoc};
use super::loops::block_lanes;
use super::operators;
use super::pair::Pair;
#[cfg(target_arch = "aarch64")]
use super::sve::Sve;
#[cfg(target_arch = "x86_64")]
use super::x86::Avx2;
use super::{Dtype, Op};

/// The loops for this type and operator on this processor; `None` if the operator is not defined for the type.
pub(super) fn find(dtype: Dtype, op: Op) -> Option<Kernels> {
    #[cfg(target_arch = "x86_64")]
    if let Some(isa) = Avx2::detect() {
        return find_in(isa, dtype, op);
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(isa) = Sve::detect() {
        return find_in(isa, dtype, op);
    }
    find_in(Baseline, dtype, op)
}

/// The loops for this type and operator in one version; `None` if the operator is not defined for the type.
pub(super) fn find_in<V: Isa>(isa: V, dtype: Dtype, op: Op) -> Option<Kernels> {
    macro_rules! select {
        ($t:ty: $($name:ident)*) => {
            match op {
                $(Op::$name => isa.kernels::<$t, operators::$name, { block_lanes::<$t>() }>(),)*
                _ => return None,
            }
        };
    }
    macro_rules! integer {
        ($t:ty) => {
            match op {
                Op::Sum | Op::Product | Op::Min | Op::Max => select!($t: Sum Product Min Max),
                Op::LogicalAnd | Op::LogicalOr | Op::LogicalXor => select!($t: LogicalAnd LogicalOr LogicalXor),
                Op::BitAnd | Op::BitOr | Op::BitXor => select!($t: BitAnd BitOr BitXor),
                Op::MinLoc | Op::MaxLoc => return None,
            }
        };
    }
    macro_rules! pair {
        ($value:ident, $location:ident) => {
            match op {
                Op::MinLoc => isa.kernels::<Pair<$value, $location>, MinLoc, { block_lanes::<Pair<$value, $location>>() }>(),
                Op::MaxLoc => isa.kernels::<Pair<$value, $location>, MaxLoc, { block_lanes::<Pair<$value, $location>>() }>(),
                _ => return None,
            }
        };
    }
    let kernels = match dtype {
        Dtype::I8 => integer!(i8),
        Dtype::I16 => integer!(i16),
        Dtype::I32 => integer!(i32),
        Dtype::I64 => integer!(i64),
        Dtype::U8 => integer!(u8),
        Dtype::U16 => integer!(u16),
        Dtype::U32 => integer!(u32),
        Dtype::U64 => integer!(u64),
        Dtype::F16 => match op {
            Op::Sum => isa.f16_kernels::<operators::Sum>(),
            Op::Product => isa.f16_kernels::<operators::Product>(),
            Op::Min => isa.f16_kernels::<operators::Min>(),
            Op::Max => isa.f16_kernels::<operators::Max>(),
            _ => return None,
        },
        Dtype::Bf16 => select!(bf16: Sum Product Min Max),
        Dtype::F32 => select!(f32: Sum Product Min Max),
        Dtype::F64 => select!(f64: Sum Product Min Max),
        // A complex sum is a real sum of twice as many elements.
        Dtype::ComplexF32 if op == Op::Sum => select!(f32: Sum),
        Dtype::ComplexF64 if op == Op::Sum => select!(f64: Sum),
        Dtype::ComplexF32 => select!(Complex<f32>: Product),
        Dtype::ComplexF64 => select!(Complex<f64>: Product),
        Dtype::PairI32 => pair!(i32, i32),
        Dtype::PairI64 => pair!(i64, i64),
        Dtype::PairF32 => pair!(f32, f32),
        Dtype::PairF64 => pair!(f64, f64),
        Dtype::PairF32I32 => pair!(f32, i32),
    };
    Some(kernels)
}
