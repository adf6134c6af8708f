//! The rule by which both sides of a transfer cut it into messages.
//!
//! A transfer is the concatenation of its runs, its *packed* bytes. Sender and receiver know the same lengths of
//! runs (the plan guarantees this), the same segment size and the same element size. The rule must depend on
//! nothing else: not on addresses, nor on whether the memory of one side happens to be contiguous. If neighbouring
//! positions are apart in the user's buffer, each position is a run here
//! ([`Space::sends_by_position`](crate::plan::Space::sends_by_position)).

use std::ops::Range;

/// Least mean length of runs that are sent one by one, without packing; shorter runs are packed together. On Tofu-D
/// the posting, announcement and detection of one more message take a port as long as the copies of 5 KiB in and
/// out (docs/model.md), and from 8 KiB on no longer than the transfer on the wire.
pub const MIN_SEPARATE_RUN_BYTES: u64 = 8192;

/// The messages of a transfer: ranges of its packed bytes, in order and not empty.
///
/// `segment` is the largest message in bytes, rounded down to whole elements (but at least one element); with
/// `None`, cuts are made only between long runs.
pub fn pieces(runs: &[u64], segment: Option<u64>, elem_bytes: u64) -> Vec<Range<u64>> {
    let total: u64 = runs.iter().sum();
    let filled = runs.iter().filter(|&&run| run > 0).count() as u64;
    let mut pieces = Vec::new();
    if filled > 1 && total / filled >= MIN_SEPARATE_RUN_BYTES {
        let mut start = 0;
        for &run in runs {
            cut(start..start + run, segment, elem_bytes, &mut pieces);
            start += run;
        }
    } else {
        cut(0..total, segment, elem_bytes, &mut pieces);
    }
    pieces
}

/// Cuts `range` into as few pieces as the segment size allows, as equal as possible in whole elements.
fn cut(range: Range<u64>, segment: Option<u64>, elem_bytes: u64, pieces: &mut Vec<Range<u64>>) {
    let n_elems = (range.end - range.start) / elem_bytes;
    if n_elems == 0 {
        return;
    }
    let most = segment.map_or(n_elems, |segment| (segment / elem_bytes).max(1));
    let n_pieces = n_elems.div_ceil(most);
    // Not `elems * i / n`: that product may overflow. The first pieces take the remainder.
    let (base, longer) = (n_elems / n_pieces, n_elems % n_pieces);
    let mut at = range.start;
    for index in 0..n_pieces {
        let len = (base + u64::from(index < longer)) * elem_bytes;
        pieces.push(at..at + len);
        at += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_tile_the_transfer_and_respect_the_segment() {
        for runs in [vec![], vec![0], vec![24], vec![8, 0, 16], vec![16384, 32768], vec![0, 80_000]]
        {
            for segment in [None, Some(1), Some(8), Some(20), Some(4096)] {
                let pieces = pieces(&runs, segment, 8);
                let mut at = 0;
                for piece in &pieces {
                    assert_eq!(piece.start, at);
                    assert!(piece.end > piece.start && (piece.end - piece.start) % 8 == 0);
                    if let Some(segment) = segment {
                        assert!(piece.end - piece.start <= segment.max(8));
                    }
                    at = piece.end;
                }
                assert_eq!(at, runs.iter().sum::<u64>());
            }
        }
    }

    #[test]
    fn long_runs_travel_alone_and_short_ones_together() {
        assert_eq!(pieces(&[8192, 16384], None, 1), [0..8192, 8192..24576]);
        assert_eq!(pieces(&[40, 80], None, 1), vec![0..120; 1]);
    }
}
