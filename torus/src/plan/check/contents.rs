//! What positions hold: which block, whose contributions, combined in which order.

use std::ops::Range;

use crate::plan::types::Rank;

/// How contributor sets are represented: `words()` 64-bit words each.
#[derive(Clone, Copy)]
pub(super) enum SetKind {
    Exact { words: usize },
    Fingerprint,
}

impl SetKind {
    pub(super) fn words(self) -> usize {
        match self {
            SetKind::Exact { words } => words,
            SetKind::Fingerprint => 2,
        }
    }

    pub(super) fn add_rank(self, set: &mut [u64], rank: Rank) {
        match self {
            SetKind::Exact { .. } => set[rank as usize / 64] |= 1 << (rank % 64),
            SetKind::Fingerprint => {
                let low = mix(u64::from(rank), 0x9e37_79b9_7f4a_7c15);
                let high = mix(low, 0xd1b5_4a32_d192_ed03);
                add_wide(set, low, high);
            }
        }
    }

    /// Unites `set` with `other`; false if they are seen to overlap. Fingerprints add up, so
    /// that a repetition shows at the end instead.
    pub(super) fn unite(self, set: &mut [u64], other: &[u64]) -> bool {
        match self {
            SetKind::Exact { .. } => {
                let overlap = set.iter().zip(other).any(|(a, b)| a & b != 0);
                set.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
                !overlap
            }
            SetKind::Fingerprint => {
                add_wide(set, other[0], other[1]);
                true
            }
        }
    }
}

fn add_wide(set: &mut [u64], low: u64, high: u64) {
    let sum = (u128::from(set[1]) << 64 | u128::from(set[0]))
        .wrapping_add(u128::from(high) << 64 | u128::from(low));
    set[0] = sum as u64;
    set[1] = (sum >> 64) as u64;
}

/// A 64-bit mix of two words (the finaliser of SplitMix64, Steele et al., OOPSLA 2014).
pub(super) fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(32) ^ b;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub(super) const NOTHING: u32 = u32::MAX;

/// What positions hold: all ranks' working spaces, or the blocks of the messages of a step.
#[derive(Default)]
pub(super) struct Contents {
    /// Which block, or [`NOTHING`].
    pub(super) block: Vec<u32>,
    /// The expression that combined it, as a hash.
    pub(super) order: Vec<u64>,
    /// Who contributed.
    pub(super) set: Vec<u64>,
}

impl Contents {
    pub(super) fn new(slots: usize, words: usize) -> Self {
        Contents { block: vec![NOTHING; slots], order: vec![0; slots], set: vec![0; slots * words] }
    }

    pub(super) fn clear(&mut self) {
        self.block.clear();
        self.order.clear();
        self.set.clear();
    }

    pub(super) fn push_from(&mut self, other: &Contents, slots: Range<usize>, words: usize) {
        self.block.extend_from_slice(&other.block[slots.clone()]);
        self.order.extend_from_slice(&other.order[slots.clone()]);
        self.set.extend_from_slice(&other.set[slots.start * words..slots.end * words]);
    }
}
