//! Whether the two sides of messages agree: which call they belong to, how long they are.

use std::time::Duration;

use crate::endpoint::{Rank, Tag, WireError};
use crate::error::{Blame, Fault};

use super::UtofuEndpoint;
use super::channel::EAGER_BYTES;
use super::peer::{MOST_SAID, Outbound, Peer, PostedRecv, Word, take};

/// Messages that wait for their receives are looked at if so much time has passed.
const LOOK_AFTER: Duration = Duration::from_millis(10);
/// At this look the peer is told of a message.
const SAID_AT_AGE: u32 = 2;

impl UtofuEndpoint {
    /// This rank posts a message.
    pub(super) fn enter_call(&mut self, tag: Tag) -> Result<(), WireError> {
        if self.calls.enter(tag) { self.look_through(tag) } else { Ok(()) }
    }

    /// Looks through what has come before this rank entered a call.
    #[cold]
    fn look_through(&mut self, tag: Tag) -> Result<(), WireError> {
        let other =
            |theirs: Tag| theirs.operation_id() == tag.operation_id() && theirs.call != tag.call;
        let differs = |peer: &&Peer| {
            peer.unexpected.iter().any(|unexpected| other(unexpected.tag))
                || peer.announced.iter().any(|unexpected| other(unexpected.tag))
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

    /// A receive is posted: whatever of its message is known already must be as long. Where both
    /// sides think it short, or both long, they find out when they meet. Returns what
    /// the peer has told of it.
    pub(super) fn check_unexpected(
        &mut self,
        index: u32,
        tag: Tag,
        len: usize,
    ) -> Result<Word, WireError> {
        let peer = &mut self.peers[index as usize];
        let said = take(&mut peer.said, |(said, _)| *said == tag).map(|(_, len)| len);
        let unexpected = || peer.unexpected.iter().find(|unexpected| unexpected.tag == tag);
        let there = match said {
            None if len > EAGER_BYTES => {
                unexpected().map(|unexpected| unexpected.data().len() as u64)
            }
            said => said,
        };
        if let Some(there) = there {
            self.check_len(self.peers[index as usize].rank, there, len)?;
        }
        Ok(said.map_or(Word::Nothing, |_| Word::Announced))
    }

    /// A short message has come for which no short receive is posted: nor may a long one be.
    pub(super) fn check_rendezvous(
        &self,
        index: u32,
        tag: Tag,
        len: usize,
    ) -> Result<(), WireError> {
        match self.rendezvous_recvs.iter().find(|rendezvous| rendezvous.of == (index, tag)) {
            None => Ok(()),
            Some(rendezvous) => {
                self.check_len(self.peers[index as usize].rank, len as u64, rendezvous.len as usize)
            }
        }
    }

    /// A peer waits with a message. If that is short, it waits for a credit. If it is long, and a
    /// receive for it is posted that the peer will never hear of, as that expects a short one, they
    /// disagree about its length.
    pub(super) fn waits(&mut self, index: u32, tag: Tag, len: u64) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        let rank = peer.rank;
        if let Some(at) = peer.hasty.iter().position(|hasty| *hasty == tag) {
            peer.hasty.swap_remove(at);
            return Ok(());
        }
        if let Some(at) = peer.posted.iter().position(|posted| posted.tag == tag) {
            let PostedRecv { word, region, .. } = peer.posted[at];
            self.check_len(rank, len, region.len)?;
            if word != Word::Nothing {
                let reason = format!("rank {rank} announced a message twice");
                return Err(WireError { call: "matching of messages", reason, peer: None });
            }
            self.peers[index as usize].posted[at].word = Word::Announced;
            return self.want(index);
        }
        let is_long = |len: u64| len > EAGER_BYTES as u64;
        if let Some(rendezvous) =
            self.rendezvous_recvs.iter().find(|rendezvous| rendezvous.of == (index, tag))
        {
            // A long one is on its way.
            return if is_long(len) {
                Ok(())
            } else {
                self.check_len(rank, len, rendezvous.len as usize)
            };
        }
        let said = &mut peer.said;
        if is_long(len) && said.iter().filter(|(_, len)| is_long(*len)).count() == MOST_SAID {
            take(said, |(_, len)| is_long(*len));
        }
        said.push_back((tag, len));
        Ok(())
    }

    /// A short message has been announced whose receive is posted: grants a credit for it if there is one.
    pub(super) fn want(&mut self, index: u32) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        peer.n_wanted += 1;
        peer.grant();
        self.flush_peer(index)
    }

    /// Looks at messages that wait for credits and, if it is time to, at those that wait for their
    /// receives.
    pub(super) fn look(&mut self) -> Result<(), WireError> {
        if !self.waiting.is_empty() {
            self.announce()?;
        }
        let now = self.time.now();
        if now - self.looked <= LOOK_AFTER {
            return Ok(());
        }
        self.looked = now;
        self.say_lengths()
    }

    /// Tells peers of long messages that have been waiting for their receives for a while: they
    /// may expect short ones, and announce nothing. Only what can be written at once: a peer that is
    /// done with all messages gives no credits, and nobody is to wait for it with this.
    fn say_lengths(&mut self) -> Result<(), WireError> {
        for index in 0..self.peers.len() {
            let waiting = self.peers[index].waiting.iter_mut();
            waiting.filter(|send| send.age < SAID_AT_AGE).for_each(|send| send.age += 1);
            while self.peers[index].has_credit_to_spare() {
                let mut waiting = self.peers[index].waiting.iter_mut();
                let Some(send) = waiting.find(|send| send.age == SAID_AT_AGE) else { break };
                send.age += 1;
                let said = Outbound::RequestToSend { tag: send.tag, len: send.region.len as u64 };
                self.peers[index].urgent.push_back(said);
                self.flush_peer(index as u32)?;
            }
        }
        Ok(())
    }

    fn differs(&self, rank: Rank, reason: String) -> WireError {
        // News to this rank too.
        self.note(Blame { rank, fault: Fault::Elsewhere, by: self.rank });
        WireError { call: "matching of messages", reason, peer: Some(rank) }
    }
}
