//! Position orders: where in the working space each block stands, and which runs of
//! positions a product set of blocks occupies.
//!
//! An order is a list of *levels*, most significant first. A level belongs to one dimension
//! and gives each of its coordinates a digit; blocks are sorted by their digits. Rank order
//! is one level per dimension with the coordinate as digit. Path order has one level per
//! global step with the digit telling whether (and to which target) that step is on the
//! block's path: for nested patterns every send set is then one run (algorithms.md section
//! 3: the papers' v(r) with bit reversal, generalised to tori).
//!
//! Sets are products over the dimensions and are never enumerated: [`PositionOrder::runs`]
//! descends the levels and stops wherever a subtree lies wholly inside or outside the set.

use std::sync::Arc;

use super::types::{Blocks, Run};
use crate::geometry::{Coord, MAX_DIMS};

/// One level: a digit for every coordinate of one dimension.
#[derive(Clone, Debug)]
pub struct Level {
    /// The dimension.
    pub dim: usize,
    /// Digit of each coordinate.
    pub digits: Vec<u32>,
}

/// An order of the blocks of a torus.
#[derive(Clone, Debug)]
pub struct PositionOrder {
    dims: Vec<DimOrder>,
    /// Dimension and, per place of that dimension's order, the digit.
    levels: Vec<Level>,
    n_positions: u32,
}

/// The coordinates of one dimension sorted by its levels alone. Every set of coordinates
/// that share leading digits is an interval of it.
#[derive(Clone, Debug)]
struct DimOrder {
    /// Place of each coordinate.
    place_of: Vec<u32>,
    /// Coordinate at each place.
    coord_at: Vec<u32>,
}

/// A set of coordinates of one dimension, as counts of members before each place.
#[derive(Clone, Debug)]
pub struct Members(Vec<u32>);

impl Members {
    fn count(&self, interval: Interval) -> u32 {
        self.0[interval.end as usize] - self.0[interval.start as usize]
    }

    /// True if there is no member.
    pub fn is_empty(&self) -> bool {
        self.0.last() == Some(&0)
    }
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    start: u32,
    end: u32,
}

impl Interval {
    fn len(self) -> u32 {
        self.end - self.start
    }
}

impl PositionOrder {
    /// The order with the given levels over dimensions of the given sizes.
    ///
    /// # Panics
    /// If a level's digits do not fit its dimension, or if the levels do not tell two
    /// coordinates apart.
    pub fn new(sizes: &[u32], levels: Vec<Level>) -> Self {
        let dims: Vec<DimOrder> = sizes
            .iter()
            .enumerate()
            .map(|(dim, &size)| {
                let own: Vec<&Level> = levels.iter().filter(|level| level.dim == dim).collect();
                let key = |x: u32| own.iter().map(move |level| level.digits[x as usize]);
                let mut coord_at: Vec<u32> = (0..size).collect();
                coord_at.sort_by(|&x, &y| key(x).cmp(key(y)));
                assert!(
                    coord_at.windows(2).all(|pair| key(pair[0]).ne(key(pair[1]))),
                    "the levels must tell all coordinates of dimension {dim} apart"
                );
                let mut place_of = vec![0; size as usize];
                for (place, &coord) in coord_at.iter().enumerate() {
                    place_of[coord as usize] = place as u32;
                }
                DimOrder { place_of, coord_at }
            })
            .collect();
        let levels = levels
            .into_iter()
            .map(|Level { dim, digits }| Level {
                dim,
                digits: dims[dim].coord_at.iter().map(|&x| digits[x as usize]).collect(),
            })
            .collect();
        PositionOrder { dims, levels, n_positions: sizes.iter().product() }
    }

    /// Row-major rank order: the coordinate itself is the digit.
    pub fn row_major(sizes: &[u32]) -> Self {
        let levels = sizes.iter().enumerate();
        let levels = levels.map(|(dim, &size)| Level { dim, digits: (0..size).collect() });
        Self::new(sizes, levels.collect())
    }

    /// Number of positions.
    pub fn n_positions(&self) -> u32 {
        self.n_positions
    }

    /// The coordinates of `dim` for which `is_member` holds, as a set.
    pub fn members(&self, dim: usize, is_member: impl Fn(u32) -> bool) -> Members {
        let mut counts = Vec::with_capacity(self.dims[dim].coord_at.len() + 1);
        let mut count = 0;
        counts.push(0);
        for &coord in &self.dims[dim].coord_at {
            count += u32::from(is_member(coord));
            counts.push(count);
        }
        Members(counts)
    }

    /// The runs of positions that the product of one set per dimension occupies, ascending.
    pub fn runs(&self, sets: &[&Members]) -> Blocks {
        let mut runs = Vec::new();
        if sets.iter().all(|set| !set.is_empty()) {
            let mut box_ = self.whole();
            self.descend(0, &mut box_, 0, sets, &mut runs);
        }
        Arc::from(runs)
    }

    fn whole(&self) -> [Interval; MAX_DIMS] {
        let mut whole = [Interval { start: 0, end: 1 }; MAX_DIMS];
        for (interval, dim) in whole.iter_mut().zip(&self.dims) {
            interval.end = dim.coord_at.len() as u32;
        }
        whole
    }

    fn descend(
        &self,
        depth: usize,
        box_: &mut [Interval; MAX_DIMS],
        first: u32,
        sets: &[&Members],
        runs: &mut Vec<Run>,
    ) {
        let mut is_full = true;
        for (set, &interval) in sets.iter().zip(box_.iter()) {
            match set.count(interval) {
                0 => return,
                count => is_full &= count == interval.len(),
            }
        }
        if is_full {
            let len = box_.iter().map(|interval| interval.len()).product();
            match runs.last_mut() {
                Some(last) if last.end() == first => last.len += len,
                _ => runs.push(Run::new(first, len)),
            }
            return;
        }
        // A box that is neither full nor empty has two coordinates or more, which some
        // remaining level tells apart.
        let Level { dim, digits } = &self.levels[depth];
        let whole = box_[*dim];
        let others: u32 = box_.iter().map(|interval| interval.len()).product::<u32>() / whole.len();
        let mut start = whole.start;
        while start < whole.end {
            let end = group_end(digits, start, whole.end);
            box_[*dim] = Interval { start, end };
            self.descend(depth + 1, box_, first + (start - whole.start) * others, sets, runs);
            start = end;
        }
        box_[*dim] = whole;
    }

    /// The position of the block that belongs to a coordinate.
    pub fn position(&self, coord: Coord) -> u32 {
        let mut box_ = self.whole();
        let mut first = 0;
        for Level { dim, digits } in &self.levels {
            let place = self.dims[*dim].place_of[coord[*dim] as usize];
            let whole = box_[*dim];
            let digit = digits[place as usize];
            let inside = &digits[whole.start as usize..whole.end as usize];
            let start = whole.start + inside.partition_point(|&d| d < digit) as u32;
            let end = group_end(digits, start, whole.end);
            let others: u32 =
                box_.iter().map(|interval| interval.len()).product::<u32>() / whole.len();
            first += (start - whole.start) * others;
            box_[*dim] = Interval { start, end };
        }
        first
    }

    /// The coordinate whose block has a position: the inverse of [`PositionOrder::position`].
    pub fn coord(&self, position: u32) -> Coord {
        let mut box_ = self.whole();
        let mut rest = position;
        for Level { dim, digits } in &self.levels {
            let whole = box_[*dim];
            let others: u32 =
                box_.iter().map(|interval| interval.len()).product::<u32>() / whole.len();
            let place = whole.start + rest / others;
            let inside = &digits[whole.start as usize..whole.end as usize];
            let digit = digits[place as usize];
            let start = whole.start + inside.partition_point(|&d| d < digit) as u32;
            rest -= (start - whole.start) * others;
            box_[*dim] = Interval { start, end: group_end(digits, start, whole.end) };
        }
        self.corner(&box_)
    }

    /// The coordinate of a box's first places.
    fn corner(&self, box_: &[Interval; MAX_DIMS]) -> Coord {
        let mut at = [0; MAX_DIMS];
        for (k, order) in self.dims.iter().enumerate() {
            at[k] = order.coord_at[box_[k].start as usize];
        }
        Coord::new(&at[..self.dims.len()])
    }

    /// The coordinates of all blocks, by position.
    pub fn coords(&self) -> Vec<Coord> {
        let mut coords = Vec::with_capacity(self.n_positions as usize);
        self.list(0, &mut self.whole(), &mut coords);
        coords
    }

    fn list(&self, depth: usize, box_: &mut [Interval; MAX_DIMS], coords: &mut Vec<Coord>) {
        let Some(Level { dim, digits }) = self.levels.get(depth) else {
            coords.push(self.corner(box_));
            return;
        };
        let whole = box_[*dim];
        let mut start = whole.start;
        while start < whole.end {
            let end = group_end(digits, start, whole.end);
            box_[*dim] = Interval { start, end };
            self.list(depth + 1, box_, coords);
            start = end;
        }
        box_[*dim] = whole;
    }
}

/// End of the run of places from `start` that share a digit, at most `end`. Within a box the
/// digits of the next level ascend.
fn group_end(digits: &[u32], start: u32, end: u32) -> u32 {
    let inside = &digits[start as usize..end as usize];
    let digit = inside[0];
    start + inside.partition_point(|&d| d <= digit) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any interleaving of binary levels: runs equal the enumeration.
        #[test]
        fn runs_are_the_positions_of_the_members(
            sizes in prop::collection::vec(1u32..7, 1..=3),
            picks in prop::collection::vec(0usize..3, 0..12),
            seed in any::<u64>(),
        ) {
            let mut levels: Vec<Level> = Vec::new();
            for (bit, pick) in picks.iter().enumerate() {
                let dim = pick % sizes.len();
                let digits = (0..sizes[dim]).map(|x| (seed >> (bit as u32 * 3 + x)) as u32 & 1);
                levels.push(Level { dim, digits: digits.collect() });
            }
            // Whatever the random levels leave apart, the coordinate decides.
            for (dim, &size) in sizes.iter().enumerate() {
                levels.push(Level { dim, digits: (0..size).rev().collect() });
            }
            let order = PositionOrder::new(&sizes, levels);
            let is_member = |dim: usize, x: u32| (seed >> (17 + dim as u32 * 7 + x)) & 1 == 1;
            let sets: Vec<Members> =
                (0..sizes.len()).map(|dim| order.members(dim, |x| is_member(dim, x))).collect();
            let runs = order.runs(&sets.iter().collect::<Vec<_>>());
            let coords = order.coords();
            prop_assert_eq!(coords.len() as u32, order.n_positions());
            for (position, &coord) in coords.iter().enumerate() {
                prop_assert_eq!(order.position(coord), position as u32);
                prop_assert_eq!(order.coord(position as u32), coord);
                let inside = (0..sizes.len()).all(|dim| is_member(dim, coord[dim]));
                let listed = runs
                    .iter()
                    .any(|run| (run.start..run.end()).contains(&(position as u32)));
                prop_assert_eq!(inside, listed);
            }
            for pair in runs.windows(2) {
                prop_assert!(pair[0].end() < pair[1].start, "runs are maximal and ascend");
            }
        }
    }
}
