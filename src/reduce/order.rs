//! The orders of minimum and maximum: maps numbers to sort keys, unsigned integers of the numbers' width. -0 is before
//! +0. NaN has the highest key in both orders, since it is the result of both.

use super::Dtype;

/// The order of a type's numbers, inverted for a minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    kind: Kind,
    /// The highest bit of a number.
    sign: u64,
    is_inverted: bool,
    /// Whether -0 counts as +0.
    has_one_zero: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Signed,
    /// IEEE 754, with the bits of infinity and of the canonical NaN.
    Float {
        infinity: u64,
        nan: u64,
    },
}

impl Order {
    /// The order of a type of ordered numbers, from the lowest up or inverted.
    #[inline(always)]
    pub(super) fn of(dtype: Dtype, is_inverted: bool) -> Order {
        let float = |width: u32, fraction: u32| {
            let infinity = ((1 << (width - 1)) - 1) >> fraction << fraction;
            Kind::Float { infinity, nan: infinity | 1 << (fraction - 1) }
        };
        let kind = match dtype {
            Dtype::F16 => float(16, 10),
            Dtype::Bf16 => float(16, 7),
            Dtype::F32 => float(32, 23),
            Dtype::F64 => float(64, 52),
            Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64 => Kind::Signed,
            Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => Kind::Unsigned,
            _ => unreachable!("{dtype} is no number"),
        };
        Order { kind, sign: 1 << (8 * dtype.size_bytes() - 1), is_inverted, has_one_zero: false }
    }

    /// The mask of a number's bits.
    fn all(self) -> u64 {
        self.sign | (self.sign - 1)
    }

    /// The sort key of a number that is given by its bits.
    #[inline(always)]
    pub(super) fn sort_key(self, bits: u64) -> u64 {
        let is_zero = self.has_one_zero && bits == self.sign;
        let upright = match self.kind {
            Kind::Float { .. } if is_zero => self.sign,
            Kind::Unsigned => bits,
            Kind::Signed => bits ^ self.sign,
            // NaN: no infinity has this key, whether inverted or not.
            Kind::Float { infinity, .. } if bits & !self.sign > infinity => return self.all(),
            // Negative numbers are lower the larger their magnitude.
            Kind::Float { .. } if bits & self.sign != 0 => bits ^ self.all(),
            Kind::Float { .. } => bits | self.sign,
        };
        if self.is_inverted { upright ^ self.all() } else { upright }
    }

    /// The bits of the number with a sort key.
    #[inline(always)]
    pub(super) fn of_sort_key(self, key: u64) -> u64 {
        let upright = if self.is_inverted { key ^ self.all() } else { key };
        match self.kind {
            Kind::Unsigned => upright,
            Kind::Signed => upright ^ self.sign,
            Kind::Float { nan, .. } if key == self.all() => nan,
            Kind::Float { .. } if upright & self.sign == 0 => upright ^ self.all(),
            Kind::Float { .. } => upright ^ self.sign,
        }
    }
}

/// The orders of the values and the locations of pairs. The result is the pair with the last value, and of such pairs
/// the one with the lowest location.
#[inline(always)]
pub(super) fn of_pair(value: Dtype, location: Dtype, is_min: bool) -> (Order, Order) {
    let values = Order { has_one_zero: true, ..Order::of(value, is_min) };
    (values, Order::of(location, false))
}
