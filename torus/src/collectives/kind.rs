//! The collectives: names, roots, reductions, and what must hold when they are done.

use std::fmt;
use std::str::FromStr;

/// A collective operation, in MPI's sense of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Collective {
    /// Every rank ends with the reduction of all ranks' vectors.
    Allreduce,
    /// Rank `x` ends with the reduction of all ranks' blocks `x` (equal counts).
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
    /// No rank leaves before every rank has entered.
    Barrier,
}

impl Collective {
    /// All of them, in the order of the documentation's tables.
    pub const ALL: [Collective; 9] = [
        Collective::Allreduce,
        Collective::ReduceScatter,
        Collective::Allgather,
        Collective::Bcast,
        Collective::Reduce,
        Collective::Gather,
        Collective::Scatter,
        Collective::Alltoall,
        Collective::Barrier,
    ];

    /// The name used in text forms and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Collective::Allreduce => "allreduce",
            Collective::ReduceScatter => "reduce-scatter",
            Collective::Allgather => "allgather",
            Collective::Bcast => "bcast",
            Collective::Reduce => "reduce",
            Collective::Gather => "gather",
            Collective::Scatter => "scatter",
            Collective::Alltoall => "alltoall",
            Collective::Barrier => "barrier",
        }
    }

    /// True if one rank plays a special part.
    pub const fn is_rooted(self) -> bool {
        matches!(
            self,
            Collective::Bcast | Collective::Reduce | Collective::Gather | Collective::Scatter
        )
    }

    /// True if values are combined with an operator.
    pub const fn is_reduction(self) -> bool {
        matches!(self, Collective::Allreduce | Collective::ReduceScatter | Collective::Reduce)
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no collective's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a collective; known are allreduce, reduce-scatter, allgather, bcast, reduce, \
     gather, scatter, alltoall, barrier"
)]
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
