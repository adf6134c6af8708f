//! Sets of coordinates of one dimension, by their places in an order, and Cartesian products of such sets.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use super::runs::Run;
use crate::geometry::MAX_DIMS;

/// A set of coordinates of one dimension: disjoint intervals of places, ascending, none adjacent to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoordSet(pub SmallVec<[Interval; 2]>);

impl CoordSet {
    /// The set of the places in `range`.
    pub fn interval(range: Range<u32>) -> Self {
        let mut members = CoordSet::default();
        if !range.is_empty() {
            members.0.push(Interval { start: range.start, end: range.end });
        }
        members
    }

    /// The set of the given places below `size`, which may be in any order and are distinct.
    pub fn from_places(size: u32, mut places: SmallVec<[u32; 16]>) -> Self {
        let mut members = CoordSet::default();
        if places.len() <= 64 {
            places.sort_unstable();
            places.into_iter().for_each(|place| members.append(place, place + 1));
            return members;
        }
        // For many places a bit map is faster than sorting.
        let mut words: SmallVec<[u64; 8]> = smallvec![0; size.div_ceil(64) as usize];
        places.into_iter().for_each(|place| words[place as usize / 64] |= 1 << (place % 64));
        for (index, mut word) in words.into_iter().enumerate() {
            while word != 0 {
                let first = word.trailing_zeros();
                let start = index as u32 * 64 + first;
                members.append(start, start + (word >> first).trailing_ones());
                // The carry of the addition clears the run of ones that has been appended.
                word &= word.wrapping_add(1 << first);
            }
        }
        members
    }

    /// Appends an interval, which must start at or after the end of the last one.
    fn append(&mut self, start: u32, end: u32) {
        match self.0.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => self.0.push(Interval { start, end }),
        }
    }

    /// All places below `size` that are not members.
    pub fn complement(&self, size: u32) -> Self {
        let mut others = CoordSet::default();
        let mut at = 0;
        for interval in self.0.iter().copied().chain([Interval { start: size, end: size }]) {
            if interval.start > at {
                others.0.push(Interval { start: at, end: interval.start });
            }
            at = interval.end;
        }
        others
    }

    /// Whether all places of `of` are members; `None` if none is.
    pub fn covers(&self, of: Interval) -> Option<bool> {
        let own = self.from(of.start).next().filter(|own| own.start < of.end)?;
        Some(own.start <= of.start && of.end <= own.end)
    }

    /// The intervals that end after `place`.
    pub fn from(&self, place: u32) -> impl Iterator<Item = Interval> + '_ {
        // For few intervals a linear search is faster than a binary search.
        let first = match self.0.len() {
            0..=8 => self.0.iter().take_while(|own| own.end <= place).count(),
            _ => self.0.partition_point(|own| own.end <= place),
        };
        self.0[first..].iter().copied()
    }

    /// Number of members.
    pub fn n_places(&self) -> u64 {
        self.0.iter().map(|interval| u64::from(interval.len())).sum()
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub start: u32,
    pub end: u32,
}

/// Consecutive positions whose blocks form a box: an interval of places in every dimension.
#[derive(Clone, Debug)]
pub struct Tile {
    pub(crate) first: u32,
    pub(crate) volume: u32,
    pub(crate) box_: [Interval; MAX_DIMS],
    /// The first level of the order that may split the box.
    pub(crate) depth: usize,
}

impl Tile {
    /// The positions `0..n_positions` in tiles of at most `most`, for spaces without an order of their own.
    pub fn ranges(n_positions: u32, most: u32) -> Vec<Tile> {
        let tile = |first: u32| Tile {
            first,
            volume: most.min(n_positions - first),
            box_: [Interval { start: 0, end: 0 }; MAX_DIMS],
            depth: 0,
        };
        (0..n_positions).step_by(most.max(1) as usize).map(tile).collect()
    }

    /// The positions of the tile.
    pub fn positions(&self) -> Range<u32> {
        self.first..self.first + self.volume
    }
}

impl Interval {
    pub fn len(self) -> u32 {
        self.end - self.start
    }
}

/// The part of a run that lies in a tile.
pub fn clip(run: Run, tile: &Tile) -> Option<Run> {
    let tile = tile.positions();
    let end = run.start.saturating_add(run.len).min(tile.end);
    let start = run.start.max(tile.start);
    (start < end).then(|| Run::new(start, end - start))
}
