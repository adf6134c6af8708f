//! The split of the data over lanes: of the vector, or of every block.
//!
//! Both sides of a transfer compute parts independently, so there is exactly one rule: the data are cut into units
//! of equal size ([`bound`]), and a part is a range of units. If all parts are equal, each has one unit.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use smallvec::SmallVec;

/// The part of the data that a lane moves: units `start..end` of `units`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// The first unit.
    pub start: u32,
    /// One past the last unit.
    pub end: u32,
    /// Number of units that the data are cut into; the same for all lanes of a plan.
    pub units: u32,
}

/// First element of unit `index` when `count` elements are cut into `units`, rounded down; `count` for index
/// `units`. Units differ by at most one element; with fewer elements than units some units are empty.
pub(super) fn bound(count: u64, units: u32, index: u32) -> u64 {
    // 128 bits, because count * index may exceed 64 bits.
    (u128::from(count) * u128::from(index) / u128::from(units)) as u64
}

impl Part {
    /// All of the data.
    pub const WHOLE: Part = Part::equal(0, 1);

    /// Part `index` of `parts` equal parts.
    pub const fn equal(index: u32, parts: u32) -> Self {
        Part { start: index, end: index + 1, units: parts }
    }

    /// The elements of the part when the data have `count` elements.
    ///
    /// # Panics
    /// If the data have no units.
    pub fn of(self, count: u64) -> Range<u64> {
        bound(count, self.units, self.start)..bound(count, self.units, self.end)
    }

    /// Number of units of the part.
    pub fn weight(self) -> u32 {
        self.end.saturating_sub(self.start)
    }

    /// Fraction of the data that the part is.
    pub fn share(self) -> f64 {
        f64::from(self.weight()) / f64::from(self.units)
    }

    /// True if the part is all of the data.
    pub fn is_whole(self) -> bool {
        self.weight() == self.units
    }
}

/// Formats as `2 of 6`, or `1..4 of 6`.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Part { start, end, units } = *self;
        match end.checked_sub(start) {
            Some(1) => write!(f, "{start} of {units}"),
            _ => write!(f, "{start}..{end} of {units}"),
        }
    }
}

impl FromStr for Part {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let number = |text: &str| text.trim().parse::<u32>().map_err(drop);
        let (part, units) = text.split_once(" of ").ok_or(())?;
        let (start, end) = match part.split_once("..") {
            Some((start, end)) => (number(start)?, number(end)?),
            None => {
                let start = number(part)?;
                (start, start.checked_add(1).ok_or(())?)
            }
        };
        if start < end { Ok(Part { start, end, units: number(units)? }) } else { Err(()) }
    }
}

/// The largest weight of a part.
const MOST_WEIGHT: u32 = 1 << 16;

/// How a schedule splits the data over its lanes: equally, unless parts have weights.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Split {
    /// By part, without a common divisor; empty if all parts are equal.
    weights: SmallVec<[u32; 6]>,
}

/// The given weights are not valid weights of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "weights of parts are whole numbers from 1 to 65536, one for each, that differ: equal parts need none"
)]
pub struct InvalidWeights;

impl Split {
    /// Parts of these weights.
    ///
    /// # Errors
    /// [`InvalidWeights`] if a weight is 0 or too large, or if all are equal: equal parts are the default.
    pub fn new(weights: &[u32]) -> Result<Self, InvalidWeights> {
        let are_valid = weights.iter().all(|weight| (1..=MOST_WEIGHT).contains(weight));
        let differ = weights.windows(2).any(|pair| pair[0] != pair[1]);
        if !are_valid || !differ {
            return Err(InvalidWeights);
        }
        let divisor = weights.iter().copied().fold(0, greatest_common_divisor);
        Ok(Split { weights: weights.iter().map(|weight| weight / divisor).collect() })
    }

    /// True if all parts are equal; their number is then arbitrary.
    pub fn is_equal(&self) -> bool {
        self.weights.is_empty()
    }

    /// The weights by part; empty if all parts are equal.
    pub fn weights(&self) -> &[u32] {
        &self.weights
    }

    /// The number of parts; `None` if all are equal, as their number is then arbitrary.
    pub fn parts(&self) -> Option<u32> {
        (!self.is_equal()).then_some(self.weights.len() as u32)
    }

    /// Part `index` of `parts`.
    pub(in crate::plan) fn part(&self, index: u32, parts: u32) -> Part {
        if self.is_equal() {
            return Part::equal(index, parts);
        }
        let (before, from) = self.weights.split_at(index as usize);
        let start = before.iter().sum();
        Part { start, end: start + from[0], units: start + from.iter().sum::<u32>() }
    }

    /// A sequence of parts, repeated cyclically, for dealing out items one by one. Each part occurs as often as its
    /// weight, with its occurrences spaced as evenly as possible.
    pub(in crate::plan) fn turns(&self, parts: u32) -> Vec<u32> {
        if self.is_equal() {
            return (0..parts).collect();
        }
        let all = self.part(0, parts).units;
        // The next turn goes to the part whose share of the turns so far is most overdue.
        let mut due = vec![0i64; parts as usize];
        let turn = |_| {
            due.iter_mut().zip(&self.weights).for_each(|(due, &weight)| *due += i64::from(weight));
            let next =
                (0..parts).max_by_key(|&part| (due[part as usize], parts - part)).unwrap_or(0);
            due[next as usize] -= i64::from(all);
            next
        };
        (0..all).map(turn).collect()
    }
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// The weights, with commas between them.
impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weights: Vec<String> = self.weights.iter().map(u32::to_string).collect();
        f.pad(&weights.join(","))
    }
}

impl FromStr for Split {
    type Err = InvalidWeights;

    fn from_str(text: &str) -> Result<Self, InvalidWeights> {
        let weights = text.split(',').map(|weight| weight.parse().map_err(|_| InvalidWeights));
        Split::new(&weights.collect::<Result<Vec<_>, _>>()?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn weights() -> impl Strategy<Value = Vec<u32>> {
        let some = prop_oneof![1u32..=8, 1u32..=MOST_WEIGHT];
        prop::collection::vec(some, 2..=12)
    }

    #[test]
    fn equal_parts_differ_by_an_element() {
        for count in [0u64, 1, 2, 5, 63, 64, 65, 1_000_003] {
            for parts in [1u32, 2, 3, 7, 64] {
                let mut at = 0;
                for index in 0..parts {
                    let range = Part::equal(index, parts).of(count);
                    assert_eq!(range.start, at);
                    let len = range.end - range.start;
                    assert!(len.abs_diff(count / u64::from(parts)) <= 1);
                    at = range.end;
                }
                assert_eq!(at, count);
            }
        }
    }

    #[test]
    fn huge_counts_do_not_overflow() {
        assert_eq!(Part::equal(158_975, 158_976).of(u64::MAX).end, u64::MAX);
    }

    #[test]
    fn weights_that_say_nothing_are_refused() {
        for text in ["", "1", "3,3", "1,0", "0,0,1", "1,65537", "1,-1", "1,,2", "2, 1", "a,b"] {
            assert_eq!(text.parse::<Split>(), Err(InvalidWeights), "{text}");
        }
        let split: Split = "4,2,6".parse().unwrap();
        assert_eq!((split.weights(), split.to_string()), (&[2, 1, 3][..], "2,1,3".to_owned()));
        assert_eq!(split.turns(3), [2, 0, 1, 2, 0, 2]);
        assert_eq!(Split::default().turns(3), [0, 1, 2]);
    }

    proptest! {
        /// Parts tile the data, each within one element of its exact share, and parse as they are formatted.
        #[test]
        fn parts_tile_the_data(weights in weights(), count in prop_oneof![0u64..40, any::<u64>()]) {
            let parts = weights.len() as u32;
            let split = Split::new(&weights).unwrap_or_default();
            let all = weights.iter().map(|&weight| u128::from(weight)).sum::<u128>();
            let mut at = 0;
            for (index, &weight) in (0..).zip(&weights) {
                let part = split.part(index, parts);
                let range = part.of(count);
                prop_assert_eq!(range.start, at);
                let exact = u128::from(count) * u128::from(weight) / all;
                prop_assert!(u128::from(range.end - range.start).abs_diff(exact) <= 1);
                prop_assert_eq!(part.to_string().parse(), Ok(part));
                at = range.end;
            }
            prop_assert_eq!(at, count);
            if !split.is_equal() {
                prop_assert_eq!(split.to_string().parse(), Ok(split));
            }
        }

        /// In any interval of turns the number of a part's turns is within two of its share.
        #[test]
        fn turns_are_far_apart(weights in prop::collection::vec(1u32..=9, 2..=6), from in 0usize..99, len in 1usize..99) {
            let split = Split::new(&weights).unwrap_or_default();
            let parts = weights.len() as u32;
            let turns = split.turns(parts);
            for part in 0..parts {
                let share = split.part(part, parts).share() * len as f64;
                let all = turns.iter().cycle().skip(from).take(len);
                let n = all.filter(|&&turn| turn == part).count() as f64;
                prop_assert!((n - share).abs() <= 2.0, "{} of {}", n, share);
            }
        }
    }
}
