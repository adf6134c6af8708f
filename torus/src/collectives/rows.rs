//! The collectives' rows of data.

use super::row::{
    Action, CollectiveRow, Holders, Payload, Routing, Share, Sums, WalkForm, WalkPhase,
    others_share,
};
use Holders::{ButFirst, ButLast, Each, Root};
use Share::{All, Own};

const ONE_VECTOR: fn(f64) -> f64 = |_| 1.0;
const COMBINE_BLOCKS: WalkPhase = WalkPhase::forwards(Routing::Toward, Action::Reduce);
const SPREAD_BLOCKS: WalkPhase = WalkPhase::backwards(Routing::Toward);
const GATHER: WalkPhase = WalkPhase::forwards(Routing::ToRoot, Action::Copy);
const COMBINE_AT_ROOT: WalkPhase = WalkPhase::forwards(Routing::ToRoot, Action::Reduce);
const FROM_ROOT: WalkPhase = WalkPhase::backwards(Routing::ToRoot);
const EXCHANGE_ALL: WalkPhase = WalkPhase::forwards(Routing::Everything, Action::Reduce);

/// A row without root, reduction and forms.
const PLAIN: CollectiveRow = CollectiveRow {
    name: "",
    is_rooted: false,
    is_reduction: false,
    payload: Payload::Blocks,
    gives: Each(All),
    gets: Each(All),
    sums: Sums::Everyone,
    minimal_volume: others_share,
    forms: &[],
    is_pairwise: false,
    is_linear: false,
    along_trees: None,
};
const REDUCTION: CollectiveRow = CollectiveRow { is_reduction: true, ..PLAIN };
const VECTOR_REDUCTION: CollectiveRow =
    CollectiveRow { payload: Payload::Vector, minimal_volume: ONE_VECTOR, ..REDUCTION };

/// The rows in the order of [`Collective::ALL`](super::Collective::ALL).
pub(super) static ROWS: [CollectiveRow; 11] = [
    CollectiveRow {
        name: "allreduce",
        minimal_volume: |p| 2.0 * others_share(p),
        forms: &[
            (WalkForm::TwoPhase, &[COMBINE_BLOCKS, SPREAD_BLOCKS]),
            // A reduce to rank 0, then a bcast.
            (WalkForm::Tree, &[COMBINE_AT_ROOT, FROM_ROOT]),
            (WalkForm::Latency, &[EXCHANGE_ALL]),
        ],
        ..VECTOR_REDUCTION
    },
    CollectiveRow {
        name: "reduce-scatter",
        gets: Each(Own),
        forms: &[(WalkForm::Butterfly, &[COMBINE_BLOCKS])],
        ..REDUCTION
    },
    CollectiveRow {
        name: "allgather",
        gives: Each(Own),
        forms: &[
            (WalkForm::Butterfly, &[SPREAD_BLOCKS]),
            // A gather to rank 0, then a bcast of all blocks.
            (WalkForm::Tree, &[GATHER, WalkPhase::backwards(Routing::AllToRoot)]),
        ],
        ..PLAIN
    },
    CollectiveRow {
        name: "bcast",
        is_rooted: true,
        payload: Payload::Vector,
        gives: Root(All),
        minimal_volume: ONE_VECTOR,
        forms: &[
            (
                WalkForm::TwoPhase,
                &[WalkPhase::forwards(Routing::FromRoot, Action::Copy), SPREAD_BLOCKS],
            ),
            (WalkForm::Tree, &[FROM_ROOT]),
        ],
        along_trees: Some(Action::Copy),
        ..PLAIN
    },
    CollectiveRow {
        name: "reduce",
        is_rooted: true,
        gets: Root(All),
        forms: &[
            (WalkForm::TwoPhase, &[COMBINE_BLOCKS, WalkPhase::backwards(Routing::FromRoot)]),
            (WalkForm::Tree, &[COMBINE_AT_ROOT]),
        ],
        along_trees: Some(Action::Reduce),
        ..VECTOR_REDUCTION
    },
    CollectiveRow {
        name: "gather",
        is_rooted: true,
        gives: Each(Own),
        gets: Root(All),
        minimal_volume: |p| 1.0 / p,
        forms: &[(WalkForm::Tree, &[GATHER])],
        is_linear: true,
        ..PLAIN
    },
    CollectiveRow {
        name: "scatter",
        is_rooted: true,
        gives: Root(All),
        gets: Each(Own),
        forms: &[(WalkForm::Tree, &[FROM_ROOT])],
        is_linear: true,
        ..PLAIN
    },
    CollectiveRow {
        name: "alltoall",
        payload: Payload::Pairs,
        forms: &[(WalkForm::Butterfly, &[WalkPhase::forwards(Routing::Displaced, Action::Copy)])],
        is_pairwise: true,
        ..PLAIN
    },
    // Each rank but the last must send its vector, as later ranks need it.
    CollectiveRow { name: "scan", sums: Sums::UpToOwn, ..VECTOR_REDUCTION },
    // Rank 0 gets nothing, and no rank needs the vector of the last rank.
    CollectiveRow {
        name: "exscan",
        gives: ButLast(All),
        gets: ButFirst(All),
        sums: Sums::Before,
        ..VECTOR_REDUCTION
    },
    CollectiveRow {
        name: "barrier",
        payload: Payload::Token,
        minimal_volume: |_| 0.0,
        forms: &[(WalkForm::Butterfly, &[EXCHANGE_ALL]), (WalkForm::Latency, &[EXCHANGE_ALL])],
        ..PLAIN
    },
];
