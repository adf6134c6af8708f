//! Runs of positions.

use smallvec::SmallVec;

use crate::names::Position;

/// A run of consecutive positions, `start .. start + len`, `len >= 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Run {
    /// First position.
    pub start: u32,
    /// Number of positions.
    pub len: u32,
}

impl Run {
    /// The run `start .. start + len`.
    pub const fn new(start: u32, len: u32) -> Self {
        Run { start, len }
    }

    /// The run of one position.
    pub const fn single(position: Position) -> Self {
        Run { start: position.0, len: 1 }
    }

    /// One past the last position.
    pub const fn end(self) -> u32 {
        self.start + self.len
    }
}

/// The runs of a message in a space of one position.
pub const WHOLE: [Run; 1] = [Run::new(0, 1)];

/// The positions of one transfer: disjoint runs in the order in which they are sent.
pub type Runs = SmallVec<[Run; 1]>;

/// Appends a position, which lies behind those in `runs`: to the last run if it follows that, else as a run of its own.
pub fn append(runs: &mut Runs, position: u32) {
    match runs.last_mut() {
        Some(last) if last.end() == position => last.len += 1,
        _ => runs.push(Run::new(position, 1)),
    }
}

/// Number of positions in `runs`.
pub fn n_positions(runs: &[Run]) -> u64 {
    runs.iter().map(|run| u64::from(run.len)).sum()
}
