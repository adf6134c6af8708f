//! Transfers, cut into messages and grouped by use.

use std::collections::HashMap;
use std::ops::Range;

use hopbine_torus::collectives::Action;
use hopbine_torus::plan::{Run, Step};
use hopbine_torus::{PortId, Rank};

use smallvec::SmallVec;

use super::program::Region;

/// Ranges of a space in order; mostly one.
pub(crate) type Ranges = SmallVec<[Range<u64>; 2]>;

/// Pairs of source and destination, of equal lengths.
pub(crate) type Pairs = SmallVec<[(Region, Region); 2]>;

/// A transfer cut into messages.
pub(crate) struct CutTransfer {
    pub(crate) peer: Rank,
    pub(crate) port: PortId,
    /// The runs as ranges of the space, each with its offset in the packed bytes.
    pub(crate) runs: Vec<(u64, Range<u64>)>,
    pub(crate) pieces: Vec<Range<u64>>,
}

impl CutTransfer {
    /// The ranges of the space that make up piece `index`; adjacent ranges are joined.
    pub(crate) fn ranges(&self, index: usize) -> Ranges {
        let piece = &self.pieces[index];
        let first =
            self.runs.partition_point(|(at, run)| at + (run.end - run.start) <= piece.start);
        let mut ranges = Ranges::new();
        for (at, run) in &self.runs[first.min(self.runs.len())..] {
            if *at >= piece.end {
                break;
            }
            if run.is_empty() {
                continue;
            }
            let skip = piece.start.saturating_sub(*at);
            let len = (run.end - run.start).min(piece.end.saturating_sub(*at));
            let range = run.start + skip..run.start + len;
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => ranges.push(range),
            }
        }
        ranges
    }
}

/// All pieces of the transfers, in the order of piece numbers.
pub(crate) fn by_piece(transfers: &[CutTransfer]) -> impl Iterator<Item = (usize, &CutTransfer)> {
    let most = transfers.iter().map(|transfer| transfer.pieces.len()).max().unwrap_or(0);
    (0..most).flat_map(move |piece| {
        let has = move |transfer: &&CutTransfer| piece < transfer.pieces.len();
        transfers.iter().filter(has).map(move |transfer| (piece, transfer))
    })
}

/// The receives of a step in groups: receives that reduce and have the same runs are operands of one fold; a receive
/// that stores is a group of its own.
pub(crate) fn groups(step: &Step) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut of_runs: HashMap<&[Run], usize> = HashMap::new();
    for (index, recv) in step.recvs.iter().enumerate() {
        if step.action == Action::Copy {
            groups.push(vec![index]);
            continue;
        }
        let group = *of_runs.entry(&recv.runs).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(index);
    }
    groups
}

/// Splits two lists of regions of equal total length into pairs of regions of equal length.
pub(crate) fn pair_up(from: &[Region], into: &[Region]) -> Pairs {
    let mut pairs = Pairs::new();
    let (mut from, mut into) = (from.iter().copied(), into.iter().copied());
    let (mut source, mut target) = (from.next(), into.next());
    while let (Some(s), Some(t)) = (source, target) {
        let len = s.len.min(t.len);
        if len > 0 {
            pairs.push((Region { len, ..s }, Region { len, ..t }));
        }
        let rest = |r: Region| Region { offset: r.offset + len, len: r.len - len, ..r };
        source = if s.len > len { Some(rest(s)) } else { from.next() };
        target = if t.len > len { Some(rest(t)) } else { into.next() };
    }
    pairs
}
