//! Gather: the root ends with every rank's block.

use super::row::{
    Action, CollectiveRow, Holders, Payload, Routing, Share, Sums, WalkForm, WalkPhase,
};

pub(super) static ROW: CollectiveRow = CollectiveRow {
    name: "gather",
    is_rooted: true,
    is_reduction: false,
    payload: Payload::Blocks,
    gives: Holders::Each(Share::Own),
    gets: Holders::Root(Share::All),
    sums: Sums::Everyone,
    minimal_volume: |p| 1.0 / p,
    forms: &[(WalkForm::Tree, &[WalkPhase::forwards(Routing::ToRoot, Action::Copy)])],
    is_pairwise: false,
    is_linear: true,
    along_trees: None,
};
