//! Places of numbers in the order that minimum and maximum have, as unsigned integers of the numbers' width: -0 before
//! +0, and NaN, which wins in both, last in both.

use super::Dtype;

/// The order of the numbers of a type, or for a minimum its inverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    kind: Kind,
    /// The highest bit of a number.
    sign: u64,
    is_inverted: bool,
    /// -0 is taken for +0.
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
    /// That of a type which has one, from the lowest up or inverted.
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

    /// All bits of a number.
    fn all(self) -> u64 {
        self.sign | (self.sign - 1)
    }

    /// A number's place, from its bits.
    #[inline(always)]
    pub(super) fn place_of(self, bits: u64) -> u64 {
        let is_zero = self.has_one_zero && bits == self.sign;
        let upright = match self.kind {
            Kind::Float { .. } if is_zero => self.sign,
            Kind::Unsigned => bits,
            Kind::Signed => bits ^ self.sign,
            // No infinity, inverted or not, has this place.
            Kind::Float { infinity, .. } if bits & !self.sign > infinity => return self.all(),
            // The negative ones are the longer the lower.
            Kind::Float { .. } if bits & self.sign != 0 => bits ^ self.all(),
            Kind::Float { .. } => bits | self.sign,
        };
        if self.is_inverted { upright ^ self.all() } else { upright }
    }

    /// The bits of the number at a place.
    #[inline(always)]
    pub(super) fn number_at(self, place: u64) -> u64 {
        let upright = if self.is_inverted { place ^ self.all() } else { place };
        match self.kind {
            Kind::Unsigned => upright,
            Kind::Signed => upright ^ self.sign,
            Kind::Float { nan, .. } if place == self.all() => nan,
            Kind::Float { .. } if upright & self.sign == 0 => upright ^ self.all(),
            Kind::Float { .. } => upright ^ self.sign,
        }
    }
}

/// The orders of the values and of the locations of pairs: the furthest value is sought, and of those the lowest location.
#[inline(always)]
pub(super) fn of_pair(value: Dtype, location: Dtype, is_min: bool) -> (Order, Order) {
    let values = Order { has_one_zero: true, ..Order::of(value, is_min) };
    (values, Order::of(location, false))
}
