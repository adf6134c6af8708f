//! What can be wrong with the blocks of a vector form.

use crate::Rank;

/// What is wrong with the blocks of a call, as far as the calling rank can tell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockProblem {
    /// Sizes of blocks, or their places, are not one for each rank.
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
    /// The blocks of a buffer are needed here, and not given.
    #[error("this rank must give the blocks of the {which} buffer")]
    Missing {
        /// `send` or `receive`.
        which: &'static str,
    },
    /// Blocks do not lie within their buffer.
    #[error("blocks reach to element {needed} of the {which} buffer, which holds {found}")]
    Beyond {
        /// `send` or `receive`.
        which: &'static str,
        /// Elements of the buffer.
        found: u64,
        /// Elements up to the end of the last block.
        needed: u64,
    },
    /// Two blocks to be received share memory.
    #[error("the blocks received from ranks {first} and {second} overlap")]
    Overlap {
        /// The one that starts first.
        first: Rank,
        /// The other.
        second: Rank,
    },
    /// A rank's own block has two sizes.
    #[error("rank {rank} gives {given} elements to itself and takes {taken}")]
    Own {
        /// The rank.
        rank: Rank,
        /// Its size where it is given.
        given: u64,
        /// Its size where it is taken.
        taken: u64,
    },
    /// The collective has no blocks that could differ.
    #[error("it has no vector form")]
    NoForm,
}
