//! Reduce-scatter: rank x ends with the reduction of all ranks' blocks x.

use super::row::{
    Action, CollectiveRow, Holders, Payload, Routing, Share, Sums, WalkForm, WalkPhase,
    others_share,
};

pub(super) static ROW: CollectiveRow = CollectiveRow {
    name: "reduce-scatter",
    is_rooted: false,
    is_reduction: true,
    payload: Payload::Blocks,
    gives: Holders::Each(Share::All),
    gets: Holders::Each(Share::Own),
    sums: Sums::Everyone,
    minimal_volume: others_share,
    forms: &[(WalkForm::Butterfly, &[WalkPhase::forwards(Routing::Toward, Action::Reduce)])],
    is_pairwise: false,
    is_linear: false,
    along_trees: None,
};
