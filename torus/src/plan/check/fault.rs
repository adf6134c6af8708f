//! What can be wrong with a plan, and how to say it.

use std::fmt;

use crate::plan::types::{Rank, Run};

/// One thing that is wrong with a plan, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rank on which it shows.
    pub rank: Rank,
    /// The port.
    pub port: usize,
    /// The step; `None` for the state after the last.
    pub step: Option<usize>,
    /// The position (block), where one is concerned.
    pub position: Option<u32>,
    /// What is wrong.
    pub kind: Fault,
}

/// What can be wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The plans given are not those of ranks 0, 1, ... of one collective with equal ports.
    Inconsistent {
        /// What differs.
        what: &'static str,
    },
    /// A send or receive names a rank that does not exist, or the rank itself.
    BadPeer {
        /// The peer named.
        peer: Rank,
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
    /// The runs of a receive are not as long as those of the send.
    LengthMismatch {
        /// The sender.
        from: Rank,
        /// Positions sent.
        sent: u64,
        /// Positions awaited.
        awaited: u64,
    },
    /// A run is empty or reaches beyond the working space.
    OutOfBounds {
        /// The run.
        run: Run,
        /// Size of the working space.
        positions: u32,
    },
    /// Two runs of one transfer, or of two storing receives of a step, overlap.
    OverlappingRuns {
        /// The second of them.
        run: Run,
    },
    /// A position is sent that holds nothing.
    SentEmpty,
    /// A block is combined with another owner's block, or with nothing.
    MixedBlocks {
        /// What the position holds.
        held: Option<u32>,
        /// What arrives.
        arrived: u32,
    },
    /// A contribution is counted twice.
    CountedTwice {
        /// The block.
        block: u32,
        /// The peer whose message repeats it.
        from: Rank,
    },
    /// A block is overwritten before it was sent on.
    Overwritten {
        /// The block that is lost.
        block: u32,
    },
    /// At the end a user block is not what the collective promises.
    WrongResult {
        /// The user block.
        block: u32,
        /// What the position holds instead.
        found: Found,
    },
    /// A placement does not fit the collective: a user block has no position, or two.
    BadPlacement {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The operands were combined in another order than on rank 0.
    DifferentOrder,
    /// The volume is not what was expected.
    Volume {
        /// Positions sent.
        sent: u64,
        /// Positions expected.
        expected: u64,
    },
}

/// What a position holds that should hold something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// Another block.
    Block(u32),
    /// The right block, but not the right set of contributions.
    Incomplete,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} port {}", self.rank, self.port)?;
        match self.step {
            Some(step) => write!(f, " step {step}")?,
            None => write!(f, " at the end")?,
        }
        if let Some(position) = self.position {
            write!(f, " position {position}")?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Inconsistent { what } => write!(f, "the plans differ in {what}"),
            Fault::BadPeer { peer } => write!(f, "{peer} is no other rank"),
            Fault::UnmatchedSend { to } => write!(f, "rank {to} awaits no such message"),
            Fault::UnmatchedRecv { from } => write!(f, "rank {from} sends no such message"),
            Fault::LengthMismatch { from, sent, awaited } => {
                write!(
                    f,
                    "rank {from} sends {sent} blocks in other runs than the {awaited} awaited"
                )
            }
            Fault::OutOfBounds { run, positions } => write!(
                f,
                "run {}..{} is not a part of the {positions} positions",
                run.start,
                u64::from(run.start) + u64::from(run.len)
            ),
            Fault::OverlappingRuns { run } => {
                write!(f, "run {}..{} overlaps another", run.start, run.end())
            }
            Fault::SentEmpty => f.write_str("nothing is there to be sent"),
            Fault::MixedBlocks { held: Some(held), arrived } => {
                write!(f, "block {arrived} is combined with block {held}")
            }
            Fault::MixedBlocks { held: None, arrived } => {
                write!(f, "block {arrived} is combined with nothing")
            }
            Fault::CountedTwice { block, from } => {
                write!(f, "rank {from} repeats a contribution to block {block}")
            }
            Fault::Overwritten { block } => {
                write!(f, "block {block} is overwritten before it was sent on")
            }
            Fault::WrongResult { block, found } => {
                write!(f, "user block {block} is wrong: ")?;
                match found {
                    Found::Nothing => f.write_str("nothing has arrived"),
                    Found::Block(other) => write!(f, "block {other} is in its place"),
                    Found::Incomplete => f.write_str("contributions are missing or foreign"),
                }
            }
            Fault::BadPlacement { what } => f.write_str(what),
            Fault::DifferentOrder => {
                f.write_str("operands are combined in another order than on rank 0")
            }
            Fault::Volume { sent, expected } => {
                write!(f, "{sent} blocks are sent where {expected} are expected")
            }
        }
    }
}
