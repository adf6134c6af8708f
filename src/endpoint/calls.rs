//! Whether all ranks make the same calls: every message says which call it belongs to, by a
//! number that stands for it, and the same operation must be the same call everywhere.
//!
//! This finds ranks that disagree as soon as they exchange anything, also where the messages
//! of one would never meet those of the other.

use super::Tag;

/// Operations that a port remembers. With more than this under way, some mismatches are not noticed here.
pub(super) const CALLS: usize = 1024;

/// An operation, and which call it is.
type Made = (u64, u16);

/// Stands for none: the last operation of the last communicator that there could be.
const NONE: Made = (u64::MAX, 0);

/// An operation that this rank has not entered, and which call it is for peers.
#[derive(Clone, Copy, Debug)]
struct Heard {
    operation: u64,
    call: u16,
    /// Not all of them make the same.
    differ: bool,
}

const NOT_HEARD: Heard = Heard { operation: NONE.0, call: NONE.1, differ: false };

/// The calls of the latest operations of this rank.
#[derive(Debug)]
pub(super) struct Calls {
    /// The last one entered, which most messages belong to.
    last: Made,
    made: Box<[Made]>,
    /// Those of which messages have come before this rank enters them,
    heard: Box<[Heard]>,
    /// and how many they are.
    n_heard: u32,
}

impl Calls {
    /// Remembers `n` operations, a power of two.
    pub(super) fn remembering(n: usize) -> Self {
        Calls {
            last: NONE,
            made: vec![NONE; n].into(),
            heard: vec![NOT_HEARD; n].into(),
            n_heard: 0,
        }
    }

    #[inline]
    fn place(&self, operation: u64) -> usize {
        // Operations of one communicator follow each other; contexts differ by small numbers too.
        let mixed = operation ^ (operation >> Tag::OPERATION_BITS).wrapping_mul(97);
        mixed as usize & (self.made.len() - 1)
    }

    /// Takes note of an operation of this rank. Returns whether it is a new one, of which messages of
    /// another call have come: they are to be looked through.
    #[inline]
    pub(super) fn enter(&mut self, tag: Tag) -> bool {
        let entry = (tag.operation_id(), tag.call);
        if self.last == entry {
            return false;
        }
        self.last = entry;
        let place = self.place(entry.0);
        self.made[place] = entry;
        self.n_heard > 0 && self.has_heard_otherwise(entry)
    }

    fn has_heard_otherwise(&mut self, (operation, call): Made) -> bool {
        let at = self.place(operation);
        let place = &mut self.heard[at];
        if place.operation != operation {
            return false;
        }
        let heard = std::mem::replace(place, NOT_HEARD);
        self.n_heard -= 1;
        heard.differ || heard.call != call
    }

    /// Takes note of a message that has come before its receive was posted.
    #[inline]
    pub(super) fn hear(&mut self, tag: Tag) {
        let (operation, call) = (tag.operation_id(), tag.call);
        if self.made(operation).is_some() {
            return;
        }
        let at = self.place(operation);
        let heard = &mut self.heard[at];
        if heard.operation == operation {
            heard.differ |= heard.call != call;
            return;
        }
        self.n_heard += u32::from(heard.operation == NONE.0);
        *heard = Heard { operation, call, differ: false };
    }

    /// The call that this rank makes as that operation, if it is remembered.
    #[inline]
    fn made(&self, operation: u64) -> Option<u16> {
        let is_it = |made: &&Made| made.0 == operation;
        let made = Some(&self.last).filter(is_it);
        let made = made.or_else(|| Some(&self.made[self.place(operation)]).filter(is_it));
        made.map(|(_, call)| *call)
    }

    /// True if this rank makes another call as the same operation, and what it sends and receives
    /// need not meet what the peer does.
    pub(super) fn misses(&self, tag: Tag) -> bool {
        self.made(tag.operation_id()).is_some_and(|made| !Tag::do_meet(made, tag.call))
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
        for (heard, differs) in [
            (vec![], false),
            (vec![TAG, TAG], false),
            (vec![other], true),
            (vec![other, TAG], true),
            (vec![TAG, other], true),
        ] {
            let mut calls = Calls::remembering(CALLS);
            assert!(!calls.enter(next(6)));
            heard.iter().for_each(|&tag| calls.hear(tag));
            // Another one is entered, whose place is another one, too.
            assert!(!calls.enter(next(8)));
            assert_eq!(calls.enter(TAG), differs, "{heard:?}");
            // Once: what comes later is compared with the call that was made.
            assert!(!calls.enter(next(9)) && !calls.enter(TAG));
            calls.hear(other);
            assert!(calls.misses(other));
            assert!(!calls.enter(next(10)) && !calls.enter(TAG));
            assert_eq!(calls.n_heard, 0);
        }
    }

    #[test]
    fn a_place_is_the_last_ones() {
        let mut calls = Calls::remembering(CALLS);
        let far = next(TAG.operation + CALLS as u32);
        assert_eq!(calls.place(TAG.operation_id()), calls.place(far.operation_id()));
        calls.hear(TAG);
        calls.hear(far);
        assert_eq!(calls.n_heard, 1);
        assert!(!calls.enter(TAG) && calls.n_heard == 1);
        assert!(calls.enter(Tag { call: 1, ..far }) && calls.n_heard == 0);
    }
}
