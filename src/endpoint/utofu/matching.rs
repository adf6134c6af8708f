//! Announced messages and receives: which side sends what, and how messages are dropped whose two sides differ in
//! length or call.
//!
//! # Differences
//! The side that knows both the send and the receive compares them, and reports [`Event::Differs`] if they differ. The
//! other side completes, too:
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
use super::peer::{Announced, OutboundEntry, WaitingSend, from_peer, is_long, to_peer};
use super::unexpected::{Unexpected, UtofuBody};
use super::wire::UtofuDescriptor;

/// Time between two checks of the messages that wait for their receives.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Checks after which a waiting long message is announced to the peer.
const ANNOUNCE_AT_AGE: u32 = 2;
/// Most announcements of long messages that are kept for each peer while the receives are not posted. An announcement
/// that arrives after its message is kept, too, so beyond this number the oldest one is dropped.
const MOST_ANNOUNCED: usize = 16;

impl UtofuEndpoint {
    /// Notes that this rank posts a message of the tag's call.
    #[inline]
    pub(super) fn enter_call(&mut self, tag: Tag) -> Result<(), WireError> {
        self.matcher.enter(tag).map_err(|other| self.differs(other))
    }

    /// Takes out the post that a message or announcement from a peer matches.
    #[inline]
    pub(super) fn match_message(
        &mut self,
        queue: usize,
        tag: Tag,
    ) -> Result<Option<RecvPost>, WireError> {
        self.matcher.match_message(queue, tag).map_err(|other| self.differs(other))
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
    pub(super) fn send_control(
        &mut self,
        index: u32,
        what: UtofuDescriptor,
    ) -> Result<(), WireError> {
        self.peers[index as usize].urgent.push_back(OutboundEntry::Control(what));
        self.flush_peer(index)
    }

    /// Queues a receive for which nothing has arrived, and announces it if it is long.
    pub(super) fn queue_recv(&mut self, index: u32, recv: RecvPost) -> Result<(), WireError> {
        self.matcher.await_message(from_peer(index), recv);
        if !is_long(recv.region.len) {
            return Ok(());
        }
        self.add_rendezvous(index, &recv);
        let (tag, len) = (recv.tag, recv.region.len as u64);
        self.send_control(index, UtofuDescriptor::ClearToSend { tag, at: recv.region.key, len })
    }

    /// Handles a receive whose message the peer has already announced.
    pub(super) fn recv_announced(
        &mut self,
        index: u32,
        recv: RecvPost,
        (tag, len): (Tag, usize),
    ) -> Result<(), WireError> {
        match (is_long(len), is_long(recv.region.len)) {
            (true, true) => self.queue_recv(index, recv),
            (true, false) => self.refuse_long(index, &recv, tag),
            (false, _) => {
                self.matcher.await_message(from_peer(index), recv);
                self.request_grant(index, tag, len)
            }
        }
    }

    /// Handles a peer's `RequestToSend`. A short message waits for a credit. A long message may wait for a
    /// `ClearToSend` that never comes, because its receive is short and so not announced.
    pub(super) fn on_request_to_send(
        &mut self,
        index: u32,
        tag: Tag,
        len: usize,
    ) -> Result<(), WireError> {
        let queue = from_peer(index);
        if self.is_void(queue, tag) {
            return Ok(());
        }
        let recv = self.matcher.posted_for(queue, tag).map_err(|other| self.differs(other))?;
        match recv.map(|recv| is_long(recv.region.len)) {
            None => self.keep_announced(queue, tag, len),
            Some(_) if !is_long(len) => return self.request_grant(index, tag, len),
            // The `ClearToSend` for this receive has been sent or queued.
            Some(true) => {}
            Some(false) => {
                if let Some(recv) = self.match_message(queue, tag)? {
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
        self.send_control(index, UtofuDescriptor::ClearToSend { tag, at: 0, len })
    }

    /// Grants a credit, as soon as one is free, to a short message that is announced and whose receive is posted.
    fn request_grant(&mut self, index: u32, tag: Tag, len: usize) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        if peer.awaiting_grant.iter().any(|awaiting_grant| awaiting_grant.tag.same_message(tag)) {
            let reason = format!("rank {} announced a message twice", peer.rank);
            return Err(WireError::new("matching of messages", reason));
        }
        peer.awaiting_grant.push(Announced { tag, len, is_granted: false });
        peer.grant();
        self.flush_peer(index)
    }

    fn keep_announced(&mut self, queue: usize, tag: Tag, len: usize) {
        let long_ones =
            || self.matcher.unexpected(queue).filter(|unexpected| is_long(unexpected.len));
        if is_long(len) && long_ones().count() == MOST_ANNOUNCED {
            let oldest = long_ones().next().map(|unexpected| unexpected.tag);
            oldest.and_then(|oldest| self.matcher.take_unexpected(queue, oldest));
        }
        self.matcher.add_unexpected(queue, Unexpected { tag, len, body: UtofuBody::Announced });
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
        self.send_control(index, UtofuDescriptor::Refused { tag })
    }

    /// Handles a `ClearToSend` with a short length: it grants a credit to a short message, or ends a long send whose
    /// receive is short.
    pub(super) fn on_short_clear_to_send(
        &mut self,
        index: u32,
        tag: Tag,
        len: usize,
    ) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        let granted = peer.granted(tag, len);
        if granted.map_err(|invalid| invalid.wire_error_from(peer.rank, "utofu_poll_mrq"))? {
            return self.flush_peer(index);
        }
        if let Some(send) = self.match_message(to_peer(index), tag)? {
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
        self.send_control(index, UtofuDescriptor::Withdrawn { tag: recv.tag })
    }

    /// Handles a peer's `Refused`: its message differs from the receive that this rank announced.
    pub(super) fn on_refused(&mut self, index: u32, tag: Tag) -> Result<(), WireError> {
        if let Some(recv) = self.match_message(from_peer(index), tag)?
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
    pub(super) fn on_withdrawn(&mut self, index: u32, tag: Tag) {
        let queue = to_peer(index);
        if self.matcher.take_unexpected(queue, tag).is_none() {
            self.void_announcements.push((queue, tag));
        }
    }

    /// Whether an announcement has arrived after the message or withdrawal that makes it void.
    pub(super) fn is_void(&mut self, queue: usize, tag: Tag) -> bool {
        let is_it = |(of, other): &(usize, Tag)| *of == queue && other.same_message(tag);
        let found = self.void_announcements.iter().position(is_it);
        found.map(|at| self.void_announcements.swap_remove(at)).is_some()
    }

    /// Checks the messages that wait for credits and, every [`CHECK_INTERVAL`], those that wait for their receives.
    pub(super) fn check_waiting(&mut self) -> Result<(), WireError> {
        if !self.waiting.is_empty() {
            self.announce()?;
        }
        let now = self.time.now();
        if now - self.last_check <= CHECK_INTERVAL {
            return Ok(());
        }
        self.last_check = now;
        self.announce_long()
    }

    /// Announces long messages that have waited for their receives for a while, to peers that may expect short
    /// messages and then send no `ClearToSend`. Sends only what can be written at once: a peer that is done with all
    /// messages returns no credits, and this rank must not wait for it because of an announcement.
    fn announce_long(&mut self) -> Result<(), WireError> {
        for index in 0..self.peers.len() as u32 {
            let waiting = &mut self.peers[index as usize].waiting_sends;
            let sends = self.matcher.posted(to_peer(index));
            waiting.retain(|waiting| sends.iter().any(|send| send.tag == waiting.send.tag));
            for &send in sends {
                match waiting.iter_mut().find(|waiting| waiting.send.tag == send.tag) {
                    Some(waiting) if waiting.age < ANNOUNCE_AT_AGE => waiting.age += 1,
                    Some(_) => {}
                    None => waiting.push(WaitingSend { send, age: 1 }),
                }
            }
            while self.peers[index as usize].has_credit_to_spare() {
                let mut waiting = self.peers[index as usize].waiting_sends.iter_mut();
                let Some(waiting) = waiting.find(|it| it.age == ANNOUNCE_AT_AGE) else { break };
                waiting.age += 1;
                let (tag, len) = (waiting.send.tag, waiting.send.region.len as u64);
                self.send_control(index, UtofuDescriptor::RequestToSend { tag, len })?;
            }
        }
        Ok(())
    }
}
