//! Gather: the root ends with every rank's block.

use super::row::{Action, Cut, Form, Paths, Phase, Row, Share, Shares, Sums};

pub(super) static ROW: Row = Row {
    name: "gather",
    is_rooted: true,
    is_reduction: false,
    cut: Cut::Blocks,
    gives: Shares::Each(Share::Own),
    gets: Shares::Root(Share::All),
    sums: Sums::Everyone,
    minimal_volume: |p| 1.0 / p,
    forms: &[(Form::Tree, &[Phase::forwards(Paths::ToRoot, Action::Copy)])],
    is_pairwise: false,
    is_linear: true,
    along_trees: None,
};
