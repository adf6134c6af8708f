//! Flow control of a channel: which slots the sender may write.
//!
//! A sender takes slots in ring order as long as it has credits. Writes may overtake each other, so the receiver
//! finishes slots in any order, but it returns credits only for slots that the head of the ring has passed. So a
//! credit always stands for the sender's oldest slots.
//!
//! If the receiver has no memory for further unexpected messages, it withholds the credits of those that arrive. It
//! may then grant one such credit for a message whose receive is posted. The last credits for descriptors are
//! reserved for descriptors that are not messages; these credits are never withheld.

use super::channel::{ChannelRing, ChannelWindow};
use crate::endpoint::validation::{InvalidField, check_max};

/// The sender's side of a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutgoingRing {
    ring: ChannelRing,
    next: u32,
    credits: u32,
    /// The window's limits; all 0 until the peer's hello has arrived.
    limits: RingLimits,
}

/// A window's figures for one ring, cached because every message needs them.
#[derive(Clone, Copy, Debug, Default)]
struct RingLimits {
    slots: u32,
    /// Slots that one credit notice returns.
    credit: u32,
    /// Slots reserved for descriptors that are not messages.
    reserved: u32,
}

impl RingLimits {
    fn of(window: ChannelWindow, ring: ChannelRing) -> Self {
        let (slots, credit) = (window.slots(ring), window.credit(ring));
        RingLimits { slots, credit, reserved: window.reserved(ring) }
    }

    /// The next slot in ring order.
    #[inline]
    fn after(&self, slot: u32) -> u32 {
        if slot + 1 < self.slots { slot + 1 } else { 0 }
    }
}

impl OutgoingRing {
    pub(super) fn new(ring: ChannelRing) -> Self {
        OutgoingRing { ring, next: 0, credits: 0, limits: RingLimits::default() }
    }

    /// Starts with all credits of `window`: the peer's hello has arrived.
    pub(super) fn open(&mut self, window: ChannelWindow) {
        self.limits = RingLimits::of(window, self.ring);
        self.credits = self.limits.slots;
    }

    /// The slot of the next descriptor that is not a message, if a credit is left.
    #[inline]
    pub(super) fn slot(&self) -> Option<u32> {
        (self.credits > 0).then_some(self.next)
    }

    /// The slot of the next message, whose credit the receiver may withhold; leaves the reserved slots free.
    #[inline]
    pub(super) fn slot_for_message(&self) -> Option<u32> {
        (self.credits > self.limits.reserved).then_some(self.next)
    }

    /// Adds the single credit that the peer has granted for an announced message.
    ///
    /// # Errors
    /// As [`credited`](OutgoingRing::credited).
    pub(super) fn granted(&mut self) -> Result<(), InvalidField> {
        self.add(1)
    }

    /// Uses the credit of the next slot, to which the caller writes.
    #[inline]
    pub(super) fn used(&mut self) {
        self.credits -= 1;
        self.next = self.limits.after(self.next);
    }

    /// Adds the credits of one credit notice.
    ///
    /// # Errors
    /// If the slots that the notice returns were not in use.
    pub(super) fn credited(&mut self) -> Result<(), InvalidField> {
        // Before the hello `credit` is 0: count at least one, so that an early notice is refused.
        self.add(self.limits.credit.max(1))
    }

    fn add(&mut self, credits: u32) -> Result<(), InvalidField> {
        let credits = u64::from(self.credits) + u64::from(credits);
        self.credits = check_max("credits", credits, self.limits.slots as usize)? as u32;
        Ok(())
    }
}

/// The receiver's side of a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct IncomingRing {
    limits: RingLimits,
    /// The oldest slot that is not done.
    head: u32,
    /// One bit for each slot that is done.
    done: u64,
    /// Slots that `head` has passed and whose credits have not been returned.
    passed: u32,
    /// Unexpected messages whose credit is withheld.
    held: u32,
    /// Granted credits whose messages have not arrived.
    granted: u32,
    /// Slots whose messages the engine is still reading in place.
    views: u32,
}

impl IncomingRing {
    pub(super) fn new(ring: ChannelRing, window: ChannelWindow) -> Self {
        let limits = RingLimits::of(window, ring);
        IncomingRing { limits, head: 0, done: 0, passed: 0, held: 0, granted: 0, views: 0 }
    }

    /// Marks a slot as free: its message has been taken.
    #[inline]
    pub(super) fn done(&mut self, slot: u32) {
        self.done |= 1 << slot;
        while self.done & 1 << self.head != 0 {
            self.done &= !(1 << self.head);
            self.head = self.limits.after(self.head);
            self.passed += 1;
        }
    }

    /// Withholds a credit for an unexpected message.
    pub(super) fn hold(&mut self) {
        self.held += 1;
    }

    /// Stops withholding the credit of a message that has met its receive.
    pub(super) fn release(&mut self) {
        self.held -= 1;
    }

    /// Takes one credit to grant for one message; false if there is none. The reserved credits are never granted: a
    /// grant may itself wait behind a descriptor that is not a message.
    pub(super) fn grant(&mut self) -> bool {
        let most = self.limits.slots - self.limits.reserved;
        let may_grant = self.passed > 0 && self.granted < most;
        if may_grant {
            (self.passed, self.granted) = (self.passed - 1, self.granted + 1);
        }
        may_grant
    }

    /// Accounts for the arrival of a message for which a credit was granted. `is_unused`: the message was sent before
    /// the grant arrived, so the granted credit is unused.
    pub(super) fn granted_arrived(&mut self, is_unused: bool) {
        (self.passed, self.granted) = (self.passed + u32::from(is_unused), self.granted - 1);
    }

    /// The engine starts to read the message of a slot in place.
    pub(super) fn begin_view(&mut self) {
        self.views += 1;
    }

    /// The engine has read a message in place; the caller then calls [`done`](IncomingRing::done).
    pub(super) fn end_view(&mut self) {
        self.views -= 1;
    }

    /// Whether credits may be due as soon as the views end.
    #[inline]
    pub(super) fn due_after_views(&self) -> bool {
        self.views > 0 && self.passed + self.done.count_ones() + self.views >= self.due()
    }

    /// Whether a credit notice is due.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.passed >= self.due()
    }

    /// Passed slots at which a credit notice is due. Granted credits come out of the withheld ones.
    #[inline]
    fn due(&self) -> u32 {
        self.held.saturating_sub(self.granted) + self.limits.credit
    }

    /// Accounts for a credit notice that was sent.
    pub(super) fn credits_returned(&mut self) {
        self.passed -= self.limits.credit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_not_reused_before_it_is_done() {
        for window in [ChannelWindow::Wide, ChannelWindow::Narrow] {
            for ring in [ChannelRing::Descriptors, ChannelRing::Eager] {
                never_reuses(ring, window);
            }
        }
    }

    #[test]
    fn credits_for_nothing_are_refused() {
        let mut out = OutgoingRing::new(ChannelRing::Eager);
        assert!(out.credited().is_err() && out.granted().is_err(), "before the hello");
        out.open(ChannelWindow::Narrow);
        for give in [OutgoingRing::credited, OutgoingRing::granted] {
            assert!(give(&mut out).is_err());
            out.used();
            assert_eq!(give(&mut out), Ok(()));
            assert!(give(&mut out).is_err());
        }
    }

    fn never_reuses(ring: ChannelRing, window: ChannelWindow) {
        let (mut out, mut incoming) = (OutgoingRing::new(ring), IncomingRing::new(ring, window));
        assert_eq!(out.slot(), None, "nothing may be written before the hello");
        out.open(window);
        let mut under_way = Vec::new();
        let mut sent = 0;
        // Finish the newest slot first: the worst order for the ring.
        for round in 0..200 {
            while let Some(slot) = out.slot() {
                assert!(!under_way.contains(&slot), "slot {slot} overwritten");
                under_way.push(slot);
                out.used();
                sent += 1;
            }
            assert!(under_way.len() as u32 <= window.slots(ring));
            let take = 1 + round % under_way.len();
            for _ in 0..take {
                incoming.done(under_way.pop().unwrap());
            }
            while incoming.is_due() {
                incoming.credits_returned();
                out.credited().unwrap();
            }
        }
        assert!(sent > 100);
    }
}
