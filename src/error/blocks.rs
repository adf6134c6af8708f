//! Errors in the block arguments of a vector collective.

use crate::Rank;

/// An error in the blocks of a call, as far as the calling rank can detect it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockProblem {
    /// Block sizes or displacements are not one per rank.
    #[error(
        "{found} {what} are given for the {which} buffer; there must be one for each of {n_ranks} ranks"
    )]
    List {
        /// `send` or `receive`.
        which: &'static str,
        /// `counts` or `displacements`.
        what: &'static str,
        /// How many were given.
        found: u64,
        /// Ranks of the communicator.
        n_ranks: u32,
    },
    /// The call needs the blocks of a buffer, and they were not given.
    #[error("this rank must give the blocks of the {which} buffer")]
    Missing {
        /// `send` or `receive`.
        which: &'static str,
    },
    /// A block extends beyond its buffer.
    #[error("blocks reach to element {needed} of the {which} buffer, which holds {found}")]
    Beyond {
        /// `send` or `receive`.
        which: &'static str,
        /// Elements of the buffer.
        found: u64,
        /// Elements up to the end of the last block.
        needed: u64,
    },
    /// Two blocks of the receive buffer overlap.
    #[error("the blocks received from ranks {first} and {second} overlap")]
    Overlap {
        /// The source of the block that starts first.
        first: Rank,
        /// The source of the other block.
        second: Rank,
    },
    /// A rank gives two sizes for the block that it sends to itself.
    #[error("rank {rank} gives {given} elements to itself and takes {taken}")]
    Own {
        /// The rank.
        rank: Rank,
        /// Size of the block as sent, in elements.
        given: u64,
        /// Size of the block as received, in elements.
        taken: u64,
    },
    /// The collective has no blocks that could differ.
    #[error("it has no vector form")]
    NoForm,
}
