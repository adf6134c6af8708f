//! Reduce: the root ends with the reduction of all ranks' vectors.

use super::row::{Action, Cut, Form, Paths, Phase, Row, Share, Shares, Sums};

pub(super) static ROW: Row = Row {
    name: "reduce",
    is_rooted: true,
    is_reduction: true,
    cut: Cut::Vector,
    gives: Shares::Each(Share::All),
    gets: Shares::Root(Share::All),
    sums: Sums::Everyone,
    minimal_volume: |_| 1.0,
    forms: &[
        (
            Form::TwoPhase,
            &[Phase::forwards(Paths::Toward, Action::Reduce), Phase::backwards(Paths::FromRoot)],
        ),
        (Form::Tree, &[Phase::forwards(Paths::ToRoot, Action::Reduce)]),
    ],
    is_pairwise: false,
    is_linear: false,
    along_trees: Some(Action::Reduce),
};
