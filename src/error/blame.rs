//! What a rank waits for, and who is at fault that it does not come.

use std::fmt;

use crate::Rank;

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
            Awaited::AllRanks => f.write_str("all ranks at the barrier gates"),
        }
    }
}

/// What is wrong with a rank that others waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its memory cannot be reached: the process or its node is gone.
    Unreachable,
    /// It is there, but has not come to the call.
    Absent,
    /// It has made another call than the rank that found it out: another collective, count, type,
    /// operator, root, or other options. Which of the two is wrong, nobody can tell.
    Elsewhere,
    /// It waits for a rank that, directly or through others, waits for it: their calls differ.
    Circle,
    /// It and the rank that found it out do not agree how long the block between them is.
    Disagrees,
    /// It has reported a failure of its own.
    Failed,
    /// It has left the world.
    Left,
}

/// Who is at fault that ranks cannot go on, as far as it could be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The rank at fault.
    pub rank: Rank,
    /// What is wrong with it.
    pub fault: Fault,
    /// The rank that found it out.
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
            Fault::Circle => {
                write!(f, "rank {rank} is in a cycle of waits: the ranks' calls differ")?
            }
            Fault::Failed => write!(f, "rank {rank} has failed")?,
            Fault::Left => write!(f, "rank {rank} has left")?,
        }
        if rank == by { Ok(()) } else { write!(f, " (found out by rank {by})") }
    }
}
