//! Barrier: no rank leaves before every rank has entered.

use super::row::{
    Action, CollectiveRow, Holders, Payload, Routing, Share, Sums, WalkForm, WalkPhase,
};

pub(super) static ROW: CollectiveRow = CollectiveRow {
    name: "barrier",
    is_rooted: false,
    is_reduction: false,
    payload: Payload::Token,
    gives: Holders::Each(Share::All),
    gets: Holders::Each(Share::All),
    sums: Sums::Everyone,
    minimal_volume: |_| 0.0,
    forms: &[
        (WalkForm::Butterfly, &[WalkPhase::forwards(Routing::Everything, Action::Reduce)]),
        (WalkForm::Latency, &[WalkPhase::forwards(Routing::Everything, Action::Reduce)]),
    ],
    is_pairwise: false,
    is_linear: false,
    along_trees: None,
};
