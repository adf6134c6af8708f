//! What the compiler of programs is told, and where it fails.

use std::sync::Arc;

use hopbine_torus::plan::layout::Counts;
use hopbine_torus::{Block, Collective};

use super::program::{Buffer, Program, Region};
use crate::error::CompileError;

/// What a program needs to know of a call besides the plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// How many elements, and where.
    pub sizes: Sizes,
    /// Bytes of one element.
    pub elem_bytes: u64,
    /// The input is in the receive buffer (for a scatter's root: its output stays in the
    /// send buffer).
    pub in_place: bool,
    /// The longest message, in bytes; `None` leaves transfers whole.
    pub segment_bytes: Option<u64>,
    /// Which calls leave the user's memory off the wire; `None`: none.
    pub staged: Option<Staged>,
}

/// Calls whose messages go from and into working memory, which is registered once, for a wire that would have to
/// register the user's memory anew in every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Staged {
    /// Longer messages need registered memory, in bytes.
    pub keyless_bytes: u64,
    /// The most bytes of the longer of the user's buffers for which copies cost less than two registrations.
    pub up_to_bytes: u64,
}

impl Staged {
    /// Whether a program that works on the user's memory is one of them.
    pub(crate) fn is_for(self, direct: &Program) -> bool {
        const USERS: [usize; 2] = [Buffer::Send as usize, Buffer::Recv as usize];
        let uses = direct.ports.iter().flat_map(|port| USERS.map(|buffer| (port, buffer)));
        let (mut n_registrations, mut longest) = (0u64, 0);
        for (port, buffer) in uses {
            n_registrations += u64::from(port.wire_bytes[buffer] > self.keyless_bytes);
            longest = port.needs[buffer].max(longest);
        }
        // Each port has registrations of its own, whatever it sends; a call is copied once.
        n_registrations > 0
            && longest <= self.up_to_bytes.saturating_mul(n_registrations.div_ceil(2))
    }

    /// Whether a message from there would need registered memory of the user's.
    pub(crate) fn packs(self, from: Region) -> bool {
        matches!(from.buffer, Buffer::Send | Buffer::Recv) && from.len > self.keyless_bytes
    }
}

/// The sizes of a call's data, and where the user has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sizes {
    /// Elements of the vector, or of every block; blocks lie one after the other.
    Equal(u64),
    /// Blocks of any size at any place.
    PerBlock {
        /// The blocks that a rank gives, if it gives all; in place, as `recv`.
        send: BlockSizes,
        /// The blocks that it gets, if it gets all.
        recv: BlockSizes,
        /// Who knows them.
        known: Known,
    },
}

/// Who knows how long a block is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Known {
    /// Every rank.
    ByAll,
    /// The rank that gives it and the one that gets it. So nobody can forward anything, and a
    /// transfer is one message, be it empty: both sides find out if they do not agree.
    ByEnds,
    /// Everyone through whom it passes: [`compile_sizes`](crate::engine::compile_sizes). So a transfer is
    /// a message also if it is empty: nobody is done before those who may have failed.
    Learnt(Arc<Learnt>),
    /// The same, where blocks have one number for all ranks: the counts say it, and are 0 for what
    /// does not pass here.
    Told,
}

/// What ranks have told each other about the blocks that the messages of a plan carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Learnt {
    /// By lane, the elements of what is received: position by position, in the order of steps,
    /// receives and runs.
    pub received: Vec<Box<[u64]>>,
    /// The longest block of all ranks whose messages lead here, directly or through others.
    pub longest: u64,
}

/// Sizes and places of the blocks of all ranks in a user's buffer, in elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockSizes {
    /// By block, how many elements it has.
    pub counts: Arc<[u64]>,
    /// By block, where it starts.
    pub offsets: Arc<[u64]>,
}

impl BlockSizes {
    /// Blocks one after the other.
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

    /// Elements of a block, in the words of one of the user's buffers, and where it starts there.
    pub(crate) fn block(&self, buffer: Buffer, block: Block) -> (u64, u64) {
        match (self, self.blocks(buffer)) {
            (Sizes::Equal(count), _) => (*count, u64::from(block.0) * count),
            (_, Some(blocks)) => (blocks.counts[block.index()], blocks.offsets[block.index()]),
            (_, None) => unreachable!("sizes by block have blocks"),
        }
    }

    /// Whether blocks lie one after the other in one of the user's buffers.
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

    /// Whether ranks had to tell each other.
    pub(crate) fn are_learnt(&self) -> bool {
        matches!(self, Sizes::PerBlock { known: Known::Learnt(_) | Known::Told, .. })
    }

    /// What had to be learnt, lane by lane.
    pub(crate) fn learnt(&self) -> Option<&Learnt> {
        match self {
            Sizes::PerBlock { known: Known::Learnt(learnt), .. } => Some(learnt),
            _ => None,
        }
    }

    /// Whether these are sizes by block that a call of `collective` can have.
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

/// Where in a plan compilation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileFailure {
    /// The lane.
    pub lane: usize,
    /// The step.
    pub step: usize,
    /// The reason.
    pub error: CompileError,
}
