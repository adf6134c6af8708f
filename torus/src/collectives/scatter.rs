//! Scatter: rank x ends with the root's block x.

use super::row::{
    CollectiveRow, Holders, Payload, Routing, Share, Sums, WalkForm, WalkPhase, others_share,
};

pub(super) static ROW: CollectiveRow = CollectiveRow {
    name: "scatter",
    is_rooted: true,
    is_reduction: false,
    payload: Payload::Blocks,
    gives: Holders::Root(Share::All),
    gets: Holders::Each(Share::Own),
    sums: Sums::Everyone,
    minimal_volume: others_share,
    forms: &[(WalkForm::Tree, &[WalkPhase::backwards(Routing::ToRoot)])],
    is_pairwise: false,
    is_linear: true,
    along_trees: None,
};
