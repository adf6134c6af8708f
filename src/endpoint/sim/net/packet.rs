//! What is under way between ranks, and what is to happen when.

use std::ops::Range;
use std::time::Duration;

use hopbine_torus::PortId;

use crate::Rank;
use crate::endpoint::{Event, SendPost, Slot, Status, Tag, WireRegion};
use crate::error::Blame;

/// Where the bytes of a message are.
#[derive(Debug)]
pub(in crate::endpoint::sim) enum SimBody {
    /// On their way with it.
    Eager(Box<[u8]>),
    /// Kept by the receiver, with the credit that it came for.
    Held(Box<[u8]>),
    /// In the sender's memory: the rendezvous with this number.
    Rendezvous(u64),
}

/// What goes from one port to the same port of another rank.
#[derive(Debug)]
pub(in crate::endpoint::sim) enum SimPacket {
    Message {
        tag: Tag,
        len: u64,
        body: SimBody,
    },
    /// The receiver has read the message of the rendezvous with this number.
    Read(u64),
    /// The receiver requests the message of rendezvous `id` in pieces, for its receive `recv`.
    ClearToSend {
        id: u64,
        recv: u32,
    },
    Piece {
        recv: u32,
        offset: usize,
        bytes: Box<[u8]>,
    },
    /// So many eager messages may be sent in addition.
    Credits(u32),
    Answer(Status),
    News(Blame),
}

impl SimPacket {
    pub(super) fn name(&self) -> &'static str {
        match self {
            SimPacket::Message { body: SimBody::Eager(_) | SimBody::Held(_), .. } => {
                "an eager message"
            }
            SimPacket::Message { body: SimBody::Rendezvous(_), .. } => "a request to send",
            SimPacket::Read(_) => "the end of a rendezvous",
            SimPacket::ClearToSend { .. } => "a clear to send",
            SimPacket::Piece { .. } => "a piece",
            SimPacket::Credits(_) => "credits",
            SimPacket::Answer(_) => "an answer",
            SimPacket::News(_) => "news",
        }
    }
}

/// A message that the device writes to where it is awaited.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint::sim) struct SimPut {
    /// The number of the rendezvous.
    pub(in crate::endpoint::sim) id: u64,
    pub(in crate::endpoint::sim) to: (Rank, PortId),
    pub(in crate::endpoint::sim) slot: Slot,
    pub(in crate::endpoint::sim) region: WireRegion,
    /// Bytes that have been written.
    pub(in crate::endpoint::sim) done: usize,
}

/// What is to happen at a time.
#[derive(Debug)]
pub(in crate::endpoint::sim) enum SimAction {
    /// The rank's pause of this number is over.
    Wake(Rank, u32),
    Packet {
        from: Rank,
        to: Rank,
        port: PortId,
        packet: SimPacket,
    },
    /// The device reads an eager message out of its region, and sends it.
    Read {
        from: Rank,
        to: Rank,
        port: PortId,
        send: SendPost,
    },
    /// The device writes the next piece of a rendezvous message to the region of its receive.
    Put(SimPut),
    /// An event comes up.
    Report {
        rank: Rank,
        port: PortId,
        event: Event,
    },
    /// A rank wants to know what another one is doing.
    Ask {
        asker: Rank,
        port: PortId,
        about: Rank,
    },
    Fate(Rank, Fate),
    /// Memory that a rank has unmapped is announced.
    #[cfg_attr(not(feature = "emu"), expect(dead_code, reason = "of the emulated device"))]
    Announce(Rank, Range<usize>),
    /// A rank that has died cannot be reached on its device any more.
    #[cfg_attr(not(feature = "emu"), expect(dead_code, reason = "of the emulated device"))]
    Unreachable(Rank),
    /// A stop is over.
    Continues(Rank),
    /// A rank that may pause has something left to do.
    GoOn(Rank),
}

/// What may become of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// Its process dies.
    Dies,
    /// Its process is stopped for so long.
    Stops(Duration),
}

#[derive(Debug)]
pub(super) struct Scheduled {
    pub(super) at: u64,
    pub(super) number: u64,
    pub(super) action: SimAction,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
