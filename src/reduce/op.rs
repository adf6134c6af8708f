//! Operators: their names and the element types they are defined for.

use std::fmt;

use super::Dtype;

/// How two elements become one. The same set as MPI's predefined operators without REPLACE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Sum; integers wrap around.
    Sum,
    /// Product; integers wrap around.
    Product,
    /// The smaller one; NaN if either is NaN; -0 is smaller than +0.
    Min,
    /// The larger one; NaN if either is NaN; +0 is larger than -0.
    Max,
    /// 1 if both are nonzero, else 0.
    LogicalAnd,
    /// 1 if at least one is nonzero, else 0.
    LogicalOr,
    /// 1 if exactly one is nonzero, else 0.
    LogicalXor,
    /// Bits set in both.
    BitAnd,
    /// Bits set in at least one.
    BitOr,
    /// Bits set in exactly one.
    BitXor,
    /// Of pairs the one with the smaller value; of equal values, with the lower location. A value that is NaN
    /// wins; -0 equals +0, which is the result.
    MinLoc,
    /// Of pairs the one with the larger value; the rest as with `MinLoc`.
    MaxLoc,
}

impl Op {
    /// Every operator on numbers, in the order in which lists and errors name them.
    pub const ALL: [Op; 10] = [
        Op::Sum,
        Op::Product,
        Op::Min,
        Op::Max,
        Op::LogicalAnd,
        Op::LogicalOr,
        Op::LogicalXor,
        Op::BitAnd,
        Op::BitOr,
        Op::BitXor,
    ];

    /// The operators on pairs of a value and its location.
    pub const LOCATIONS: [Op; 2] = [Op::MinLoc, Op::MaxLoc];

    /// The name in text: that of the MPI constant without its prefix, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Op::Sum => "sum",
            Op::Product => "prod",
            Op::Min => "min",
            Op::Max => "max",
            Op::LogicalAnd => "land",
            Op::LogicalOr => "lor",
            Op::LogicalXor => "lxor",
            Op::BitAnd => "band",
            Op::BitOr => "bor",
            Op::BitXor => "bxor",
            Op::MinLoc => "minloc",
            Op::MaxLoc => "maxloc",
        }
    }

    /// Whether the operator is defined for elements of this type, after MPI's table (MPI 4.1, section 6.9.2
    /// "Predefined Reduction Operations"): sum and product for every type, minimum and maximum for every type
    /// with an order (not complex), logical and bitwise operators for integers only, those of locations for pairs only.
    ///
    /// Fortran's LOGICAL and C's `_Bool` are reduced as the integer of their size.
    pub const fn defined_for(self, dtype: Dtype) -> bool {
        if dtype.pair().is_some() {
            return matches!(self, Op::MinLoc | Op::MaxLoc);
        }
        match self {
            Op::Sum | Op::Product => true,
            Op::Min | Op::Max => !dtype.is_complex(),
            Op::LogicalAnd | Op::LogicalOr | Op::LogicalXor => dtype.is_integer(),
            Op::BitAnd | Op::BitOr | Op::BitXor => dtype.is_integer(),
            Op::MinLoc | Op::MaxLoc => false,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
