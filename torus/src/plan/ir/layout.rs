//! Offsets of a lane's positions. A lane's part of a vector is cut into positions by the same rule as the vector
//! into parts ([`Part`]); of blocks, each position holds the lane's part of one block.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::runs::Run;
use super::split::{Part, bound};
use super::types::Lane;
use crate::collectives::Payload;
use crate::names::{Block, Position, Rank};

/// Numbers of elements: of a vector, or of each block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Counts {
    /// Elements of the vector, or of each block.
    Equal(u64),
    /// Elements of each block, by block number.
    PerBlock(Arc<[u64]>),
}

impl Counts {
    /// The elements of a block; of a vector, the argument is ignored.
    pub fn of(&self, block: Block) -> u64 {
        match self {
            Counts::Equal(count) => *count,
            Counts::PerBlock(counts) => counts[block.index()],
        }
    }
}

/// The extent of one lane's working space on one rank, in elements.
///
/// Positions are consecutive: a position starts at the sum of the rooms of the positions before it. A position has
/// room for the block that it holds at the start and for the one that it holds at the end; these differ only if
/// positions are displacements ([`Payload::Pairs`]). Blocks that pass through a position may need more room:
/// [`Extent::for_passing`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    n_positions: u32,
    part: Part,
    lens: Lens,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Lens {
    /// Every position is empty.
    None,
    /// One vector of this length, cut into the positions.
    Vector(u64),
    /// The same number of elements in every position.
    Equal(u64),
    /// Start of each position, and the end of the last one. If `has_slack`, the data in a position may be shorter
    /// than its room.
    Bounds { bounds: Box<[u64]>, has_slack: bool },
}

/// Prefix sums of `lens`: start of each position, and the end of the last one.
fn bounds(lens: impl Iterator<Item = u64>) -> Box<[u64]> {
    let mut at = 0;
    std::iter::once(0).chain(lens.map(|len| (at += len, at).1)).collect()
}

impl Extent {
    /// The extent of `lane` on `rank`, whose blocks have `send_counts` elements at the start and `recv_counts` elements
    /// at the end. The two are equal unless positions are displacements. A vector has `send_counts` elements, a
    /// [`Payload::Token`] none.
    pub fn new(lane: &Lane, rank: Rank, send_counts: &Counts, recv_counts: &Counts) -> Self {
        let Lane { part, ref space, .. } = *lane;
        let part_len = |count: u64| {
            let part = part.of(count);
            part.end - part.start
        };
        let positions = || Position::first(space.n_positions);
        let len = |block: Option<Block>, counts: &Counts| {
            block.map_or(0, |block| part_len(counts.of(block)))
        };
        let at_start = |at| len(space.block_at_start(rank, at), send_counts);
        let at_end = |at| len(space.block_at_end(rank, at), recv_counts);
        let lens = match (space.payload, send_counts, recv_counts) {
            (Payload::Token, ..) => Lens::None,
            (Payload::Vector, ..) => Lens::Vector(part_len(send_counts.of(Block(0)))),
            (Payload::Blocks | Payload::Pairs, Counts::Equal(count), Counts::Equal(_)) => {
                let len = part_len(*count);
                match space.is_full() {
                    true => Lens::Equal(len),
                    // Only leaders have room for the blocks of other ranks.
                    false => {
                        let room = |at| len * u64::from(space.has_room(rank, at));
                        Lens::Bounds { bounds: bounds(positions().map(room)), has_slack: false }
                    }
                }
            }
            (Payload::Blocks, ..) => {
                Lens::Bounds { bounds: bounds(positions().map(at_start)), has_slack: false }
            }
            (Payload::Pairs, ..) => {
                let rooms = positions().map(|at| at_start(at).max(at_end(at)));
                Lens::Bounds { bounds: bounds(rooms), has_slack: true }
            }
        };
        Extent { n_positions: space.n_positions, part, lens }
    }

    /// The extent in which position `i` has room for `rooms[i]` elements and is followed by one unused element, so
    /// that no two positions are adjacent.
    #[must_use]
    pub fn for_passing(self, rooms: &[u64]) -> Self {
        let bounds = bounds(rooms.iter().map(|room| room + 1));
        Extent { lens: Lens::Bounds { bounds, has_slack: true }, ..self }
    }

    /// True if the data in a position may be shorter than its room.
    pub fn has_slack(&self) -> bool {
        matches!(self.lens, Lens::Bounds { has_slack: true, .. })
    }

    /// The lane's part of a vector or block of `count` elements.
    pub fn part_of(&self, count: u64) -> Range<u64> {
        self.part.of(count)
    }

    /// Elements of the whole working space.
    pub fn len(&self) -> u64 {
        self.offset(self.n_positions)
    }

    /// True if the working space holds no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// First element of position `position` in the working space; for `position == n_positions`, the length of the
    /// working space.
    pub fn offset(&self, position: u32) -> u64 {
        match &self.lens {
            Lens::None => 0,
            Lens::Vector(len) => bound(*len, self.n_positions, position),
            Lens::Equal(len) => len * u64::from(position),
            Lens::Bounds { bounds, .. } => bounds[position as usize],
        }
    }

    /// The elements of the working space that belong to a run of positions.
    pub fn elements(&self, run: Run) -> Range<u64> {
        self.offset(run.start)..self.offset(run.end())
    }

    /// The elements in use in a run of positions, if position `i` holds `lens[i]` elements: ranges in order; a
    /// single range if all positions are always full.
    pub fn used_elements(&self, run: Run, lens: &[u64]) -> SmallVec<[Range<u64>; 1]> {
        let Lens::Bounds { bounds, has_slack: true } = &self.lens else {
            return SmallVec::from_elem(self.elements(run), 1);
        };
        let positions = run.start as usize..run.end() as usize;
        positions.map(|at| bounds[at]..bounds[at] + lens[at]).collect()
    }

    /// The positions that contain `elements` of the working space, without empty positions at either end. Of a
    /// vector, all positions.
    pub fn positions(&self, elements: &Range<u64>) -> Range<u32> {
        let (start, end) = match &self.lens {
            _ if elements.is_empty() => (0, 0),
            Lens::None => (0, 0),
            // No rank owns a piece of a vector: any elements of it mean all positions.
            Lens::Vector(_) => (0, u64::from(self.n_positions)),
            Lens::Equal(len) => (elements.start / len, elements.end.div_ceil(*len)),
            Lens::Bounds { bounds, .. } => {
                let start = bounds.partition_point(|&bound| bound <= elements.start) - 1;
                (start as u64, bounds.partition_point(|&bound| bound < elements.end) as u64)
            }
        };
        start as u32..end as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::PortId;
    use crate::plan::ir::space::{BlockOrder, BlockPermutation, Space};

    fn lane(payload: Payload, order: BlockOrder, part: u32, parts: u32) -> Lane {
        let space = Arc::new(Space { payload, n_positions: 4, order });
        Lane {
            port: PortId(0),
            part: Part::equal(part, parts),
            space,
            window: None,
            steps: Vec::new(),
        }
    }

    #[test]
    fn blocks_of_any_length_stand_in_the_order_of_positions() {
        let counts = Counts::PerBlock([5, 0, 1000, 1].into());
        let order = vec![Block(2), Block(1), Block(0), Block(3)];
        let order = BlockOrder::Listed(Arc::new(BlockPermutation::new(order).unwrap()));
        let extent = |part| {
            Extent::new(&lane(Payload::Blocks, order.clone(), part, 2), Rank(0), &counts, &counts)
        };
        let offsets = |extent: &Extent| (0..5).map(|at| extent.offset(at)).collect::<Vec<_>>();
        assert_eq!(offsets(&extent(0)), [0, 500, 500, 502, 502]);
        assert_eq!(offsets(&extent(1)), [0, 500, 500, 503, 504]);
        assert_eq!(extent(1).positions(&(0..500)), 0..1);
        assert_eq!(extent(1).positions(&(499..504)), 0..4);
        assert_eq!(extent(1).positions(&(500..503)), 2..3);
        assert_eq!(extent(0).used_elements(Run::new(1, 2), &[]).to_vec(), vec![500..502; 1]);
    }

    #[test]
    fn pairs_have_room_for_what_comes_and_what_goes() {
        let (send_counts, recv_counts) = ([3, 0, 7, 2], [3, 4, 0, 9]);
        let list: Arc<[_]> = (0..4).map(|block| Some(Block(block))).collect();
        let (start, end) = (Arc::clone(&list), list);
        let order = BlockOrder::Own { start, end, room: [].into() };
        let per_block = |counts: [u64; 4]| Counts::PerBlock(counts.into());
        let extent = Extent::new(
            &lane(Payload::Pairs, order, 0, 1),
            Rank(0),
            &per_block(send_counts),
            &per_block(recv_counts),
        );
        assert_eq!(extent.len(), 3 + 4 + 7 + 9);
        assert_eq!(extent.used_elements(Run::new(1, 2), &send_counts)[..], [3..3, 7..14]);
        assert_eq!(extent.used_elements(Run::new(1, 2), &recv_counts)[..], [3..7, 7..7]);
        let passing = extent.for_passing(&[3, 4, 20, 9]);
        assert_eq!(passing.used_elements(Run::new(1, 2), &[0, 1, 20, 0])[..], [4..5, 9..29]);
    }
}
