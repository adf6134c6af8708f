//! Scan: rank x ends with the reduction of the vectors of ranks 0 to x.

use super::row::{Cut, Row, Share, Shares, Sums};

pub(super) static ROW: Row = Row {
    name: "scan",
    is_rooted: false,
    is_reduction: true,
    cut: Cut::Vector,
    gives: Shares::Each(Share::All),
    gets: Shares::Each(Share::All),
    sums: Sums::UpToOwn,
    // Every rank but the last has something that others need.
    minimal_volume: |_| 1.0,
    forms: &[],
    is_pairwise: false,
    is_linear: false,
    along_trees: None,
};
