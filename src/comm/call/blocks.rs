//! Blocks of any size: the vector forms of collectives.

use std::sync::Arc;

use crate::engine::BlockSizes;
use crate::error::{BlockProblem, Error};
use hopbine_torus::collectives::Collective;

/// The blocks of all ranks in a buffer, in elements: in rank order, how long each is, and where
/// it starts.
///
/// Lengths may differ as they like, and be 0: then it does not matter where the block starts. Blocks
/// that are received must not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks<'a> {
    /// By rank, the elements of its block.
    pub counts: &'a [u64],
    /// By rank, where its block starts; without them, one begins where the one before ends.
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

    /// Elements up to the end of the block that ends last; `u64::MAX` stands for more, which no
    /// buffer has.
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
    pub(crate) fn check_apart(&self, collective: Collective) -> Result<(), Error> {
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
    /// As the error of a call.
    pub(crate) fn of(self, collective: Collective) -> Error {
        Error::Blocks { collective, problem: self }
    }
}

/// Whether blocks have one size, and which ranks know the sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// All blocks have the same size.
    #[default]
    Regular,
    /// Sizes differ, and ranks know them as MPI has it: of an allgather and a reduce-scatter
    /// all of them; of an alltoall what they give and get themselves; and so with gather and
    /// scatter, where the root gives and gets everything.
    Vector,
    /// Gather and scatter: all ranks know all sizes, so no sizes are sent.
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

/// The blocks of one buffer, kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeptBlocks {
    counts: Arc<[u64]>,
    displacements: Option<Arc<[u64]>>,
}

impl KeptBlocks {
    pub(crate) fn new(blocks: Blocks<'_>) -> Self {
        let Blocks { counts, displacements } = blocks;
        KeptBlocks { counts: counts.into(), displacements: displacements.map(Arc::from) }
    }

    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    pub(crate) fn are(&self, blocks: Blocks<'_>) -> bool {
        *self.counts == *blocks.counts && self.displacements.as_deref() == blocks.displacements
    }

    /// As the engine takes them, with elements of `size` units.
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
