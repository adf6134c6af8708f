//! The collectives, and the properties that follow from their rows.

use std::fmt;
use std::str::FromStr;

use super::row::{Action, CollectiveRow, Holders, Payload, Share, Sums, WalkForm, WalkPhase};
use super::rows::ROWS;
use crate::names::Rank;

/// A collective operation, in MPI's sense of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Collective {
    /// Every rank ends with the reduction of all ranks' vectors.
    Allreduce,
    /// Rank `x` ends with the reduction of all ranks' blocks `x`.
    ReduceScatter,
    /// Every rank ends with every rank's block.
    Allgather,
    /// Every rank ends with the root's vector.
    Bcast,
    /// The root ends with the reduction of all ranks' vectors.
    Reduce,
    /// The root ends with every rank's block.
    Gather,
    /// Rank `x` ends with the root's block `x`.
    Scatter,
    /// Rank `x` ends with every rank's block for `x`.
    Alltoall,
    /// Rank `x` ends with the reduction of the vectors of ranks 0 to `x`.
    Scan,
    /// Rank `x` ends with the reduction of the vectors of ranks 0 to `x - 1`; rank 0 with nothing.
    Exscan,
    /// No rank leaves before every rank has entered.
    Barrier,
}

impl Collective {
    /// All collectives, in the order of the documentation's tables.
    pub const ALL: [Collective; 11] = [
        Collective::Allreduce,
        Collective::ReduceScatter,
        Collective::Allgather,
        Collective::Bcast,
        Collective::Reduce,
        Collective::Gather,
        Collective::Scatter,
        Collective::Alltoall,
        Collective::Scan,
        Collective::Exscan,
        Collective::Barrier,
    ];

    #[inline]
    const fn row(self) -> &'static CollectiveRow {
        &ROWS[self as usize]
    }

    /// The name used in text forms and on the command line.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// True if the collective has a root.
    #[inline]
    pub const fn is_rooted(self) -> bool {
        self.row().is_rooted
    }

    /// True if values are combined with an operator.
    #[inline]
    pub const fn is_reduction(self) -> bool {
        self.row().is_reduction
    }

    /// What its data consist of.
    pub const fn payload(self) -> Payload {
        self.row().payload
    }

    /// The most blocks that a rank's data have on `n_ranks` ranks: 1 for a vector or a token.
    pub const fn n_blocks(self, n_ranks: u32) -> u32 {
        match self.payload() {
            Payload::Vector | Payload::Token => 1,
            Payload::Blocks | Payload::Pairs => n_ranks,
        }
    }

    /// The share of the data that `rank` of `n_ranks` contributes.
    pub fn gives(self, rank: Rank, root: Rank, n_ranks: u32) -> Share {
        self.row().gives.of(rank, root, n_ranks)
    }

    /// The share of the data that `rank` of `n_ranks` has at the end.
    pub fn gets(self, rank: Rank, root: Rank, n_ranks: u32) -> Share {
        self.row().gets.of(rank, root, n_ranks)
    }

    /// True if `rank` of `n_ranks` contributes all that it gets, so that no message has to reach it: the root of a
    /// bcast.
    pub fn needs_no_receive(self, rank: Rank, root: Rank, n_ranks: u32) -> bool {
        self.payload() == Payload::Vector
            && !self.is_reduction()
            && self.gives(rank, root, n_ranks) == Share::All
            && self.gets(rank, root, n_ranks) == Share::All
    }

    /// The ranks whose contributions a result combines.
    pub const fn sums(self) -> Sums {
        self.row().sums
    }

    /// Returns the number of ranks that contribute to the result of `rank`: ranks `0..contributors`.
    pub fn contributors(self, rank: Rank, n_ranks: u32) -> u32 {
        match self.sums() {
            Sums::Everyone => n_ranks,
            Sums::UpToOwn => rank.0 + 1,
            Sums::Before => rank.0,
        }
    }

    /// True if several ranks get the same reduction, which must then have the same bits on all of them.
    pub fn gets_copies(self) -> bool {
        self.is_reduction()
            && self.row().gets == Holders::Each(Share::All)
            && self.sums() == Sums::Everyone
    }

    /// The passes of a form, if the collective has it.
    pub fn phases(self, form: WalkForm) -> Option<&'static [WalkPhase]> {
        self.row().forms.iter().find(|(known, _)| *known == form).map(|(_, phases)| *phases)
    }

    /// True if the collective also exists as single messages between all pairs of ranks.
    pub const fn is_pairwise(self) -> bool {
        self.row().is_pairwise
    }

    /// True if the collective also exists as single messages between the root and every other rank.
    pub const fn is_linear(self) -> bool {
        self.row().is_linear
    }

    /// The action of ranks in the form that moves whole vectors along spanning trees, if there is one: combine
    /// vectors on the way to the root, or store them on the way from it.
    pub const fn along_trees(self) -> Option<Action> {
        self.row().along_trees
    }

    /// The volume that the busiest of `n_ranks` ranks must send at least, whatever the algorithm, as a multiple of n
    /// (the bytes of the vector, or of all blocks of a rank).
    ///
    /// Sources: Chan et al., "Collective communication: theory, practice, and experience" (2007) for the bounds
    /// (p - 1) / p; rooted collectives are bounded by the volume that the root sends, or that each other rank gives.
    pub fn minimal_volume(self, n_ranks: u32) -> f64 {
        if n_ranks < 2 { 0.0 } else { (self.row().minimal_volume)(f64::from(n_ranks)) }
    }

    /// The fewest steps of any algorithm on `n_ranks` ranks, if a rank sends at most `sends` and receives at most
    /// `recvs` messages in a step. Each step multiplies the number of ranks that one rank's data have reached by
    /// `sends` + 1 at most, and the number of ranks whose data one rank has by `recvs` + 1.
    ///
    /// Source: Bruck et al., "Efficient algorithms for all-to-all communications in multiport
    /// message-passing systems" (1997), section 2.
    pub fn minimal_steps(self, n_ranks: u32, sends: u32, recvs: u32) -> u32 {
        if n_ranks < 2 {
            return 0;
        }
        let (root, other) = (Rank(0), Rank(1));
        let from_one = self.gives(other, root, n_ranks) == Share::Nothing;
        let to_one = self.gets(other, root, n_ranks) == Share::Nothing;
        let spreading = if to_one { 0 } else { ceil_log(n_ranks, sends + 1) };
        let gathering = if from_one { 0 } else { ceil_log(n_ranks, recvs + 1) };
        spreading.max(gathering)
    }
}

/// The exponent of the smallest power of `radix` that is at least `n`: the rounds until one rank's data reach `n`
/// ranks, if each round multiplies the number of ranks reached by `radix`. A radix below 2 counts as 2.
pub fn ceil_log(n: u32, radix: u32) -> u32 {
    let (mut steps, mut reached) = (0, 1u64);
    while reached < u64::from(n) {
        reached *= u64::from(radix.max(2));
        steps += 1;
    }
    steps
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error: a name that is not the name of a collective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a collective; known are {known}", known = Collective::ALL.map(Collective::name).join(", "))]
pub struct UnknownCollective(pub String);

impl FromStr for Collective {
    type Err = UnknownCollective;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = text.replace('_', "-");
        Collective::ALL
            .into_iter()
            .find(|collective| collective.name() == wanted)
            .ok_or_else(|| UnknownCollective(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_collectives() {
        let names = Collective::ALL.map(|collective| format!("{collective:?}").to_lowercase());
        assert_eq!(ROWS.each_ref().map(|row| row.name.replace('-', "")), names);
    }
}
