//! Bcast: every rank ends with the root's vector.

use super::row::{Action, Cut, Form, Paths, Phase, Row, Share, Shares, Sums};

pub(super) static ROW: Row = Row {
    name: "bcast",
    is_rooted: true,
    is_reduction: false,
    cut: Cut::Vector,
    gives: Shares::Root(Share::All),
    gets: Shares::Each(Share::All),
    sums: Sums::Everyone,
    minimal_volume: |_| 1.0,
    forms: &[
        (
            Form::TwoPhase,
            &[Phase::forwards(Paths::FromRoot, Action::Copy), Phase::backwards(Paths::Toward)],
        ),
        (Form::Tree, &[Phase::backwards(Paths::ToRoot)]),
    ],
    is_pairwise: false,
    is_linear: false,
    along_trees: Some(Action::Copy),
};
