//! Allgather: every rank ends with every rank's block.

use super::row::{
    Action, CollectiveRow, Holders, Payload, Routing, Share, Sums, WalkForm, WalkPhase,
    others_share,
};

pub(super) static ROW: CollectiveRow = CollectiveRow {
    name: "allgather",
    is_rooted: false,
    is_reduction: false,
    payload: Payload::Blocks,
    gives: Holders::Each(Share::Own),
    gets: Holders::Each(Share::All),
    sums: Sums::Everyone,
    minimal_volume: others_share,
    forms: &[
        (WalkForm::Butterfly, &[WalkPhase::backwards(Routing::Toward)]),
        // A gather to rank 0, then a bcast of all blocks.
        (
            WalkForm::Tree,
            &[
                WalkPhase::forwards(Routing::ToRoot, Action::Copy),
                WalkPhase::backwards(Routing::AllToRoot),
            ],
        ),
    ],
    is_pairwise: false,
    is_linear: false,
    along_trees: None,
};
