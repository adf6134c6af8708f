//! Reduce: the root ends with the reduction of all ranks' vectors.

use super::row::{
    Action, CollectiveRow, Holders, Payload, Routing, Share, Sums, WalkForm, WalkPhase,
};

pub(super) static ROW: CollectiveRow = CollectiveRow {
    name: "reduce",
    is_rooted: true,
    is_reduction: true,
    payload: Payload::Vector,
    gives: Holders::Each(Share::All),
    gets: Holders::Root(Share::All),
    sums: Sums::Everyone,
    minimal_volume: |_| 1.0,
    forms: &[
        (
            WalkForm::TwoPhase,
            &[
                WalkPhase::forwards(Routing::Toward, Action::Reduce),
                WalkPhase::backwards(Routing::FromRoot),
            ],
        ),
        (WalkForm::Tree, &[WalkPhase::forwards(Routing::ToRoot, Action::Reduce)]),
    ],
    is_pairwise: false,
    is_linear: false,
    along_trees: Some(Action::Reduce),
};
