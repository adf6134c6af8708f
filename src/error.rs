//! The error type of the crate: each error says what was wrong, where, and what would have been valid.

mod blame;
mod blocks;
mod schedule;
mod text;

use std::sync::Arc;
use std::time::Duration;

use crate::Rank;
use hopbine_torus::choose::TableError;
use hopbine_torus::collectives::Collective;
use hopbine_torus::plan::Defect;
use hopbine_torus::{LaneId, StepId};

use crate::reduce::{Dtype, ReduceError};
pub use blame::{Awaited, Blame, Fault};
pub use blocks::BlockProblem;
pub use schedule::ScheduleProblem;
use text::{all_tried, because, place};

/// A failure of the wire that has not yet been assigned to an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {reason}")]
#[non_exhaustive]
pub struct WireError {
    /// The call that failed, as the wire's documentation names it.
    pub call: &'static str,
    /// The wire's own description of the failure.
    pub reason: String,
    /// The peer of the failed call, if it is known.
    pub peer: Option<Rank>,
}

impl WireError {
    /// An error without a known peer.
    pub(crate) fn new(call: &'static str, reason: impl ToString) -> Self {
        WireError { call, reason: reason.to_string(), peer: None }
    }

    /// The same error with its peer.
    pub(crate) fn at(self, peer: Rank) -> Self {
        WireError { peer: Some(peer), ..self }
    }
}

/// A plan that the engine does not execute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The plan breaks a local rule.
    #[error("{0}")]
    Invalid(Defect),
    /// Block sizes given for a collective without blocks, not one per rank, or different sizes for the same block.
    #[error("the sizes of blocks do not fit the collective")]
    Sizes,
    /// A block passes through a rank that does not know the block's length.
    #[error(
        "blocks pass through ranks that do not know their sizes; use an algorithm in which they go \
         straight to their owners, `pairwise` or `linear`"
    )]
    Forwards,
    /// More tasks than task numbers (2^32 - 1).
    #[error("more than 2^32 - 1 tasks; use larger segments")]
    TooLong,
}

/// All errors of the library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A buffer does not have the length that the collective needs.
    #[error("{collective}: the {which} buffer holds {found} elements, it must hold {needed}")]
    BufferLength {
        /// The collective called.
        collective: Collective,
        /// `send` or `receive`.
        which: &'static str,
        /// Length of the buffer in elements.
        found: u64,
        /// Required length in elements.
        needed: u64,
    },
    /// An in-place alltoall, reduce-scatter, allgather or gather needs one block per rank.
    #[error(
        "{collective}: {found} elements cannot be divided into equal blocks for {n_ranks} ranks"
    )]
    UnevenBlocks {
        /// The collective called.
        collective: Collective,
        /// Elements given.
        found: u64,
        /// Ranks of the communicator.
        n_ranks: u32,
    },
    /// The block sizes or displacements of a vector collective are invalid.
    #[error("{collective}: {problem}")]
    Blocks {
        /// The collective called.
        collective: Collective,
        /// What is wrong with the blocks.
        problem: BlockProblem,
    },
    /// Two ranks give different sizes for the block that one sends to the other.
    #[error(
        "rank {rank}: rank {peer} sends a block of {sent} bytes where this rank expects {expected} \
         bytes of it: the counts of the two must agree"
    )]
    Disagree {
        /// The rank that expects the block.
        rank: Rank,
        /// The rank that sends it.
        peer: Rank,
        /// Bytes of the block according to the sender.
        sent: u64,
        /// Bytes of the block according to the receiver.
        expected: u64,
    },
    /// The output of a persistent collective could not be allocated.
    #[error("{collective}: no memory for an output of {elements} elements of {dtype}")]
    Memory {
        /// The collective called.
        collective: Collective,
        /// Elements of the output.
        elements: u64,
        /// Element type of the output.
        dtype: Dtype,
    },
    /// The root is not a rank of the communicator.
    #[error("{collective}: root {root} is out of range, ranks are 0 to {}", n_ranks.saturating_sub(1))]
    Root {
        /// The collective called.
        collective: Collective,
        /// The root given.
        root: Rank,
        /// Ranks of the communicator.
        n_ranks: u32,
    },
    /// A non-empty buffer is null, or would extend beyond the address space.
    #[error("{collective}: the {which} buffer, {bytes} B at {address:#x}, is not mapped memory")]
    Address {
        /// The collective called.
        collective: Collective,
        /// `send` or `receive`.
        which: &'static str,
        /// Address of the buffer's first byte.
        address: u64,
        /// Bytes that the buffer must hold.
        bytes: u64,
    },
    /// The send and the receive buffer share memory.
    #[error("{collective}: send and receive buffer overlap; ask for the operation in place")]
    Overlap {
        /// The collective called.
        collective: Collective,
    },
    /// A reduction without an operator.
    #[error("{collective}: no operator given")]
    NoOperator {
        /// The collective called.
        collective: Collective,
    },
    /// The operator is not defined for the element type.
    #[error(transparent)]
    Reduce(#[from] ReduceError),
    /// No algorithm has this name.
    #[error("{collective}: unknown algorithm `{name}`; known are: {known}")]
    UnknownAlgorithm {
        /// The collective called.
        collective: Collective,
        /// The name asked for.
        name: String,
        /// The names of all algorithms.
        known: String,
    },
    /// The algorithm does not support the shape or the call.
    #[error("{collective}: algorithm `{name}` cannot serve this call: {reason}")]
    NotServed {
        /// The collective called.
        collective: Collective,
        /// The algorithm asked for.
        name: String,
        /// Why the algorithm does not support it.
        reason: String,
    },
    /// A schedule named by the call does not perform the call.
    #[error("rank {rank}, {collective}: the schedule cannot serve this call: {problem}")]
    Schedule {
        /// The calling rank.
        rank: Rank,
        /// The collective called.
        collective: Collective,
        /// What is wrong with the schedule, and what would be valid.
        problem: Box<ScheduleProblem>,
    },
    /// The engine does not execute the plan.
    #[error("rank {rank}, lane {lane}, step {step}: this plan cannot be executed: {source}")]
    Plan {
        /// The rank whose plan it is.
        rank: Rank,
        /// The lane.
        lane: LaneId,
        /// The step.
        step: StepId,
        /// The reason.
        source: CompileError,
    },
    /// An operation made no progress for longer than the time limit.
    #[error(
        "rank {rank}, port {port}, step {step}: waited {waited:?} for {awaited} \
         (HOPBINE_TIMEOUT){}", because(*.cause)
    )]
    Timeout {
        /// The waiting rank.
        rank: Rank,
        /// The port.
        port: usize,
        /// The plan's step; one past the last for the copies at the end.
        step: u32,
        /// What the rank waited for.
        awaited: Awaited,
        /// How long the rank waited.
        waited: Duration,
        /// The root cause of the wait, if it could be determined: the rank waited for may itself have waited for
        /// another rank.
        cause: Option<Blame>,
        /// Whether this rank should report the timeout. Of all ranks that wait for the same rank, directly or through
        /// others, usually exactly one does.
        is_witness: bool,
    },
    /// A rank that others need has ended or cannot continue. Found by this rank before any wait exceeded the time
    /// limit, or by another rank.
    #[error("rank {rank}: {blame}")]
    Lost {
        /// The rank that returns this error.
        rank: Rank,
        /// Which rank is lost, and why.
        blame: Blame,
    },
    /// The wire reported a failure.
    #[error("rank {rank}, port {port}{}: {source}", place(*.step, .source.peer))]
    Wire {
        /// The rank that noticed.
        rank: Rank,
        /// The port.
        port: usize,
        /// The plan's step, if the failure belongs to one.
        step: Option<u32>,
        /// The failure.
        source: WireError,
    },
    /// An earlier operation failed, so that the ranks may no longer agree on which operation comes next.
    #[error("the communicator cannot be used any more after an error: {0}")]
    Poisoned(Arc<Error>),
    /// A setting has an invalid value.
    #[error("{setting}: `{found}` is not valid; it must be {valid}")]
    Setting {
        /// The name of the setting: its environment variable or field.
        setting: &'static str,
        /// The value given.
        found: String,
        /// The valid values.
        valid: String,
    },
    /// A decision table cannot be used.
    #[error("{}decision table {table}, {source}", .rank.map_or(String::new(), |rank| format!("rank {rank}: ")))]
    Tuning {
        /// The rank, if it is known.
        rank: Option<Rank>,
        /// File or name of the table.
        table: String,
        /// What is wrong with the table, and in which line.
        source: Box<TableError>,
    },
    /// A persistent operation was used while active, in a way that needs it to be complete.
    #[error("the persistent operation is under way; wait for it first")]
    Active,
    /// A handle was used after its communicator, or the world, had been closed.
    #[error("the communicator has been closed")]
    Closed,
    /// The code of a rank panicked, so that the results of the other ranks are worthless.
    #[error("rank {rank} panicked: {message}")]
    RankPanicked {
        /// The rank.
        rank: Rank,
        /// The panic's message.
        message: String,
    },
    /// The ranks made different calls on the barrier gates. The mismatch is in this call, or in an earlier call whose
    /// packets had no room for a check and whose result was therefore wrong (`docs/guide/rust.md`). This call has
    /// written nothing, and the communicator remains usable.
    #[error(
        "rank {rank}: {collective} on the barrier gates: other ranks have made another call, now or \
         before: operator, type and number of elements must be the same on all ranks"
    )]
    GatesMismatch {
        /// The rank.
        rank: Rank,
        /// The collective called here.
        collective: Collective,
    },
    /// No backend is usable, or the requested one is not.
    #[error("no {wanted} backend. Tried: {}", all_tried(tried))]
    Backend {
        /// The requested backend: `tofu`, `emu`, `mpi`, or `usable`.
        wanted: String,
        /// Each backend tried, and why it failed.
        tried: Vec<(String, String)>,
    },
    /// The ranks cannot be laid out on a torus.
    #[error("rank {rank}: the ranks cannot be laid out: {reason}")]
    Layout {
        /// The rank.
        rank: Rank,
        /// Which constraint fails, and what would satisfy it.
        reason: String,
    },
    /// Another communicator cannot be created.
    #[error("a communicator cannot be made: {reason}")]
    Group {
        /// Why it cannot be created.
        reason: String,
    },
    /// The ranks did not complete the rendezvous of start-up.
    #[error("{}: {reason}", .rank.map_or("start-up".to_owned(), |rank| format!("rank {rank}")))]
    Meeting {
        /// The rank, if it is known.
        rank: Option<Rank>,
        /// Which ranks are missing, or which setting is wrong.
        reason: String,
    },
    /// Other ranks did not reach the tear-down of the world.
    #[error("at the end: {reason}; they have failed, or have ended without hopbine's end")]
    Ending {
        /// Which ranks are missing.
        reason: String,
    },
    /// The world could not be set up.
    #[error("rank {rank}: start-up failed: {source}")]
    Startup {
        /// The rank.
        rank: Rank,
        /// The failure.
        source: WireError,
    },
}

impl Error {
    /// Whether another rank reports this error: of a failure that many ranks observe, only the rank that found it, or
    /// the rank that waits directly for the cause, needs to print a message.
    #[must_use]
    pub fn is_said_elsewhere(&self) -> bool {
        match self {
            Error::Timeout { is_witness, .. } => !is_witness,
            Error::Lost { rank, blame } => blame.by != *rank,
            Error::Poisoned(reason) => reason.is_said_elsewhere(),
            _ => false,
        }
    }

    /// The blame to send to other ranks when this error prevents `rank` from continuing.
    pub(crate) fn blame(&self, rank: Rank) -> Blame {
        let found = |rank_at_fault, fault| Blame { rank: rank_at_fault, fault, by: rank };
        match self {
            Error::Lost { blame, .. } | Error::Timeout { cause: Some(blame), .. } => *blame,
            Error::Poisoned(reason) => reason.blame(rank),
            Error::Wire { source: WireError { peer: Some(peer), .. }, .. } => {
                found(*peer, Fault::Unreachable)
            }
            Error::Timeout {
                awaited: Awaited::MessageFrom(peer) | Awaited::ReadyFrom(peer),
                ..
            } => found(*peer, Fault::Absent),
            // Whichever of the two has found it.
            &Error::Disagree { rank: by, peer, .. } => {
                Blame { rank: peer, fault: Fault::Disagrees, by }
            }
            Error::RankPanicked { rank, .. } => found(*rank, Fault::Failed),
            _ => found(rank, Fault::Failed),
        }
    }
}

impl From<hopbine_meet::VariableError> for Error {
    fn from(error: hopbine_meet::VariableError) -> Self {
        match error.value.clone() {
            Some(found) => Error::Setting { setting: error.name, found, valid: error.wanted },
            None => Error::Meeting { rank: None, reason: error.to_string() },
        }
    }
}
