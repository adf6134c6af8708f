//! What each operator does to two elements. No loops here, and no bytes: values in, a value out.
//!
//! Every operator is commutative to the last bit, and no result depends on the width of the vectors the compiler
//! chose: nothing is fused, reassociated or approximated, and a NaN result is always the one canonical NaN (quiet,
//! positive, no payload), since which operand's payload survives an addition is otherwise up to the instruction.

use half::{bf16, f16};
use num_complex::Complex;

use super::half_float::HalfFloat;

/// An operator on elements of type `T`.
pub(super) trait Operator<T> {
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
    ($t:ty, $op:ty, |$a:ident, $b:ident| $result:expr) => {
        impl Operator<$t> for $op {
            #[inline(always)]
            fn apply($a: $t, $b: $t) -> $t {
                $result
            }
        }
    };
}

macro_rules! integers {
    ($($t:ty)*) => {$(
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

/// Float arithmetic with the module's promises about NaN and zeros.
trait Real: Copy {
    /// The value itself, or the canonical NaN for any NaN.
    fn canonical(self) -> Self;
    fn smaller(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
}

macro_rules! reals {
    ($($t:ty, $nan:literal;)*) => {$(
        impl Real for $t {
            #[inline(always)]
            fn canonical(self) -> $t {
                if self.is_nan() { <$t>::from_bits($nan) } else { self }
            }

            #[inline(always)]
            fn smaller(self, other: $t) -> $t {
                // Equal values differ at most as -0 and +0: the sign decides. `|` and `&`, not `||` and `&&`:
                // no branches.
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

        operator!($t, Sum, |a, b| (a + b).canonical());
        operator!($t, Product, |a, b| (a * b).canonical());
        operator!($t, Min, |a, b| a.smaller(b));
        operator!($t, Max, |a, b| a.larger(b));

        operator!(Complex<$t>, Sum, |a, b| {
            Complex::new((a.re + b.re).canonical(), (a.im + b.im).canonical())
        });
        // The textbook formula, each product rounded on its own. C's Annex G recovery of infinities is not part of it.
        operator!(Complex<$t>, Product, |a, b| {
            let re = a.re * b.re - a.im * b.im;
            let im = a.re * b.im + a.im * b.re;
            Complex::new(re.canonical(), im.canonical())
        });
    )*};
}
reals! {
    f32, 0x7fc0_0000;
    f64, 0x7ff8_0000_0000_0000;
}

/// Computed in `f32`, rounded once on the way back, which also makes NaN canonical.
macro_rules! halves {
    ($($t:ty)*) => {$(
        operator!($t, Sum, |a, b| <$t>::narrow(a.widen() + b.widen()));
        operator!($t, Product, |a, b| <$t>::narrow(a.widen() * b.widen()));
        operator!($t, Min, |a, b| <$t>::narrow(a.widen().smaller(b.widen())));
        operator!($t, Max, |a, b| <$t>::narrow(a.widen().larger(b.widen())));
    )*};
}
halves!(f16 bf16);
