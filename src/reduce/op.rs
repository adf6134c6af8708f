//! Operators: their names and the element types they are defined for.

use std::fmt;

use super::Dtype;

/// How two elements become one. The same set as MPI's predefined operators without MINLOC, MAXLOC and REPLACE.
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
}

impl Op {
    /// Every operator, in the order in which lists and errors name them.
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
        }
    }

    /// Whether the operator is defined for elements of this type, after MPI's table (MPI 4.1, section 6.9.2
    /// "Predefined Reduction Operations"): sum and product for every type, minimum and maximum for every type
    /// with an order (not complex), logical and bitwise operators for integers only.
    ///
    /// Fortran's LOGICAL and C's `_Bool` are reduced as the integer of their size.
    pub const fn defined_for(self, dtype: Dtype) -> bool {
        match self {
            Op::Sum | Op::Product => true,
            Op::Min | Op::Max => !dtype.is_complex(),
            Op::LogicalAnd | Op::LogicalOr | Op::LogicalXor => dtype.is_integer(),
            Op::BitAnd | Op::BitOr | Op::BitXor => dtype.is_integer(),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
