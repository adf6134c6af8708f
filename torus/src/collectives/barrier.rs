//! Barrier: no rank leaves before every rank has entered.

use super::row::{Action, Cut, Form, Paths, Phase, Row, Share, Shares, Sums};

pub(super) static ROW: Row = Row {
    name: "barrier",
    is_rooted: false,
    is_reduction: false,
    cut: Cut::Token,
    gives: Shares::Each(Share::All),
    gets: Shares::Each(Share::All),
    sums: Sums::Everyone,
    minimal_volume: |_| 0.0,
    forms: &[
        (Form::Butterfly, &[Phase::forwards(Paths::Everything, Action::Reduce)]),
        (Form::Latency, &[Phase::forwards(Paths::Everything, Action::Reduce)]),
    ],
    is_pairwise: false,
    is_linear: false,
    along_trees: None,
};
