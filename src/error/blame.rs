//! What a rank waits for, and which rank is responsible when the wait does not end.

use std::fmt;

use crate::Rank;

/// What a rank was waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Awaited {
    /// A message from this rank.
    MessageFrom(Rank),
    /// Readiness of this rank to take a message.
    ReadyFrom(Rank),
    /// The local network interface; no peer is involved.
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
            Awaited::AllRanks => f.write_str("all ranks at the barrier gates"),
        }
    }
}

/// What is wrong with a rank that other ranks waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Its memory cannot be reached: the process or its node is gone.
    Unreachable,
    /// The process lives, but has not entered the call.
    Absent,
    /// It has made another call than the rank that found the mismatch: another collective, count, type, operator or
    /// root, or other options. No rank can tell which of the two calls is wrong.
    Elsewhere,
    /// It waits for a rank that waits for it, directly or through others: their calls differ, unless threads of theirs
    /// wait on several communicators.
    Circle,
    /// It sends a block of another length than the rank that found the fault, or from which the sender learnt of it,
    /// expects.
    Disagrees,
    /// It has reported a failure.
    Failed,
    /// It has left the world.
    Left,
}

/// The rank that is responsible for a stalled operation, as far as it could be determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The rank at fault.
    pub rank: Rank,
    /// What is wrong with it.
    pub fault: Fault,
    /// The rank that found the fault.
    pub by: Rank,
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Blame { rank, fault, by } = self;
        match fault {
            Fault::Unreachable => write!(f, "rank {rank} is gone: its memory cannot be reached")?,
            Fault::Absent => write!(f, "rank {rank} has not come to the call")?,
            Fault::Elsewhere => {
                return write!(
                    f,
                    "rank {rank} has made another call than rank {by}: collective, count, type, \
                     operator, root and options must be the same on all ranks"
                );
            }
            Fault::Disagrees => {
                return write!(
                    f,
                    "rank {rank} sends rank {by} a block of another size than rank {by} expects: their counts must agree"
                );
            }
            Fault::Circle => write!(
                f,
                "rank {rank} is in a cycle of waits: the ranks' calls differ, unless their threads wait on several communicators"
            )?,
            Fault::Failed => write!(f, "rank {rank} has failed")?,
            Fault::Left => write!(f, "rank {rank} has left")?,
        }
        if rank == by { Ok(()) } else { write!(f, " (found out by rank {by})") }
    }
}
