//! Exscan: rank x > 0 ends with the reduction of the vectors of ranks 0 to x - 1; rank 0 gets nothing,
//! and what the last rank has concerns nobody.

use super::row::{CollectiveRow, Holders, Payload, Share, Sums};

pub(super) static ROW: CollectiveRow = CollectiveRow {
    name: "exscan",
    is_rooted: false,
    is_reduction: true,
    payload: Payload::Vector,
    gives: Holders::ButLast(Share::All),
    gets: Holders::ButFirst(Share::All),
    sums: Sums::Before,
    // Every rank but the last has something that others need.
    minimal_volume: |_| 1.0,
    forms: &[],
    is_pairwise: false,
    is_linear: false,
    along_trees: None,
};
