//! Matching of posted receives with messages, for all wires that match by peer and tag: it stores posted receives,
//! unexpected messages, and the calls to which both belong.
//!
//! A message and a receive with the same name match even if their calls or lengths differ: then the matching side
//! reports [`Event::Differs`](super::Event::Differs), and the posts of both sides complete. [`OtherCall`] is a
//! message of an operation for which this rank makes another call, if the messages of the two calls need not match.
//!
//! A wire whose receivers announce receives uses a second matcher for these and its own sends: then the posted
//! entries are sends, and the arriving entries are receives of the peer.

use std::collections::VecDeque;

use crate::planted::{self, Planted};

use super::calls::Calls;
use super::lists::take_out;
use super::unexpected::UnexpectedBytes;
use super::{Matching, RecvPost, Tag, UnexpectedStats, WireError};
use crate::Rank;

impl RecvPost {
    /// Whether a message with the name of this receive is of the same call and has the receive's length.
    #[inline]
    pub(super) fn fits(&self, tag: Tag, len: usize) -> bool {
        (self.tag.call == tag.call || planted::is(Planted::AnyCall)) && self.region.len == len
    }
}

/// A message without a posted receive. `B` says where its bytes are.
#[derive(Debug)]
pub(super) struct Unexpected<B> {
    pub(super) tag: Tag,
    pub(super) len: usize,
    pub(super) body: B,
}

/// Receives and messages of one peer that are not matched.
#[derive(Debug)]
struct Waiting<B> {
    posted: Vec<RecvPost>,
    /// Messages in the order of their arrival.
    unexpected: VecDeque<Unexpected<B>>,
}

/// A message belongs to another call than this rank makes for the operation, and no receive of this rank will match
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OtherCall {
    /// The index of the message's sender.
    pub(super) peer: usize,
}

/// Receives and unexpected messages of all peers; see the module documentation. The caller numbers the peers.
#[derive(Debug)]
pub(super) struct Matcher<B> {
    calls: Calls,
    peers: Vec<Waiting<B>>,
    n_posted: usize,
    n_unexpected: usize,
    /// Bytes of the unexpected messages, as the wire counts them.
    pub(super) bytes: UnexpectedBytes,
}

impl<B> Matcher<B> {
    /// A matcher without peers. Remembers the calls of `n_calls` operations, a power of two.
    pub(super) fn new(n_calls: usize) -> Self {
        let calls = Calls::with_capacity(n_calls);
        let bytes = UnexpectedBytes::default();
        Matcher { calls, peers: Vec::new(), n_posted: 0, n_unexpected: 0, bytes }
    }

    /// Adds a peer, with room for `usual` receives and as many messages, and returns its index.
    pub(super) fn add_peer(&mut self, usual: usize) -> usize {
        self.peers.push(Waiting {
            posted: Vec::with_capacity(usual),
            unexpected: VecDeque::with_capacity(usual),
        });
        self.peers.len() - 1
    }

    /// Records that this rank takes part in the call of `tag`.
    ///
    /// # Errors
    /// [`OtherCall`] if a message has arrived for the operation that matches no receive of this call.
    #[inline]
    pub(super) fn enter(&mut self, tag: Tag) -> Result<(), OtherCall> {
        if self.calls.enter(tag) { self.check_unexpected(tag) } else { Ok(()) }
    }

    #[cold]
    fn check_unexpected(&self, tag: Tag) -> Result<(), OtherCall> {
        let other = |unexpected: &Unexpected<B>| {
            unexpected.tag.operation_id() == tag.operation_id()
                && !Tag::do_match(unexpected.tag.call, tag.call)
        };
        let found = self.peers.iter().position(|peer| peer.unexpected.iter().any(other));
        found.map_or(Ok(()), |peer| Err(OtherCall { peer }))
    }

    /// Posts a receive: removes and returns its message, if that has arrived; otherwise stores the receive.
    #[inline]
    pub(super) fn post(&mut self, peer: usize, posted: RecvPost) -> Option<Unexpected<B>> {
        let unexpected = self.take_unexpected(peer, posted.tag);
        if unexpected.is_none() {
            self.await_message(peer, posted);
        }
        unexpected
    }

    /// Removes and returns the unexpected message with this tag.
    #[inline]
    pub(super) fn take_unexpected(&mut self, peer: usize, tag: Tag) -> Option<Unexpected<B>> {
        let unexpected = &mut self.peers[peer].unexpected;
        if unexpected.is_empty() {
            return None;
        }
        let is_it = |unexpected: &Unexpected<B>| {
            unexpected.tag.same_message(tag)
                || planted::is(Planted::EarlyToAnother) && unexpected.tag.message == tag.message
        };
        let at = unexpected.iter().position(is_it)?;
        self.n_unexpected -= 1;
        unexpected.remove(at)
    }

    /// Stores a receive whose message has not arrived.
    #[inline]
    pub(super) fn await_message(&mut self, peer: usize, posted: RecvPost) {
        self.peers[peer].posted.push(posted);
        self.n_posted += 1;
    }

    /// Whether a message of this peer can belong to the call that this rank makes.
    ///
    /// # Errors
    /// [`OtherCall`] if it cannot.
    #[inline]
    pub(super) fn check(&self, peer: usize, tag: Tag) -> Result<(), OtherCall> {
        if self.calls.mismatches(tag) { Err(OtherCall { peer }) } else { Ok(()) }
    }

    /// Processes the arrival of a message: removes and returns its receive, if that is posted.
    ///
    /// # Errors
    /// [`OtherCall`] if the message belongs to another call than this rank's, and no receive will match it.
    #[inline]
    pub(super) fn match_message(
        &mut self,
        peer: usize,
        tag: Tag,
    ) -> Result<Option<RecvPost>, OtherCall> {
        self.check(peer, tag)?;
        let posted = &mut self.peers[peer].posted;
        let Some(at) = posted.iter().position(|posted| posted.tag.same_message(tag)) else {
            return Ok(None);
        };
        self.n_posted -= 1;
        Ok(Some(take_out(posted, at)))
    }

    /// The posted receive that an announced message will match.
    ///
    /// # Errors
    /// As [`match_message`](Matcher::match_message).
    pub(super) fn posted_for(&self, peer: usize, tag: Tag) -> Result<Option<&RecvPost>, OtherCall> {
        self.check(peer, tag)?;
        Ok(self.peers[peer].posted.iter().find(|posted| posted.tag.same_message(tag)))
    }

    /// Stores a message whose receive is not posted.
    pub(super) fn add_unexpected(&mut self, peer: usize, message: Unexpected<B>) {
        self.calls.note_message(message.tag);
        self.peers[peer].unexpected.push_back(message);
        self.n_unexpected += 1;
    }

    /// The unexpected message of this peer that arrived last.
    pub(super) fn last_unexpected(&mut self, peer: usize) -> Option<&mut Unexpected<B>> {
        self.peers[peer].unexpected.back_mut()
    }

    /// Removes and returns those posted receives of this peer for which `leaves` is true.
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

    /// Posted receives of this peer whose messages have not arrived.
    #[inline]
    pub(super) fn posted(&self, peer: usize) -> &[RecvPost] {
        &self.peers[peer].posted
    }

    /// Unexpected messages of this peer in the order of their arrival.
    pub(super) fn unexpected(&self, peer: usize) -> impl Iterator<Item = &Unexpected<B>> {
        self.peers[peer].unexpected.iter()
    }

    /// Whether receives of this peer are posted whose messages have not arrived.
    #[inline]
    pub(super) fn has_posted(&self, peer: usize) -> bool {
        !self.peers[peer].posted.is_empty()
    }

    /// Number of unexpected messages.
    pub(super) fn n_unexpected(&self) -> usize {
        self.n_unexpected
    }

    /// Number of posted receives whose messages have not arrived.
    #[inline]
    pub(super) fn n_posted(&self) -> usize {
        self.n_posted
    }

    /// Removes all receives and messages.
    pub(super) fn clear(&mut self) {
        for peer in &mut self.peers {
            peer.posted.clear();
            peer.unexpected.clear();
        }
        (self.n_posted, self.n_unexpected) = (0, 0);
        self.bytes.clear();
    }
}

impl<B> Matching for Matcher<B> {
    fn forget_calls(&mut self, context: u64, newest: Option<u32>) {
        self.calls.forget(context, newest);
    }

    fn limit_unexpected(&mut self, bytes: usize) {
        self.bytes.set_limit(bytes);
    }

    fn unexpected(&mut self) -> UnexpectedStats {
        self.bytes.stats()
    }
}

/// The error of a rank that has received a message of another call from `rank`.
#[cold]
pub(super) fn of_another_call(rank: Rank) -> WireError {
    WireError::new("matching of messages", "a message of another call").at(rank)
}
