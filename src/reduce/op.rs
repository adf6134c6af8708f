//! Operators: their names and the element types they are defined for.

use super::Dtype;

hopbine_torus::named! {
    /// The operation that combines two elements: MPI's predefined operators without REPLACE. A name is that of the
    /// MPI constant without its prefix, in lower case. The list is closed, as MPI's is.
    pub enum Op {
        /// Every operator on numbers, in the order in which lists and errors name them.
        ALL: {
            /// Sum; integers wrap around.
            Sum = "sum",
            /// Product; integers wrap around.
            Product = "prod",
            /// The smaller one; NaN if either is NaN; -0 is smaller than +0.
            Min = "min",
            /// The larger one; NaN if either is NaN; +0 is larger than -0.
            Max = "max",
            /// 1 if both are nonzero, else 0.
            LogicalAnd = "land",
            /// 1 if at least one is nonzero, else 0.
            LogicalOr = "lor",
            /// 1 if exactly one is nonzero, else 0.
            LogicalXor = "lxor",
            /// Bits set in both.
            BitAnd = "band",
            /// Bits set in at least one.
            BitOr = "bor",
            /// Bits set in exactly one.
            BitXor = "bxor",
        }
        /// The operators on pairs of a value and its location.
        LOCATIONS: {
            /// The pair with the smaller value; of equal values, the pair with the lower location. A NaN value takes
            /// precedence; -0 equals +0, and the result is +0.
            MinLoc = "minloc",
            /// The pair with the larger value; otherwise as `MinLoc`.
            MaxLoc = "maxloc",
        }
    }
}

impl Op {
    /// Whether the operator is defined for elements of this type, after MPI's table (MPI 4.1, section 6.9.2
    /// "Predefined Reduction Operations"): sum and product for every type but pairs, minimum and maximum for every
    /// ordered type but pairs (complex types have no order), logical and bitwise operators for integers only,
    /// `MinLoc` and `MaxLoc` for pairs only.
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
