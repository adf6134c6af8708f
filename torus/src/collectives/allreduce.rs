//! Allreduce: every rank ends with the reduction of all ranks' vectors.

use super::row::{Action, Cut, Form, Paths, Phase, Row, Share, Shares, Sums, others_share};

pub(super) static ROW: Row = Row {
    name: "allreduce",
    is_rooted: false,
    is_reduction: true,
    cut: Cut::Vector,
    gives: Shares::Each(Share::All),
    gets: Shares::Each(Share::All),
    sums: Sums::Everyone,
    minimal_volume: |p| 2.0 * others_share(p),
    forms: &[
        (
            Form::TwoPhase,
            &[Phase::forwards(Paths::Toward, Action::Reduce), Phase::backwards(Paths::Toward)],
        ),
        // A reduce to rank 0, then a bcast.
        (
            Form::Tree,
            &[Phase::forwards(Paths::ToRoot, Action::Reduce), Phase::backwards(Paths::ToRoot)],
        ),
        (Form::Latency, &[Phase::forwards(Paths::Everything, Action::Reduce)]),
    ],
    is_pairwise: false,
    is_linear: false,
    along_trees: None,
};
