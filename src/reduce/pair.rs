//! Pairs of a value and its location.

use bytemuck::{Pod, Zeroable};

/// A value and its location, for [`Op::MinLoc`](super::Op::MinLoc) and [`Op::MaxLoc`](super::Op::MaxLoc).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Pair<V, L> {
    /// The value.
    pub value: V,
    /// The location of the value; of pairs with equal values the one with the lowest location is selected.
    pub location: L,
}

macro_rules! pairs {
    ($($value:ident $location:ident;)*) => {$(
        // SAFETY: two numbers of one size, so that there is no padding.
        unsafe impl Zeroable for Pair<$value, $location> {}
        // SAFETY: as above; any bits are valid numbers.
        unsafe impl Pod for Pair<$value, $location> {}
        const _: () = assert!(size_of::<$value>() == size_of::<$location>());
    )*};
}
pairs! {
    i32 i32;
    i64 i64;
    f32 f32;
    f64 f64;
    f32 i32;
}
