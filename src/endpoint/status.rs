//! What ranks can learn of each other besides messages, for the case that none come: a word
//! that says what a rank waits for, which anybody can read without that rank's help, and the
//! news of a failure, which spreads from rank to rank.
//!
//! Words only; who waits for what, and what follows from it, is the engine's business.

use crate::error::{Blame, Fault};

use super::Rank;

/// What a rank is doing, as far as others can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has not been waiting for long.
    Busy,
    /// It has been waiting for this rank for some time.
    WaitsFor(Rank, Beat),
    /// It has been waiting at the barrier gates for some time, where it moves on an operation
    /// that waits for this rank, if there is one.
    AtGates(Option<Rank>, Beat),
    /// It has left the world in an orderly way: nothing will come from it.
    Left,
    /// Its memory cannot be read, or the question was not answered in time.
    Silent,
    /// The wire cannot tell.
    Unknown,
}

/// A number that changes, modulo 2^28, as long as a rank waits. One that shows the same number for long
/// does something else by now, or nothing.
pub type Beat = u32;

/// The kind of a word stands at both of its ends, so that a word of which only one end has
/// been written is none; between them are two ranks of 28 bits. 0 is no word.
fn word(kind: u64, [low, high]: [Rank; 2]) -> u64 {
    const RANK: u64 = (1 << 28) - 1;
    kind | (u64::from(low) & RANK) << 4 | (u64::from(high) & RANK) << 32 | kind << 60
}

fn parts(word: u64) -> Option<(u64, [Rank; 2])> {
    let kind = word & 0xf;
    let rank = |shift: u32| (word >> shift & 0xfff_ffff) as Rank;
    (kind != 0 && kind == word >> 60).then(|| (kind, [rank(4), rank(32)]))
}

const WAITS_FOR: u64 = 1;
const AT_GATES: u64 = 2;
const LEFT: u64 = 3;
/// In place of a rank.
const NOBODY: Rank = (1 << 28) - 1;

impl Status {
    /// The word that others read. A status that only answers have is written as
    /// [`Busy`](Status::Busy).
    pub(super) fn to_word(self) -> u64 {
        match self {
            Status::WaitsFor(rank, beat) => word(WAITS_FOR, [rank, beat]),
            Status::AtGates(rank, beat) => word(AT_GATES, [rank.unwrap_or(NOBODY), beat]),
            Status::Left => word(LEFT, [0; 2]),
            Status::Busy | Status::Silent | Status::Unknown => 0,
        }
    }

    pub(super) fn from_word(word: u64) -> Self {
        match parts(word) {
            Some((WAITS_FOR, [rank, beat])) => Status::WaitsFor(rank, beat),
            Some((AT_GATES, [rank, beat])) => {
                Status::AtGates((rank != NOBODY).then_some(rank), beat)
            }
            Some((LEFT, _)) => Status::Left,
            _ => Status::Busy,
        }
    }
}

/// In the order of their numbers in words, which start at 1.
const FAULTS: [Fault; 7] = [
    Fault::Unreachable,
    Fault::Absent,
    Fault::Elsewhere,
    Fault::Circle,
    Fault::Failed,
    Fault::Left,
    Fault::Disagrees,
];

pub(super) fn blame_to_word(blame: Blame) -> u64 {
    let kind = FAULTS.iter().position(|&fault| fault == blame.fault).map_or(0, |at| at + 1);
    word(kind as u64, [blame.rank, blame.by])
}

pub(super) fn blame_from_word(word: u64) -> Option<Blame> {
    let (kind, [rank, by]) = parts(word)?;
    FAULTS.get(kind as usize - 1).map(|&fault| Blame { rank, fault, by })
}

/// The ranks that `rank` of `n_ranks` watches, and to which it passes news on: those at the distances
/// 1, 2, 4 and so on, in both directions. News reaches all ranks in at most log2 of `n_ranks` rounds,
/// whatever the collectives' patterns, also around a few ranks that are gone.
pub(crate) fn confidants(rank: Rank, n_ranks: u32) -> impl Iterator<Item = Rank> {
    let (rank, n) = (u64::from(rank), u64::from(n_ranks));
    let distances = (0..32).map(|k| 1u64 << k).take_while(move |&distance| distance <= n / 2);
    distances.flat_map(move |distance| {
        let (up, down) = ((rank + distance) % n, (rank + n - distance) % n);
        [Some(up), (down != up).then_some(down)].into_iter().flatten().map(|rank| rank as Rank)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_halves_are_none() {
        let at_gates = [None, Some(0), Some(7)].map(|rank| Status::AtGates(rank, 9));
        let waits = [0, 158_975].map(|rank| Status::WaitsFor(rank, (1 << 28) - 1));
        for status in at_gates.into_iter().chain(waits).chain([Status::Busy, Status::Left]) {
            assert_eq!(Status::from_word(status.to_word()), status);
        }
        for fault in FAULTS {
            let blame = Blame { rank: 158_975, fault, by: 77_777 };
            let word = blame_to_word(blame);
            assert_eq!(blame_from_word(word), Some(blame));
            for bytes in 1..8 {
                assert_eq!(blame_from_word(word & ((1 << (8 * bytes)) - 1)), None);
                assert_eq!(blame_from_word(word >> (8 * bytes) << (8 * bytes)), None);
            }
        }
        assert_eq!(blame_from_word(0), None);
        assert_eq!(blame_from_word(u64::MAX), None);
    }

    #[test]
    fn news_reaches_everybody_around_a_rank_that_is_gone() {
        for n in [1, 2, 3, 4, 5, 7, 8, 9, 64, 100, 1009] {
            for gone in [0, n / 2, n - 1] {
                let start = (gone + 1) % n;
                let mut knows = vec![false; n as usize];
                let mut telling = vec![start];
                knows[start as usize] = true;
                while let Some(rank) = telling.pop() {
                    for other in confidants(rank, n) {
                        assert_ne!(other, rank);
                        if other != gone && !std::mem::replace(&mut knows[other as usize], true) {
                            telling.push(other);
                        }
                    }
                }
                let ignorant = (0..n).find(|&rank| rank != gone && !knows[rank as usize]);
                assert!(n == 1 || ignorant.is_none(), "{n} ranks, {gone} gone: {ignorant:?}");
                let told = confidants(start, n).count() as u32;
                assert!(told <= 2 * n.ilog2(), "{told} of {n}");
            }
        }
    }
}
