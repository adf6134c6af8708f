//! The plan: what one rank does, port by port and step by step.
//!
//! A plan speaks of *positions*, never of bytes or addresses: each port owns a working
//! space of `positions` blocks, and a transfer names ranges of them. How many bytes a
//! position has, and where it lies in memory, follows from [`super::layout`] and is the
//! engine's business. How steps were derived is not recorded here either: the checker
//! proves a plan without knowing its pattern.

use std::sync::Arc;

use crate::collectives::Collective;

/// A rank of the communicator, `0..n_ranks`.
pub type Rank = u32;

/// A run of consecutive positions, `start .. start + len`, `len >= 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Run {
    /// First position.
    pub start: u32,
    /// Number of positions.
    pub len: u32,
}

impl Run {
    /// The run `start .. start + len`.
    pub const fn new(start: u32, len: u32) -> Self {
        Run { start, len }
    }

    /// One past the last position.
    pub const fn end(self) -> u32 {
        self.start + self.len
    }
}

/// The positions of one transfer: disjoint runs in the order in which they travel.
///
/// Shared, because the allgather half of an allreduce repeats the runs of its
/// reduce-scatter half.
pub type Blocks = Arc<[Run]>;

/// Number of positions in `blocks`.
pub fn n_positions(blocks: &[Run]) -> u64 {
    blocks.iter().map(|run| u64::from(run.len)).sum()
}

/// What a rank does with a block that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Store it, whatever the position held before.
    Copy,
    /// Combine it with what the position holds, see [`Step::own_at`] for the operand order.
    Reduce,
}

/// Blocks that leave this rank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Send {
    /// The receiving rank.
    pub to: Rank,
    /// Positions read, in this rank's working space.
    pub blocks: Blocks,
}

/// Blocks that arrive at this rank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recv {
    /// The sending rank.
    pub from: Rank,
    /// Positions written, in this rank's working space; run for run as long as the
    /// sender's runs.
    pub blocks: Blocks,
    /// Store or combine.
    pub action: Action,
}

/// One step of one port: its sends read the state before the step, its receives write
/// the state after it. At most one send and one receive per peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Step {
    /// What leaves, in the order in which it is posted.
    pub sends: Vec<Send>,
    /// What arrives. Receives that reduce into the same position are operands of one
    /// left fold, in this order.
    pub recvs: Vec<Recv>,
    /// Where this rank's own value stands among the operands of that fold: before the
    /// receive with this index (0: own value first; `recvs.len()`: last). All ranks of a
    /// group fold in the same order, so that they compute identical bits
    /// (algorithms.md section 5).
    pub own_at: u32,
}

/// How user blocks and positions correspond, at the start (`input`) or the end
/// (`output`) of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// No position is taken from, or given to, the user on this rank.
    Nothing,
    /// Position `i` is user block `i`, for all of them.
    Identity,
    /// Position `i` is user block `list[i]`; a permutation of `0..positions`.
    Permuted(Arc<[u32]>),
    /// Just one position corresponds to a user block: this rank's own.
    One {
        /// The position.
        position: u32,
    },
}

/// What a position of the working space is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// The port's part of one vector, cut into `positions` pieces as equal as possible:
    /// allreduce, bcast, reduce. User block = the piece with that index.
    Vector,
    /// The port's part of each of `positions` user blocks of equal count: reduce-scatter,
    /// allgather, gather, scatter, alltoall.
    Blocks,
    /// No data: barrier.
    Token,
}

/// The work of one port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PortPlan {
    /// Which part of the data this port moves, `0..parts`. Ports with the same part
    /// share one working space and touch disjoint positions of it.
    pub part: u32,
    /// Into how many parts the vector (or every user block) is cut.
    pub parts: u32,
    /// Size of the working space.
    pub positions: u32,
    /// What a position is.
    pub space: Space,
    /// Where the working space's first content comes from.
    pub input: Placement,
    /// Where its last content goes.
    pub output: Placement,
    /// The steps; index = step number, the same on all ranks. Steps may be empty.
    pub steps: Vec<Step>,
}

/// What one rank does in one collective: see the module documentation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// The collective that the plan performs.
    pub collective: Collective,
    /// This rank.
    pub rank: Rank,
    /// Ranks of the communicator.
    pub n_ranks: u32,
    /// The root, for rooted collectives; 0 otherwise.
    pub root: Rank,
    /// One entry per port.
    pub ports: Vec<PortPlan>,
}

impl Plan {
    /// The largest number of steps of any port.
    pub fn n_steps(&self) -> usize {
        self.ports.iter().map(|port| port.steps.len()).max().unwrap_or(0)
    }
}
