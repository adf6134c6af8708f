//! Position orders: the position of each block in the working space, and the runs of positions that a product set
//! of blocks occupies.
//!
//! An order is a list of *levels*, most significant first. A level belongs to one dimension and gives each of its
//! coordinates a digit; blocks are sorted by their digits. Rank order has one level per dimension, with the
//! coordinate as digit. Path order has one level per global step; its digit says whether that step is on the
//! block's path, and to which target. For nested patterns every send set is then one run (algorithms.md section 3:
//! the papers' v(r) with bit reversal, generalised to tori).
//!
//! Sets are products over the dimensions and are never enumerated: [`PositionOrder::runs_in`] descends the levels
//! and stops at every subtree that is wholly inside or outside the set.

use smallvec::SmallVec;

use crate::geometry::{Coord, MAX_DIMS, Vertex};
use crate::plan::ir::members::{CoordSet, Interval, Tile};
use crate::plan::ir::runs::Run;

/// A buffer in which runs are collected.
pub type RunBuffer = SmallVec<[Run; 32]>;

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
    levels: Vec<Partition>,
    n_positions: u32,
}

/// The coordinates of one dimension sorted by its levels alone. Coordinates with the same leading digits form an
/// interval of places.
#[derive(Clone, Debug)]
struct DimOrder {
    /// Place of each coordinate.
    place_of: Vec<u32>,
    /// Coordinate at each place.
    coord_at: Vec<u32>,
}

/// A prepared level: the groups of places whose digits agree in all levels down to this one.
#[derive(Clone, Debug)]
struct Partition {
    dim: usize,
    /// The group of each place.
    group_of: Vec<Interval>,
}

impl PositionOrder {
    /// The order with the given levels over dimensions of the given sizes.
    ///
    /// # Panics
    /// If a level's digits do not fit its dimension, or if two coordinates have the same digits in all levels.
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
        // Intervals of places whose digits agree in all levels of their dimension so far.
        let mut together: Vec<Vec<Interval>> = sizes
            .iter()
            .map(|&size| vec![Interval { start: 0, end: size }; size as usize])
            .collect();
        let levels = levels
            .iter()
            .map(|level| {
                let groups = &mut together[level.dim];
                let digit =
                    |place: u32| level.digits[dims[level.dim].coord_at[place as usize] as usize];
                let mut start = 0;
                while let Some(&group) = groups.get(start as usize) {
                    let same = |place: &u32| digit(*place) == digit(start);
                    let end = (start..group.end).take_while(same).count() as u32 + start;
                    groups[start as usize..end as usize].fill(Interval { start, end });
                    start = end;
                }
                Partition { dim: level.dim, group_of: groups.clone() }
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

    /// A set of coordinates of `dim`, given as distinct coordinates.
    pub fn members(&self, dim: usize, coords: impl Iterator<Item = u32>) -> CoordSet {
        let place_of = &self.dims[dim].place_of;
        let size = place_of.len() as u32;
        CoordSet::from_places(size, coords.map(|coord| place_of[coord as usize]).collect())
    }

    /// The set of all coordinates of `dim` except `coords`.
    pub fn all_but(&self, dim: usize, coords: impl Iterator<Item = u32>) -> CoordSet {
        self.members(dim, coords).complement(self.dims[dim].coord_at.len() as u32)
    }

    /// All positions as one tile.
    pub fn whole_tile(&self) -> Tile {
        Tile { first: 0, volume: self.n_positions, box_: self.whole(), depth: 0 }
    }

    /// All positions in tiles of at most `most` positions.
    pub fn tiles(&self, most: u32) -> Vec<Tile> {
        let mut tiles = Vec::new();
        self.divide(self.whole_tile(), most.max(1), &mut tiles);
        tiles
    }

    fn divide(&self, mut tile: Tile, most: u32, tiles: &mut Vec<Tile>) {
        if tile.volume <= most {
            tiles.push(tile);
            return;
        }
        while tile.box_[self.levels[tile.depth].dim].len() == 1 {
            tile.depth += 1;
        }
        let Partition { dim, group_of } = &self.levels[tile.depth];
        let whole = tile.box_[*dim];
        let others = tile.volume / whole.len();
        let mut start = whole.start;
        while start < whole.end {
            // As many groups as fit together, or a single group that is divided further.
            let mut end = group_of[start as usize].end;
            let is_single = (end - start) * others > most;
            while !is_single && end < whole.end {
                let next = group_of[end as usize].end;
                if (next - start) * others > most {
                    break;
                }
                end = next;
            }
            let mut part = tile.clone();
            part.first = tile.first + (start - whole.start) * others;
            part.volume = (end - start) * others;
            part.box_[*dim] = Interval { start, end };
            part.depth = tile.depth + usize::from(is_single);
            self.divide(part, most, tiles);
            start = end;
        }
    }

    /// Appends the runs of positions that the product of one set per dimension occupies in a tile,
    /// ascending.
    pub fn runs_in(&self, tile: &Tile, sets: &[&CoordSet], runs: &mut RunBuffer) {
        // The dimensions in which the box is not inside the set, as bits.
        let mut partial = 0u8;
        for (dim, set) in sets.iter().enumerate() {
            let Some(is_full) = set.covers(tile.box_[dim]) else { return };
            partial |= u8::from(!is_full) << dim;
        }
        let positions = (tile.first, tile.volume);
        self.descend(tile.depth, &mut tile.box_.clone(), positions, partial, sets, runs);
    }

    fn whole(&self) -> [Interval; MAX_DIMS] {
        let mut whole = [Interval { start: 0, end: 1 }; MAX_DIMS];
        for (interval, dim) in whole.iter_mut().zip(&self.dims) {
            interval.end = dim.coord_at.len() as u32;
        }
        whole
    }

    /// Appends the runs of a box with positions `first .. first + volume` that are in the sets. The box must
    /// intersect the set of every dimension.
    fn descend(
        &self,
        mut depth: usize,
        box_: &mut [Interval; MAX_DIMS],
        (first, volume): (u32, u32),
        partial: u8,
        sets: &[&CoordSet],
        runs: &mut RunBuffer,
    ) {
        if partial == 0 {
            match runs.last_mut() {
                Some(last) if last.end() == first => last.len += volume,
                _ => runs.push(Run::new(first, volume)),
            }
            return;
        }
        // A box that is only partly inside has several coordinates in a dimension, which a later level separates.
        while box_[self.levels[depth].dim].len() == 1 {
            depth += 1;
        }
        let Partition { dim, group_of } = &self.levels[depth];
        let whole = box_[*dim];
        let others = volume / whole.len();
        // Group by group, skipping groups without a member.
        let mut at = whole.start;
        for members in sets[*dim].from(whole.start) {
            if members.start >= whole.end {
                break;
            }
            at = at.max(members.start);
            let end = members.end.min(whole.end);
            while at < end {
                // If all other dimensions have one place, places of this dimension are positions.
                let inside = match others {
                    1 => Interval { start: at, end },
                    _ => group_of[at as usize],
                };
                box_[*dim] = inside;
                let range = (first + (inside.start - whole.start) * others, inside.len() * others);
                let is_full = members.start <= inside.start && inside.end <= members.end;
                let partial = partial & !(1 << dim) | u8::from(!is_full) << dim;
                self.descend(depth + 1, box_, range, partial, sets, runs);
                at = inside.end;
            }
        }
        box_[*dim] = whole;
    }

    /// The position of the block that belongs to a coordinate.
    pub fn position(&self, coord: Coord) -> u32 {
        let mut box_ = self.whole();
        let mut first = 0;
        for Partition { dim, group_of } in &self.levels {
            let group = group_of[self.dims[*dim].place_of[coord[*dim] as usize] as usize];
            let whole = std::mem::replace(&mut box_[*dim], group);
            let others: u32 =
                box_.iter().map(|interval| interval.len()).product::<u32>() / group.len();
            first += (group.start - whole.start) * others;
        }
        first
    }

    /// The coordinate whose block has a position; the inverse of [`PositionOrder::position`].
    pub fn coord(&self, position: u32) -> Coord {
        let mut box_ = self.whole();
        let mut rest = position;
        for Partition { dim, group_of } in &self.levels {
            let whole = box_[*dim];
            let others: u32 =
                box_.iter().map(|interval| interval.len()).product::<u32>() / whole.len();
            let group = group_of[(whole.start + rest / others) as usize];
            rest -= (group.start - whole.start) * others;
            box_[*dim] = group;
        }
        self.corner(&box_)
    }

    /// The coordinate at the first place of a box in every dimension.
    fn corner(&self, box_: &[Interval; MAX_DIMS]) -> Coord {
        let mut at = [0; MAX_DIMS];
        for (k, order) in self.dims.iter().enumerate() {
            at[k] = order.coord_at[box_[k].start as usize];
        }
        Coord::new(&at[..self.dims.len()])
    }

    /// The nodes of all blocks, by position; node numbers are row-major.
    pub fn nodes(&self) -> Vec<Vertex> {
        // By dimension and place, the coordinate's contribution to the node's number.
        let mut stride = 1;
        let mut parts: Vec<Vec<u32>> = Vec::with_capacity(self.dims.len());
        for dim in self.dims.iter().rev() {
            parts.push(dim.coord_at.iter().map(|coord| coord * stride).collect());
            stride *= dim.coord_at.len() as u32;
        }
        parts.reverse();
        let mut nodes = Vec::with_capacity(self.n_positions as usize);
        self.list(0, &mut self.whole(), &parts, &mut nodes);
        nodes
    }

    fn list(
        &self,
        depth: usize,
        box_: &mut [Interval; MAX_DIMS],
        parts: &[Vec<u32>],
        nodes: &mut Vec<Vertex>,
    ) {
        let Some(Partition { dim, group_of }) = self.levels.get(depth) else {
            let node = parts.iter().zip(box_.iter()).map(|(part, at)| part[at.start as usize]);
            nodes.push(Vertex(node.sum()));
            return;
        };
        let whole = box_[*dim];
        let mut start = whole.start;
        while start < whole.end {
            box_[*dim] = group_of[start as usize];
            start = box_[*dim].end;
            self.list(depth + 1, box_, parts, nodes);
        }
        box_[*dim] = whole;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// For any interleaving of binary levels, the runs equal the enumeration of the members.
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
            // Coordinates that the random levels do not separate are ordered by the coordinate.
            for (dim, &size) in sizes.iter().enumerate() {
                levels.push(Level { dim, digits: (0..size).rev().collect() });
            }
            let order = PositionOrder::new(&sizes, levels);
            let is_member = |dim: usize, x: u32| (seed >> (17 + dim as u32 * 7 + x)) & 1 == 1;
            let sets: Vec<CoordSet> = (0..sizes.len())
                .map(|dim| order.members(dim, (0..sizes[dim]).filter(|&x| is_member(dim, x))))
                .collect();
            let sets: Vec<&CoordSet> = sets.iter().collect();
            let mut runs = RunBuffer::new();
            order.runs_in(&order.whole_tile(), &sets, &mut runs);
            for most in [1, 3, 16] {
                let mut in_tiles = RunBuffer::new();
                let mut at = 0;
                for tile in order.tiles(most) {
                    prop_assert_eq!(tile.positions().start, at);
                    at = tile.positions().end;
                    order.runs_in(&tile, &sets, &mut in_tiles);
                }
                prop_assert_eq!(at, order.n_positions());
                prop_assert_eq!(&in_tiles[..], &runs[..]);
            }
            let nodes = order.nodes();
            prop_assert_eq!(nodes.len() as u32, order.n_positions());
            for (position, node) in nodes.iter().enumerate() {
                let coord = order.coord(position as u32);
                prop_assert_eq!(order.position(coord), position as u32);
                let number = sizes.iter().enumerate().fold(0, |n, (dim, size)| n * size + coord[dim]);
                prop_assert_eq!(node.0, number);
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
