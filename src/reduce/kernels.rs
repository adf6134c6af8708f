//! Loops over bytes, one for each form x element type x operator, and the table that finds them.
//!
//! The loops read and write elements as packed, alignment-free lanes: on x86-64 and aarch64 the vector instructions
//! for unaligned data cost nothing extra on aligned data, so one loop serves every alignment. The compiler vectorises
//! them; what an operator means is in `operators`, what the bytes are for is the caller's business.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use num_complex::Complex;

use super::operators::{self, Operator};
use super::{Dtype, Op};

/// Element of type `T` at any address.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, packed)]
struct Lane<T: Pod>(T);

/// The loops for one element type and operator. All slices of one call have the same length, a multiple of the
/// element's size.
#[derive(Clone, Copy)]
pub(super) struct Kernels {
    /// `dst = dst op src`
    pub(super) left: fn(&mut [u8], &[u8]),
    /// `dst = src op dst`
    pub(super) right: fn(&mut [u8], &[u8]),
    /// `dst = a op b`
    pub(super) three: fn(&mut [u8], &[u8], &[u8]),
}

fn left<T: Pod, O: Operator<T>>(dst: &mut [u8], src: &[u8]) {
    let dst: &mut [Lane<T>] = bytemuck::cast_slice_mut(dst);
    let src: &[Lane<T>] = bytemuck::cast_slice(src);
    for (d, s) in dst.iter_mut().zip(src) {
        d.0 = O::apply(d.0, s.0);
    }
}

fn right<T: Pod, O: Operator<T>>(dst: &mut [u8], src: &[u8]) {
    let dst: &mut [Lane<T>] = bytemuck::cast_slice_mut(dst);
    let src: &[Lane<T>] = bytemuck::cast_slice(src);
    for (d, s) in dst.iter_mut().zip(src) {
        d.0 = O::apply(s.0, d.0);
    }
}

fn three<T: Pod, O: Operator<T>>(dst: &mut [u8], a: &[u8], b: &[u8]) {
    let dst: &mut [Lane<T>] = bytemuck::cast_slice_mut(dst);
    let a: &[Lane<T>] = bytemuck::cast_slice(a);
    let b: &[Lane<T>] = bytemuck::cast_slice(b);
    for ((d, a), b) in dst.iter_mut().zip(a).zip(b) {
        d.0 = O::apply(a.0, b.0);
    }
}

fn kernels<T: Pod, O: Operator<T>>() -> Kernels {
    Kernels { left: left::<T, O>, right: right::<T, O>, three: three::<T, O> }
}

macro_rules! choose {
    ($t:ty, $op:expr, $($name:ident)*) => {
        match $op {
            $(Op::$name => Some(kernels::<$t, operators::$name>()),)*
            #[allow(unreachable_patterns, reason = "integers have every operator")]
            _ => None,
        }
    };
    ($t:ty, $op:expr, integer) => {
        choose!($t, $op, Sum Product Min Max LogicalAnd LogicalOr LogicalXor BitAnd BitOr BitXor)
    };
}

/// The loops for a pair, or none where the operator is not defined for the type.
pub(super) fn find(dtype: Dtype, op: Op) -> Option<Kernels> {
    macro_rules! integer {
        ($t:ty) => {
            choose!($t, op, Sum Product Min Max LogicalAnd LogicalOr LogicalXor BitAnd BitOr BitXor)
        };
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
        Dtype::F16 => choose!(f16, op, Sum Product Min Max),
        Dtype::Bf16 => choose!(bf16, op, Sum Product Min Max),
        Dtype::F32 => choose!(f32, op, Sum Product Min Max),
        Dtype::F64 => choose!(f64, op, Sum Product Min Max),
        Dtype::ComplexF32 => choose!(Complex<f32>, op, Sum Product),
        Dtype::ComplexF64 => choose!(Complex<f64>, op, Sum Product),
    }
}
