//! Allgather: every rank ends with every rank's block.

use super::row::{Action, Cut, Form, Paths, Phase, Row, Share, Shares, Sums, others_share};

pub(super) static ROW: Row = Row {
    name: "allgather",
    is_rooted: false,
    is_reduction: false,
    cut: Cut::Blocks,
    gives: Shares::Each(Share::Own),
    gets: Shares::Each(Share::All),
    sums: Sums::Everyone,
    minimal_volume: others_share,
    forms: &[
        (Form::Butterfly, &[Phase::backwards(Paths::Toward)]),
        // A gather to rank 0, then a bcast of all blocks.
        (
            Form::Tree,
            &[Phase::forwards(Paths::ToRoot, Action::Copy), Phase::backwards(Paths::AllToRoot)],
        ),
    ],
    is_pairwise: false,
    is_linear: false,
    along_trees: None,
};
