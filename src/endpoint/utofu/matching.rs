//! Messages and receives of which one side has told the other: who sends when, and what becomes of those
//! that differ in length or call.
//!
//! # Differences
//! Whoever has both sides of a message compares them, and reports
//! [`Event::Differs`](crate::endpoint::Event::Differs) if they differ. The other side is done as well:
//!
//! | send | receive | compared by | the other side |
//! | --- | --- | --- | --- |
//! | short | short | the receiver | the sender was done when it sent |
//! | short | long | the receiver, which sends `Withdrawn` if it has sent `ClearToSend` | likewise |
//! | long | short | the receiver, once the message is announced | the sender gets the short `ClearToSend` |
//! | long | long | the sender, when it gets `ClearToSend` | the receiver gets `Refused` |
//!
//! A short message travels in any case: it may be on its way already. So no credit is lost.

use std::time::Duration;

use crate::endpoint::matcher::{OtherCall, of_another_call};
use crate::endpoint::{Event, RecvPost, Tag, WireError};
use crate::error::{Blame, Fault};
use utofu::Stadd;

use super::UtofuEndpoint;
use super::peer::{Announced, Outbound, Waited, from_peer, is_long, to_peer};
use super::unexpected::{Body, Unexpected};
use super::wire::Descriptor;

/// Messages that wait for their receives are looked at if so much time has passed.
const LOOK_AFTER: Duration = Duration::from_millis(10);
/// At this look the peer is told of a message.
const SAID_AT_AGE: u32 = 2;
/// Messages longer than eager ones of which a peer has said that it waits with them, and whose receives
/// are not posted. Those that are said too late stay for a while: so many are remembered.
const MOST_SAID: usize = 16;

impl UtofuEndpoint {
    /// This rank posts a message.
    #[inline]
    pub(super) fn enter_call(&mut self, tag: Tag) -> Result<(), WireError> {
        self.matcher.enter(tag).map_err(|other| self.differs(other))
    }

    /// Takes out the post that what has come from a peer is for.
    #[inline]
    pub(super) fn meet(&mut self, queue: usize, tag: Tag) -> Result<Option<RecvPost>, WireError> {
        self.matcher.meet(queue, tag).map_err(|other| self.differs(other))
    }

    #[cold]
    fn differs(&self, OtherCall { peer }: OtherCall) -> WireError {
        let rank = self.peers[peer / 2].rank;
        // News to this rank too.
        self.note(Blame { rank, fault: Fault::Elsewhere, by: self.rank });
        of_another_call(rank)
    }

    /// A post is done whose message differs.
    #[cold]
    fn differing(&mut self, index: u32, post: &RecvPost) {
        self.events.push(Event::Differs(post.slot, self.peers[index as usize].rank));
    }

    /// Tells a peer something that is no message.
    pub(super) fn say(&mut self, index: u32, what: Descriptor) -> Result<(), WireError> {
        self.peers[index as usize].urgent.push_back(Outbound::Plain(what));
        self.flush_peer(index)
    }

    /// A receive is posted that nothing has come for: a long one is announced.
    pub(super) fn awaits(&mut self, index: u32, recv: RecvPost) -> Result<(), WireError> {
        self.matcher.await_message(from_peer(index), recv);
        if !is_long(recv.region.len) {
            return Ok(());
        }
        self.add_rendezvous(index, &recv);
        let (tag, len) = (recv.tag, recv.region.len as u64);
        self.say(index, Descriptor::ClearToSend { tag, at: recv.region.key, len })
    }

    /// A receive is posted whose message the peer has announced.
    pub(super) fn awaits_announced(
        &mut self,
        index: u32,
        recv: RecvPost,
        (tag, len): (Tag, usize),
    ) -> Result<(), WireError> {
        match (is_long(len), is_long(recv.region.len)) {
            (true, true) => self.awaits(index, recv),
            (true, false) => self.refuse_long(index, &recv, tag),
            (false, _) => {
                self.matcher.await_message(from_peer(index), recv);
                self.want(index, tag, len)
            }
        }
    }

    /// A peer waits with a message. If that is short, it waits for a credit. If it is long, it may wait for
    /// a receive that it will never hear of, as that expects a short one.
    pub(super) fn waits(&mut self, index: u32, tag: Tag, len: usize) -> Result<(), WireError> {
        let queue = from_peer(index);
        if self.is_overtaken(queue, tag) {
            return Ok(());
        }
        let recv = self.matcher.posted_for(queue, tag).map_err(|other| self.differs(other))?;
        match recv.map(|recv| is_long(recv.region.len)) {
            None => self.keep_announced(queue, tag, len),
            Some(_) if !is_long(len) => return self.want(index, tag, len),
            // The receive is announced as well.
            Some(true) => {}
            Some(false) => {
                if let Some(recv) = self.meet(queue, tag)? {
                    return self.refuse_long(index, &recv, tag);
                }
            }
        }
        Ok(())
    }

    /// A long message has been announced whose receive is a short one.
    #[cold]
    fn refuse_long(&mut self, index: u32, recv: &RecvPost, tag: Tag) -> Result<(), WireError> {
        self.differing(index, recv);
        let len = recv.region.len as u64;
        self.say(index, Descriptor::ClearToSend { tag, at: 0, len })
    }

    /// A short message has been announced, and its receive is posted: it gets a credit as soon as there is
    /// one.
    fn want(&mut self, index: u32, tag: Tag, len: usize) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        if peer.wanted.iter().any(|wanted| wanted.tag.names_same(tag)) {
            let reason = format!("rank {} announced a message twice", peer.rank);
            return Err(WireError::new("matching of messages", reason));
        }
        peer.wanted.push(Announced { tag, len, is_granted: false });
        peer.grant();
        self.flush_peer(index)
    }

    fn keep_announced(&mut self, queue: usize, tag: Tag, len: usize) {
        let said = || self.matcher.unexpected(queue).filter(|unexpected| is_long(unexpected.len));
        if is_long(len) && said().count() == MOST_SAID {
            let oldest = said().next().map(|unexpected| unexpected.tag);
            oldest.and_then(|oldest| self.matcher.take_unexpected(queue, oldest));
        }
        self.matcher.keep(queue, Unexpected { tag, len, body: Body::Announced });
    }

    /// A peer's announced receive, `(tag, len)`, has met the send: puts the message there if it fits.
    pub(super) fn met_clear_to_send(
        &mut self,
        index: u32,
        send: &RecvPost,
        (tag, len): (Tag, usize),
        at: Stadd,
    ) -> Result<(), WireError> {
        if send.fits(tag, len) {
            return self.send_to(index, send.slot, send.region, at);
        }
        self.differing(index, send);
        self.say(index, Descriptor::Refused { tag })
    }

    /// A peer's receive is posted and waits for a message that is not longer than eager ones: a grant, or
    /// the end of a send that is longer.
    pub(super) fn met_short_clear_to_send(
        &mut self,
        index: u32,
        tag: Tag,
        len: usize,
    ) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        let granted = peer.granted(tag, len);
        if granted.map_err(|garbled| garbled.by(peer.rank, "utofu_poll_mrq"))? {
            return self.flush_peer(index);
        }
        if let Some(send) = self.meet(to_peer(index), tag)? {
            self.differing(index, &send);
        }
        Ok(())
    }

    /// A short message has come that differs from its receive.
    #[cold]
    pub(super) fn refuse_short(&mut self, index: u32, recv: &RecvPost) -> Result<(), WireError> {
        self.differing(index, recv);
        let is_announced = is_long(recv.region.len) && self.remove_rendezvous(recv);
        if !is_announced || self.peers[index as usize].take_clear_to_send(recv.tag, true) {
            return Ok(());
        }
        self.say(index, Descriptor::Withdrawn { tag: recv.tag })
    }

    /// A peer's message differs from the receive that was announced for it.
    pub(super) fn refused(&mut self, index: u32, tag: Tag) -> Result<(), WireError> {
        if let Some(recv) = self.meet(from_peer(index), tag)?
            && self.remove_rendezvous(&recv)
        {
            self.differing(index, &recv);
            return Ok(());
        }
        let rank = self.peers[index as usize].rank;
        let reason = format!("rank {rank} refused a receive that is not announced");
        Err(WireError::new("matching of messages", reason))
    }

    /// A peer's announced receive has been met by a short message.
    pub(super) fn withdrawn(&mut self, index: u32, tag: Tag) {
        let queue = to_peer(index);
        if self.matcher.take_unexpected(queue, tag).is_none() {
            self.overtaken.push((queue, tag));
        }
    }

    /// Whether an announcement comes behind what has made it void.
    pub(super) fn is_overtaken(&mut self, queue: usize, tag: Tag) -> bool {
        let is_it = |(of, other): &(usize, Tag)| *of == queue && other.names_same(tag);
        let found = self.overtaken.iter().position(is_it);
        found.map(|at| self.overtaken.swap_remove(at)).is_some()
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
        for index in 0..self.peers.len() as u32 {
            let waited = &mut self.peers[index as usize].waited;
            let sends = self.matcher.posted(to_peer(index));
            waited.retain(|waited| sends.iter().any(|send| send.tag == waited.send.tag));
            for &send in sends {
                match waited.iter_mut().find(|waited| waited.send.tag == send.tag) {
                    Some(waited) if waited.age < SAID_AT_AGE => waited.age += 1,
                    Some(_) => {}
                    None => waited.push(Waited { send, age: 1 }),
                }
            }
            while self.peers[index as usize].has_credit_to_spare() {
                let mut waited = self.peers[index as usize].waited.iter_mut();
                let Some(waited) = waited.find(|it| it.age == SAID_AT_AGE) else { break };
                waited.age += 1;
                let (tag, len) = (waited.send.tag, waited.send.region.len as u64);
                self.say(index, Descriptor::RequestToSend { tag, len })?;
            }
        }
        Ok(())
    }
}
