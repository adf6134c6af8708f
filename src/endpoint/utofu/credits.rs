//! Who may write which slot of a channel.
//!
//! A sender takes slots in ring order as long as it has credits. The receiver is done with
//! slots in any order, since writes may overtake each other, but gives credit only for slots
//! that the ring has passed: so a credit always stands for the sender's oldest slots.
//!
//! The receiver holds credits of messages that came too early, if it has no room for more of them. It
//! may then grant a credit for a message that it waits for. The last credits for descriptors are for
//! those that are no messages, and are never held.

use super::channel::{Lane, Window};
use crate::endpoint::garbled::{Garbled, at_most};

/// The sender's side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    lane: Lane,
    next: u32,
    credits: u32,
    /// Those of the window: none before the peer has said where the channel is.
    limits: Limits,
}

/// What a window has of a lane, looked up once: every message needs it.
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    slots: u32,
    /// Slots that a credit stands for.
    credit: u32,
    /// Slots that are for no message.
    kept: u32,
}

impl Limits {
    fn of(window: Window, lane: Lane) -> Self {
        let (slots, credit) = (window.slots(lane), window.credit(lane));
        Limits { slots, credit, kept: window.kept(lane) }
    }

    /// The slot behind that one.
    #[inline]
    fn after(&self, slot: u32) -> u32 {
        if slot + 1 < self.slots { slot + 1 } else { 0 }
    }
}

impl Outgoing {
    pub(super) fn new(lane: Lane) -> Self {
        Outgoing { lane, next: 0, credits: 0, limits: Limits::default() }
    }

    /// The peer has said how much of the channel can be used.
    pub(super) fn open(&mut self, window: Window) {
        self.limits = Limits::of(window, self.lane);
        self.credits = self.limits.slots;
    }

    /// The slot that the next message goes to, if it is free.
    #[inline]
    pub(super) fn slot(&self) -> Option<u32> {
        (self.credits > 0).then_some(self.next)
    }

    /// The same for a message that its receiver may hold.
    #[inline]
    pub(super) fn slot_for_message(&self) -> Option<u32> {
        (self.credits > self.limits.kept).then_some(self.next)
    }

    /// The peer has granted a credit.
    ///
    /// # Errors
    /// As [`credited`](Outgoing::credited).
    pub(super) fn granted(&mut self) -> Result<(), Garbled> {
        self.add(1)
    }

    /// The message has gone to the slot.
    #[inline]
    pub(super) fn used(&mut self) {
        self.credits -= 1;
        self.next = self.limits.after(self.next);
    }

    /// A credit has arrived.
    ///
    /// # Errors
    /// If it is for slots that nothing has been written to.
    pub(super) fn credited(&mut self) -> Result<(), Garbled> {
        // Also one that comes before the channel is open is too many.
        self.add(self.limits.credit.max(1))
    }

    fn add(&mut self, credits: u32) -> Result<(), Garbled> {
        let credits = u64::from(self.credits) + u64::from(credits);
        self.credits = at_most("credits", credits, self.limits.slots as usize)? as u32;
        Ok(())
    }
}

/// The receiver's side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    limits: Limits,
    /// The oldest slot that is not done.
    head: u32,
    /// A bit for each slot that is done.
    done: u64,
    /// Slots passed for which no credit has been given.
    passed: u32,
    /// Messages that are kept and hold the credit of their slot.
    held: u32,
    /// Credits that are granted for messages which have not come.
    granted: u32,
    /// Slots whose messages are still being read.
    views: u32,
}

impl Incoming {
    pub(super) fn new(lane: Lane, window: Window) -> Self {
        let limits = Limits::of(window, lane);
        Incoming { limits, head: 0, done: 0, passed: 0, held: 0, granted: 0, views: 0 }
    }

    /// The message in `slot` has been taken.
    #[inline]
    pub(super) fn done(&mut self, slot: u32) {
        self.done |= 1 << slot;
        while self.done & 1 << self.head != 0 {
            self.done &= !(1 << self.head);
            self.head = self.limits.after(self.head);
            self.passed += 1;
        }
    }

    /// A message is kept that holds its credit.
    pub(super) fn hold(&mut self) {
        self.held += 1;
    }

    /// A message that held its credit is not kept any more.
    pub(super) fn let_go(&mut self) {
        self.held -= 1;
    }

    /// Takes a credit to grant for one message, if there is one. The last are for what is no message:
    /// a grant may itself wait behind that.
    pub(super) fn grant(&mut self) -> bool {
        let most = self.limits.slots - self.limits.kept;
        let may_grant = self.passed > 0 && self.granted < most;
        if may_grant {
            (self.passed, self.granted) = (self.passed - 1, self.granted + 1);
        }
        may_grant
    }

    /// The message has come for which a credit was granted; `refused`: without that credit, as it was
    /// on its way already.
    pub(super) fn came(&mut self, refused: bool) {
        (self.passed, self.granted) = (self.passed + u32::from(refused), self.granted - 1);
    }

    /// The message in a slot is being read where it is.
    pub(super) fn view(&mut self) {
        self.views += 1;
    }

    /// A message that was viewed has been read: its slot is about to be done.
    pub(super) fn returned(&mut self) {
        self.views -= 1;
    }

    /// Whether credits may be due as soon as the views end.
    #[inline]
    pub(super) fn will_owe(&self) -> bool {
        self.views > 0 && self.passed + self.done.count_ones() + self.views >= self.due()
    }

    /// Whether credits are to be sent.
    #[inline]
    pub(super) fn owes(&self) -> bool {
        self.passed >= self.due()
    }

    /// The slots passed with which credits are to be sent: what is granted are credits that were held.
    #[inline]
    fn due(&self) -> u32 {
        self.held.saturating_sub(self.granted) + self.limits.credit
    }

    /// A credit has been sent.
    pub(super) fn paid(&mut self) {
        self.passed -= self.limits.credit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_not_reused_before_it_is_done() {
        for window in [Window::Wide, Window::Narrow] {
            for lane in [Lane::Descriptors, Lane::Eager] {
                never_reuses(lane, window);
            }
        }
    }

    #[test]
    fn credits_for_nothing_are_refused() {
        let mut out = Outgoing::new(Lane::Eager);
        assert!(out.credited().is_err() && out.granted().is_err(), "before the hello");
        out.open(Window::Narrow);
        for give in [Outgoing::credited, Outgoing::granted] {
            assert!(give(&mut out).is_err());
            out.used();
            assert_eq!(give(&mut out), Ok(()));
            assert!(give(&mut out).is_err());
        }
    }

    fn never_reuses(lane: Lane, window: Window) {
        let (mut out, mut incoming) = (Outgoing::new(lane), Incoming::new(lane, window));
        assert_eq!(out.slot(), None, "nothing may be written before the hello");
        out.open(window);
        let mut under_way = Vec::new();
        let mut sent = 0;
        // Always take the newest first: the worst order for the ring.
        for round in 0..200 {
            while let Some(slot) = out.slot() {
                assert!(!under_way.contains(&slot), "slot {slot} overwritten");
                under_way.push(slot);
                out.used();
                sent += 1;
            }
            assert!(under_way.len() as u32 <= window.slots(lane));
            let take = 1 + round % under_way.len();
            for _ in 0..take {
                incoming.done(under_way.pop().unwrap());
            }
            while incoming.owes() {
                incoming.paid();
                out.credited().unwrap();
            }
        }
        assert!(sent > 100);
    }
}
