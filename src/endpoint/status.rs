//! Information of ranks about each other besides messages, for failure detection: a status word, which says what a
//! rank waits for and which other ranks read without its help, and news of failures, which spread by gossip.
//!
//! This module only encodes the words. The engine decides what follows from them.

use crate::error::{Blame, Fault};

use super::Rank;
use super::validation::{InvalidField, check_max, check_range};

/// State of a rank, as other ranks see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has not been waiting for long.
    Busy,
    /// It has been waiting for this rank for some time.
    WaitsFor(Rank, Beat),
    /// It has been waiting at the barrier gates for some time. There it advances an operation that waits for this
    /// rank, if any.
    AtGates(Option<Rank>, Beat),
    /// It has been waiting for some time at the flat buffer, or at the gates of a further communicator, for this rank
    /// as far as it can tell.
    AtHardware(Rank, Beat),
    /// It has left the world in an orderly way and will send nothing more.
    Left,
    /// It has given up for this reason.
    GivenUp(Blame),
    /// Its memory cannot be read, or it has not answered in time.
    Silent,
    /// The wire does not support the question.
    Unknown,
}

/// A counter, modulo 2^27, that a rank increments while it waits. If it does not change for long, the rank does not
/// wait there any more, or does nothing at all. The lowest bit, below the counter, says that the rank has several
/// communicators.
pub type Beat = u32;

/// Encodes a word. Its kind is in both the lowest and the highest 4 bits, so that a half-written word is recognised
/// as none; between them are two ranks of 28 bits. 0 means no word.
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
/// The first of consecutive kinds, one for each of [`FAULTS`].
const GIVEN_UP: u64 = 4;
const AT_HARDWARE: u64 = GIVEN_UP + FAULTS.len() as u64;
/// Marks the absence of a rank.
const NOBODY: Rank = (1 << 28) - 1;

impl Status {
    /// Whether the rank waits and has several communicators, so that other threads of it may wait for other ranks.
    pub(crate) fn has_several_comms(self) -> bool {
        match self {
            Status::WaitsFor(_, beat) | Status::AtGates(_, beat) | Status::AtHardware(_, beat) => {
                beat % 2 == 1
            }
            _ => false,
        }
    }

    /// The word that other ranks read. A status that occurs only in answers is encoded as [`Busy`](Status::Busy).
    pub(super) fn to_word(self) -> u64 {
        match self {
            Status::WaitsFor(rank, beat) => word(WAITS_FOR, [rank, beat]),
            Status::AtGates(rank, beat) => word(AT_GATES, [rank.unwrap_or(NOBODY), beat]),
            Status::AtHardware(rank, beat) => word(AT_HARDWARE, [rank, beat]),
            Status::Left => word(LEFT, [0; 2]),
            Status::GivenUp(blame) => word(GIVEN_UP + fault_number(blame), [blame.rank, blame.by]),
            Status::Busy | Status::Silent | Status::Unknown => 0,
        }
    }

    /// Decodes the status word of one of `n_ranks` ranks; no word, or half a word, means [`Busy`](Status::Busy).
    ///
    /// # Errors
    /// The first invalid field.
    pub(super) fn from_word(word: u64, n_ranks: u32) -> Result<Self, InvalidField> {
        let Some((kind, [rank, beat])) = parts(word) else { return Ok(Status::Busy) };
        let waited_for = |rank| rank_of("the rank that a status says is waited for", rank, n_ranks);
        match kind {
            WAITS_FOR => Ok(Status::WaitsFor(waited_for(rank)?, beat)),
            AT_GATES if rank == NOBODY => Ok(Status::AtGates(None, beat)),
            AT_GATES => Ok(Status::AtGates(Some(waited_for(rank)?), beat)),
            AT_HARDWARE => Ok(Status::AtHardware(waited_for(rank)?, beat)),
            LEFT => Ok(Status::Left),
            _ => {
                let fault = check_range("a status's kind", kind, (0, AT_HARDWARE))? - GIVEN_UP;
                blame_of(fault as usize, [rank, beat], n_ranks).map(Status::GivenUp)
            }
        }
    }
}

/// Checks that `rank` is below `n_ranks`.
fn rank_of(field: &'static str, rank: Rank, n_ranks: u32) -> Result<Rank, InvalidField> {
    check_max(field, rank.into(), (n_ranks as usize).saturating_sub(1)).map(|rank| rank as Rank)
}

/// All faults, in the order of their numbers in words.
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
    // The kind of a word must not be 0.
    word(1 + fault_number(blame), [blame.rank, blame.by])
}

fn fault_number(blame: Blame) -> u64 {
    let at = FAULTS.iter().position(|&fault| fault == blame.fault);
    at.unwrap_or_else(|| unreachable!("`FAULTS` lists all")) as u64
}

fn blame_of(fault: usize, [rank, by]: [Rank; 2], n_ranks: u32) -> Result<Blame, InvalidField> {
    let rank = rank_of("the rank that is told to have failed", rank, n_ranks)?;
    let by = rank_of("the rank that is told to have found out a failure", by, n_ranks)?;
    Ok(Blame { rank, fault: FAULTS[fault], by })
}

/// Decodes the news word of one of `n_ranks` ranks; `None` if there is no word, or half a word.
///
/// # Errors
/// The first invalid field.
pub(super) fn blame_from_word(word: u64, n_ranks: u32) -> Result<Option<Blame>, InvalidField> {
    let Some((kind, ranks)) = parts(word) else { return Ok(None) };
    let at = check_range("the fault that is told", kind, (1, FAULTS.len() as u64))? as usize - 1;
    blame_of(at, ranks, n_ranks).map(Some)
}

/// The gossip peers of `rank`: the ranks that it watches, and to which it forwards news. They are at the distances 1,
/// 2, 4 and so on, in both directions. News reaches all ranks in at most log2 of `n_ranks` rounds, independent of the
/// collectives' patterns, and also if a few ranks have ended.
pub(crate) fn gossip_peers(rank: Rank, n_ranks: u32) -> impl Iterator<Item = Rank> {
    let (rank, n) = (u64::from(rank), u64::from(n_ranks));
    let distances = (0..32).map(|k| 1u64 << k).take_while(move |&distance| distance <= n / 2);
    distances.flat_map(move |distance| {
        let (up, down) = ((rank + distance) % n, (rank + n - distance) % n);
        [Some(up), (down != up).then_some(down)].into_iter().flatten().map(|rank| rank as Rank)
    })
}

/// Checks that an arbitrary word, as a status or as news, never decodes to a rank out of range.
#[cfg(feature = "fuzzing")]
pub(crate) fn check_word(word: u64) {
    const N_RANKS: u32 = 1000;
    if let Ok(status) = Status::from_word(word, N_RANKS) {
        let rank = match status {
            Status::WaitsFor(rank, _)
            | Status::AtGates(Some(rank), _)
            | Status::AtHardware(rank, _) => rank,
            _ => 0,
        };
        assert!(rank < N_RANKS);
        assert_eq!(Status::from_word(status.to_word(), N_RANKS), Ok(status));
    }
    if let Ok(Some(blame)) = blame_from_word(word, N_RANKS) {
        assert!(blame.rank < N_RANKS && blame.by < N_RANKS);
        assert_eq!(blame_to_word(blame), word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: u32 = 158_976;

    #[test]
    fn words_round_trip_and_halves_are_none() {
        let at_gates = [None, Some(0), Some(7)].map(|rank| Status::AtGates(rank, 9));
        let waits = [0, N - 1].map(|rank| Status::WaitsFor(rank, (1 << 28) - 1));
        let others = [Status::AtHardware(N - 1, 3), Status::Busy, Status::Left];
        for status in at_gates.into_iter().chain(waits).chain(others) {
            assert_eq!(Status::from_word(status.to_word(), N), Ok(status));
        }
        for fault in FAULTS {
            let blame = Blame { rank: N - 1, fault, by: 77_777 };
            let word = blame_to_word(blame);
            assert_eq!(blame_from_word(word, N), Ok(Some(blame)));
            let given_up = Status::GivenUp(blame);
            assert_eq!(Status::from_word(given_up.to_word(), N), Ok(given_up));
            for bytes in 1..8 {
                assert_eq!(blame_from_word(word & ((1 << (8 * bytes)) - 1), N), Ok(None));
                assert_eq!(blame_from_word(word >> (8 * bytes) << (8 * bytes), N), Ok(None));
            }
        }
        assert_eq!(blame_from_word(0, N), Ok(None));
    }

    #[test]
    fn ranks_and_kinds_that_do_not_exist_are_named() {
        let waits = Status::WaitsFor(N, 0).to_word();
        let at_hardware = Status::AtHardware(N, 0).to_word();
        for status in [waits, Status::AtGates(Some(N), 0).to_word(), at_hardware, u64::MAX] {
            assert!(Status::from_word(status, N).is_err(), "{status:x}");
        }
        assert_eq!(Status::from_word(waits, N).unwrap_err().found, u64::from(N));
        let fault = Fault::Absent;
        let news = [(N, 0), (0, N)].map(|(rank, by)| blame_to_word(Blame { rank, fault, by }));
        for news in news.into_iter().chain([u64::MAX]) {
            assert!(blame_from_word(news, N).is_err(), "{news:x}");
        }
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
                    for other in gossip_peers(rank, n) {
                        assert_ne!(other, rank);
                        if other != gone && !std::mem::replace(&mut knows[other as usize], true) {
                            telling.push(other);
                        }
                    }
                }
                let ignorant = (0..n).find(|&rank| rank != gone && !knows[rank as usize]);
                assert!(n == 1 || ignorant.is_none(), "{n} ranks, {gone} gone: {ignorant:?}");
                let told = gossip_peers(start, n).count() as u32;
                assert!(told <= 2 * n.ilog2(), "{told} of {n}");
            }
        }
    }
}
