//! The types of a collective's row of data.

use crate::names::Rank;

/// The share of the data that a rank contributes to a collective, or gets from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Share {
    /// Nothing: MPI calls the buffer not significant on this rank.
    Nothing,
    /// The block with the rank's own number.
    Own,
    /// Every position: the whole vector, or all blocks.
    All,
}

/// The ranks that have a [`Share`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holders {
    /// Every rank has the share.
    Each(Share),
    /// Only the root has the share.
    Root(Share),
    /// Every rank but rank 0 has the share; rank 0 has nothing.
    ButFirst(Share),
    /// Every rank but the last has the share; the last has nothing.
    ButLast(Share),
}

/// The ranks whose contributions a result combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// All ranks, in the result of every rank.
    Everyone,
    /// The ranks up to the one that gets the result, itself included.
    UpToOwn,
    /// The ranks before the one that gets the result.
    Before,
}

crate::named! {
    /// What the data consist of.
    pub enum Payload {
        /// One vector, cut into pieces as equal as possible, which no rank owns.
        Vector = "vector",
        /// A block for each rank.
        Blocks = "blocks",
        /// A block for each pair of ranks. A position is a displacement, which leads from each rank to one rank, and
        /// to each rank from one rank.
        Pairs = "pairs",
        /// No data.
        Token = "token",
    }
}

crate::named! {
    /// How a collective is performed over a walk.
    pub enum WalkForm {
        /// One pass over the walk in which all ranks do the same.
        Butterfly = "butterfly",
        /// The tree to, or from, the root.
        Tree = "tree",
        /// Two passes: allreduce as reduce-scatter and allgather (its bandwidth form, B), bcast as
        /// scatter and allgather, reduce as reduce-scatter and gather (Bine, section 4.5).
        TwoPhase = "two-phase",
        /// Every step exchanges and combines the whole vector: allreduce's latency form (L).
        Latency = "latency",
    }
}

crate::named! {
    /// What a rank does with arriving data.
    #[derive(Default)]
    pub enum Action {
        /// Store it, whatever the position held before.
        #[default]
        Copy = "copy",
        /// Combine it with what the position holds.
        Reduce = "reduce",
    }
}

/// Which blocks a pass over a walk sends to which peers (algorithms.md section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routing {
    /// Every rank has every block and forwards it along the toward table: reduce-scatter.
    Toward,
    /// Blocks go from the root along the paths of `Toward`: the scatter that an allgather completes.
    FromRoot,
    /// Every rank sends once, at its first step towards the root, all blocks that it has by then.
    ToRoot,
    /// The ranks and steps of `ToRoot`, but every message contains all blocks. Run backwards, this sends the blocks
    /// that the root has gathered to all ranks.
    AllToRoot,
    /// The paths of `Toward`, with blocks of different sources kept apart: logarithmic alltoall.
    Displaced,
    /// Every rank sends all data to all its peers at every step.
    Everything,
}

/// One pass over a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WalkPhase {
    /// Which blocks are sent.
    pub routing: Routing,
    /// The pass runs backwards: last step first, receivers send.
    pub backwards: bool,
    /// What a rank does with arriving data.
    pub action: Action,
}

impl WalkPhase {
    /// A pass with the steps in order.
    pub const fn forwards(routing: Routing, action: Action) -> Self {
        WalkPhase { routing, backwards: false, action }
    }

    /// A pass with the steps backwards; arriving data are stored.
    pub const fn backwards(routing: Routing) -> Self {
        WalkPhase { routing, backwards: true, action: Action::Copy }
    }
}

/// The properties of a collective.
#[derive(Debug)]
pub struct CollectiveRow {
    pub name: &'static str,
    pub is_rooted: bool,
    pub is_reduction: bool,
    pub payload: Payload,
    /// Pre-condition: the share that each rank contributes.
    pub gives: Holders,
    /// Post-condition: the share that each rank has at the end. A position must contain all that was given to it,
    /// each contribution once.
    pub gets: Holders,
    /// The ranks whose contributions a result combines, if the collective is a reduction.
    pub sums: Sums,
    /// The volume that the busiest of p ranks must send at least, as a multiple of n, the bytes of the vector or of
    /// all blocks of a rank.
    pub minimal_volume: fn(p: f64) -> f64,
    /// The forms, each with its passes.
    pub forms: &'static [(WalkForm, &'static [WalkPhase])],
    /// Whether the collective also exists as single messages between all pairs.
    pub is_pairwise: bool,
    /// Whether the collective also exists as single messages between the root and every other rank.
    pub is_linear: bool,
    /// The action of the form that moves whole vectors along spanning trees of the torus: towards the root (`Reduce`)
    /// or from it (`Copy`).
    pub along_trees: Option<Action>,
}

/// (p - 1) / p: the part of n that leaves a rank which keeps its own block.
pub fn others_share(p: f64) -> f64 {
    (p - 1.0) / p
}

impl Holders {
    pub fn of(self, rank: Rank, root: Rank, n_ranks: u32) -> Share {
        let (share, has) = match self {
            Holders::Each(share) => (share, true),
            Holders::Root(share) => (share, rank == root),
            Holders::ButFirst(share) => (share, rank.0 > 0),
            Holders::ButLast(share) => (share, rank.0 + 1 < n_ranks),
        };
        if has { share } else { Share::Nothing }
    }
}
