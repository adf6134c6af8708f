//! What a port keeps of long messages under way.

use std::time::Instant;

use super::descriptor::Loan;
use crate::endpoint::{Slot, WireRegion};

/// A message that this port has lent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lent {
    /// To whom.
    pub(super) peer: usize,
    /// Whether the peer has asked for it in pieces.
    pub(super) is_pulled: bool,
    pub(super) slot: Slot,
    pub(super) region: WireRegion,
}

/// A message that this port gets from a peer's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Landing {
    pub(super) peer: usize,
    pub(super) slot: Slot,
    pub(super) region: WireRegion,
    pub(super) from: u64,
    pub(super) id: u32,
    pub(super) done: usize,
}

impl Landing {
    /// One of which nothing has been read.
    pub(super) fn new(peer: usize, slot: Slot, region: WireRegion, loan: Loan) -> Self {
        Landing { peer, slot, region, from: loan.from, id: loan.id, done: 0 }
    }
}

/// A message that this port gets in pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) landing: Landing,
    pub(super) since: Instant,
    /// Messages that were to come then, this one among them.
    pub(super) incoming: usize,
}

/// A message that this port has lent and sends in pieces instead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pulled {
    pub(super) peer: usize,
    pub(super) id: u32,
    pub(super) landing: u32,
    pub(super) done: usize,
}
