//! Messages that come before their receives are posted: counted, and bounded.
//!
//! A rank may be any number of calls ahead of another. What it sends ahead is kept by the receiver
//! until the receives are posted, so that no message waits for another. [`UnexpectedBytes`] counts
//! what that takes, for all peers of a port, and says when it is enough. From then on messages wait
//! with their senders, whose calls wait for them: so memory does not grow with the distance.
//!
//! # Protocol
//! The three wires have the same parts:
//! - *Window.* What a peer can send before it hears anything from the receiver is bounded by its
//!   credits or by the length of its queue.
//! - *Holding back.* A short message that comes before its receive, when there is no room, is kept all
//!   the same, but its sender gets no leave to send more of the kind: uTofu and MPI hold the credit of
//!   the message until its receive is posted, shared memory sets a flag in the queue.
//! - *Announcement.* A sender without leave announces a message instead of sending it: a record says
//!   its tag and length, and the bytes stay where they are. The receiver answers when the receive is
//!   posted. Announcements have credits, or room in the queue, of their own, which come back as soon
//!   as the receiver polls.
//!
//! | wire | announcement | answer |
//! | --- | --- | --- |
//! | uTofu | `RequestToSend`, once the message has waited for a credit for some polls | `ClearToSend`: a grant, a credit for this message only |
//! | shared memory | `Rendezvous`, at once | the receiver reads the message, or `ClearToSend` |
//! | MPI | `Long`, once the message has waited for a credit for some polls | the receive with that tag of MPI's |
//!
//! # Progress
//! A message whose receive is posted never waits for one whose receive is not:
//! - It has leave: it is sent, and taken out of the channel, queue or ring when the receiver polls,
//!   whatever has come before it. Nothing unexpected stays in a slot of the wire's.
//! - It has none: then it is announced. Messages without leave keep no order among themselves, and the
//!   credits that only announcements and answers may use are never held. So the announcement arrives,
//!   meets the receive, and is answered. A grant is a credit that was held; it is held again when the
//!   message has come, so grants do not raise the bound. If the receiver has no credit to grant, the
//!   sender has them all, or gets them: then the message itself goes, or one that comes too early and
//!   brings the receiver a credit to grant.
//!
//! So what waits in the end are messages whose receives are not posted. Their senders' calls wait
//! for calls that the receiver has not made, as they may in any collective; so there is a cycle
//! only if there is one among the calls of the program. Of one communicator a rank posts only operations
//! less than [`Tag::WINDOW`](super::Tag::WINDOW) apart: the announcements are at most those of so many operations.
//! A rank with nothing but such messages left to send [is flushed](super::Endpoint::is_flushed): its
//! other operations end.
//!
//! # Bound
//! Senders have leave while less than half of the limit is used. The windows of all peers come on
//! top of that: see [`bound`](UnexpectedBytes::bound). A receiver cannot make a window narrower: what was
//! sent under it has to be kept here or, if it is not taken, by the wire. On uTofu a window is
//! about 20 KiB, of the first 32 peers. Over MPI it is 1.9 MiB, more than the limit by default: 30 parts of
//! up to 64 KiB. A much narrower one would have the longest messages that go without asking, of five parts
//! each, wait for credits one after the other. A peer that sends shorter ones fills less of it. So there the
//! limit says when senders have to wait, and the bound what is kept at most. Announcements are not counted: each stands for
//! a send that is under way at the peer, which keeps more memory than its record takes here.

/// The limit of a port if none is set.
pub const DEFAULT_LIMIT: usize = 1024 * 1024;

/// Bytes of unexpected messages of one port; see the module documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnexpectedBytes {
    now: usize,
    most: usize,
    limit: usize,
    /// What all peers together can send without leave.
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

    /// There is another peer, whose messages take at most `bytes` if none of them gets leave for more.
    pub fn add_window(&mut self, bytes: usize) {
        self.windows += bytes;
    }

    /// A message is kept that takes `bytes`. Returns whether its sender may send more, as far as
    /// this port's memory is concerned.
    #[inline]
    pub fn keep(&mut self, bytes: usize) -> bool {
        self.now += bytes;
        self.most = self.most.max(self.now);
        self.now <= self.limit / 2
    }

    /// A message that took `bytes` is not kept any more.
    #[inline]
    pub fn release(&mut self, bytes: usize) {
        self.now -= bytes;
    }

    /// Nothing is kept any more.
    pub fn clear(&mut self) {
        self.now = 0;
    }

    /// Whether there is room again for messages of senders that had no leave: some time before it
    /// is used up, so that they are not held back again at once.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.now <= self.limit / 4
    }

    /// Bytes kept now.
    pub fn now(&self) -> usize {
        self.now
    }

    /// The most bytes that were ever kept.
    pub fn most(&self) -> usize {
        self.most
    }

    /// The most bytes that may ever be kept: half of the limit and the windows of all peers. That is
    /// within the limit unless there are many peers, or windows are wide, as over MPI.
    pub fn bound(&self) -> usize {
        self.limit / 2 + self.windows
    }

    /// The sum of what two wires of one port keep.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        UnexpectedBytes {
            now: self.now + other.now,
            // They need not have been kept at the same time.
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
        /// Peers send while they have leave, and their windows without; nothing exceeds the bound.
        #[test]
        fn the_bound_holds(
            limit in 0..4096usize,
            windows in prop::collection::vec(1..600usize, 1..8),
            steps in prop::collection::vec((any::<prop::sample::Index>(), 1..100usize), 1..400),
        ) {
            let mut bytes = UnexpectedBytes::default();
            bytes.set_limit(limit);
            windows.iter().for_each(|&window| bytes.add_window(window));
            // By peer: what is kept, and how much of its window it has used up.
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
