//! Pseudo-random numbers that represent ranks and other numbers in sums and hashes.

use crate::names::Rank;

/// The number that represents a rank in sums.
pub(super) fn number(rank: Rank) -> u64 {
    splitmix64(u64::from(rank.0) + 1)
}

/// The finaliser of SplitMix64 (Steele et al., OOPSLA 2014).
pub(super) fn splitmix64(z: u64) -> u64 {
    let z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
