//! Scan: rank x ends with the reduction of the vectors of ranks 0 to x.

use super::row::{CollectiveRow, Holders, Payload, Share, Sums};

pub(super) static ROW: CollectiveRow = CollectiveRow {
    name: "scan",
    is_rooted: false,
    is_reduction: true,
    payload: Payload::Vector,
    gives: Holders::Each(Share::All),
    gets: Holders::Each(Share::All),
    sums: Sums::UpToOwn,
    // Every rank but the last has something that others need.
    minimal_volume: |_| 1.0,
    forms: &[],
    is_pairwise: false,
    is_linear: false,
    along_trees: None,
};
