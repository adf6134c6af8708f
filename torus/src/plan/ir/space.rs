//! Working spaces: which block stands in which position.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::grid::Grid;
use super::runs::{Run, Runs, append};
use super::split::Part;
use super::torus::Torus;
use crate::collectives::{Collective, Payload, Share};
use crate::geometry::Vertex;
use crate::names::{Block, Position, Rank};
use crate::patterns::Pattern;

/// The positions of a lane on all ranks, and their contents.
#[derive(Clone, Debug)]
pub struct Space {
    /// Contents of a position: a piece of one vector, a block of a rank, or nothing.
    pub payload: Payload,
    /// Number of positions.
    pub n_positions: u32,
    /// The order of the blocks.
    pub order: BlockOrder,
}

/// Which block stands in which position.
#[derive(Clone, Debug)]
pub enum BlockOrder {
    /// Block i in position i.
    Identity,
    /// The same permutation at the start and at the end, on all ranks.
    Listed(Arc<BlockPermutation>),
    /// A position is a displacement ([`Payload::Pairs`]).
    Displaced(Arc<Displaced>),
    /// A position is a displacement along axes, and names two members of groups that have leaders
    /// ([`Payload::Pairs`]).
    Grid(Arc<Grid>),
    /// The blocks of one rank by position, as lists, for positions that are displacements. The lists are valid for
    /// that rank only.
    Own {
        /// By position, the destination of the block that this rank has there at the start; `None` if it has none
        /// there.
        start: Arc<[Option<Block>]>,
        /// By position, the source of the block that this rank has there at the end; `None` if it has none there.
        end: Arc<[Option<Block>]>,
        /// All positions with room, in ascending runs, if this rank is a leader through which blocks of other ranks
        /// pass; else empty.
        room: Arc<[Run]>,
    },
}

/// A permutation of the blocks, with its inverse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockPermutation {
    block_at: Vec<Block>,
    position_of: Vec<Position>,
}

impl BlockPermutation {
    /// The order in which position i holds `block_at[i]`; `None` if `block_at` is not a permutation.
    pub fn new(block_at: Vec<Block>) -> Option<Self> {
        let nowhere = Position(u32::MAX);
        let mut position_of = vec![nowhere; block_at.len()];
        for (position, block) in block_at.iter().enumerate() {
            let place = position_of.get_mut(block.index()).filter(|place| **place == nowhere)?;
            *place = Position(position as u32);
        }
        Some(BlockPermutation { block_at, position_of })
    }
}

/// Positions as displacements. In each dimension the displacement from coordinate a to b is the image of b under
/// the pattern's renumbering that moves a to 0.
#[derive(Debug)]
pub struct Displaced {
    pub(crate) torus: Arc<Torus>,
    pub(crate) patterns: Vec<Pattern>,
    /// The displacement of each position, as the node with these coordinates.
    pub(crate) displacements: Vec<Vertex>,
}

impl Displaced {
    /// The rank whose coordinate in each dimension is `at(pattern, here, by)`, where `here` is the coordinate of
    /// `rank` and `by` the displacement of `position`.
    fn rank(&self, rank: Rank, position: Position, at: impl Fn(&Pattern, u32, u32) -> u32) -> Rank {
        let mut here = self.torus.vertex(rank).0;
        let mut by = self.displacements[position.index()].0;
        let (mut stride, mut node) = (1, 0);
        for pattern in self.patterns.iter().rev() {
            let size = pattern.size();
            node += at(pattern, here % size, by % size) * stride;
            (here, by, stride) = (here / size, by / size, stride * size);
        }
        self.torus.rank_on(Vertex(node))
    }

    /// Destination of the block that stands in `position` on `rank` at the start.
    pub fn destination(&self, rank: Rank, position: Position) -> Rank {
        self.rank(rank, position, |pattern, here, by| pattern.denormalise(by, here))
    }

    /// Source of the block that stands in `position` on `rank` at the end.
    pub fn source(&self, rank: Rank, position: Position) -> Rank {
        self.rank(rank, position, |pattern, here, by| pattern.solve(here, by))
    }
}

impl Space {
    /// The block that has its place in `position` on `rank` at the start, whether or not the collective has the
    /// rank give it; `None` if no block of this rank stands there at the start.
    pub fn block_at_start(&self, rank: Rank, position: Position) -> Option<Block> {
        self.block(rank, position, false)
    }

    /// The block that has its place in `position` on `rank` at the end, whether or not the collective has the rank
    /// get it; `None` if no block of this rank stands there at the end.
    pub fn block_at_end(&self, rank: Rank, position: Position) -> Option<Block> {
        self.block(rank, position, true)
    }

    fn block(&self, rank: Rank, position: Position, at_end: bool) -> Option<Block> {
        let owner = match (&self.order, at_end) {
            (BlockOrder::Identity, _) => return Some(Block(position.0)),
            (BlockOrder::Listed(list), _) => return Some(list.block_at[position.index()]),
            (BlockOrder::Own { start, .. }, false) => return start[position.index()],
            (BlockOrder::Own { end, .. }, true) => return end[position.index()],
            (BlockOrder::Displaced(by), false) => Some(by.destination(rank, position)),
            (BlockOrder::Displaced(by), true) => Some(by.source(rank, position)),
            (BlockOrder::Grid(grid), false) => grid.destination(rank, position),
            (BlockOrder::Grid(grid), true) => grid.source(rank, position),
        };
        owner.map(|rank| Block(rank.0))
    }

    /// The space as lists of the blocks of `rank`; `None` if its positions are not displacements.
    pub(crate) fn listed(&self, rank: Rank) -> Option<Space> {
        if !matches!(self.order, BlockOrder::Displaced(_) | BlockOrder::Grid(_)) {
            return None;
        }
        let positions = || Position::first(self.n_positions);
        let order = BlockOrder::Own {
            start: positions().map(|position| self.block_at_start(rank, position)).collect(),
            end: positions().map(|position| self.block_at_end(rank, position)).collect(),
            room: self.room_for_others(rank).into_vec().into(),
        };
        Some(Space { order, ..*self })
    }

    /// The position of the block of `rank`, in a space of one block per rank; a position beyond the space if it has
    /// fewer blocks.
    pub fn position_of(&self, rank: Rank) -> Position {
        let listed = match &self.order {
            BlockOrder::Listed(list) => list.position_of.get(rank.index()),
            _ => None,
        };
        listed.copied().unwrap_or(Position(rank.0))
    }

    /// The positions of a share of the data on `rank`, at the start or at the end, as ascending ranges.
    pub fn positions(&self, share: Share, rank: Rank, at_end: bool) -> SmallVec<[Range<u32>; 1]> {
        let one = |range| SmallVec::from_elem(range, 1);
        match (share, &self.order) {
            (Share::Nothing, _) => SmallVec::new(),
            (Share::Own, _) => {
                let own = self.position_of(rank).0;
                one(own..own + 1)
            }
            (Share::All, BlockOrder::Grid(grid)) => grid.own(rank, at_end),
            (Share::All, BlockOrder::Own { start, end, .. }) => {
                let list = if at_end { end } else { start };
                let mut at = 0;
                let chunks = list.chunk_by(|a, b| a.is_some() == b.is_some()).map(|chunk| {
                    at += chunk.len() as u32;
                    (chunk[0].is_some(), at - chunk.len() as u32..at)
                });
                chunks.filter(|(is_own, _)| *is_own).map(|(_, range)| range).collect()
            }
            (Share::All, _) => one(0..self.n_positions),
        }
    }

    /// True if at some time a block can stand in `position` on `rank`. If leaders handle the blocks of other ranks,
    /// those other ranks have no room for them.
    pub fn has_room(&self, rank: Rank, position: Position) -> bool {
        match &self.order {
            BlockOrder::Grid(grid) => grid.has_room(rank, position),
            BlockOrder::Own { start, end, room } => {
                let is_own = |list: &[Option<Block>]| list[position.index()].is_some();
                let at = room.partition_point(|run| run.end() <= position.0);
                is_own(start)
                    || is_own(end)
                    || room.get(at).is_some_and(|run| run.start <= position.0)
            }
            _ => true,
        }
    }

    /// The first position in `runs` that has no room on `rank`.
    pub(crate) fn first_without_room(&self, rank: Rank, runs: &[Run]) -> Option<Position> {
        let has_all = match &self.order {
            BlockOrder::Grid(grid) => grid.member(rank).1 == 0,
            _ => self.is_full(),
        };
        if has_all {
            return None;
        }
        let mut positions = runs.iter().flat_map(|run| run.start..run.end()).map(Position);
        positions.find(|&position| !self.has_room(rank, position))
    }

    /// All positions with room on `rank`, ascending, if the rank has blocks of its own in only some of them at the
    /// start or at the end; else empty.
    pub(crate) fn room_for_others(&self, rank: Rank) -> Runs {
        if self.is_full() {
            return Runs::new();
        }
        let (mut room, mut has_more) = (Runs::new(), false);
        for position in Position::first(self.n_positions) {
            if !self.has_room(rank, position) {
                continue;
            }
            has_more |= self.block_at_start(rank, position).is_none()
                && self.block_at_end(rank, position).is_none();
            append(&mut room, position.0);
        }
        if has_more { room } else { Runs::new() }
    }

    /// True if every position holds a block of the rank both at the start and at the end.
    pub fn is_full(&self) -> bool {
        match &self.order {
            BlockOrder::Grid(grid) => grid.served() == 1,
            BlockOrder::Own { start, .. } => start.iter().all(Option::is_some),
            _ => true,
        }
    }

    /// The number of positions that hold blocks of a rank: as many as blocks that it gives, or gets.
    pub fn n_blocks(&self) -> u32 {
        match &self.order {
            BlockOrder::Grid(grid) => grid.n_ranks(),
            BlockOrder::Own { start, .. } => start.iter().flatten().count() as u32,
            _ => self.n_positions,
        }
    }

    /// True if position i holds block i at the start and at the end.
    pub fn is_identity(&self) -> bool {
        matches!(self.order, BlockOrder::Identity)
    }

    /// True if neighbouring positions are not adjacent in the user's buffer when each holds `part` of a block: the
    /// part is not the whole block, or the blocks have another order. The same on all ranks.
    pub fn is_noncontiguous(&self, part: Part) -> bool {
        let is_block = matches!(self.payload, Payload::Blocks | Payload::Pairs);
        is_block && !(part.is_whole() && self.is_identity())
    }

    /// True if each position is a run of its own when messages are cut ([`segments`](crate::plan::segments)):
    /// neighbouring positions are apart in the user's buffer, and are sent from and received into it without a
    /// copy. Operands of a reduction are not received there anyway, and longer messages cost less.
    pub fn sends_by_position(&self, part: Part, collective: Collective) -> bool {
        !collective.is_reduction() && self.is_noncontiguous(part)
    }

    /// Checks that the order fits the payload: pieces of a vector and tokens have the identity order, and the block
    /// of each of `n_ranks` ranks stands in exactly one position; blocks of pairs are checked for `rank`.
    ///
    /// # Errors
    /// The defect, as the predicate of a sentence about the order.
    pub(crate) fn check_order(&self, rank: Rank, n_ranks: u32) -> Result<(), &'static str> {
        match (&self.order, self.payload) {
            (BlockOrder::Identity, Payload::Vector | Payload::Blocks | Payload::Token) => Ok(()),
            (BlockOrder::Listed(list), Payload::Blocks) => {
                let fits = list.block_at.len() == self.n_positions as usize;
                if fits { Ok(()) } else { Err("is not as long as there are positions") }
            }
            (BlockOrder::Identity, Payload::Pairs) => Err("of pairs is missing: start and end"),
            (
                BlockOrder::Displaced(_) | BlockOrder::Grid(_) | BlockOrder::Own { .. },
                Payload::Pairs,
            ) => self.check_pairs(rank, n_ranks),
            _ => Err("is listed where positions have one order only"),
        }
    }

    /// Checks that the positions of a rank's own blocks, at the start and at the end, hold the block of each rank
    /// once, and that no other position holds a block.
    fn check_pairs(&self, rank: Rank, n_ranks: u32) -> Result<(), &'static str> {
        let n_positions = self.n_positions as usize;
        match &self.order {
            BlockOrder::Displaced(displaced) if displaced.displacements.len() != n_positions => {
                return Err("is not as long as there are positions");
            }
            BlockOrder::Own { start, end, .. }
                if start.len() != n_positions || end.len() != n_positions =>
            {
                return Err("is not as long as there are positions");
            }
            BlockOrder::Own { room, .. } => {
                let are_apart = room.is_sorted_by(|a, b| a.end() <= b.start);
                let is_inside = room.last().is_none_or(|run| run.end() <= self.n_positions);
                if !are_apart || !is_inside {
                    return Err("has room in runs that are not in order");
                }
            }
            _ => {}
        }
        for at_end in [false, true] {
            let mut is_there = vec![false; n_ranks as usize];
            let mut n_blocks = 0;
            let own = self.positions(Share::All, rank, at_end);
            let mut own = own.into_iter().peekable();
            for position in Position::first(self.n_positions) {
                let block = self.block(rank, position, at_end);
                while own.next_if(|range| range.end <= position.0).is_some() {}
                let is_own = own.peek().is_some_and(|range| range.start <= position.0);
                let place = block.map(|block| is_there.get_mut(block.index()));
                let is_right = match place {
                    None => !is_own,
                    Some(Some(is_there)) => is_own && !std::mem::replace(is_there, true),
                    Some(None) => false,
                };
                if !is_right {
                    return Err("does not hold every block once");
                }
                n_blocks += u32::from(is_own);
            }
            if n_blocks != n_ranks {
                return Err("does not hold every block once");
            }
        }
        Ok(())
    }

    /// True if both spaces hold the same blocks in the same positions on `rank`.
    pub fn equals_on(&self, other: &Space, rank: Rank) -> bool {
        (self.payload, self.n_positions) == (other.payload, other.n_positions)
            && match (&self.order, &other.order) {
                (BlockOrder::Identity, BlockOrder::Identity) => true,
                (BlockOrder::Listed(a), BlockOrder::Listed(b)) => Arc::ptr_eq(a, b) || a == b,
                (BlockOrder::Displaced(a), BlockOrder::Displaced(b)) if Arc::ptr_eq(a, b) => true,
                (BlockOrder::Grid(a), BlockOrder::Grid(b)) if Arc::ptr_eq(a, b) => true,
                _ => Position::first(self.n_positions).all(|position| {
                    self.block_at_start(rank, position) == other.block_at_start(rank, position)
                        && self.block_at_end(rank, position) == other.block_at_end(rank, position)
                        && self.has_room(rank, position) == other.has_room(rank, position)
                }),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::RankMap;
    use crate::plan::check::{Expect, PlanFault, check};
    use crate::plan::{Defect, Flow, Lane, Listed, Plan, Step, Transfer};
    use crate::registry::{self, Request};
    use crate::{Collective, PortId, Shape};

    /// Faulty tables: two positions have the same displacement, so both hold blocks for the next rank, and no
    /// position holds blocks for the rank after it.
    #[test]
    fn displacements_are_proved_to_reach_every_rank() {
        let request = Request {
            shape: "3".parse::<Shape>().unwrap(),
            map: RankMap::RowMajor,
            root: Rank(0),
            ports: Some(1),
        };
        let algorithm = registry::find(Collective::Alltoall, "circulant").unwrap();
        let expansion = algorithm.schedule(&request).unwrap().expand().unwrap();
        let space = expansion.lanes()[0].space.clone();
        let BlockOrder::Displaced(right) = &space.order else { panic!("{space:?}") };
        let wrong = Displaced {
            torus: right.torus.clone(),
            patterns: right.patterns.clone(),
            displacements: [0, 1, 1].map(Vertex).to_vec(),
        };
        let next = |rank| wrong.destination(rank, Position(1));
        let previous = |rank| wrong.source(rank, Position(1));
        let transfer =
            |peer| Transfer { peer, port: PortId(0), runs: Runs::from_slice(&[Run::new(1, 2)]) };
        let steps: Vec<Vec<Step>> = Rank::first(3)
            .map(|rank| {
                let mut step = Step::default();
                step.sends.push(transfer(next(rank)));
                step.recvs.push(transfer(previous(rank)));
                vec![step]
            })
            .collect();
        let space = Arc::new(Space { order: BlockOrder::Displaced(Arc::new(wrong)), ..*space });
        let plans = Rank::first(3).zip(steps).map(|(rank, steps)| Plan {
            lanes: vec![Lane {
                space: space.clone(),
                steps,
                ..expansion.plan(rank).lanes[0].clone()
            }],
            ..expansion.plan(rank)
        });
        let found = check(&Listed::new(plans.collect()).unwrap(), Expect::default());
        let faults: Vec<PlanFault> = found.into_iter().map(|violation| violation.fault).collect();
        let what = "does not hold every block once";
        assert_eq!(faults, [0; 3].map(|_| PlanFault::Local(Defect::Order { what })));
    }
}
