//! The one error type: what was wrong, where, and what would have been right.

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

use crate::reduce::{Dtype, ReduceError};
pub use blame::{Awaited, Blame, Fault};
pub use blocks::BlockProblem;
pub use schedule::ScheduleProblem;
use text::{Because, Where, all_tried};

/// A failure at the wire, before it is known which operation it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {reason}")]
pub struct WireError {
    /// The call that failed, as the wire's documentation names it.
    pub call: &'static str,
    /// Its own description of the failure.
    pub reason: String,
    /// The other side, where one is known.
    pub peer: Option<Rank>,
}

impl WireError {
    /// One of which no other side is known.
    pub(crate) fn new(call: &'static str, reason: impl ToString) -> Self {
        WireError { call, reason: reason.to_string(), peer: None }
    }

    /// The same with the other side.
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
    /// Sizes by block in a collective that has no blocks, or not of as many blocks as ranks, or
    /// different ones for one block.
    #[error("the sizes of blocks do not fit the collective")]
    Sizes,
    /// A block passes through a rank that does not know how long it is.
    #[error(
        "blocks pass through ranks that do not know their sizes; use an algorithm in which they go \
         straight to their owners, `pairwise` or `linear`"
    )]
    Forwards,
    /// More tasks than can be numbered.
    #[error("more than 2^32 - 1 tasks; use larger segments")]
    TooLong,
}

/// Everything that can go wrong.
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
        /// Its length in elements.
        found: u64,
        /// The length in elements that it must have.
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
    /// Blocks of different sizes that make no sense.
    #[error("{collective}: {problem}")]
    Blocks {
        /// The collective called.
        collective: Collective,
        /// What is wrong with them.
        problem: BlockProblem,
    },
    /// Two ranks say different sizes of the block that one sends the other.
    #[error(
        "rank {rank}: rank {peer} sends a block of {sent} bytes where this rank expects {expected} \
         bytes of it: the counts of the two must agree"
    )]
    Disagree {
        /// The rank that expects the block.
        rank: Rank,
        /// The rank that sends it.
        peer: Rank,
        /// Its bytes as sent.
        sent: u64,
        /// Its bytes as expected.
        expected: u64,
    },
    /// There is no memory for the output of a persistent collective.
    #[error("{collective}: no memory for an output of {elements} elements of {dtype}")]
    Memory {
        /// The collective called.
        collective: Collective,
        /// Elements of the output.
        elements: u64,
        /// Their type.
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
    /// A buffer that holds something is null, or would end beyond the address space.
    #[error("{collective}: the {which} buffer, {bytes} B at {address:#x}, is not mapped memory")]
    Address {
        /// The collective called.
        collective: Collective,
        /// `send` or `receive`.
        which: &'static str,
        /// Of the buffer's first byte.
        address: u64,
        /// Bytes that it must hold.
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
    /// No algorithm of that name.
    #[error("{collective}: unknown algorithm `{name}`; known are: {known}")]
    UnknownAlgorithm {
        /// The collective called.
        collective: Collective,
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The algorithm does not serve the shape or the call.
    #[error("{collective}: algorithm `{name}` cannot serve this call: {reason}")]
    NotServed {
        /// The collective called.
        collective: Collective,
        /// The algorithm asked for.
        name: String,
        /// Why not.
        reason: String,
    },
    /// A schedule that the call names does not perform it.
    #[error("rank {rank}, {collective}: the schedule cannot serve this call: {problem}")]
    Schedule {
        /// The calling rank.
        rank: Rank,
        /// The collective called.
        collective: Collective,
        /// What is wrong with it, and what would be right.
        problem: Box<ScheduleProblem>,
    },
    /// The engine does not execute the plan.
    #[error("rank {rank}, lane {lane}, step {step}: this plan cannot be executed: {source}")]
    Plan {
        /// The rank whose plan it is.
        rank: Rank,
        /// The lane.
        lane: usize,
        /// The step.
        step: usize,
        /// The reason.
        source: CompileError,
    },
    /// Nothing moved for too long.
    #[error(
        "rank {rank}, port {port}, step {step}: waited {waited:?} for {awaited} \
         (HOPBINE_TIMEOUT){}", Because(*.cause)
    )]
    Timeout {
        /// The waiting rank.
        rank: Rank,
        /// The port.
        port: usize,
        /// The plan's step; one past the last for the copies at the end.
        step: u32,
        /// What it waited for.
        awaited: Awaited,
        /// For how long.
        waited: Duration,
        /// What the wait comes from in the end, if that could be found out: the rank waited
        /// for may itself have waited for another.
        cause: Option<Blame>,
        /// Whether this rank is the one to say so: of the ranks that wait for the same one, directly or through
        /// others, as a rule a single one is.
        is_witness: bool,
    },
    /// A rank that others need is gone, or cannot go on; found out here before any wait became
    /// too long, or by another rank.
    #[error("rank {rank}: {blame}")]
    Lost {
        /// The rank that returns this error.
        rank: Rank,
        /// Which rank is lost, and why.
        blame: Blame,
    },
    /// The wire reported a failure.
    #[error("rank {rank}, port {port}{}: {source}", Where(*.step, .source.peer))]
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
    /// An earlier operation failed: ranks no longer agree where they are.
    #[error("the communicator cannot be used any more after an error: {0}")]
    Poisoned(Arc<Error>),
    /// A setting has no such value.
    #[error("{setting}: `{found}` is not valid; it must be {valid}")]
    Setting {
        /// The setting, as its environment variable or field is called.
        setting: &'static str,
        /// What was given.
        found: String,
        /// What can be given.
        valid: String,
    },
    /// A decision table cannot be used.
    #[error("{}decision table {table}, {source}", .rank.map_or(String::new(), |rank| format!("rank {rank}: ")))]
    Tuning {
        /// The rank, if it is known.
        rank: Option<Rank>,
        /// Its file, or its name.
        table: String,
        /// What is wrong, and in which line.
        source: Box<TableError>,
    },
    /// A persistent operation was used in a way that needs it to be complete.
    #[error("the persistent operation is under way; wait for it first")]
    Active,
    /// A handle was used that outlived its communicator, or the world's.
    #[error("the communicator has been closed")]
    Closed,
    /// The code run on a rank panicked, so the other ranks' results are worthless.
    #[error("rank {rank} panicked: {message}")]
    RankPanicked {
        /// The rank.
        rank: Rank,
        /// The panic's message.
        message: String,
    },
    /// The ranks made different calls on the barrier gates: this one, or one before it that left the gates' packets no
    /// room for a check, whose result was wrong (`docs/guide/rust.md`). This call has written nothing, and the
    /// communicator can be used further.
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
    /// No backend can be used, or not the one asked for.
    #[error("no {wanted} backend. Tried: {}", all_tried(tried))]
    Backend {
        /// What was asked for: `tofu`, `emu`, `mpi`, or `usable`.
        wanted: String,
        /// Each thing tried, with what was wrong with it.
        tried: Vec<(String, String)>,
    },
    /// The ranks cannot be laid out on a torus.
    #[error("rank {rank}: the ranks cannot be laid out: {reason}")]
    Layout {
        /// The rank.
        rank: Rank,
        /// What does not fit, and what would.
        reason: String,
    },
    /// A further communicator cannot be made.
    #[error("a communicator cannot be made: {reason}")]
    Group {
        /// Why not.
        reason: String,
    },
    /// The ranks did not come together.
    #[error("{}: {reason}", .rank.map_or("start-up".to_owned(), |rank| format!("rank {rank}")))]
    Meeting {
        /// The rank, if it is known.
        rank: Option<Rank>,
        /// Who is missing, or which setting is wrong.
        reason: String,
    },
    /// Other ranks did not come to the end of the world.
    #[error("at the end: {reason}; they have failed, or have ended without hopbine's end")]
    Ending {
        /// Who is missing.
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
    /// Whether another rank has this error as well, and says so: of a failure that many ranks come to know, only the
    /// one that has found it out, or waits next to its cause, has to print a message.
    #[must_use]
    pub fn is_said_elsewhere(&self) -> bool {
        match self {
            Error::Timeout { is_witness, .. } => !is_witness,
            Error::Lost { rank, blame } => blame.by != *rank,
            Error::Poisoned(reason) => reason.is_said_elsewhere(),
            _ => false,
        }
    }

    /// What to tell others when this error has made `rank` unable to go on.
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
            Error::Disagree { peer, .. } => found(*peer, Fault::Disagrees),
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
