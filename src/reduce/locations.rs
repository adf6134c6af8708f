//! The operators on pairs of a value and its location, by the orders of [`order`](super::order).

use super::Dtype;
use super::operators::{Element, Operator};
use super::order::{Order, of_pair};
use super::pair::Pair;

pub(super) struct MinLoc;
pub(super) struct MaxLoc;

/// A number of a pair, as its bits.
pub(super) trait PairNumber: bytemuck::Pod {
    const DTYPE: Dtype;

    fn bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;
}

macro_rules! numbers {
    ($($t:ident $dtype:ident: |$number:ident| $bits:expr, |$of:ident| $made:expr;)*) => {$(
        impl PairNumber for $t {
            const DTYPE: Dtype = Dtype::$dtype;

            #[inline(always)]
            fn bits(self) -> u64 {
                let $number = self;
                $bits
            }

            #[inline(always)]
            fn of_bits($of: u64) -> Self {
                $made
            }
        }
    )*};
}
numbers! {
    i32 I32: |number| u64::from(number as u32), |bits| bits as u32 as i32;
    i64 I64: |number| number as u64, |bits| bits as i64;
    f32 F32: |number| u64::from(number.to_bits()), |bits| f32::from_bits(bits as u32);
    f64 F64: |number| number.to_bits(), |bits| f64::from_bits(bits);
}

impl<V: PairNumber, L: PairNumber> Element for Pair<V, L>
where
    Pair<V, L>: bytemuck::Pod,
{
    type Flag = bool;
}

#[inline(always)]
fn select<V: PairNumber, L: PairNumber>(a: Pair<V, L>, b: Pair<V, L>, is_min: bool) -> Pair<V, L> {
    let (values, locations): (Order, Order) = of_pair(V::DTYPE, L::DTYPE, is_min);
    let keys = |pair: Pair<V, L>| {
        // The sort key of the location is inverted, so that of equal values the lowest location has the maximum.
        (values.sort_key(pair.value.bits()), !locations.sort_key(pair.location.bits()))
    };
    let (value, location) = keys(a).max(keys(b));
    Pair {
        value: V::of_bits(values.of_sort_key(value)),
        location: L::of_bits(locations.of_sort_key(!location)),
    }
}

impl<V: PairNumber, L: PairNumber> Operator<Pair<V, L>> for MinLoc {
    #[inline(always)]
    fn apply(a: Pair<V, L>, b: Pair<V, L>) -> Pair<V, L> {
        select(a, b, true)
    }
}

impl<V: PairNumber, L: PairNumber> Operator<Pair<V, L>> for MaxLoc {
    #[inline(always)]
    fn apply(a: Pair<V, L>, b: Pair<V, L>) -> Pair<V, L> {
        select(a, b, false)
    }
}
