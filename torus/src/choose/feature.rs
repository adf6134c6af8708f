//! Features of shapes: the numbers by which tables select rules, and distances between their values.

use std::fmt;

use crate::geometry::{AxisLink, Shape};

crate::named! {
    /// A number by which classes distinguish shapes.
    #[non_exhaustive]
    pub enum Feature {
        /// Ranks.
        Ranks = "ranks",
        /// Nodes: the ranks over the ranks of each node.
        Nodes = "nodes",
        /// Ranks that share each node.
        PerNode = "per_node",
        /// Dimensions between nodes with more than one coordinate, at least 1.
        Dims = "dims",
        /// The size of the longest dimension; the ranks of a node count as a dimension.
        Widest = "widest",
        /// The largest prime factor of the dimensions between nodes; 1 if all have one coordinate, 2 if all sizes are
        /// powers of two.
        Prime = "prime",
    }
}

impl Feature {
    /// Weight of a doubling of the feature in the distance of a shape from a class. Dimensions and the ranks of a
    /// node change the structure of the messages; a larger number of the same nodes only changes how many there are.
    const fn weight(self) -> u64 {
        match self {
            Feature::Dims | Feature::PerNode => 4,
            Feature::Ranks | Feature::Nodes | Feature::Widest | Feature::Prime => 1,
        }
    }

    fn of(self, shape: &Shape) -> u32 {
        let linked = || shape.axes().iter().filter(|axis| axis.link != AxisLink::Node);
        match self {
            Feature::Ranks => shape.n_ranks(),
            Feature::Nodes => shape.n_ranks() / shape.ranks_per_node(),
            Feature::PerNode => shape.ranks_per_node(),
            Feature::Dims => shape.active_dims().len().max(1) as u32,
            Feature::Widest => shape.axes().iter().map(|axis| axis.size).max().unwrap_or(1),
            Feature::Prime => linked().map(|axis| largest_prime(axis.size)).max().unwrap_or(1),
        }
    }
}

fn largest_prime(mut size: u32) -> u32 {
    let mut factor = 2;
    while u64::from(factor) * u64::from(factor) <= u64::from(size) {
        if size.is_multiple_of(factor) {
            size /= factor;
        } else {
            factor += 1;
        }
    }
    size
}

/// The features of a shape, in the order of [`Feature::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features([u32; Feature::ALL.len()]);

impl Features {
    /// The features of a shape.
    pub fn of(shape: &Shape) -> Self {
        Features(Feature::ALL.map(|feature| feature.of(shape)))
    }

    /// The value of one feature.
    pub fn get(&self, feature: Feature) -> u32 {
        self.0[feature as usize]
    }
}

/// An interval of whole numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumberRange {
    /// The least.
    pub first: u32,
    /// The greatest; `None` is no upper bound.
    pub last: Option<u32>,
}

impl NumberRange {
    /// All numbers from 1.
    pub const ALL: NumberRange = NumberRange { first: 1, last: None };

    /// One number.
    pub const fn only(value: u32) -> Self {
        NumberRange { first: value, last: Some(value) }
    }

    /// Whether the interval contains a number.
    pub fn contains(self, value: u32) -> bool {
        self.first <= value && self.last.is_none_or(|last| value <= last)
    }

    /// Whether the interval contains all of `other`.
    pub fn covers(self, other: NumberRange) -> bool {
        let reaches = |last| other.last.is_some_and(|others| others <= last);
        self.first <= other.first && self.last.is_none_or(reaches)
    }

    /// Returns the smallest interval that contains this one and a number.
    #[must_use]
    pub fn and(self, value: u32) -> Self {
        let last = self.last.map(|last| last.max(value));
        NumberRange { first: self.first.min(value), last }
    }

    /// Distance of a number from the interval, in sixteenths of doublings; at least 1 if the number is outside.
    pub(super) fn distance(self, value: u32) -> u64 {
        match self.last {
            _ if value < self.first => (sixteenths(self.first) - sixteenths(value)).max(1),
            Some(last) if value > last => (sixteenths(value) - sixteenths(last)).max(1),
            _ => 0,
        }
    }

    /// The distance of a number from the interval, times the weight of the feature.
    pub(super) fn weighted_distance(self, feature: Feature, value: u32) -> u64 {
        feature.weight() * self.distance(value)
    }
}

impl fmt::Display for NumberRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            NumberRange { first, last: Some(last) } if first == last => write!(f, "{first}"),
            NumberRange { first, last: Some(last) } => write!(f, "{first}..{last}"),
            NumberRange { first, last: None } => write!(f, "{first}.."),
        }
    }
}

/// Sixteen times log2 of `value`, interpolated linearly between powers of two, in whole numbers: the same on every
/// machine.
fn sixteenths(value: u32) -> u64 {
    let value = u64::from(value.max(1));
    let whole = value.ilog2();
    u64::from(whole) * 16 + (((value - (1 << whole)) * 16) >> whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_their_numbers() {
        let of = |text: &str| Features::of(&text.parse().unwrap()).0;
        assert_eq!(of("48x69x48"), [158_976, 158_976, 1, 3, 69, 23]);
        assert_eq!(of("8x1x8+4"), [256, 64, 4, 2, 8, 2]);
        assert_eq!(of("2x2+65"), [260, 4, 65, 2, 65, 2]);
        assert_eq!(of("1+4"), [4, 1, 4, 1, 4, 1]);
        assert_eq!(
            of("4294967291"),
            [4_294_967_291, 4_294_967_291, 1, 1, 4_294_967_291, 4_294_967_291]
        );
    }

    #[test]
    fn distances_are_of_doublings() {
        let interval = NumberRange { first: 8, last: Some(64) };
        assert_eq!([8, 9, 64].map(|value| interval.distance(value)), [0; 3]);
        assert_eq!([4, 2, 128, 96].map(|value| interval.distance(value)), [16, 32, 16, 8]);
        // Every number outside has a distance of at least 1.
        assert_eq!(NumberRange { first: 1, last: Some(1024) }.distance(1025), 1);
        assert_eq!(NumberRange::ALL.distance(u32::MAX), 0);
        assert!(NumberRange::ALL.covers(interval) && !interval.covers(NumberRange::ALL));
        assert!(!interval.covers(NumberRange { first: 8, last: None }));
    }
}
