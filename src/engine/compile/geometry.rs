//! The parameters of a compilation, and its failure.

use std::sync::Arc;

use hopbine_torus::plan::layout::Counts;
use hopbine_torus::{Block, Collective, LaneId, StepId};

use super::program::{Buffer, Program, Region};
use crate::error::CompileError;

/// Properties of a call, besides its plan, that a program depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Numbers and places of elements.
    pub sizes: Sizes,
    /// Bytes of one element.
    pub elem_bytes: u64,
    /// The input is in the receive buffer. (For a scatter's root: its output stays in the send buffer.)
    pub in_place: bool,
    /// The longest message in bytes; with `None`, transfers are not cut.
    pub segment_bytes: Option<u64>,
    /// Limits for calls that keep the user's memory off the wire; with `None`, no call does.
    pub staged: Option<Staged>,
}

/// Limits for staged calls, whose messages go from and into working memory that is registered once. They serve wires
/// that would have to register the user's memory anew in every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Staged {
    /// Longest message in bytes that needs no registered memory.
    pub keyless_bytes: u64,
    /// Largest size in bytes, of the longer of the user's buffers, at which copies cost less than two registrations.
    pub up_to_bytes: u64,
}

impl Staged {
    /// Whether a call is staged whose program on the user's memory is `direct`.
    pub(crate) fn is_for(self, direct: &Program) -> bool {
        const USERS: [usize; 2] = [Buffer::Send as usize, Buffer::Recv as usize];
        let uses = direct.ports.iter().flat_map(|port| USERS.map(|buffer| (port, buffer)));
        let (mut n_registrations, mut longest) = (0u64, 0);
        for (port, buffer) in uses {
            n_registrations += u64::from(port.wire_bytes[buffer] > self.keyless_bytes);
            longest = port.needs[buffer].max(longest);
        }
        // Each port has its own registrations, however much it sends; a call is copied once.
        n_registrations > 0
            && longest <= self.up_to_bytes.saturating_mul(n_registrations.div_ceil(2))
    }

    /// Whether a message from `from` would need the user's memory to be registered.
    pub(crate) fn packs(self, from: Region) -> bool {
        matches!(from.buffer, Buffer::Send | Buffer::Recv) && from.len > self.keyless_bytes
    }
}

/// The sizes of a call's data, and where the user has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sizes {
    /// Number of elements of the vector, or of every block; the blocks are adjacent.
    Equal(u64),
    /// Blocks of any size at any place.
    PerBlock {
        /// The blocks that a rank gives, if it gives all; in place, the same as `recv`.
        send: BlockSizes,
        /// The blocks that it gets, if it gets all.
        recv: BlockSizes,
        /// The ranks that know these sizes.
        known: Known,
    },
}

/// The ranks that know the length of a block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Known {
    /// Every rank.
    ByAll,
    /// The rank that gives the block, and the rank that gets it. So no rank can forward blocks, and a transfer is one
    /// message, even if it is empty: both sides detect a disagreement.
    ByEnds,
    /// All ranks through which the block passes: [`compile_sizes`](crate::engine::compile_sizes). So an empty
    /// transfer is a message too: no rank is done before other ranks that may have failed.
    Learnt(Arc<Learnt>),
    /// The same ranks, if a block has the same number on all of them: the counts contain its size, and 0 for blocks
    /// that do not pass through this rank.
    Told,
}

/// What ranks have told each other about the sizes of the blocks in a plan's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Learnt {
    /// By lane, the elements of each position that is received, in the order of steps, receives and runs.
    pub received: Vec<Box<[u64]>>,
    /// The longest block, in elements, of all ranks from which messages reach this rank, directly or through others.
    pub longest: u64,
}

/// Sizes and places of the blocks of all ranks in a user's buffer, in elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockSizes {
    /// By block, its number of elements.
    pub counts: Arc<[u64]>,
    /// By block, its start.
    pub offsets: Arc<[u64]>,
}

impl BlockSizes {
    /// Adjacent blocks of the given sizes.
    pub fn adjacent(counts: &[u64]) -> Self {
        let mut at = 0;
        let offsets = counts.iter().map(|count| (at, at += count).0).collect();
        BlockSizes { counts: counts.into(), offsets }
    }

    fn are_adjacent(&self) -> bool {
        let mut at = 0;
        self.counts.iter().zip(&*self.offsets).all(|(&count, &offset)| {
            let is_next = count == 0 || offset == at;
            at += count;
            is_next
        })
    }
}

impl Sizes {
    /// Elements of the blocks at the start and in the end, for
    /// [`Extent::new`](hopbine_torus::plan::layout::Extent::new).
    pub(crate) fn counts(&self) -> [Counts; 2] {
        match self {
            Sizes::Equal(count) => [Counts::Equal(*count), Counts::Equal(*count)],
            Sizes::PerBlock { send, recv, .. } => {
                [send, recv].map(|blocks| Counts::PerBlock(blocks.counts.clone()))
            }
        }
    }

    fn blocks(&self, buffer: Buffer) -> Option<&BlockSizes> {
        match self {
            Sizes::Equal(_) => None,
            Sizes::PerBlock { send, .. } if buffer == Buffer::Send => Some(send),
            Sizes::PerBlock { recv, .. } => Some(recv),
        }
    }

    /// Elements of a block, and its start, in one of the user's buffers.
    pub(crate) fn block(&self, buffer: Buffer, block: Block) -> (u64, u64) {
        match (self, self.blocks(buffer)) {
            (Sizes::Equal(count), _) => (*count, u64::from(block.0) * count),
            (_, Some(blocks)) => (blocks.counts[block.index()], blocks.offsets[block.index()]),
            (_, None) => unreachable!("sizes by block have blocks"),
        }
    }

    /// Whether the blocks are adjacent in one of the user's buffers.
    pub(crate) fn are_adjacent(&self, buffer: Buffer) -> bool {
        self.blocks(buffer).is_none_or(BlockSizes::are_adjacent)
    }

    /// Whether all blocks have one size.
    pub(crate) fn are_equal(&self) -> bool {
        matches!(self, Sizes::Equal(_))
    }

    /// Whether both sides of a message know the sizes of all blocks in it.
    pub(crate) fn are_known(&self) -> bool {
        !matches!(self, Sizes::PerBlock { known: Known::ByEnds, .. })
    }

    /// Whether ranks had to tell each other the sizes.
    pub(crate) fn are_learnt(&self) -> bool {
        matches!(self, Sizes::PerBlock { known: Known::Learnt(_) | Known::Told, .. })
    }

    /// The sizes that had to be learnt, by lane.
    pub(crate) fn learnt(&self) -> Option<&Learnt> {
        match self {
            Sizes::PerBlock { known: Known::Learnt(learnt), .. } => Some(learnt),
            _ => None,
        }
    }

    /// Whether a call of `collective` can have these sizes by block.
    pub(crate) fn fit(&self, collective: Collective, n_ranks: u32) -> bool {
        use hopbine_torus::collectives::Payload;
        let is_long = |blocks: &BlockSizes| {
            [blocks.counts.len(), blocks.offsets.len()] == [n_ranks as usize; 2]
        };
        match self {
            Sizes::Equal(_) => true,
            Sizes::PerBlock { send, recv, .. } => {
                is_long(send)
                    && is_long(recv)
                    && match collective.payload() {
                        Payload::Blocks => send.counts == recv.counts,
                        Payload::Pairs => true,
                        Payload::Vector | Payload::Token => false,
                    }
            }
        }
    }
}

/// Place in a plan at which compilation failed, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileFailure {
    /// The lane.
    pub lane: LaneId,
    /// The step.
    pub step: StepId,
    /// The reason.
    pub error: CompileError,
}
