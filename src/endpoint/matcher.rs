//! Matching: the receives that are posted, the messages that came before theirs, and the calls that
//! both belong to.

use std::collections::VecDeque;

use crate::planted::{self, Planted};

use super::calls::Calls;
use super::lists::take_out;
use super::{Arrival, Slot, Tag, WireRegion};

/// A receive that is posted and waits for its message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted {
    pub(super) tag: Tag,
    pub(super) slot: Slot,
    pub(super) region: WireRegion,
    pub(super) arrival: Arrival,
}

/// A message that waits for its receive. `B` says where its bytes are.
#[derive(Debug)]
struct Unexpected<B> {
    tag: Tag,
    len: u64,
    body: B,
}

/// What waits of one peer.
#[derive(Debug)]
struct Waiting<B> {
    posted: Vec<Posted>,
    /// In the order in which they came.
    unexpected: VecDeque<Unexpected<B>>,
}

/// A message and its receive.
#[derive(Debug)]
pub(super) enum Match<B> {
    /// They belong together.
    Met(Posted, B),
    /// They name one message, but belong to different calls or give different lengths.
    Differs(Posted, B),
    /// The other side has not come yet.
    Waits,
}

/// A message belongs to another call than the one that this rank makes, and to no receive of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OtherCall {
    /// The index of its sender.
    pub(super) peer: usize,
}

/// See the module documentation. Peers are numbered by the caller.
#[derive(Debug)]
pub(super) struct Matcher<B> {
    calls: Calls,
    peers: Vec<Waiting<B>>,
    n_unexpected: usize,
}

impl<B> Matcher<B> {
    /// Nothing waits, of no peer. Remembers the calls of `n_calls` operations.
    pub(super) fn new(n_calls: usize) -> Self {
        Matcher { calls: Calls::remembering(n_calls), peers: Vec::new(), n_unexpected: 0 }
    }

    /// The index of another peer.
    pub(super) fn add_peer(&mut self) -> usize {
        self.peers.push(Waiting { posted: Vec::new(), unexpected: VecDeque::new() });
        self.peers.len() - 1
    }

    /// This rank takes part in a call.
    ///
    /// # Errors
    /// [`OtherCall`] if a message has come for the operation that no receive of this call meets.
    #[inline]
    pub(super) fn enter(&mut self, tag: Tag) -> Result<(), OtherCall> {
        if self.calls.enter(tag) { self.look_through(tag) } else { Ok(()) }
    }

    #[cold]
    fn look_through(&self, tag: Tag) -> Result<(), OtherCall> {
        let other = |early: &Unexpected<B>| {
            early.tag.operation_id() == tag.operation_id()
                && !Tag::do_meet(early.tag.call, tag.call)
        };
        let found = self.peers.iter().position(|peer| peer.unexpected.iter().any(other));
        found.map_or(Ok(()), |peer| Err(OtherCall { peer }))
    }

    /// A receive is posted: its message, if that has come before, or else it waits.
    #[inline]
    pub(super) fn post(&mut self, peer: usize, posted: Posted) -> Match<B> {
        let waiting = &mut self.peers[peer];
        let is_it = |early: &Unexpected<B>| {
            early.tag.names_same(posted.tag)
                || planted::is(Planted::EarlyToAnother) && early.tag.message == posted.tag.message
        };
        let found = waiting.unexpected.iter().position(is_it);
        let Some(early) = found.and_then(|at| waiting.unexpected.remove(at)) else {
            waiting.posted.push(posted);
            return Match::Waits;
        };
        self.n_unexpected -= 1;
        matched(posted, early)
    }

    /// A message has come: its receive, if that is posted, or else the message waits.
    ///
    /// # Errors
    /// [`OtherCall`] if it belongs to another call than this rank's, and no receive will meet it.
    #[inline]
    pub(super) fn arrive(
        &mut self,
        peer: usize,
        tag: Tag,
        len: u64,
        body: B,
    ) -> Result<Match<B>, OtherCall> {
        if self.calls.misses(tag) {
            return Err(OtherCall { peer });
        }
        let waiting = &mut self.peers[peer];
        let early = Unexpected { tag, len, body };
        let Some(at) = waiting.posted.iter().position(|posted| posted.tag.names_same(tag)) else {
            self.calls.hear(tag);
            waiting.unexpected.push_back(early);
            self.n_unexpected += 1;
            return Ok(Match::Waits);
        };
        Ok(matched(take_out(&mut waiting.posted, at), early))
    }

    /// The message of this peer that came last of those that wait.
    pub(super) fn last_unexpected(&mut self, peer: usize) -> Option<&mut B> {
        self.peers[peer].unexpected.back_mut().map(|early| &mut early.body)
    }

    /// Messages that wait for their receives.
    pub(super) fn n_unexpected(&self) -> usize {
        self.n_unexpected
    }

    /// Receives that wait for their messages.
    pub(super) fn n_posted(&self) -> usize {
        self.peers.iter().map(|peer| peer.posted.len()).sum()
    }

    /// Forgets what waits.
    pub(super) fn clear(&mut self) {
        for peer in &mut self.peers {
            peer.posted.clear();
            peer.unexpected.clear();
        }
        self.n_unexpected = 0;
    }
}

#[inline]
fn matched<B>(posted: Posted, message: Unexpected<B>) -> Match<B> {
    let Unexpected { tag, len, body } = message;
    let is_same_call = posted.tag.call == tag.call || planted::is(Planted::AnyCall);
    match is_same_call && posted.region.len as u64 == len {
        true => Match::Met(posted, body),
        false => Match::Differs(posted, body),
    }
}
