//! Exscan: rank x > 0 ends with the reduction of the vectors of ranks 0 to x - 1; rank 0 gets nothing,
//! and what the last rank has concerns nobody.

use super::row::{Cut, Row, Share, Shares, Sums};

pub(super) static ROW: Row = Row {
    name: "exscan",
    is_rooted: false,
    is_reduction: true,
    cut: Cut::Vector,
    gives: Shares::ButLast(Share::All),
    gets: Shares::ButFirst(Share::All),
    sums: Sums::Before,
    // Every rank but the last has something that others need.
    minimal_volume: |_| 1.0,
    forms: &[],
    is_pairwise: false,
    is_linear: false,
    along_trees: None,
};
