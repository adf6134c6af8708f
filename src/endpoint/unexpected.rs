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
//! [`bound_bytes`](UnexpectedStats::bound_bytes). A receiver cannot shrink a window: it must store what was sent within
//! the window, or the wire must. On uTofu, a window is about 20 KiB for each of the first 32 peers. Over MPI it is 1.9
//! MiB, more than the default limit: 30 parts of up to 64 KiB. With a much smaller window, the longest messages that
//! are sent without announcement, of five parts each, would wait for credits one after the other. Shorter messages
//! use less of the window. So over MPI the limit says when senders have to wait, and the bound says how much is
//! stored at most. Announcements are not counted: each belongs to a send under way at the peer, which takes more
//! memory there than its record takes here.

/// Default limit of a port, bytes.
pub const DEFAULT_LIMIT: usize = 1024 * 1024;

/// Statistics of unexpected messages: those received before their calls, which the rank keeps until then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnexpectedStats {
    /// Bytes kept now.
    pub kept_bytes: usize,
    /// Maximum of the bytes kept so far. Of several ports or wires an upper bound: the sum of their maxima, which need
    /// not have occurred at the same time.
    pub most_bytes: usize,
    /// Upper bound of the bytes kept, which protects the rank from ranks that are far ahead: half of the limit
    /// (`HOPBINE_UNEXPECTED_BYTES`) plus what peers may send without permission. It is within the limit unless there
    /// are many peers, or the wire is MPI.
    pub bound_bytes: usize,
}

impl UnexpectedStats {
    /// The sum of the statistics of two ports, or of two wires of a port.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        UnexpectedStats {
            kept_bytes: self.kept_bytes + other.kept_bytes,
            most_bytes: self.most_bytes + other.most_bytes,
            bound_bytes: self.bound_bytes.saturating_add(other.bound_bytes),
        }
    }
}

/// Counter of the bytes of unexpected messages at one wire of a port; see the module documentation.
#[derive(Debug)]
pub(super) struct UnexpectedBytes {
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

    /// The statistics.
    pub fn stats(&self) -> UnexpectedStats {
        UnexpectedStats {
            kept_bytes: self.now,
            most_bytes: self.most,
            bound_bytes: (self.limit / 2).saturating_add(self.windows),
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
                let stats = bytes.stats();
                prop_assert_eq!(stats.kept_bytes, all);
                prop_assert!(stats.most_bytes <= stats.bound_bytes, "{:?}", bytes);
                prop_assert!(stats.most_bytes >= all);
            }
        }
    }

    #[test]
    fn few_peers_stay_within_the_limit() {
        let mut bytes = UnexpectedBytes::default();
        bytes.set_limit(1000);
        bytes.add_window(300);
        bytes.add_window(200);
        assert_eq!(bytes.stats().bound_bytes, 1000);
        assert!(bytes.keep(500) && !bytes.keep(1));
        assert!(!bytes.has_room());
        bytes.release(251);
        assert!(bytes.has_room() && bytes.keep(1));
        let stats = bytes.stats();
        assert_eq!((stats.kept_bytes, stats.most_bytes), (251, 501));
    }
}
