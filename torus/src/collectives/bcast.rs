//! Bcast: every rank ends with the root's vector.

use super::row::{
    Action, CollectiveRow, Holders, Payload, Routing, Share, Sums, WalkForm, WalkPhase,
};

pub(super) static ROW: CollectiveRow = CollectiveRow {
    name: "bcast",
    is_rooted: true,
    is_reduction: false,
    payload: Payload::Vector,
    gives: Holders::Root(Share::All),
    gets: Holders::Each(Share::All),
    sums: Sums::Everyone,
    minimal_volume: |_| 1.0,
    forms: &[
        (
            WalkForm::TwoPhase,
            &[
                WalkPhase::forwards(Routing::FromRoot, Action::Copy),
                WalkPhase::backwards(Routing::Toward),
            ],
        ),
        (WalkForm::Tree, &[WalkPhase::backwards(Routing::ToRoot)]),
    ],
    is_pairwise: false,
    is_linear: false,
    along_trees: Some(Action::Copy),
};
