//! Alltoall: rank x ends with every rank's block for x.

use super::row::{Action, Cut, Form, Paths, Phase, Row, Share, Shares, Sums, others_share};

pub(super) static ROW: Row = Row {
    name: "alltoall",
    is_rooted: false,
    is_reduction: false,
    cut: Cut::Pairs,
    gives: Shares::Each(Share::All),
    gets: Shares::Each(Share::All),
    sums: Sums::Everyone,
    minimal_volume: others_share,
    forms: &[(Form::Butterfly, &[Phase::forwards(Paths::Displaced, Action::Copy)])],
    is_pairwise: true,
    is_linear: false,
    along_trees: None,
};
