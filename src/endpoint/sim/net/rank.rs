//! One rank, and what the wire keeps for its ports.

use super::packet::SimPacket;
use crate::Rank;
use crate::endpoint::{Event, Status, WireError};

/// Whether a rank runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RankPhase {
    /// It can.
    Ready,
    Running,
    /// It waits for something to happen.
    Paused,
    /// It is dead or stopped.
    Held,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint::sim) enum Life {
    Alive,
    Stopped,
    Dead,
}

/// One rank.
#[derive(Debug)]
pub(super) struct OneRank {
    pub(super) phase: RankPhase,
    pub(super) life: Life,
    /// Something has happened to it since its last pause began.
    pub(super) is_signalled: bool,
    /// Pauses so far.
    pub(super) pauses: u32,
    /// Registrations that are to be refused.
    pub(super) refusals: u32,
    pub(super) has_refused: bool,
    pub(super) ports: Box<[PortState]>,
}

/// What the wire keeps for a port.
#[derive(Debug, Default)]
pub(in crate::endpoint::sim) struct PortState {
    pub(in crate::endpoint::sim) inbox: Vec<(Rank, SimPacket)>,
    pub(in crate::endpoint::sim) events: Vec<Event>,
    pub(in crate::endpoint::sim) error: Option<WireError>,
    pub(in crate::endpoint::sim) status: Option<Status>,
    pub(in crate::endpoint::sim) is_abandoned: bool,
}

impl OneRank {
    pub(super) fn new(n_ports: usize) -> Self {
        OneRank {
            phase: RankPhase::Ready,
            life: Life::Alive,
            is_signalled: false,
            pauses: 0,
            refusals: 0,
            has_refused: false,
            ports: (0..n_ports).map(|_| PortState::default()).collect(),
        }
    }
}
