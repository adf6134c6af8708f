//! Detection of ranks that make different calls. Every message carries the signature of its call, and an operation
//! must be the same call on all ranks.
//!
//! A mismatch is found at the first message that the ranks exchange, even if the messages of one call would never
//! match receives of the other.

use super::Tag;

/// Operations that a port remembers. With more operations under way, some mismatches are not detected here.
pub(super) const CALLS: usize = 1024;

/// An operation, and the number of its call on this rank.
type OwnCall = (u64, u16);

/// An empty entry: the last operation of the last possible communicator.
const NONE: OwnCall = (u64::MAX, 0);

/// An operation that this rank has not entered, and the number of its call according to peers.
#[derive(Clone, Copy, Debug)]
struct PeerCall {
    operation: u64,
    call: u16,
    /// Whether messages of different calls have arrived for the operation.
    differ: bool,
}

const NO_PEER_CALL: PeerCall = PeerCall { operation: NONE.0, call: NONE.1, differ: false };

/// The calls of the latest operations of this rank.
#[derive(Debug)]
pub(super) struct Calls {
    /// The last operation entered; most messages belong to it.
    last: OwnCall,
    own_calls: Box<[OwnCall]>,
    /// Operations that this rank has not entered and for which messages have arrived.
    peer_calls: Box<[PeerCall]>,
    /// Number of operations in `peer_calls`.
    n_peer_calls: u32,
}

impl Calls {
    /// A table of `n` operations, a power of two.
    pub(super) fn with_capacity(n: usize) -> Self {
        Calls {
            last: NONE,
            own_calls: vec![NONE; n].into(),
            peer_calls: vec![NO_PEER_CALL; n].into(),
            n_peer_calls: 0,
        }
    }

    #[inline]
    fn place(&self, operation: u64) -> usize {
        // Operations of a communicator have consecutive numbers; contexts differ by small numbers, too.
        let mixed = operation ^ (operation >> Tag::OPERATION_BITS).wrapping_mul(97);
        mixed as usize & (self.own_calls.len() - 1)
    }

    /// Records an operation of this rank. Returns whether the operation is new and messages of another call have
    /// arrived for it: then the caller must check the unexpected messages.
    #[inline]
    pub(super) fn enter(&mut self, tag: Tag) -> bool {
        let entry = (tag.operation_id(), tag.call);
        if self.last == entry {
            return false;
        }
        self.last = entry;
        let place = self.place(entry.0);
        self.own_calls[place] = entry;
        self.n_peer_calls > 0 && self.take_mismatch(entry)
    }

    /// Forgets the calls of a communicator whose numbers are to be used again: those that are not among the
    /// [`Tag::REMEMBERED`] up to `newest`, or all of a communicator that has ended. A port that later calls do not use
    /// would take such a call for the one that has its number then.
    pub(super) fn forget(&mut self, context: u64, newest: Option<u32>) {
        for own in self.own_calls.iter_mut().chain([&mut self.last]) {
            let tag = Tag::of_operation(own.0, 0, own.1);
            let age = |newest: u32| newest.wrapping_sub(tag.operation) % Tag::OPERATIONS;
            if tag.context == context && newest.is_none_or(|newest| age(newest) >= Tag::REMEMBERED)
            {
                *own = NONE;
            }
        }
    }

    fn take_mismatch(&mut self, (operation, call): OwnCall) -> bool {
        let at = self.place(operation);
        let place = &mut self.peer_calls[at];
        if place.operation != operation {
            return false;
        }
        let peer_calls = std::mem::replace(place, NO_PEER_CALL);
        self.n_peer_calls -= 1;
        peer_calls.differ || peer_calls.call != call
    }

    /// Records an unexpected message.
    #[inline]
    pub(super) fn note_message(&mut self, tag: Tag) {
        let (operation, call) = (tag.operation_id(), tag.call);
        if self.own_call(operation).is_some() {
            return;
        }
        let at = self.place(operation);
        let peer_calls = &mut self.peer_calls[at];
        if peer_calls.operation == operation {
            peer_calls.differ |= peer_calls.call != call;
            return;
        }
        self.n_peer_calls += u32::from(peer_calls.operation == NONE.0);
        *peer_calls = PeerCall { operation, call, differ: false };
    }

    /// The number of this rank's call for the operation, if the operation is remembered.
    #[inline]
    fn own_call(&self, operation: u64) -> Option<u16> {
        let is_it = |own: &&OwnCall| own.0 == operation;
        let own = Some(&self.last).filter(is_it);
        let own = own.or_else(|| Some(&self.own_calls[self.place(operation)]).filter(is_it));
        own.map(|(_, call)| *call)
    }

    /// Whether this rank makes another call for the message's operation, so that this rank's sends and receives need
    /// not match those of the peer.
    pub(super) fn mismatches(&self, tag: Tag) -> bool {
        self.own_call(tag.operation_id()).is_some_and(|own| !Tag::do_match(own, tag.call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: Tag = Tag { context: 3, operation: 7, message: 0, call: 0x1234 };

    fn next(operation: u32) -> Tag {
        Tag { operation, ..TAG }
    }

    #[test]
    fn what_comes_before_its_call_is_looked_through_if_it_differs() {
        let other = Tag { call: 0x4321, ..TAG };
        for (peer_calls, differs) in [
            (vec![], false),
            (vec![TAG, TAG], false),
            (vec![other], true),
            (vec![other, TAG], true),
            (vec![TAG, other], true),
        ] {
            let mut calls = Calls::with_capacity(CALLS);
            assert!(!calls.enter(next(6)));
            peer_calls.iter().for_each(|&tag| calls.note_message(tag));
            // This operation differs from `TAG`, and so does its place in the table.
            assert!(!calls.enter(next(8)));
            assert_eq!(calls.enter(TAG), differs, "{peer_calls:?}");
            // The mismatch is reported once: later messages are compared with the call that this rank has made.
            assert!(!calls.enter(next(9)) && !calls.enter(TAG));
            calls.note_message(other);
            assert!(calls.mismatches(other));
            assert!(!calls.enter(next(10)) && !calls.enter(TAG));
            assert_eq!(calls.n_peer_calls, 0);
        }
    }

    #[test]
    fn a_number_that_is_used_again_names_another_call() {
        let mut calls = Calls::with_capacity(CALLS);
        let (again, elsewhere) = (Tag { call: 0x4321, ..TAG }, Tag { context: 4, ..TAG });
        assert!(!calls.enter(elsewhere) && !calls.enter(TAG));
        assert!(calls.mismatches(again));
        for quarter in 1..4 {
            calls.forget(TAG.context, Some(quarter * Tag::REMEMBERED));
            assert_eq!(calls.mismatches(again), quarter == 1, "{quarter}");
        }
        assert!(calls.mismatches(Tag { call: 0x4321, ..elsewhere }));
        // What has just begun stays.
        let last = next(Tag::OPERATIONS - 1);
        assert!(!calls.enter(last));
        calls.forget(TAG.context, Some(1));
        assert!(calls.mismatches(Tag { call: 0x4321, ..last }));
        calls.forget(TAG.context, None);
        assert!(!calls.mismatches(Tag { call: 0x4321, ..last }));
        assert!(calls.mismatches(Tag { call: 0x4321, ..elsewhere }));
    }

    #[test]
    fn a_place_is_the_last_ones() {
        let mut calls = Calls::with_capacity(CALLS);
        let far = next(TAG.operation + CALLS as u32);
        assert_eq!(calls.place(TAG.operation_id()), calls.place(far.operation_id()));
        calls.note_message(TAG);
        calls.note_message(far);
        assert_eq!(calls.n_peer_calls, 1);
        assert!(!calls.enter(TAG) && calls.n_peer_calls == 1);
        assert!(calls.enter(Tag { call: 1, ..far }) && calls.n_peer_calls == 0);
    }
}
