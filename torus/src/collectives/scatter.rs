//! Scatter: rank x ends with the root's block x.

use super::row::{Cut, Form, Paths, Phase, Row, Share, Shares, Sums, others_share};

pub(super) static ROW: Row = Row {
    name: "scatter",
    is_rooted: true,
    is_reduction: false,
    cut: Cut::Blocks,
    gives: Shares::Root(Share::All),
    gets: Shares::Each(Share::Own),
    sums: Sums::Everyone,
    minimal_volume: others_share,
    forms: &[(Form::Tree, &[Phase::backwards(Paths::ToRoot)])],
    is_pairwise: false,
    is_linear: true,
    along_trees: None,
};
