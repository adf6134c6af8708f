//! Alltoall: rank x ends with every rank's block for x.

use super::row::{
    Action, CollectiveRow, Holders, Payload, Routing, Share, Sums, WalkForm, WalkPhase,
    others_share,
};

pub(super) static ROW: CollectiveRow = CollectiveRow {
    name: "alltoall",
    is_rooted: false,
    is_reduction: false,
    payload: Payload::Pairs,
    gives: Holders::Each(Share::All),
    gets: Holders::Each(Share::All),
    sums: Sums::Everyone,
    minimal_volume: others_share,
    forms: &[(WalkForm::Butterfly, &[WalkPhase::forwards(Routing::Displaced, Action::Copy)])],
    is_pairwise: true,
    is_linear: false,
    along_trees: None,
};
