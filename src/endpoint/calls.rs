//! Whether all ranks make the same calls: every message says which call it belongs to, by a
//! number that stands for it, and the same operation must be the same call everywhere.
//!
//! This finds ranks that disagree as soon as they exchange anything, also where the messages
//! of one would never meet those of the other.

use super::Tag;

/// Operations remembered. With more than this under way, some mismatches are not noticed here.
const REMEMBERED: usize = 1024;

/// An operation, and which call it is.
type Made = (u64, u16);

/// Stands for none: the last operation of the last communicator that there could be.
const NONE: Made = (u64::MAX, 0);

/// The calls of the latest operations of this rank.
#[derive(Debug)]
pub(super) struct Calls {
    /// The last one entered, which most messages belong to.
    last: Made,
    made: Box<[Made]>,
}

impl Calls {
    pub(super) fn new() -> Self {
        Calls { last: NONE, made: vec![NONE; REMEMBERED].into() }
    }

    fn place(operation: u64) -> usize {
        // Operations of one communicator follow each other; contexts differ by small numbers too.
        let mixed = operation ^ (operation >> Tag::OPERATION_BITS).wrapping_mul(97);
        mixed as usize % REMEMBERED
    }

    /// Takes note of an operation; true if it is a new one.
    #[inline]
    pub(super) fn enter(&mut self, tag: Tag) -> bool {
        let entry = (tag.operation_id(), tag.call);
        if self.last == entry {
            return false;
        }
        self.last = entry;
        std::mem::replace(&mut self.made[Self::place(entry.0)], entry) != entry
    }

    /// The call that this rank makes as that operation, if it is remembered.
    #[inline]
    fn made(&self, operation: u64) -> Option<u16> {
        let is_it = |made: &&Made| made.0 == operation;
        let made = Some(&self.last).filter(is_it);
        let made = made.or_else(|| Some(&self.made[Self::place(operation)]).filter(is_it));
        made.map(|(_, call)| *call)
    }

    /// True if this rank makes another call as the same operation, and what it sends and receives
    /// need not meet what the peer does.
    pub(super) fn misses(&self, tag: Tag) -> bool {
        self.made(tag.operation_id()).is_some_and(|made| !Tag::do_meet(made, tag.call))
    }

    /// True if this rank makes another call as the same operation.
    #[inline]
    pub(super) fn differs(&self, tag: Tag) -> bool {
        self.made(tag.operation_id()).is_some_and(|made| made != tag.call)
    }
}
