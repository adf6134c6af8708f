//! Blocks of any size: the vector forms of collectives.

use std::sync::Arc;

use crate::engine::BlockSizes;
use crate::error::{BlockProblem, Error};
use hopbine_torus::collectives::Collective;

/// The blocks of all ranks in a buffer: the length and the start of each block, in elements, by rank.
///
/// Lengths may differ. A block of length 0 may have any start. Blocks that are received must not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks<'a> {
    /// By rank, the length of its block in elements.
    pub counts: &'a [u64],
    /// By rank, the start of its block in elements; if `None`, each block begins where the previous one ends.
    pub displacements: Option<&'a [u64]>,
}

impl<'a> Blocks<'a> {
    /// Blocks of `counts` elements, one after the other.
    pub fn new(counts: &'a [u64]) -> Self {
        Blocks { counts, displacements: None }
    }

    /// The same blocks, each starting at its displacement.
    #[must_use]
    pub fn at(self, displacements: &'a [u64]) -> Self {
        Blocks { displacements: Some(displacements), ..self }
    }

    /// Elements from the start of the buffer to the end of the last block; `u64::MAX` if that overflows, which
    /// exceeds every buffer.
    pub(crate) fn extent(&self) -> u64 {
        match self.displacements {
            None => self.counts.iter().fold(0, |sum, &count| sum.saturating_add(count)),
            Some(starts) => {
                let filled = self.counts.iter().zip(starts).filter(|(count, _)| **count > 0);
                filled.map(|(count, start)| start.saturating_add(*count)).max().unwrap_or(0)
            }
        }
    }

    /// Checks that no two blocks share elements.
    pub(crate) fn check_disjoint(&self, collective: Collective) -> Result<(), Error> {
        let Some(starts) = self.displacements else { return Ok(()) };
        let ends = |rank: usize| starts[rank].saturating_add(self.counts[rank]);
        if (1..starts.len()).all(|rank| ends(rank - 1) <= starts[rank]) {
            return Ok(());
        }
        let mut order: Vec<usize> = (0..starts.len()).filter(|&at| self.counts[at] > 0).collect();
        order.sort_unstable_by_key(|&at| starts[at]);
        let meet =
            order.windows(2).find(|pair| starts[pair[0]] + self.counts[pair[0]] > starts[pair[1]]);
        match meet {
            None => Ok(()),
            Some(pair) => {
                let (first, second) = (pair[0] as u32, pair[1] as u32);
                Err(BlockProblem::Overlap { first, second }.of(collective))
            }
        }
    }

    /// Checks that there is one block for each rank.
    pub(crate) fn check_len(
        &self,
        collective: Collective,
        which: &'static str,
        n_ranks: u32,
    ) -> Result<(), Error> {
        let displacements = self.displacements.map(|list| (list.len(), "displacements"));
        for (found, what) in
            [Some((self.counts.len(), "counts")), displacements].into_iter().flatten()
        {
            if found != n_ranks as usize {
                let found = found as u64;
                return Err(BlockProblem::List { which, what, found, n_ranks }.of(collective));
            }
        }
        Ok(())
    }
}

impl BlockProblem {
    /// Wraps this problem in the [`Error`] of a call.
    pub(crate) fn of(self, collective: Collective) -> Error {
        Error::Blocks { collective, problem: self }
    }
}

/// Whether blocks have one size, and which ranks know the sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// All blocks have the same size.
    #[default]
    Regular,
    /// Sizes differ. Ranks know them as MPI defines it: in an allgather and a reduce-scatter every rank knows all
    /// sizes; in an alltoall a rank knows the blocks that it sends and receives; in a gather and a scatter the root
    /// knows all sizes and every other rank its own.
    Vector,
    /// Gather and scatter whose sizes all ranks know, so that no sizes are sent.
    VectorKnown,
}

impl Form {
    /// Whether all ranks know all sizes.
    pub(crate) fn is_known(self, collective: Collective) -> bool {
        match collective {
            Collective::Alltoall => self == Form::Regular,
            Collective::Gather | Collective::Scatter => self != Form::Vector,
            _ => true,
        }
    }
}

/// An owned copy of the [`Blocks`] of one buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OwnedBlocks {
    counts: Arc<[u64]>,
    displacements: Option<Arc<[u64]>>,
}

impl OwnedBlocks {
    pub(crate) fn new(blocks: Blocks<'_>) -> Self {
        let Blocks { counts, displacements } = blocks;
        OwnedBlocks { counts: counts.into(), displacements: displacements.map(Arc::from) }
    }

    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Bytes of the lists.
    pub(crate) fn list_bytes(&self) -> u64 {
        let n_lists = 1 + u64::from(self.displacements.is_some());
        n_lists * size_of_val::<[u64]>(&self.counts) as u64
    }

    pub(crate) fn equals(&self, blocks: Blocks<'_>) -> bool {
        *self.counts == *blocks.counts && self.displacements.as_deref() == blocks.displacements
    }

    /// Converts the blocks to the engine's [`BlockSizes`], with `size` units per element.
    pub(crate) fn sizes(&self, size: u64) -> BlockSizes {
        let counts: Vec<u64> = self.counts.iter().map(|count| count * size).collect();
        match &self.displacements {
            None => BlockSizes::adjacent(&counts),
            Some(starts) => {
                let start =
                    |(&start, &count): (&u64, &u64)| if count == 0 { 0 } else { start * size };
                let offsets = starts.iter().zip(&counts).map(start).collect();
                BlockSizes { counts: counts.into(), offsets }
            }
        }
    }
}
