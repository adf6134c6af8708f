//! How a count of elements is cut: parts for ports, pieces for positions.
//!
//! Both sides of a transfer compute these independently, so there is exactly one rule:
//! piece `i` of `k` of `n` elements is `n*i/k .. n*(i+1)/k` (integer division). Pieces
//! differ by at most one element; with `n < k` some are empty.

use std::ops::Range;

use super::types::{Lane, Run};
use crate::collectives::Cut;

/// The elements of piece `index` when `count` elements are cut into `pieces`.
///
/// # Panics
/// If `pieces` is 0 or `index >= pieces`.
pub fn piece(count: u64, pieces: u32, index: u32) -> Range<u64> {
    assert!(index < pieces, "piece {index} of {pieces}");
    bound(count, pieces, index)..bound(count, pieces, index + 1)
}

fn bound(count: u64, pieces: u32, index: u32) -> u64 {
    // 128 bits: count * index may exceed 64.
    (u128::from(count) * u128::from(index) / u128::from(pieces)) as u64
}

/// The extent of one lane's working space, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The part of the vector, or of each block, that this lane moves.
    pub part: Range<u64>,
    n_positions: u32,
    cut: Cut,
}

impl Extent {
    /// The extent of `lane` for `count` elements: the length of the vector ([`Cut::Vector`])
    /// or of one block; ignored for [`Cut::Token`].
    pub fn new(lane: &Lane, count: u64) -> Self {
        let cut = lane.space.cut;
        let part = match cut {
            Cut::Token => 0..0,
            Cut::Vector | Cut::Blocks | Cut::Pairs => piece(count, lane.parts, lane.part),
        };
        Extent { part, n_positions: lane.space.n_positions, cut }
    }

    /// Elements in the whole working space, position after position.
    pub fn len(&self) -> u64 {
        self.offset(self.n_positions)
    }

    /// True if the working space holds no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// First element of position `position` in the working space; of
    /// `position == n_positions`, the length of the working space.
    pub fn offset(&self, position: u32) -> u64 {
        let part_len = self.part.end - self.part.start;
        match self.cut {
            Cut::Token => 0,
            Cut::Vector => bound(part_len, self.n_positions, position),
            Cut::Blocks | Cut::Pairs => part_len * u64::from(position),
        }
    }

    /// The elements of a run of positions in the working space.
    pub fn elements(&self, run: Run) -> Range<u64> {
        self.offset(run.start)..self.offset(run.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_tile_the_count() {
        for count in [0u64, 1, 2, 5, 63, 64, 65, 1_000_003] {
            for pieces in [1u32, 2, 3, 7, 64] {
                let mut at = 0;
                for index in 0..pieces {
                    let range = piece(count, pieces, index);
                    assert_eq!(range.start, at);
                    let len = range.end - range.start;
                    assert!(len.abs_diff(count / u64::from(pieces)) <= 1);
                    at = range.end;
                }
                assert_eq!(at, count);
            }
        }
    }

    #[test]
    fn huge_counts_do_not_overflow() {
        assert_eq!(piece(u64::MAX, 158_976, 158_975).end, u64::MAX);
    }
}
