//! Matching: the receives that are posted, the unexpected messages, which came before theirs, and the
//! calls that both belong to. One piece of code for all wires that match by peer and tag.
//!
//! A message and a receive that name each other but belong to different calls, or differ in length, have
//! met all the same: the wire reports [`Event::Differs`](super::Event::Differs) to both sides. A message of
//! an operation that this rank performs as another call, whose messages need not meet, is [`OtherCall`].
//!
//! A wire whose receivers announce their receives matches those with its sends by a matcher, too: there a
//! send is what is posted, and a receive of the peer is what comes.

use std::collections::VecDeque;

use crate::planted::{self, Planted};

use super::calls::Calls;
use super::lists::take_out;
use super::{RecvPost, Tag, WireError};
use crate::Rank;

impl RecvPost {
    /// Whether a message that it names is of the same call, and as long.
    #[inline]
    pub(super) fn fits(&self, tag: Tag, len: usize) -> bool {
        (self.tag.call == tag.call || planted::is(Planted::AnyCall)) && self.region.len == len
    }
}

/// A message that waits for its receive. `B` says where its bytes are.
#[derive(Debug)]
pub(super) struct Unexpected<B> {
    pub(super) tag: Tag,
    pub(super) len: usize,
    pub(super) body: B,
}

/// What waits of one peer.
#[derive(Debug)]
struct Waiting<B> {
    posted: Vec<RecvPost>,
    /// In the order in which they came.
    unexpected: VecDeque<Unexpected<B>>,
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
    n_posted: usize,
    n_unexpected: usize,
}

impl<B> Matcher<B> {
    /// Nothing waits, of no peer. Remembers the calls of `n_calls` operations, a power of two.
    pub(super) fn new(n_calls: usize) -> Self {
        let calls = Calls::remembering(n_calls);
        Matcher { calls, peers: Vec::new(), n_posted: 0, n_unexpected: 0 }
    }

    /// The index of another peer. There is room for so many receives and messages of it.
    pub(super) fn add_peer(&mut self, usual: usize) -> usize {
        self.peers.push(Waiting {
            posted: Vec::with_capacity(usual),
            unexpected: VecDeque::with_capacity(usual),
        });
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
        let other = |unexpected: &Unexpected<B>| {
            unexpected.tag.operation_id() == tag.operation_id()
                && !Tag::do_meet(unexpected.tag.call, tag.call)
        };
        let found = self.peers.iter().position(|peer| peer.unexpected.iter().any(other));
        found.map_or(Ok(()), |peer| Err(OtherCall { peer }))
    }

    /// A receive is posted: takes its message out, if that has come before; otherwise the receive waits.
    #[inline]
    pub(super) fn post(&mut self, peer: usize, posted: RecvPost) -> Option<Unexpected<B>> {
        let unexpected = self.take_unexpected(peer, posted.tag);
        if unexpected.is_none() {
            self.await_message(peer, posted);
        }
        unexpected
    }

    /// Takes out the message that a receive with this tag asks for.
    #[inline]
    pub(super) fn take_unexpected(&mut self, peer: usize, tag: Tag) -> Option<Unexpected<B>> {
        let unexpected = &mut self.peers[peer].unexpected;
        if unexpected.is_empty() {
            return None;
        }
        let is_it = |unexpected: &Unexpected<B>| {
            unexpected.tag.names_same(tag)
                || planted::is(Planted::EarlyToAnother) && unexpected.tag.message == tag.message
        };
        let at = unexpected.iter().position(is_it)?;
        self.n_unexpected -= 1;
        unexpected.remove(at)
    }

    /// A receive waits, whose message has not come.
    #[inline]
    pub(super) fn await_message(&mut self, peer: usize, posted: RecvPost) {
        self.peers[peer].posted.push(posted);
        self.n_posted += 1;
    }

    /// Whether a message of this peer can be of the call that this rank makes.
    ///
    /// # Errors
    /// [`OtherCall`] if it cannot.
    #[inline]
    pub(super) fn check(&self, peer: usize, tag: Tag) -> Result<(), OtherCall> {
        if self.calls.misses(tag) { Err(OtherCall { peer }) } else { Ok(()) }
    }

    /// A message has come: takes its receive out, if that is posted.
    ///
    /// # Errors
    /// [`OtherCall`] if it belongs to another call than this rank's, and no receive will meet it.
    #[inline]
    pub(super) fn meet(&mut self, peer: usize, tag: Tag) -> Result<Option<RecvPost>, OtherCall> {
        self.check(peer, tag)?;
        let posted = &mut self.peers[peer].posted;
        let Some(at) = posted.iter().position(|posted| posted.tag.names_same(tag)) else {
            return Ok(None);
        };
        self.n_posted -= 1;
        Ok(Some(take_out(posted, at)))
    }

    /// A message is announced: the receive that it will meet, if that is posted.
    ///
    /// # Errors
    /// As [`meet`](Matcher::meet).
    pub(super) fn posted_for(&self, peer: usize, tag: Tag) -> Result<Option<&RecvPost>, OtherCall> {
        self.check(peer, tag)?;
        Ok(self.peers[peer].posted.iter().find(|posted| posted.tag.names_same(tag)))
    }

    /// A message waits, whose receive is not posted.
    pub(super) fn keep(&mut self, peer: usize, message: Unexpected<B>) {
        self.calls.hear(message.tag);
        self.peers[peer].unexpected.push_back(message);
        self.n_unexpected += 1;
    }

    /// The message of this peer that came last of those that wait.
    #[cfg(feature = "mpi")]
    pub(super) fn last_unexpected(&mut self, peer: usize) -> Option<&mut Unexpected<B>> {
        self.peers[peer].unexpected.back_mut()
    }

    /// Takes out those receives from this peer that wait no longer, as `leaves` says.
    #[cfg(feature = "mpi")]
    pub(super) fn take_posted(
        &mut self,
        peer: usize,
        mut leaves: impl FnMut(&RecvPost) -> bool,
    ) -> Vec<RecvPost> {
        let posted = &mut self.peers[peer].posted;
        let taken: Vec<_> = posted.extract_if(.., |posted| leaves(posted)).collect();
        self.n_posted -= taken.len();
        taken
    }

    /// The receives that wait for messages of this peer.
    #[inline]
    pub(super) fn posted(&self, peer: usize) -> &[RecvPost] {
        &self.peers[peer].posted
    }

    /// The messages of this peer that wait for their receives, in the order in which they came.
    pub(super) fn unexpected(&self, peer: usize) -> impl Iterator<Item = &Unexpected<B>> {
        self.peers[peer].unexpected.iter()
    }

    /// Whether receives wait for messages of this peer.
    #[inline]
    pub(super) fn awaits(&self, peer: usize) -> bool {
        !self.peers[peer].posted.is_empty()
    }

    /// Messages that wait for their receives.
    pub(super) fn n_unexpected(&self) -> usize {
        self.n_unexpected
    }

    /// Receives that wait for their messages.
    #[inline]
    pub(super) fn n_posted(&self) -> usize {
        self.n_posted
    }

    /// Forgets what waits.
    pub(super) fn clear(&mut self) {
        for peer in &mut self.peers {
            peer.posted.clear();
            peer.unexpected.clear();
        }
        (self.n_posted, self.n_unexpected) = (0, 0);
    }
}

/// The error of a rank that has got a message of another call from `rank`.
#[cold]
pub(super) fn of_another_call(rank: Rank) -> WireError {
    WireError::new("matching of messages", "a message of another call").at(rank)
}
