//! The types that a collective's row of data is made of.

use crate::names::Rank;

/// What of the data a rank gives to a collective, or gets from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Share {
    /// Nothing: a buffer that MPI calls not significant on this rank.
    Nothing,
    /// The block of its own number.
    Own,
    /// Every position: the whole vector, or all blocks.
    All,
}

/// Who has a [`Share`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holders {
    /// Every rank the same.
    Each(Share),
    /// The root alone.
    Root(Share),
    /// Every rank but the first, who has nothing.
    ButFirst(Share),
    /// Every rank but the last, who has nothing.
    ButLast(Share),
}

/// The ranks whose contributions a result combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// Everyone's, on every rank.
    Everyone,
    /// Those of the ranks up to the one that gets it, itself included.
    UpToOwn,
    /// Those of the ranks before the one that gets it.
    Before,
}

crate::named! {
    /// What the data consist of.
    pub enum Payload {
        /// One vector, cut into pieces as equal as possible that nobody owns.
        Vector = "vector",
        /// A block for each rank.
        Blocks = "blocks",
        /// A block for each pair of ranks: a position is a displacement, which leads from each
        /// rank to another rank, and to each rank from another.
        Pairs = "pairs",
        /// No data.
        Token = "token",
    }
}

crate::named! {
    /// How a collective is performed over a walk.
    pub enum WalkForm {
        /// One pass over the walk in which all ranks take the same part.
        Butterfly = "butterfly",
        /// The tree towards, or from, the root.
        Tree = "tree",
        /// Two passes: allreduce as reduce-scatter and allgather (its bandwidth form, B), bcast as
        /// scatter and allgather, reduce as reduce-scatter and gather (Bine, section 4.5).
        TwoPhase = "two-phase",
        /// Every step exchanges and combines the whole vector: allreduce's latency form (L).
        Latency = "latency",
    }
}

crate::named! {
    /// What a rank does with what arrives.
    #[derive(Default)]
    pub enum Action {
        /// Store it, whatever the position held before.
        #[default]
        Copy = "copy",
        /// Combine it with what the position holds.
        Reduce = "reduce",
    }
}

/// Which blocks a pass over a walk sends where (algorithms.md section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routing {
    /// Every rank has every block and forwards it along the toward table: reduce-scatter.
    Toward,
    /// Blocks go from the root along the same paths: the scatter that an allgather completes.
    FromRoot,
    /// Every rank sends once, at its first step towards the root, all that it has by then.
    ToRoot,
    /// The same ranks and steps as `ToRoot`, but every message is all blocks: backwards, what the
    /// root has gathered goes to everyone.
    AllToRoot,
    /// The paths of `Toward` with sources kept apart: logarithmic alltoall.
    Displaced,
    /// Everyone sends all that there is to all its peers at every step.
    Everything,
}

/// One pass over a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WalkPhase {
    /// What is sent.
    pub routing: Routing,
    /// The pass runs backwards: last step first, receivers send.
    pub backwards: bool,
    /// What becomes of what arrives.
    pub action: Action,
}

impl WalkPhase {
    /// The steps in order.
    pub const fn forwards(routing: Routing, action: Action) -> Self {
        WalkPhase { routing, backwards: false, action }
    }

    /// The steps backwards; what arrives is stored.
    pub const fn backwards(routing: Routing) -> Self {
        WalkPhase { routing, backwards: true, action: Action::Copy }
    }
}

/// What there is to know about a collective.
#[derive(Debug)]
pub struct CollectiveRow {
    pub name: &'static str,
    pub is_rooted: bool,
    pub is_reduction: bool,
    pub payload: Payload,
    /// Pre-condition: what each rank brings.
    pub gives: Holders,
    /// Post-condition: what each rank has in the end. All that was given to a position must be
    /// in it, each contribution once.
    pub gets: Holders,
    /// Whose contributions there are in what a rank gets, if it is combined.
    pub sums: Sums,
    /// The least that the busiest of p ranks must send, as a multiple of n, the bytes of the
    /// vector or of all blocks of a rank.
    pub minimal_volume: fn(p: f64) -> f64,
    /// Its forms, each with the passes that it consists of.
    pub forms: &'static [(WalkForm, &'static [WalkPhase])],
    /// It also exists as single messages between all pairs.
    pub is_pairwise: bool,
    /// It also exists as single messages between the root and every other rank.
    pub is_linear: bool,
    /// Along spanning trees of the torus, whole vectors: towards the root (`Reduce`) or from
    /// it (`Copy`).
    pub along_trees: Option<Action>,
}

/// (p - 1) / p: what of n leaves a rank that keeps its own block.
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
