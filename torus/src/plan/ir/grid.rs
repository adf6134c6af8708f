//! The ranks of a torus as a grid for exchanges: the axes of the shape, the node axis split into
//! groups and the members of a group.
//!
//! A position is a displacement on the grid: one digit for each axis, without a carry between digits. It first
//! holds the block for the rank at that displacement, and at the end the block from the rank at the opposite
//! displacement. An exchange along some axes moves all positions with a non-zero displacement along these axes,
//! whatever their displacement along the other axes. Exchanges along all axes, one after the other, make an
//! alltoall.
//!
//! If leaders handle the blocks of all members of their groups, a position also names two members:
//! `(s * groups + displacement) * members + d` is the block of member `s` of a group for member `d` of the group at
//! that displacement. A member other than the leader uses the positions with its own number as `s` at the start,
//! and those with its own number as `d` at the end, and no others.
//!
//! Groups of a node that have leaders may differ in size by one member. Positions are numbered as if all groups
//! were as large as the largest; the positions of missing members are unused and in no message. As long as a block
//! has not moved along the last axis, the group that holds it and its source's group have the same number within
//! their nodes, so the holder's group alone determines which positions are used. Without leaders a block needs a
//! rank with its source's member number in every group, so groups must be equally large.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::runs::{Run, Runs, append};
use super::torus::Torus;
use crate::geometry::{Shape, Vertex};
use crate::names::{Position, Rank};

/// How the ranks of a node form groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeGroups {
    /// Groups of this size, a divisor of the ranks on a node; each rank handles its own blocks.
    OfSize(u32),
    /// One group of all ranks of a node; each rank handles its own blocks.
    WholeNode,
    /// This number of groups on each node, as even as possible, the larger ones first. The first member of each
    /// group, its leader, handles the blocks of all members.
    WithLeaders(u32),
}

/// The grid of ranks; see the module documentation.
#[derive(Debug)]
pub struct Grid {
    torus: Arc<Torus>,
    /// Sizes of the axes; the axis of a group's members is last. Nodes are numbered in row-major order.
    sizes: SmallVec<[u32; 8]>,
    /// Members of the largest group that has a leader; 1 if each rank handles its own blocks.
    served: u32,
    /// Number of groups per node that have `served` members; the other groups have one member less.
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
        // Groups of one member that is its own leader need no split of the node axis.
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

    /// Number of groups per node.
    fn per_node(&self) -> u32 {
        match self.served {
            1 => self.torus.shape.ranks_per_node(),
            _ => self.sizes[self.n_axes() - 1],
        }
    }

    /// True if all groups have the same number of members.
    fn is_even(&self) -> bool {
        self.served == 1 || self.n_large == self.per_node()
    }

    /// Number of members of a group.
    pub fn size(&self, group: u32) -> u32 {
        match self.is_even() || group % self.per_node() < self.n_large {
            true => self.served,
            false => self.served - 1,
        }
    }

    /// One group for each layout: the groups of the first node, or group 0 if all groups are equally large.
    pub fn layouts(&self) -> std::ops::Range<u32> {
        0..if self.is_even() { 1 } else { self.per_node() }
    }

    /// All groups with the layout of group `first`.
    pub fn groups_with_layout(&self, first: u32) -> impl Iterator<Item = u32> {
        (first..self.n_groups()).step_by(self.layouts().len())
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

    /// Number of axes along which groups, or ranks without leaders, are displaced.
    pub fn n_axes(&self) -> usize {
        self.sizes.len() - usize::from(self.served > 1)
    }

    /// The shape and the rank map.
    pub fn torus(&self) -> &Torus {
        &self.torus
    }

    /// Members of the largest group that has a leader; 1 without leaders.
    pub fn served(&self) -> u32 {
        self.served
    }

    /// Number of groups with a leader, or of ranks if there are no leaders.
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

    /// The sizes of the axes along which groups are displaced.
    pub fn axes(&self) -> &[u32] {
        &self.sizes[..self.n_axes()]
    }

    /// The group at displacement `by` from `group`, or at the opposite displacement.
    pub fn displaced(&self, group: u32, by: u32, forwards: bool) -> u32 {
        let (mut rest, mut by, mut stride, mut sum) = (group, by, 1, 0);
        for &size in self.axes().iter().rev() {
            let step = if forwards { by % size } else { size - by % size };
            sum += (rest % size + step) % size * stride;
            (rest, by, stride) = (rest / size, by / size, stride * size);
        }
        sum
    }

    /// The digits of a displacement: the distance along each axis.
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

    /// True if a displacement is 0 along all axes that are not in `along`.
    pub fn is_along(&self, by: u32, along: &[bool]) -> bool {
        self.digits(by).iter().zip(along).all(|(&digit, &along)| along || digit == 0)
    }

    /// The group of a rank, and the rank's number in it.
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

    /// The rank with number `member` in a group.
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

    /// Decodes a position: source member, displacement, destination member.
    fn split(&self, position: Position) -> (u32, u32, u32) {
        let rest = position.0 / self.served;
        (rest / self.n_groups(), rest % self.n_groups(), position.0 % self.served)
    }

    /// Destination of the block that stands in `position` on `rank` at the start; `None` if none does.
    pub fn destination(&self, rank: Rank, position: Position) -> Option<Rank> {
        let (group, member) = self.member(rank);
        let (from, by, to) = self.split(position);
        let getters = self.displaced(group, by, true);
        (from == member && to < self.size(getters)).then(|| self.rank(getters, to))
    }

    /// Source of the block that stands in `position` on `rank` at the end; `None` if none does.
    pub fn source(&self, rank: Rank, position: Position) -> Option<Rank> {
        let (group, member) = self.member(rank);
        let (from, by, to) = self.split(position);
        let givers = self.displaced(group, by, false);
        (to == member && from < self.size(givers)).then(|| self.rank(givers, from))
    }

    /// True if at some time a block can stand in `position` on `rank`.
    pub fn has_room(&self, rank: Rank, position: Position) -> bool {
        let (_, member) = self.member(rank);
        member == 0
            || self.destination(rank, position).is_some()
            || self.source(rank, position).is_some()
    }

    /// The positions of the blocks that `rank` has at the start, or at the end if `at_end`.
    pub fn own(&self, rank: Rank, at_end: bool) -> SmallVec<[Range<u32>; 1]> {
        let (group, member) = self.member(rank);
        let all = Cow::Owned(self.runs(self.digits_of(member, at_end)));
        let runs = self.used_positions(all, group, at_end);
        runs.iter().map(|run| run.start..run.end()).collect()
    }

    /// A member's positions as digits: source member, displacement, destination member.
    fn digits_of(&self, member: u32, at_end: bool) -> SmallVec<[(u32, Option<u32>); 8]> {
        let (from, to) = if at_end { (None, Some(member)) } else { (Some(member), None) };
        [(self.served, from), (self.n_groups(), None), (self.served, to)].into_iter().collect()
    }

    /// All numbers in which some digits have fixed values, as runs.
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

    /// Those of `runs` that are used at the leader of `group` as long as blocks have not moved along the last axis;
    /// with `at_end`, after all exchanges.
    pub fn used_positions<'a>(
        &self,
        runs: Cow<'a, Runs>,
        group: u32,
        at_end: bool,
    ) -> Cow<'a, Runs> {
        if self.is_even() {
            return runs;
        }
        let is_used = |position: &u32| {
            let (from, by, to) = self.split(Position(*position));
            let own = if at_end { to } else { from };
            let others = if at_end { from } else { to };
            own < self.size(group) && others < self.size(self.displaced(group, by, !at_end))
        };
        let all = runs.iter().flat_map(|run| run.start..run.end()).filter(is_used);
        let mut runs = Runs::new();
        all.for_each(|position| append(&mut runs, position));
        Cow::Owned(runs)
    }

    /// All positions whose displacement along the axes `along` is that of `by`, with any displacement along the
    /// other axes, along which `by` is 0.
    pub fn displaced_positions(&self, by: u32, along: &[bool]) -> Runs {
        let axes = self.axes().iter().zip(self.digits(by)).zip(along);
        let axes = axes.map(|((&size, digit), &along)| (size, along.then_some(digit)));
        let members = || std::iter::once((self.served, None));
        self.runs(members().chain(axes).chain(members()).collect())
    }

    /// The positions of the blocks that a member of `group` has at the start, or at the end if `at_end`, except the
    /// block for itself; none if the group is too small to have the member.
    pub fn member_positions(&self, group: u32, member: u32, at_end: bool) -> Runs {
        let all = self.runs(self.digits_of(member, at_end));
        let own = (member * self.n_groups()) * self.served + member;
        let others = all.into_iter().flat_map(|run| without(run, own)).collect();
        self.used_positions(Cow::Owned(others), group, at_end).into_owned()
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
