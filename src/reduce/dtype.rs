//! Element types: their sizes, their names, and the Rust types they stand for.

use half::{bf16, f16};
use num_complex::Complex;

use super::pair::Pair;

hopbine_torus::named! {
    /// The type of one element of a vector.
    ///
    /// Elements are held in the machine's own byte order, as Rust, C and Fortran hold them.
    ///
    /// A name is a letter for the kind (`i`, `u`, `f`, `bf`, `c` for complex) and the bits of a number. For the
    /// complex types these are the bits of *one part*: `c32` is two `f32`, which Fortran calls `complex(4)` and
    /// NumPy `complex64`.
    ///
    /// The list is closed within a minor version: a program that matches on it learns of a new type when it is
    /// compiled.
    pub enum Dtype {
        /// Every element type that is a number, in the order in which lists and errors name them.
        ALL: {
            /// Signed integer of 8 bits.
            I8 = "i8",
            /// Signed integer of 16 bits.
            I16 = "i16",
            /// Signed integer of 32 bits.
            I32 = "i32",
            /// Signed integer of 64 bits.
            I64 = "i64",
            /// Unsigned integer of 8 bits.
            U8 = "u8",
            /// Unsigned integer of 16 bits.
            U16 = "u16",
            /// Unsigned integer of 32 bits.
            U32 = "u32",
            /// Unsigned integer of 64 bits.
            U64 = "u64",
            /// IEEE 754 binary16: 5 bits of exponent, 10 of fraction.
            F16 = "f16",
            /// bfloat16, the upper half of a binary32: 8 bits of exponent, 7 of fraction.
            Bf16 = "bf16",
            /// IEEE 754 binary32, C's `float`, Fortran's `real(4)`.
            F32 = "f32",
            /// IEEE 754 binary64, C's `double`, Fortran's `real(8)`.
            F64 = "f64",
            /// Two `f32`, real part first: 8 bytes, Fortran's `complex(4)`.
            ComplexF32 = "c32",
            /// Two `f64`, real part first: 16 bytes, Fortran's `complex(8)`.
            ComplexF64 = "c64",
        }
        /// The pairs of a value and its location, for [`Op::MinLoc`](super::Op::MinLoc) and
        /// [`Op::MaxLoc`](super::Op::MaxLoc).
        PAIRS: {
            /// A value and its location, both `i32`: MPI's `MPI_2INT`, `MPI_2INTEGER`.
            PairI32 = "i32i32",
            /// A value and its location, both `i64`.
            PairI64 = "i64i64",
            /// A value and its location, both `f32`: MPI's `MPI_2REAL`.
            PairF32 = "f32f32",
            /// A value and its location, both `f64`: MPI's `MPI_2DOUBLE_PRECISION`.
            PairF64 = "f64f64",
            /// A value, `f32`, and its location, `i32`: MPI's `MPI_FLOAT_INT`.
            PairF32I32 = "f32i32",
        }
    }
}

impl Dtype {
    /// Bytes of one element.
    pub const fn size_bytes(self) -> usize {
        match self {
            Dtype::I8 | Dtype::U8 => 1,
            Dtype::I16 | Dtype::U16 | Dtype::F16 | Dtype::Bf16 => 2,
            Dtype::I32 | Dtype::U32 | Dtype::F32 => 4,
            Dtype::I64 | Dtype::U64 | Dtype::F64 | Dtype::ComplexF32 => 8,
            Dtype::ComplexF64 => 16,
            Dtype::PairI32 | Dtype::PairF32 | Dtype::PairF32I32 => 8,
            Dtype::PairI64 | Dtype::PairF64 => 16,
        }
    }

    /// Whether this is an integer type, signed or unsigned.
    pub const fn is_integer(self) -> bool {
        use Dtype::*;
        matches!(self, I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64)
    }

    /// The types of value and location, if this is a pair of them.
    pub const fn pair(self) -> Option<(Dtype, Dtype)> {
        match self {
            Dtype::PairI32 => Some((Dtype::I32, Dtype::I32)),
            Dtype::PairI64 => Some((Dtype::I64, Dtype::I64)),
            Dtype::PairF32 => Some((Dtype::F32, Dtype::F32)),
            Dtype::PairF64 => Some((Dtype::F64, Dtype::F64)),
            Dtype::PairF32I32 => Some((Dtype::F32, Dtype::I32)),
            _ => None,
        }
    }

    /// Whether this is a complex type, which has no order.
    pub const fn is_complex(self) -> bool {
        matches!(self, Dtype::ComplexF32 | Dtype::ComplexF64)
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type whose values can be the elements of a vector. Sealed: the kernels exist for these types only.
pub trait Datatype: bytemuck::Pod + Send + Sync + sealed::Sealed {
    /// The element type as a value.
    const DTYPE: Dtype;
}

macro_rules! datatypes {
    ($($rust:ty => $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Datatype for $rust {
            const DTYPE: Dtype = Dtype::$dtype;
        }
        const _: () = assert!(Dtype::$dtype.size_bytes() == size_of::<$rust>());
    )*};
}

datatypes! {
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f16 => F16, bf16 => Bf16, f32 => F32, f64 => F64,
    Complex<f32> => ComplexF32, Complex<f64> => ComplexF64,
    Pair<i32, i32> => PairI32, Pair<i64, i64> => PairI64, Pair<f32, f32> => PairF32,
    Pair<f64, f64> => PairF64, Pair<f32, i32> => PairF32I32,
}
