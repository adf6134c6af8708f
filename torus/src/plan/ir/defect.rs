//! Defects of one rank's plan: violations of the local rules.

use super::runs::Run;
use super::split::Part;
use crate::names::{LaneId, PortId, Position, Rank, StepId};

/// A violation of a local rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Defect {
    /// The plan's rank or root is not one of its ranks.
    #[error("{what} {rank} is not one of {n_ranks} ranks")]
    NoSuchRank {
        /// Which number is meant: "rank" or "root".
        what: &'static str,
        /// Its number.
        rank: Rank,
        /// Number of ranks.
        n_ranks: u32,
    },
    /// A root other than 0 in a collective without a root.
    #[error("root {root} is given, but the collective has no root: it must be 0")]
    NoRoot {
        /// The root given.
        root: Rank,
    },
    /// A part is empty, or its number of units differs from the first lane's.
    #[error("part {part} does not fit the {units} units of the first lane")]
    Part {
        /// The part.
        part: Part,
        /// The first lane's number of units.
        units: u32,
    },
    /// No lane moves a part of the data.
    #[error("no lane moves part {part}")]
    MissingPart {
        /// The part.
        part: Part,
    },
    /// Two parts overlap without being equal.
    #[error("parts {part} and {other} have units in common: parts must be the same, or apart")]
    Parts {
        /// The part.
        part: Part,
        /// The part that overlaps it.
        other: Part,
    },
    /// Positions do not fit the collective.
    #[error("{found} positions of {payload} do not fit {expected}")]
    Space {
        /// Number of positions of the lane.
        found: u32,
        /// Name of the payload that the positions hold.
        payload: &'static str,
        /// Description of the positions that the collective needs.
        expected: String,
    },
    /// The order of the blocks is not allowed in the collective, or does not contain each block exactly once.
    #[error("the order of the blocks {what}")]
    Order {
        /// What is wrong with the order.
        what: &'static str,
    },
    /// Two lanes of one part have different spaces.
    #[error("lanes of part {part} have different spaces")]
    Spaces {
        /// The part.
        part: Part,
    },
    /// Two lanes of one part touch one position.
    #[error("position {position} is touched by lane {other}, too, which moves the same part")]
    Shared {
        /// The position.
        position: Position,
        /// The other lane.
        other: LaneId,
    },
    /// A send or receive names a rank that does not exist, or the rank itself.
    #[error("{peer} is not another rank")]
    Peer {
        /// The peer named.
        peer: Rank,
    },
    /// A message is assigned to a port that drives no lane.
    #[error("port {port} of a message drives no lane")]
    Port {
        /// The port.
        port: PortId,
    },
    /// Two sends, or two receives, of a step have the same peer.
    #[error("{peer} is a peer twice: its messages could not be told apart")]
    PeerTwice {
        /// The peer.
        peer: Rank,
    },
    /// A transfer without positions.
    #[error("a message with rank {peer} carries nothing")]
    NoBlocks {
        /// The peer.
        peer: Rank,
    },
    /// A run is empty or reaches beyond the working space.
    #[error("run {}..{} is not a part of the {n_positions} positions", run.start, u64::from(run.start) + u64::from(run.len))]
    Bounds {
        /// The run.
        run: Run,
        /// Size of the working space.
        n_positions: u32,
    },
    /// Two runs overlap: of one transfer, of two receives that store, or of two receives that reduce and are not
    /// operands of one fold.
    #[error("run {}..{} overlaps another", run.start, run.end())]
    Overlap {
        /// The second of the two runs.
        run: Run,
    },
    /// A message for a position that has no room on this rank: only leaders have room for the blocks of other
    /// ranks.
    #[error("there is no room for what rank {peer} sends to position {position}")]
    NoRoom {
        /// The sender.
        peer: Rank,
        /// The first such position.
        position: Position,
    },
    /// A step combines blocks, but the collective is not a reduction.
    #[error("a step combines blocks, in a collective that is no reduction")]
    NotAReduction,
    /// `own_at` exceeds the number of operands that some position receives.
    #[error("the own value stands at place {own_at} of {n_recvs} received")]
    OwnAt {
        /// The step's `own_at`.
        own_at: u32,
        /// Operands received for that position.
        n_recvs: usize,
    },
}

/// A violation of a local rule, with its lane and step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocatedDefect {
    /// The lane; `None` if the defect concerns the whole plan.
    pub lane: Option<LaneId>,
    /// The step; `None` if the defect concerns the whole lane.
    pub step: Option<StepId>,
    /// What is wrong.
    pub defect: Defect,
}

impl std::fmt::Display for LocatedDefect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(lane) = self.lane {
            write!(f, "lane {lane}")?;
            if let Some(step) = self.step {
                write!(f, " step {step}")?;
            }
            f.write_str(": ")?;
        }
        write!(f, "{}", self.defect)
    }
}

impl std::error::Error for LocatedDefect {}
