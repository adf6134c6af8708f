//! Announced messages and receives: which side sends what, and how messages are dropped whose two sides differ in
//! length or call.
//!
//! # Differences
//! The side that knows both the send and the receive compares them, and reports
//! [`Event::Differs`](crate::endpoint::Event::Differs) if they differ. The other side completes, too:
//!
//! | send | receive | compared by | the other side |
//! | --- | --- | --- | --- |
//! | short | short | the receiver | the sender was complete when it had sent the message |
//! | short | long | the receiver; it sends `Withdrawn` if it has sent `ClearToSend` | the sender was complete |
//! | long | short | the receiver, once the message is announced | the sender gets a `ClearToSend` with a short length |
//! | long | long | the sender, when it gets `ClearToSend` | the receiver gets `Refused` |
//!
//! A short message is sent in any case, since it may already be in flight. So no credit is lost.

use std::time::Duration;

use crate::endpoint::matcher::{OtherCall, of_another_call};
use crate::endpoint::{Event, RecvPost, Tag, WireError};
use crate::error::{Blame, Fault};
use utofu::Stadd;

use super::UtofuEndpoint;
use super::peer::{Announced, Outbound, Waited, from_peer, is_long, to_peer};
use super::unexpected::{Body, Unexpected};
use super::wire::Descriptor;

/// Time between two checks of the messages that wait for their receives.
const LOOK_AFTER: Duration = Duration::from_millis(10);
/// Checks after which a waiting long message is announced to the peer.
const SAID_AT_AGE: u32 = 2;
/// Most announcements of long messages that are kept for each peer while the receives are not posted. An announcement
/// that arrives after its message is kept, too, so beyond this number the oldest one is dropped.
const MOST_SAID: usize = 16;

impl UtofuEndpoint {
    /// Notes that this rank posts a message of the tag's call.
    #[inline]
    pub(super) fn enter_call(&mut self, tag: Tag) -> Result<(), WireError> {
        self.matcher.enter(tag).map_err(|other| self.differs(other))
    }

    /// Takes out the post that a message or announcement from a peer matches.
    #[inline]
    pub(super) fn meet(&mut self, queue: usize, tag: Tag) -> Result<Option<RecvPost>, WireError> {
        self.matcher.meet(queue, tag).map_err(|other| self.differs(other))
    }

    #[cold]
    fn differs(&self, OtherCall { peer }: OtherCall) -> WireError {
        let rank = self.peers[peer / 2].rank;
        // This rank itself must see the failure as news, too.
        self.note(Blame { rank, fault: Fault::Elsewhere, by: self.rank });
        of_another_call(rank)
    }

    /// Reports a post whose message differs in length or call.
    #[cold]
    fn differing(&mut self, index: u32, post: &RecvPost) {
        self.events.push(Event::Differs(post.slot, self.peers[index as usize].rank));
    }

    /// Sends a peer a descriptor that is not a message.
    pub(super) fn say(&mut self, index: u32, what: Descriptor) -> Result<(), WireError> {
        self.peers[index as usize].urgent.push_back(Outbound::Plain(what));
        self.flush_peer(index)
    }

    /// Queues a receive for which nothing has arrived, and announces it if it is long.
    pub(super) fn awaits(&mut self, index: u32, recv: RecvPost) -> Result<(), WireError> {
        self.matcher.await_message(from_peer(index), recv);
        if !is_long(recv.region.len) {
            return Ok(());
        }
        self.add_rendezvous(index, &recv);
        let (tag, len) = (recv.tag, recv.region.len as u64);
        self.say(index, Descriptor::ClearToSend { tag, at: recv.region.key, len })
    }

    /// Handles a receive whose message the peer has already announced.
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

    /// Handles a peer's `RequestToSend`. A short message waits for a credit. A long message may wait for a
    /// `ClearToSend` that never comes, because its receive is short and so not announced.
    pub(super) fn waits(&mut self, index: u32, tag: Tag, len: usize) -> Result<(), WireError> {
        let queue = from_peer(index);
        if self.is_overtaken(queue, tag) {
            return Ok(());
        }
        let recv = self.matcher.posted_for(queue, tag).map_err(|other| self.differs(other))?;
        match recv.map(|recv| is_long(recv.region.len)) {
            None => self.keep_announced(queue, tag, len),
            Some(_) if !is_long(len) => return self.want(index, tag, len),
            // The `ClearToSend` for this receive has been sent or queued.
            Some(true) => {}
            Some(false) => {
                if let Some(recv) = self.meet(queue, tag)? {
                    return self.refuse_long(index, &recv, tag);
                }
            }
        }
        Ok(())
    }

    /// Ends a long announced message whose receive is short.
    #[cold]
    fn refuse_long(&mut self, index: u32, recv: &RecvPost, tag: Tag) -> Result<(), WireError> {
        self.differing(index, recv);
        let len = recv.region.len as u64;
        self.say(index, Descriptor::ClearToSend { tag, at: 0, len })
    }

    /// Grants a credit, as soon as one is free, to a short message that is announced and whose receive is posted.
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

    /// Handles a peer's announced receive, `(tag, len)`, whose send is posted: puts the message to `at` if it fits.
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

    /// Handles a `ClearToSend` with a short length: it grants a credit to a short message, or ends a long send whose
    /// receive is short.
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

    /// Handles a short message that differs from its receive.
    #[cold]
    pub(super) fn refuse_short(&mut self, index: u32, recv: &RecvPost) -> Result<(), WireError> {
        self.differing(index, recv);
        let is_announced = is_long(recv.region.len) && self.remove_rendezvous(recv);
        if !is_announced || self.peers[index as usize].take_clear_to_send(recv.tag, true) {
            return Ok(());
        }
        self.say(index, Descriptor::Withdrawn { tag: recv.tag })
    }

    /// Handles a peer's `Refused`: its message differs from the receive that this rank announced.
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

    /// Handles a peer's `Withdrawn`: a short message has met the receive that the peer announced.
    pub(super) fn withdrawn(&mut self, index: u32, tag: Tag) {
        let queue = to_peer(index);
        if self.matcher.take_unexpected(queue, tag).is_none() {
            self.overtaken.push((queue, tag));
        }
    }

    /// Whether an announcement has arrived after the message or withdrawal that makes it void.
    pub(super) fn is_overtaken(&mut self, queue: usize, tag: Tag) -> bool {
        let is_it = |(of, other): &(usize, Tag)| *of == queue && other.names_same(tag);
        let found = self.overtaken.iter().position(is_it);
        found.map(|at| self.overtaken.swap_remove(at)).is_some()
    }

    /// Checks the messages that wait for credits and, every [`LOOK_AFTER`], those that wait for their receives.
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

    /// Announces long messages that have waited for their receives for a while, to peers that may expect short
    /// messages and then send no `ClearToSend`. Sends only what can be written at once: a peer that is done with all
    /// messages returns no credits, and this rank must not wait for it because of an announcement.
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
