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
//!
//! Groups of a node that leaders serve may have one member more or less. Positions are numbered as
//! if all were as large as the largest: those of a member that a group has not stand for nothing, and
//! are in no message. A block's giver and getter are in groups as far on in their nodes as long as it
//! has not moved along the last axis, so that which positions stand for something follows from the
//! sender's group alone. Without leaders a block needs a rank with its sender's number in every group:
//! those must be equally large.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::runs::{Run, Runs};
use super::torus::Torus;
use crate::geometry::{Shape, Vertex};
use crate::names::{Position, Rank};

/// Which ranks of a node belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeGroups {
    /// So many, a divisor of the ranks on a node; everybody handles blocks of its own.
    OfSize(u32),
    /// All ranks of a node; everybody handles blocks of its own.
    WholeNode,
    /// So many groups on each node, as even as they can be, the larger ones first. The first
    /// member of each handles the blocks of all.
    WithLeaders(u32),
}

/// See the module documentation.
#[derive(Debug)]
pub struct Grid {
    torus: Arc<Torus>,
    /// Sizes of the axes, that of the members last; nodes are numbered row-major.
    sizes: SmallVec<[u32; 8]>,
    /// Members of the largest group whose leader handles their blocks; 1 if everybody is on its own.
    served: u32,
    /// Groups of each node that have so many; the others have one less.
    n_large: u32,
}

impl Grid {
    /// The grid of a shape whose node axis, if it has one, is split into groups.
    pub fn new(torus: Arc<Torus>, groups: NodeGroups) -> Self {
        let mut sizes: SmallVec<[u32; 8]> = torus.shape.sizes().into_iter().collect();
        let per_node = torus.shape.ranks_per_node();
        let (n_groups, largest, served) = match groups {
            NodeGroups::OfSize(size) => (per_node / size, size, 1),
            NodeGroups::WholeNode => (1, per_node, 1),
            NodeGroups::WithLeaders(n_groups) => {
                let largest = per_node.div_ceil(n_groups);
                (n_groups, largest, largest)
            }
        };
        // A leader of itself alone is one of the node.
        if torus.shape.node_dim().is_some()
            && !(matches!(groups, NodeGroups::WithLeaders(_)) && served == 1)
        {
            let last = sizes.len() - 1;
            sizes[last] = n_groups;
            sizes.push(largest);
        }
        let n_large = n_groups - (n_groups * largest - per_node);
        Grid { torus, sizes, served, n_large }
    }

    /// Groups of each node.
    fn per_node(&self) -> u32 {
        match self.served {
            1 => self.torus.shape.ranks_per_node(),
            _ => self.sizes[self.n_axes() - 1],
        }
    }

    /// True if all groups have as many members.
    fn is_even(&self) -> bool {
        self.served == 1 || self.n_large == self.per_node()
    }

    /// Members of a group.
    pub fn size(&self, group: u32) -> u32 {
        match self.is_even() || group % self.per_node() < self.n_large {
            true => self.served,
            false => self.served - 1,
        }
    }

    /// One group for each layout: those of the first node, or group 0 if all groups are equally large.
    pub fn alike(&self) -> std::ops::Range<u32> {
        0..if self.is_even() { 1 } else { self.per_node() }
    }

    /// All groups with the layout of group `first`.
    pub fn like(&self, first: u32) -> impl Iterator<Item = u32> {
        (first..self.n_groups()).step_by(self.alike().len())
    }

    /// The shape with nodes on which all groups are as large as the largest.
    pub fn even_shape(&self) -> Cow<'_, Shape> {
        let shape = &self.torus.shape;
        if self.is_even() {
            return Cow::Borrowed(shape);
        }
        let nodes = shape.without_node_axis();
        Cow::Owned(nodes.with_ranks_per_node(self.per_node() * self.served).expect("validated"))
    }

    /// Number of axes along which groups, or ranks that are on their own, are displaced.
    pub fn n_axes(&self) -> usize {
        self.sizes.len() - usize::from(self.served > 1)
    }

    /// The shape and the rank map.
    pub fn torus(&self) -> &Torus {
        &self.torus
    }

    /// Members of a group that has a leader; 1 if there are none.
    pub fn served(&self) -> u32 {
        self.served
    }

    /// Groups with a leader, or ranks that are on their own.
    pub fn n_groups(&self) -> u32 {
        self.axes().iter().product()
    }

    /// Number of ranks.
    pub fn n_ranks(&self) -> u32 {
        self.torus.shape.n_ranks()
    }

    /// Number of positions.
    pub fn n_positions(&self) -> u32 {
        self.n_groups() * self.served * self.served
    }

    /// The sizes of the axes along which there are displacements.
    pub fn axes(&self) -> &[u32] {
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
    pub fn digits(&self, by: u32) -> SmallVec<[u32; 8]> {
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
        let at = self.torus.vertex(rank).0;
        if self.is_even() {
            return (at / self.served, at % self.served);
        }
        let per_node = self.torus.shape.ranks_per_node();
        let (first, at) = (at / per_node * self.per_node(), at % per_node);
        let in_large = self.n_large * self.served;
        let (group, member) = match at.checked_sub(in_large) {
            None => (at / self.served, at % self.served),
            Some(beyond) => {
                let size = self.served - 1;
                (self.n_large + beyond / size, beyond % size)
            }
        };
        (first + group, member)
    }

    /// The rank that has a number in a group.
    pub fn rank(&self, group: u32, member: u32) -> Rank {
        let first = match self.is_even() {
            true => group * self.served,
            false => {
                let (node, group) = (group / self.per_node(), group % self.per_node());
                let before = group * self.served - group.saturating_sub(self.n_large);
                node * self.torus.shape.ranks_per_node() + before
            }
        };
        self.torus.rank_on(Vertex(first + member))
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
        let getters = self.displaced(group, by, true);
        (from == member && to < self.size(getters)).then(|| self.rank(getters, to))
    }

    /// From whom the block is that stands in `position` on `rank` in the end, if one does.
    pub fn source(&self, rank: Rank, position: Position) -> Option<Rank> {
        let (group, member) = self.member(rank);
        let (from, by, to) = self.split(position);
        let givers = self.displaced(group, by, false);
        (to == member && from < self.size(givers)).then(|| self.rank(givers, from))
    }

    /// True if a block may ever stand in `position` on `rank`.
    pub fn has_room(&self, rank: Rank, position: Position) -> bool {
        let (_, member) = self.member(rank);
        member == 0
            || self.destination(rank, position).is_some()
            || self.source(rank, position).is_some()
    }

    /// The positions that `rank` gives at the start, or gets in the end.
    pub fn own(&self, rank: Rank, gets: bool) -> SmallVec<[Range<u32>; 1]> {
        let (group, member) = self.member(rank);
        let all = Cow::Owned(self.runs(self.digits_of(member, gets)));
        let runs = self.standing(all, group, gets);
        runs.iter().map(|run| run.start..run.end()).collect()
    }

    /// A member's positions as digits: giver, displacement, getter.
    fn digits_of(&self, member: u32, gets: bool) -> SmallVec<[(u32, Option<u32>); 8]> {
        let (from, to) = if gets { (None, Some(member)) } else { (Some(member), None) };
        [(self.served, from), (self.n_groups(), None), (self.served, to)].into_iter().collect()
    }

    /// All numbers with some digits fixed, as runs.
    fn runs(&self, mut digits: SmallVec<[(u32, Option<u32>); 8]>) -> Runs {
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

    /// Of these positions those that stand for something at the leader of `group`, before they
    /// move along the last axis; or in the end.
    pub fn standing<'a>(&self, runs: Cow<'a, Runs>, group: u32, in_the_end: bool) -> Cow<'a, Runs> {
        if self.is_even() {
            return runs;
        }
        let stands = |position: &u32| {
            let (from, by, to) = self.split(Position(*position));
            let own = if in_the_end { to } else { from };
            let others = if in_the_end { from } else { to };
            own < self.size(group) && others < self.size(self.displaced(group, by, !in_the_end))
        };
        let all = runs.iter().flat_map(|run| run.start..run.end()).filter(stands);
        let mut runs = Runs::new();
        for position in all {
            match runs.last_mut() {
                Some(run) if run.end() == position => run.len += 1,
                _ => runs.push(Run::new(position, 1)),
            }
        }
        Cow::Owned(runs)
    }

    /// All positions that are displaced `by` along these axes, whatever they are along the others,
    /// along which `by` is 0.
    pub fn displaced_positions(&self, by: u32, along: &[bool]) -> Runs {
        let axes = self.axes().iter().zip(self.digits(by)).zip(along);
        let axes = axes.map(|((&size, digit), &along)| (size, along.then_some(digit)));
        let members = || std::iter::once((self.served, None));
        self.runs(members().chain(axes).chain(members()).collect())
    }

    /// The positions that a member of `group` gives, or gets, but the one that it gives itself; none
    /// if the group is too small to have the member.
    pub fn member_positions(&self, group: u32, member: u32, gets: bool) -> Runs {
        let all = self.runs(self.digits_of(member, gets));
        let own = (member * self.n_groups()) * self.served + member;
        let others = all.into_iter().flat_map(|run| without(run, own)).collect();
        self.standing(Cow::Owned(others), group, gets).into_owned()
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
