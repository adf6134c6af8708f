//! Violations that the checker finds, and their messages.

use std::fmt;

use crate::names::{Block, LaneId, PortId, Position, Rank, StepId};
use crate::plan::ir::defect::Defect;

/// A violation found in a plan, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The rank on which it was found.
    pub rank: Rank,
    /// The lane; `None` if the violation concerns the whole plan.
    pub lane: Option<LaneId>,
    /// The step; `None` for the state after the last step, or if the violation concerns the whole lane.
    pub step: Option<StepId>,
    /// The position, if the violation concerns one.
    pub position: Option<Position>,
    /// The kind of violation.
    pub fault: PlanFault,
}

/// Kinds of violations.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlanFault {
    /// A violation of a local rule in this rank's plan.
    Local(Defect),
    /// The given plans are not those of ranks 0, 1, ... of one collective with equal lanes.
    Inconsistent {
        /// What differs.
        what: &'static str,
    },
    /// A send without a receive of the peer in this step.
    UnmatchedSend {
        /// The receiver that the send names.
        to: Rank,
    },
    /// A receive without a send of the peer in this step.
    UnmatchedRecv {
        /// The sender that the receive names.
        from: Rank,
    },
    /// The receive has another port than the send.
    DifferentPorts {
        /// The sender.
        from: Rank,
        /// The port that sends.
        sent: PortId,
        /// The port that receives.
        awaited: PortId,
    },
    /// The receive has other runs than the send.
    DifferentRuns {
        /// The sender.
        from: Rank,
        /// Number of positions sent.
        sent: u64,
        /// Number of positions in the receive.
        awaited: u64,
    },
    /// A plan differs from what was executed (only possible if the flow is not a listing of plans).
    DifferentFlow {
        /// What differs.
        what: &'static str,
    },
    /// A position is sent, but holds nothing.
    SentEmpty,
    /// Data are combined with a position that holds nothing.
    CombinedEmpty,
    /// A contribution is counted twice.
    CountedTwice {
        /// The peer whose message contains the contribution again.
        from: Rank,
    },
    /// A position is overwritten before its content was sent.
    Overwritten,
    /// At the end a position does not hold the result of the collective.
    WrongResult {
        /// The user's block.
        block: Block,
        /// The actual content of the position.
        found: WrongContent,
    },
    /// The operands were combined in another order than on another rank.
    DifferentOrder {
        /// The rank with which the order was compared.
        than: Rank,
    },
    /// The volume is not the expected one.
    Volume {
        /// Number of positions sent.
        sent: u64,
        /// Number of positions expected.
        expected: u64,
    },
    /// The root of a gather does not receive, or that of a scatter does not send, the expected number of positions.
    AtRoot {
        /// Number of positions received or sent.
        moved: u64,
        /// Number of positions expected.
        expected: u64,
    },
    /// The number of steps is not the expected one.
    Steps {
        /// Number of steps of the longest lane.
        found: usize,
        /// Number of steps expected.
        expected: u32,
    },
    /// The busiest rank sends less than the minimum of any algorithm.
    BelowMinimum {
        /// The volume that it sends, as a multiple of n.
        sent: f64,
        /// The minimum, as a multiple of n.
        minimum: f64,
    },
}

/// The content of a position that should hold something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WrongContent {
    /// Nothing.
    Nothing,
    /// The contribution of another rank.
    From(Rank),
    /// A block for another rank.
    For(Block),
    /// The right block, but with missing or wrong contributions.
    Incomplete,
    /// In a scan: contributions that were not combined in the order of ranks.
    OutOfOrder,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.rank)?;
        if let Some(lane) = self.lane {
            write!(f, " lane {lane}")?;
            if let Some(step) = self.step {
                write!(f, " step {step}")?;
            }
        }
        if let Some(position) = self.position {
            write!(f, " position {position}")?;
            if self.step.is_none() {
                f.write_str(" at the end")?;
            }
        }
        write!(f, ": {}", self.fault)
    }
}

impl fmt::Display for PlanFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanFault::Local(defect) => defect.fmt(f),
            PlanFault::Inconsistent { what } => write!(f, "the plans differ in {what}"),
            PlanFault::UnmatchedSend { to } => write!(f, "rank {to} awaits no such message"),
            PlanFault::UnmatchedRecv { from } => write!(f, "rank {from} sends no such message"),
            PlanFault::DifferentPorts { from, sent, awaited } => write!(
                f,
                "port {sent} of rank {from} sends the message, and port {awaited} awaits it"
            ),
            PlanFault::DifferentRuns { from, sent, awaited } => write!(
                f,
                "rank {from} sends {sent} positions in other runs than the {awaited} awaited"
            ),
            PlanFault::DifferentFlow { what } => {
                write!(f, "the plan differs from what is executed in {what}")
            }
            PlanFault::SentEmpty => f.write_str("nothing is there to be sent"),
            PlanFault::CombinedEmpty => f.write_str("nothing is there to be combined with"),
            PlanFault::CountedTwice { from } => write!(f, "rank {from} repeats a contribution"),
            PlanFault::Overwritten => f.write_str("overwritten before it was sent on"),
            PlanFault::WrongResult { block, found } => {
                write!(f, "user block {block} is wrong: ")?;
                match found {
                    WrongContent::Nothing => f.write_str("nothing has arrived"),
                    WrongContent::From(rank) => write!(f, "what rank {rank} gave is in its place"),
                    WrongContent::For(block) => {
                        write!(f, "a block for rank {block} is in its place")
                    }
                    WrongContent::Incomplete => f.write_str("contributions are missing or foreign"),
                    WrongContent::OutOfOrder => {
                        f.write_str("contributions are not combined in the order of ranks")
                    }
                }
            }
            PlanFault::DifferentOrder { than } => {
                write!(f, "operands are combined in another order than on rank {than}")
            }
            PlanFault::Volume { sent, expected } => {
                write!(f, "{sent} blocks are sent where {expected} are expected")
            }
            PlanFault::AtRoot { moved, expected } => {
                write!(f, "{moved} blocks pass the root where {expected} are expected")
            }
            PlanFault::Steps { found, expected } => {
                write!(f, "there are {found} steps where {expected} are expected")
            }
            PlanFault::BelowMinimum { sent, minimum } => write!(
                f,
                "no rank sends more than {sent:.4} n, where the busiest must send {minimum:.4} n"
            ),
        }
    }
}
