//! Whether the two sides of messages agree: which call they belong to, how long they are.

use crate::endpoint::{Rank, Tag, WireError};
use crate::error::{Blame, Fault};

use super::UtofuEndpoint;
use super::peer::Peer;

impl UtofuEndpoint {
    /// This rank posts a message.
    pub(super) fn enter_call(&mut self, tag: Tag) -> Result<(), WireError> {
        if !self.calls.enter(tag) || self.n_early == 0 {
            return Ok(());
        }
        // What has come already.
        let other =
            |theirs: Tag| theirs.operation_id() == tag.operation_id() && theirs.call != tag.call;
        let differs = |peer: &&Peer| {
            peer.unexpected.iter().any(|early| other(early.tag))
                || peer.announced.iter().any(|early| other(early.tag))
        };
        match self.peers.iter().find(differs) {
            Some(peer) => Err(self.differs(peer.rank, "a message of another call".to_owned())),
            None => Ok(()),
        }
    }

    /// A message of a peer has arrived.
    pub(super) fn check_call(&mut self, index: u32, tag: Tag) -> Result<(), WireError> {
        if self.calls.differs(tag) {
            let rank = self.peers[index as usize].rank;
            return Err(self.differs(rank, "a message of another call".to_owned()));
        }
        Ok(())
    }

    /// The two sides of a message must agree about its length.
    pub(super) fn check_len(&self, rank: Rank, there: u64, here: usize) -> Result<(), WireError> {
        if there == here as u64 {
            return Ok(());
        }
        Err(self.differs(rank, format!("a message has {there} bytes there, and {here} bytes here")))
    }

    fn differs(&self, rank: Rank, reason: String) -> WireError {
        // News to this rank too.
        self.note(Blame { rank, fault: Fault::Elsewhere, by: self.rank });
        WireError { call: "matching of messages", reason, peer: Some(rank) }
    }
}
