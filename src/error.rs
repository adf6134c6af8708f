//! The one error type: what was wrong, where, and what would have been right.

use std::fmt;
use std::sync::Arc;

use hopbine_torus::collectives::Collective;
use hopbine_torus::plan::Rank;

use crate::engine::CompileError;
use crate::reduce::ReduceError;

/// What a rank was waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A message from this rank.
    MessageFrom(Rank),
    /// This rank, to take a message.
    ReadyFrom(Rank),
    /// Nothing of a peer's: the local network interface.
    Interface,
    /// All ranks, at the barrier gates.
    AllRanks,
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Awaited::MessageFrom(peer) => write!(f, "a message from rank {peer}"),
            Awaited::ReadyFrom(peer) => write!(f, "rank {peer} to take a message"),
            Awaited::Interface => f.write_str("the local network interface"),
            Awaited::AllRanks => f.write_str("all ranks to come to the barrier gates"),
        }
    }
}

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
    #[error("{collective}: {found} elements are no whole number of blocks for {n_ranks} ranks")]
    UnevenBlocks {
        /// The collective called.
        collective: Collective,
        /// Elements given.
        found: u64,
        /// Ranks of the communicator.
        n_ranks: u32,
    },
    /// The root is not a rank of the communicator.
    #[error("{collective}: root {root} is out of range, ranks are 0..{n_ranks}")]
    Root {
        /// The collective called.
        collective: Collective,
        /// The root given.
        root: Rank,
        /// Ranks of the communicator.
        n_ranks: u32,
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
    /// The engine does not execute the plan.
    #[error("rank {rank}, port {port}, step {step}: this plan cannot be executed: {source}")]
    Plan {
        /// The rank whose plan it is.
        rank: Rank,
        /// The port.
        port: usize,
        /// The step.
        step: usize,
        /// The reason.
        source: CompileError,
    },
    /// Nothing moved for too long.
    #[error(
        "rank {rank}, port {port}, step {step}: waited {seconds} s for {awaited} (HOPBINE_TIMEOUT)"
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
        /// For how long, in whole seconds.
        seconds: u64,
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
    #[error("the communicator cannot be used any more since: {0}")]
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
    /// The ranks started different operations on the barrier gates. Nothing has been written,
    /// and the communicator can be used further.
    #[error(
        "rank {rank}: {collective} on the barrier gates: other ranks started another operation, \
         or one on another number of elements; all must make the same call"
    )]
    GatesMismatch {
        /// The rank.
        rank: Rank,
        /// The collective called here.
        collective: Collective,
    },
    /// No backend can be used, or not the one asked for.
    #[error("no {wanted} backend. Tried: {}", Tried(tried))]
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
    /// Some rank could not open another communicator. All ranks get the same error, and the
    /// communicator that was to be duplicated can be used further.
    #[error("the communicator cannot be duplicated: {source}")]
    Duplicate {
        /// The failure; its peer is the rank that failed.
        source: WireError,
    },
    /// The ranks did not come together.
    #[error("{}: {reason}", .rank.map_or("start-up".to_owned(), |rank| format!("rank {rank}")))]
    Meeting {
        /// The rank, if it is known.
        rank: Option<Rank>,
        /// Who is missing, or which setting is wrong.
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

/// What was tried, and what came of it.
struct Tried<'a>(&'a [(String, String)]);

impl fmt::Display for Tried<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (what, reason)) in self.0.iter().enumerate() {
            write!(f, "{}{what}: {reason}", if at == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

/// The optional part of a place: step and peer.
struct Where(Option<u32>, Option<Rank>);

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = self.0 {
            write!(f, ", step {step}")?;
        }
        if let Some(peer) = self.1 {
            write!(f, ", peer {peer}")?;
        }
        Ok(())
    }
}
