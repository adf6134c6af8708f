//! Allreduce: every rank ends with the reduction of all ranks' vectors.

use super::row::{
    Action, CollectiveRow, Holders, Payload, Routing, Share, Sums, WalkForm, WalkPhase,
    others_share,
};

pub(super) static ROW: CollectiveRow = CollectiveRow {
    name: "allreduce",
    is_rooted: false,
    is_reduction: true,
    payload: Payload::Vector,
    gives: Holders::Each(Share::All),
    gets: Holders::Each(Share::All),
    sums: Sums::Everyone,
    minimal_volume: |p| 2.0 * others_share(p),
    forms: &[
        (
            WalkForm::TwoPhase,
            &[
                WalkPhase::forwards(Routing::Toward, Action::Reduce),
                WalkPhase::backwards(Routing::Toward),
            ],
        ),
        // A reduce to rank 0, then a bcast.
        (
            WalkForm::Tree,
            &[
                WalkPhase::forwards(Routing::ToRoot, Action::Reduce),
                WalkPhase::backwards(Routing::ToRoot),
            ],
        ),
        (WalkForm::Latency, &[WalkPhase::forwards(Routing::Everything, Action::Reduce)]),
    ],
    is_pairwise: false,
    is_linear: false,
    along_trees: None,
};
