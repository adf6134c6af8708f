//! What can be wrong with a plan, and how to say it.

use std::fmt;

use crate::names::{Block, LaneId, PortId, Position, Rank, StepId};
use crate::plan::ir::defect::Defect;

/// One thing that is wrong with a plan, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The rank on which it shows.
    pub rank: Rank,
    /// The lane; `None` if the plan as a whole is meant.
    pub lane: Option<LaneId>,
    /// The step; `None` for the state after the last, or the lane as a whole.
    pub step: Option<StepId>,
    /// The position, where one is concerned.
    pub position: Option<Position>,
    /// What is wrong.
    pub fault: PlanFault,
}

/// What can be wrong with a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanFault {
    /// A rule that this rank's plan breaks by itself.
    Local(Defect),
    /// The plans given are not those of ranks 0, 1, ... of one collective with equal lanes.
    Inconsistent {
        /// What differs.
        what: &'static str,
    },
    /// A send for which the peer has no receive in this step.
    UnmatchedSend {
        /// The receiver named.
        to: Rank,
    },
    /// A receive for which the peer has no send in this step.
    UnmatchedRecv {
        /// The sender named.
        from: Rank,
    },
    /// A receive has another port than the send.
    DifferentPorts {
        /// The sender.
        from: Rank,
        /// The port that sends.
        sent: PortId,
        /// The port that receives.
        awaited: PortId,
    },
    /// The runs of a receive are not those of the send.
    DifferentRuns {
        /// The sender.
        from: Rank,
        /// Positions sent.
        sent: u64,
        /// Positions awaited.
        awaited: u64,
    },
    /// A plan is not what was executed (only a flow that is no listing of plans can differ).
    DifferentFlow {
        /// What differs.
        what: &'static str,
    },
    /// A position is sent that holds nothing.
    SentEmpty,
    /// Something is combined with a position that holds nothing.
    CombinedEmpty,
    /// A contribution is counted twice.
    CountedTwice {
        /// The peer whose message repeats it.
        from: Rank,
    },
    /// A position is overwritten before its content was sent on.
    Overwritten,
    /// At the end a position is not what the collective promises.
    WrongResult {
        /// The user's block.
        block: Block,
        /// What the position holds instead.
        found: WrongContent,
    },
    /// The operands were combined in another order than on another rank.
    DifferentOrder {
        /// The rank that it is compared with.
        than: Rank,
    },
    /// The volume is not what was expected.
    Volume {
        /// Positions sent.
        sent: u64,
        /// Positions expected.
        expected: u64,
    },
    /// The root of a gather receives, or that of a scatter sends, not what was expected.
    AtRoot {
        /// Positions received or sent.
        moved: u64,
        /// Positions expected.
        expected: u64,
    },
    /// There are more or fewer steps than were promised.
    Steps {
        /// Steps of the longest lane.
        found: usize,
        /// Steps promised.
        expected: u32,
    },
    /// The busiest rank sends less than any algorithm can do with.
    BelowMinimum {
        /// What it sends, as a multiple of n.
        sent: f64,
        /// The least, as a multiple of n.
        minimum: f64,
    },
}

/// What a position holds that should hold something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongContent {
    /// Nothing.
    Nothing,
    /// What another rank gave.
    From(Rank),
    /// A block for another rank.
    For(Block),
    /// The right block, but not the right set of contributions.
    Incomplete,
    /// Of a scan: contributions that were not combined in the order of ranks.
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
