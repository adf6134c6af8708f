//! The ranks of a torus as a grid for exchanges: the axes of the shape, the node axis split into
//! groups and the members of a group.
//!
//! A position is a displacement on the grid, axis by axis, without a carry from one to the next:
//! it holds first the block for the rank that far on, later the block from the rank that far back.
//! An exchange along some axes moves the positions that are displaced along these, whatever they
//! are along the others; one exchange after the other along all axes is an alltoall.
//!
//! Where a leader handles the blocks of all members of its group, a position also says between
//! which members: `(s * groups + displacement) * members + d` is the block of member `s` of a group
//! for member `d` of the group that far on. A member other than the leader has the positions
//! with its own number as `s` at the start and as `d` in the end, and touches no others.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::places::Places;
use super::runs::{Blocks, Run};
use crate::geometry::Node;
use crate::names::{Position, Rank};

/// See the module documentation.
#[derive(Debug)]
pub struct Grid {
    places: Arc<Places>,
    /// Sizes of the axes, that of the members last; nodes are numbered row-major.
    sizes: SmallVec<[u32; 8]>,
    /// Members of a group whose leader handles their blocks; 1 if everybody is on its own.
    served: u32,
}

/// What a message of an exchange carries: the displacement along some axes, or one member.
#[derive(Clone, Debug)]
pub enum Part {
    /// All positions displaced so along these axes.
    Displaced {
        /// A displacement that is 0 along all other axes.
        by: u32,
        /// By axis, whether the exchange is along it.
        along: SmallVec<[bool; 8]>,
    },
    /// All blocks that a member gives, or gets, but the one that it gives itself.
    Member {
        /// Its number in its group.
        member: u32,
        /// It gets them.
        gets: bool,
    },
}

impl Grid {
    /// The grid of a shape whose node axis, if it has one, is split into groups of `group` ranks,
    /// which it is a multiple of; their first members handle all blocks if they are `leaders`.
    pub fn new(places: Arc<Places>, group: u32, leaders: bool) -> Self {
        let mut sizes: SmallVec<[u32; 8]> = places.shape.sizes().into_iter().collect();
        // A leader of itself alone is one of the node.
        if places.shape.node_dim().is_some() && !(leaders && group == 1) {
            let last = sizes.len() - 1;
            sizes[last] /= group;
            sizes.push(group);
        }
        let served = if leaders { group } else { 1 };
        Grid { places, sizes, served }
    }

    /// Number of axes along which groups, or ranks that are on their own, are displaced.
    pub fn n_axes(&self) -> usize {
        self.sizes.len() - usize::from(self.served > 1)
    }

    /// The places of the ranks.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Members of a group that has a leader; 1 if there are none.
    pub fn served(&self) -> u32 {
        self.served
    }

    /// Groups with a leader, or ranks that are on their own.
    pub fn n_groups(&self) -> u32 {
        self.n_ranks() / self.served
    }

    /// Number of ranks.
    pub fn n_ranks(&self) -> u32 {
        self.places.shape.n_nodes()
    }

    /// Number of positions.
    pub fn n_positions(&self) -> u32 {
        self.n_ranks() * self.served
    }

    /// The sizes of the axes along which there are displacements.
    fn axes(&self) -> &[u32] {
        &self.sizes[..self.n_axes()]
    }

    /// The group `by` on from one, or as far back.
    pub fn displaced(&self, group: u32, by: u32, forwards: bool) -> u32 {
        let (mut rest, mut by, mut stride, mut sum) = (group, by, 1, 0);
        for &size in self.axes().iter().rev() {
            let step = if forwards { by % size } else { size - by % size };
            sum += (rest % size + step) % size * stride;
            (rest, by, stride) = (rest / size, by / size, stride * size);
        }
        sum
    }

    /// By axis, how far a displacement leads along it.
    fn digits(&self, by: u32) -> SmallVec<[u32; 8]> {
        let mut rest = by;
        let digit = |&size: &u32| {
            let digit = rest % size;
            rest /= size;
            digit
        };
        let mut digits: SmallVec<[u32; 8]> = self.axes().iter().rev().map(digit).collect();
        digits.reverse();
        digits
    }

    /// True if a displacement leads along some of these axes alone.
    pub fn is_along(&self, by: u32, along: &[bool]) -> bool {
        self.digits(by).iter().zip(along).all(|(&digit, &along)| along || digit == 0)
    }

    /// The group of a rank, and its number there.
    pub fn member(&self, rank: Rank) -> (u32, u32) {
        let node = self.places.map.node_of(&self.places.shape, rank.0).0;
        (node / self.served, node % self.served)
    }

    /// The rank that has a number in a group.
    pub fn rank(&self, group: u32, member: u32) -> Rank {
        self.places.rank_on(Node(group * self.served + member))
    }

    /// The member that gives what is in a position, the displacement, the member that gets it.
    fn split(&self, position: Position) -> (u32, u32, u32) {
        let rest = position.0 / self.served;
        (rest / self.n_groups(), rest % self.n_groups(), position.0 % self.served)
    }

    /// For whom the block is that stands in `position` on `rank` at the start, if one does.
    pub fn destination(&self, rank: Rank, position: Position) -> Option<Rank> {
        let (group, member) = self.member(rank);
        let (from, by, to) = self.split(position);
        (from == member).then(|| self.rank(self.displaced(group, by, true), to))
    }

    /// From whom the block is that stands in `position` on `rank` in the end, if one does.
    pub fn source(&self, rank: Rank, position: Position) -> Option<Rank> {
        let (group, member) = self.member(rank);
        let (from, by, to) = self.split(position);
        (to == member).then(|| self.rank(self.displaced(group, by, false), from))
    }

    /// True if a block may ever stand in `position` on `rank`.
    pub fn has_room(&self, rank: Rank, position: Position) -> bool {
        let (_, member) = self.member(rank);
        let (from, _, to) = self.split(position);
        member == 0 || from == member || to == member
    }

    /// The positions that `rank` gives at the start, or gets in the end.
    pub fn own(&self, rank: Rank, gets: bool) -> SmallVec<[Range<u32>; 1]> {
        let (_, member) = self.member(rank);
        let runs = self.runs(self.digits_of(member, gets));
        runs.iter().map(|run| run.start..run.end()).collect()
    }

    /// A member's positions as digits: giver, displacement, getter.
    fn digits_of(&self, member: u32, gets: bool) -> SmallVec<[(u32, Option<u32>); 8]> {
        let (from, to) = if gets { (None, Some(member)) } else { (Some(member), None) };
        [(self.served, from), (self.n_groups(), None), (self.served, to)].into_iter().collect()
    }

    /// All numbers with some digits fixed, as runs.
    fn runs(&self, mut digits: SmallVec<[(u32, Option<u32>); 8]>) -> Blocks {
        let mut len = 1;
        while let Some(&(size, None)) = digits.last() {
            len *= size;
            digits.pop();
        }
        let mut starts: SmallVec<[u32; 16]> = SmallVec::from_slice(&[0]);
        for (size, fixed) in digits {
            let values = fixed.map_or(0..size, |value| value..value + 1);
            let next = |start: &u32| {
                let start = *start;
                values.clone().map(move |value| start * size + value)
            };
            starts = starts.iter().flat_map(next).collect();
        }
        starts.into_iter().map(|start| Run::new(start * len, len)).collect()
    }

    /// The positions of a part, as every rank that sends or receives it lists them.
    pub fn positions(&self, part: &Part) -> Blocks {
        match part {
            Part::Displaced { by, along } => {
                let digits = self.digits(*by);
                let axes = self.axes().iter().zip(digits).zip(along);
                let axes = axes.map(|((&size, digit), &along)| (size, along.then_some(digit)));
                let members = || std::iter::once((self.served, None));
                self.runs(members().chain(axes).chain(members()).collect())
            }
            Part::Member { member, gets } => {
                let all = self.runs(self.digits_of(*member, *gets));
                let own = (member * self.n_groups()) * self.served + member;
                all.into_iter().flat_map(|run| without(run, own)).collect()
            }
        }
    }
}

/// A run without one of its positions.
fn without(run: Run, position: u32) -> impl Iterator<Item = Run> {
    let at = position.clamp(run.start, run.end());
    let next = if at == position { at + 1 } else { at };
    let runs = [(run.start, at), (next, run.end())];
    runs.into_iter()
        .filter(|(start, end)| start < end)
        .map(|(start, end)| Run::new(start, end - start))
}
