//! Flow control for unexpected messages: their bytes are counted and bounded.
//!
//! A rank may be any number of calls ahead of another. The receiver stores its messages until their receives are
//! posted, so that no message waits for another one. [`UnexpectedBytes`] counts the stored bytes of all peers of a
//! port. When they reach half of the limit, further messages stay with their senders, whose calls wait for the
//! receives. So the memory does not grow with the distance between ranks.
//!
//! # Protocol
//! The uTofu, shared-memory and MPI wires have the same parts:
//! - *Window.* Credits, or the length of its queue, bound what a peer can send before it hears from the receiver.
//! - *Holding back.* A short message that arrives before its receive while there is no room is stored nevertheless,
//!   but its sender is not allowed to send more messages of this kind. uTofu and MPI keep the message's credit until
//!   its receive is posted, shared memory sets a flag in the queue.
//! - *Announcement.* A sender that is not allowed to send a message announces it: a record carries the tag and the
//!   length, and the bytes stay with the sender. The receiver answers when the receive is posted. Announcements have
//!   their own credits, or their own room in the queue, which are returned as soon as the receiver polls.
//!
//! | wire | announcement | answer |
//! | --- | --- | --- |
//! | uTofu | `RequestToSend`, once the message has waited for a credit for some polls | `ClearToSend`: a grant, a credit for this message only |
//! | shared memory | `Rendezvous`, at once | the receiver reads the message, or `ClearToSend` |
//! | MPI | `Long`, once the message has waited for a credit for some polls | the receive with that tag of MPI's |
//!
//! # Progress
//! A message whose receive is posted never waits for a message whose receive is not posted:
//! - A message that may be sent is sent. The receiver takes it out of the channel, queue or ring at its next poll,
//!   whatever messages arrived before. Unexpected messages do not stay in slots of the wire.
//! - A message that may not be sent is announced. Such messages have no order among themselves, and the credits
//!   reserved for announcements and answers are never held. So the announcement arrives, matches the receive, and is
//!   answered. A grant is a held credit; it is held again when the message has arrived, so that grants do not raise
//!   the bound. If the receiver has no credit to grant, the sender has all credits or will get them. The sender then
//!   uses a credit for the message itself, or for another one that is unexpected and so gives the receiver a credit
//!   to grant.
//!
//! So only messages whose receives are not posted wait for long. Their senders' calls wait for calls that the
//! receiver has not made, as in any collective: a cycle of waits implies a cycle among the calls of the program. A
//! rank posts only operations of a communicator that are less than [`Tag::WINDOW`](super::Tag::WINDOW) apart, which
//! bounds the number of announcements. A rank that has only such messages left to send is
//! [flushed](super::Endpoint::is_flushed): its other operations end.
//!
//! # Bound
//! Senders may send while less than half of the limit is used. The windows of all peers add to that: see
//! [`bound`](UnexpectedBytes::bound). A receiver cannot shrink a window: it must store what was sent within the
//! window, or the wire must. On uTofu, a window is about 20 KiB for each of the first 32 peers. Over MPI it is 1.9
//! MiB, more than the default limit: 30 parts of up to 64 KiB. With a much smaller window, the longest messages that
//! are sent without announcement, of five parts each, would wait for credits one after the other. Shorter messages
//! use less of the window. So over MPI the limit says when senders have to wait, and the bound says how much is
//! stored at most. Announcements are not counted: each belongs to a send under way at the peer, which takes more
//! memory there than its record takes here.

/// Default limit of a port, bytes.
pub const DEFAULT_LIMIT: usize = 1024 * 1024;

/// Counter of the bytes of unexpected messages at one port; see the module documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnexpectedBytes {
    now: usize,
    most: usize,
    limit: usize,
    /// Bytes that all peers together can send without permission.
    windows: usize,
}

impl Default for UnexpectedBytes {
    fn default() -> Self {
        UnexpectedBytes { now: 0, most: 0, limit: DEFAULT_LIMIT, windows: 0 }
    }
}

impl UnexpectedBytes {
    /// Sets the limit.
    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// Adds a peer whose messages take at most `bytes` if the peer gets no permission for more.
    pub fn add_window(&mut self, bytes: usize) {
        self.windows += bytes;
    }

    /// Counts a stored message of `bytes`. Returns whether its sender may send more, as far as the memory of this
    /// port is concerned.
    #[inline]
    pub fn keep(&mut self, bytes: usize) -> bool {
        self.now += bytes;
        self.most = self.most.max(self.now);
        self.now <= self.limit / 2
    }

    /// Uncounts a message of `bytes`, which is not stored any more.
    #[inline]
    pub fn release(&mut self, bytes: usize) {
        self.now -= bytes;
    }

    /// Uncounts all messages.
    pub fn clear(&mut self) {
        self.now = 0;
    }

    /// Whether senders that were held back may send again. The threshold, a quarter of the limit, is below the one
    /// for holding back, so that these senders are not held back again at once.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.now <= self.limit / 4
    }

    /// Bytes stored now.
    pub fn now(&self) -> usize {
        self.now
    }

    /// Maximum of the bytes stored so far.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Upper bound of the bytes stored: half of the limit plus the windows of all peers. It is within the limit
    /// unless there are many peers, or the windows are large, as over MPI.
    pub fn bound(&self) -> usize {
        self.limit / 2 + self.windows
    }

    /// The sum of the counters of two wires of a port.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        UnexpectedBytes {
            now: self.now + other.now,
            // An upper bound: the maxima need not have occurred at the same time.
            most: self.most + other.most,
            limit: self.limit.saturating_add(other.limit),
            windows: self.windows + other.windows,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Peers send as long as they may, and then up to their windows; the bytes never exceed the bound.
        #[test]
        fn the_bound_holds(
            limit in 0..4096usize,
            windows in prop::collection::vec(1..600usize, 1..8),
            steps in prop::collection::vec((any::<prop::sample::Index>(), 1..100usize), 1..400),
        ) {
            let mut bytes = UnexpectedBytes::default();
            bytes.set_limit(limit);
            windows.iter().for_each(|&window| bytes.add_window(window));
            // For each peer: stored messages, and whether each was sent without permission.
            let mut kept: Vec<Vec<(usize, bool)>> = vec![Vec::new(); windows.len()];
            let used = |kept: &[(usize, bool)]| {
                kept.iter().filter(|(_, held)| *held).map(|(len, _)| len).sum::<usize>()
            };
            for (which, len) in steps {
                let peer = which.index(windows.len());
                if len < 30 {
                    if let Some((len, _)) = kept[peer].pop() {
                        bytes.release(len);
                    }
                } else if used(&kept[peer]) + len <= windows[peer] {
                    let has_leave = bytes.keep(len);
                    kept[peer].push((len, !has_leave));
                }
                let all: usize = kept.iter().flatten().map(|(len, _)| len).sum();
                prop_assert_eq!(bytes.now(), all);
                prop_assert!(bytes.most() <= bytes.bound(), "{:?}", bytes);
                prop_assert!(bytes.most() >= all);
            }
        }
    }

    #[test]
    fn few_peers_stay_within_the_limit() {
        let mut bytes = UnexpectedBytes::default();
        bytes.set_limit(1000);
        bytes.add_window(300);
        bytes.add_window(200);
        assert_eq!(bytes.bound(), 1000);
        assert!(bytes.keep(500) && !bytes.keep(1));
        assert!(!bytes.has_room());
        bytes.release(251);
        assert!(bytes.has_room() && bytes.keep(1));
        assert_eq!((bytes.now(), bytes.most()), (251, 501));
    }
}
