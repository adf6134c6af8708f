//! Reduce-scatter: rank x ends with the reduction of all ranks' blocks x.

use super::row::{Action, Cut, Form, Paths, Phase, Row, Share, Shares, Sums, others_share};

pub(super) static ROW: Row = Row {
    name: "reduce-scatter",
    is_rooted: false,
    is_reduction: true,
    cut: Cut::Blocks,
    gives: Shares::Each(Share::All),
    gets: Shares::Each(Share::Own),
    sums: Sums::Everyone,
    minimal_volume: others_share,
    forms: &[(Form::Butterfly, &[Phase::forwards(Paths::Toward, Action::Reduce)])],
    is_pairwise: false,
    is_linear: false,
    along_trees: None,
};
