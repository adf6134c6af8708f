//! The operators on two elements: functions of values, without loops or bytes.
//!
//! Every operator is commutative to the last bit, and no result depends on the width of the vectors the compiler
//! chose: nothing is fused, reassociated or approximated. A NaN result always becomes the canonical NaN (quiet,
//! positive, no payload), since otherwise the instruction decides which operand's payload survives an addition.
//! Correcting every sum on its own costs a fifth of the speed and more, so the loops correct non-canonical NaNs, a
//! block of results at once.

use std::ops::BitOrAssign;

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::Complex;

use super::half_float::HalfFloat;

/// What a loop needs to know of NaNs in an element. Integers have none, and 16-bit floats are canonical already.
pub(super) trait Element: Pod {
    /// A truth value for loops that look for NaNs. For floats it is as wide as they are: without an A64FX as its
    /// target, the compiler makes no scalable vectors of loops with a `bool`.
    type Flag: Copy + Default + PartialEq + From<bool> + BitOrAssign;

    /// Whether the element holds a NaN, canonical or not.
    #[inline(always)]
    fn has_nan(self) -> bool {
        false
    }

    /// The element with each NaN in it made canonical.
    #[inline(always)]
    fn canonical(self) -> Self {
        self
    }
}

/// An operator on elements of type `T`.
pub(super) trait Operator<T> {
    /// Whether `apply` may yield a NaN that is not canonical, which the loop must then correct.
    const NONCANONICAL_NAN: bool = false;

    fn apply(a: T, b: T) -> T;
}

pub(super) struct Sum;
pub(super) struct Product;
pub(super) struct Min;
pub(super) struct Max;
pub(super) struct LogicalAnd;
pub(super) struct LogicalOr;
pub(super) struct LogicalXor;
pub(super) struct BitAnd;
pub(super) struct BitOr;
pub(super) struct BitXor;

macro_rules! operator {
    ($t:ty, $op:ty, |$a:ident, $b:ident| $result:expr $(, noncanonical_nan: $noncanonical:literal)?) => {
        impl Operator<$t> for $op {
            $(const NONCANONICAL_NAN: bool = $noncanonical;)?

            #[inline(always)]
            fn apply($a: $t, $b: $t) -> $t {
                $result
            }
        }
    };
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Element for $t {
            type Flag = bool;
        }
        operator!($t, Sum, |a, b| a.wrapping_add(b));
        operator!($t, Product, |a, b| a.wrapping_mul(b));
        operator!($t, Min, |a, b| a.min(b));
        operator!($t, Max, |a, b| a.max(b));
        operator!($t, LogicalAnd, |a, b| <$t>::from((a != 0) & (b != 0)));
        operator!($t, LogicalOr, |a, b| <$t>::from((a | b) != 0));
        operator!($t, LogicalXor, |a, b| <$t>::from((a != 0) ^ (b != 0)));
        operator!($t, BitAnd, |a, b| a & b);
        operator!($t, BitOr, |a, b| a | b);
        operator!($t, BitXor, |a, b| a ^ b);
    )*};
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

/// Minimum and maximum of floats: NaN takes precedence over all numbers, and -0 is before +0.
trait Real: Copy {
    fn smaller(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
}

macro_rules! reals {
    ($($t:ty, $bits:ty, $nan:literal;)*) => {$(
        impl Element for $t {
            type Flag = $bits;

            #[inline(always)]
            fn has_nan(self) -> bool {
                self.is_nan()
            }

            #[inline(always)]
            fn canonical(self) -> $t {
                if self.is_nan() { <$t>::from_bits($nan) } else { self }
            }
        }

        impl Element for Complex<$t> {
            type Flag = $bits;

            #[inline(always)]
            fn has_nan(self) -> bool {
                self.re.is_nan() | self.im.is_nan()
            }

            #[inline(always)]
            fn canonical(self) -> Complex<$t> {
                Complex::new(self.re.canonical(), self.im.canonical())
            }
        }

        impl Real for $t {
            #[inline(always)]
            fn smaller(self, other: $t) -> $t {
                // Equal values differ at most as -0 and +0: then the sign decides. `|` and `&` instead of `||` and
                // `&&` avoid branches.
                let first = (self < other) | ((self == other) & self.is_sign_negative());
                let smaller = if first { self } else { other };
                if self.is_nan() | other.is_nan() { <$t>::from_bits($nan) } else { smaller }
            }

            #[inline(always)]
            fn larger(self, other: $t) -> $t {
                let first = (self > other) | ((self == other) & self.is_sign_positive());
                let larger = if first { self } else { other };
                if self.is_nan() | other.is_nan() { <$t>::from_bits($nan) } else { larger }
            }
        }

        operator!($t, Sum, |a, b| a + b, noncanonical_nan: true);
        operator!($t, Product, |a, b| a * b, noncanonical_nan: true);
        operator!($t, Min, |a, b| a.smaller(b));
        operator!($t, Max, |a, b| a.larger(b));

        // The textbook formula, each product rounded on its own, without the recovery of infinities of C's Annex G.
        // The complex sum is the sum of the parts, computed as a sum of twice as many reals.
        operator!(Complex<$t>, Product, |a, b| {
            Complex::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
        }, noncanonical_nan: true);
    )*};
}
reals! {
    f32, u32, 0x7fc0_0000;
    f64, u64, 0x7ff8_0000_0000_0000;
}

/// 16-bit floats: computed in `f32` and rounded once on the way back, which also makes NaN canonical.
macro_rules! halves {
    ($($t:ty)*) => {$(
        impl Element for $t {
            type Flag = bool;
        }
        operator!($t, Sum, |a, b| <$t>::narrow(a.widen() + b.widen()));
        operator!($t, Product, |a, b| <$t>::narrow(a.widen() * b.widen()));
        operator!($t, Min, |a, b| <$t>::narrow(a.widen().smaller(b.widen())));
        operator!($t, Max, |a, b| <$t>::narrow(a.widen().larger(b.widen())));
    )*};
}
halves!(f16 bf16);
