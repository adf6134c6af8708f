//! Whether all ranks make the same calls: every message says which call it belongs to, by a
//! number that stands for it, and the same operation must be the same call everywhere.
//!
//! This finds ranks that disagree as soon as they exchange anything, also where the messages
//! of one would never meet those of the other.

use crate::endpoint::{Tag, WireError};
use crate::error::{Blame, Fault};

use super::UtofuEndpoint;
use super::peer::Peer;

/// Operations remembered: more than are ever under way.
const REMEMBERED: usize = 64;

/// The calls of the latest operations of this rank.
#[derive(Debug)]
pub(super) struct Calls([Option<(u32, u16)>; REMEMBERED]);

impl Calls {
    pub(super) fn new() -> Self {
        Calls([None; REMEMBERED])
    }

    fn place(&mut self, operation: u32) -> &mut Option<(u32, u16)> {
        &mut self.0[operation as usize % REMEMBERED]
    }

    /// Takes note of an operation; true if it is a new one.
    fn enter(&mut self, Tag { operation, call, .. }: Tag) -> bool {
        let entry = Some((operation, call));
        std::mem::replace(self.place(operation), entry) != entry
    }

    /// True if this rank makes another call as the same operation.
    fn differs(&mut self, Tag { operation, call, .. }: Tag) -> bool {
        matches!(*self.place(operation), Some((own, made)) if own == operation && made != call)
    }
}

impl UtofuEndpoint {
    /// This rank posts a message.
    pub(super) fn enter_call(&mut self, tag: Tag) -> Result<(), WireError> {
        if !self.calls.enter(tag) || self.n_early == 0 {
            return Ok(());
        }
        // What has come already.
        let other = |theirs: Tag| theirs.operation == tag.operation && theirs.call != tag.call;
        let differs = |peer: &&Peer| {
            peer.unexpected.iter().any(|early| other(early.tag))
                || peer.announced.iter().any(|early| other(early.tag))
        };
        match self.peers.iter().find(differs) {
            Some(peer) => Err(self.differs(peer.rank)),
            None => Ok(()),
        }
    }

    /// A message of a peer has arrived.
    pub(super) fn check_call(&mut self, index: u32, tag: Tag) -> Result<(), WireError> {
        if self.calls.differs(tag) {
            return Err(self.differs(self.peers[index as usize].rank));
        }
        Ok(())
    }

    fn differs(&self, rank: u32) -> WireError {
        // News to this rank too.
        self.note(Blame { rank, fault: Fault::Elsewhere, by: self.rank });
        WireError {
            call: "matching of messages",
            reason: "a message of another call".to_owned(),
            peer: Some(rank),
        }
    }
}
