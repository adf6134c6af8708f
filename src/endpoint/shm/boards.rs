//! Boards for communicators of some ranks, or of all in another order: a few for each rank, which
//! it gives to communicators that it is the first member of.
//!
//! The first member tells the others the board's number where the communicator is agreed on; the
//! rest they find in the segment. A board is free again when its last communicator has ended on all
//! members, each of which notes that in the segment. Until then the rank gives another one, or none.
//!
//! The board that has been free for longest is given first. Communicators are made collectively, so
//! a rank is not far ahead of the other members, and mostly the same calls of a program get a board
//! whenever it is run.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::board::{BASE, Board, LEFT};
use super::layout::{DEPTH, Layout, PART_BYTES};
use super::segment::Segment;
use crate::Rank;
use crate::sync::lock;

/// Boards of each rank, if memory allows.
const MOST_PER_RANK: usize = 8;
/// Address space that they may take in all. Only what is written takes memory.
const MOST_BYTES: usize = 1 << 30;

/// Boards that each of `n_ranks` ranks has to give away.
pub(super) fn per_rank(n_ranks: usize) -> usize {
    (MOST_BYTES / (n_ranks * n_ranks * PART_BYTES)).min(MOST_PER_RANK)
}

/// A board that this rank may give away.
#[derive(Debug)]
struct Free {
    number: u32,
    /// Calls on it so far are numbered below this.
    next: u64,
    /// The members who had it last, and may still have it, and the base of their lease.
    last: (Box<[usize]>, u64),
}

/// All boards of a segment but the world's, as one rank sees them.
#[derive(Debug)]
pub struct Boards {
    segment: Arc<Segment>,
    layout: Layout,
    me: usize,
    /// Those of this rank that no communicator of its own has, the one that is free for longest
    /// first.
    free: Mutex<VecDeque<Free>>,
}

/// That a communicator has a board, on this rank.
#[derive(Debug)]
pub struct BoardLease {
    boards: Arc<Boards>,
    /// Whose board it is.
    owner: usize,
    number: u32,
    members: Box<[usize]>,
    /// Calls before the communicator's are numbered up to this.
    base: u64,
}

impl Boards {
    pub(super) fn new(segment: &Arc<Segment>, layout: Layout, me: usize) -> Arc<Self> {
        let free = |number| Free { number, next: 1, last: (Box::default(), 0) };
        let free = Mutex::new((0..layout.boards_per_rank as u32).map(free).collect());
        Arc::new(Boards { segment: segment.clone(), layout, me, free })
    }

    /// A board's number among all of the segment.
    fn index(&self, owner: usize, number: u32) -> usize {
        1 + owner * self.layout.boards_per_rank + number as usize
    }

    /// A word of a rank's part of a board.
    fn word(&self, board: usize, rank: usize, word: usize) -> &AtomicU64 {
        self.segment.word(self.layout.board(board, rank) + word)
    }

    /// Takes a board for a communicator in case this rank is its first member, to be given back if it
    /// is not; `None` if none is free.
    pub fn take(&self) -> Option<u32> {
        let free = &mut *lock(&self.free);
        let has_ended = |free: &Free| {
            let (members, base) = &free.last;
            let board = self.index(self.me, free.number);
            // Acquire: pairs with the Release in `end`: what was read was read before.
            let left = |&rank: &usize| self.word(board, rank, LEFT).load(Ordering::Acquire);
            members.iter().all(|rank| left(rank) == *base)
        };
        let place = free.iter().position(has_ended)?;
        let Free { number, next, .. } = free.remove(place)?;
        // Relaxed: the message that tells members of the board orders it. Whoever had the board
        // before has read the last one.
        let base = self.word(self.index(self.me, number), self.me, BASE);
        base.store(next, Ordering::Relaxed);
        Some(number)
    }

    /// Gives back a board that no communicator uses.
    pub fn give_back(&self, number: u32) {
        let next = self.base(self.me, number);
        lock(&self.free).push_front(Free { number, next, last: (Box::default(), 0) });
    }

    fn base(&self, owner: usize, number: u32) -> u64 {
        // Relaxed: see `take`.
        self.word(self.index(owner, number), owner, BASE).load(Ordering::Relaxed)
    }

    /// The board with this number of the first of `members`, for these: `me` is this rank's place
    /// among them. `None` if there is no such board.
    pub fn open(
        self: &Arc<Self>,
        number: u32,
        members: &[Rank],
        me: usize,
    ) -> Option<(Board, BoardLease)> {
        let members: Box<[usize]> = members.iter().map(|&rank| rank as usize).collect();
        let owner = *members.first()?;
        let is_there = (number as usize) < self.layout.boards_per_rank
            && members.iter().all(|&member| member < self.layout.n_ranks);
        if !is_there {
            return None;
        }
        let base = self.base(owner, number);
        let lease = BoardLease { boards: self.clone(), owner, number, members, base };
        let index = self.index(owner, number);
        let board = Board::new(&self.segment, self.layout, (index, &lease.members), me, base);
        Some((board, lease))
    }
}

impl BoardLease {
    /// The communicator has ended on this rank, after the call with this number.
    pub fn end(self, call: u64) {
        let BoardLease { boards, owner, number, members, base } = self;
        let board = boards.index(owner, number);
        // Release: pairs with the Acquire in `take`.
        boards.word(board, boards.me, LEFT).store(base, Ordering::Release);
        if owner == boards.me {
            // Nobody gets further ahead of this rank, whatever mistakes others make.
            let next = call + DEPTH + 1;
            lock(&boards.free).push_back(Free { number, next, last: (members, base) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::board::Contribution;
    use super::*;

    fn all(n_ranks: usize) -> Vec<Arc<Boards>> {
        let layout = Layout { n_ranks, n_ports: 0, boards_per_rank: per_rank(n_ranks) };
        let (segment, _file) = Segment::create(layout.len(), 1).unwrap();
        let segment = Arc::new(segment);
        (0..n_ranks).map(|me| Boards::new(&segment, layout, me)).collect()
    }

    fn seen(board: &mut Board, rank: usize) -> Option<u8> {
        match board.of(rank, 1) {
            // SAFETY: the board says that it is there.
            Contribution::At(ptr) => Some(unsafe { ptr.read() }),
            _ => None,
        }
    }

    #[test]
    fn a_board_is_given_away_again_when_all_have_left() {
        let boards = all(3);
        // Ranks 2 and 0, of which 2 is the first.
        let mut round = 0;
        loop {
            let number = boards[2].take().unwrap();
            if round == 2 * MOST_PER_RANK {
                assert_eq!(number, 0, "the one that is free for longest");
                break;
            }
            let mut pair = [(2, 0), (0, 1)]
                .map(|(rank, me): (usize, usize)| boards[rank].open(number, &[2, 0], me).unwrap());
            let [(one, _), (other, _)] = &mut pair;
            // What is left of earlier communicators is not seen.
            for call in 0..DEPTH + 2 {
                for board in [&mut *one, &mut *other] {
                    board.enter(5);
                    board.is_free().unwrap();
                }
                let value = 7 * round as u8 + call as u8;
                assert_eq!(seen(other, 0), None);
                one.contribute(&[value]);
                other.contribute(&[value + 100]);
                assert_eq!(seen(other, 0), Some(value));
                assert_eq!(seen(one, 1), Some(value + 100));
            }
            pair.into_iter().for_each(|(board, lease)| lease.end(board.call()));
            round += 1;
        }
        assert!(boards[0].open(0, &[], 0).is_none() && boards[0].open(99, &[1, 0], 1).is_none());
    }

    #[test]
    fn who_has_not_left_keeps_its_board() {
        let boards = all(2);
        let mut kept = Vec::new();
        for number in 0..MOST_PER_RANK as u32 {
            assert_eq!(boards[0].take(), Some(number));
            kept.push(boards[1].open(number, &[0, 1], 1).unwrap());
            let (board, lease) = boards[0].open(number, &[0, 1], 0).unwrap();
            lease.end(board.call());
        }
        assert_eq!(boards[0].take(), None);
        let (board, lease) = kept.remove(3);
        lease.end(board.call());
        assert_eq!(boards[0].take(), Some(3));
        boards[0].give_back(3);
        assert_eq!([boards[0].take(), boards[0].take()], [Some(3), None]);
        // Every rank has its own.
        assert_eq!(boards[1].take(), Some(0));
    }
}
