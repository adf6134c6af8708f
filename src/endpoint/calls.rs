//! Whether all ranks make the same calls: every message says which call it belongs to, by a
//! number that stands for it, and the same operation must be the same call everywhere.
//!
//! This finds ranks that disagree as soon as they exchange anything, also where the messages
//! of one would never meet those of the other.

use super::Tag;

/// Operations remembered. With more than this under way, some mismatches are not noticed here.
const REMEMBERED: usize = 1024;

/// The calls of the latest operations of this rank.
#[derive(Debug)]
pub(super) struct Calls(Box<[Option<(u64, u16)>]>);

impl Calls {
    pub(super) fn new() -> Self {
        Calls(vec![None; REMEMBERED].into())
    }

    fn place(&mut self, operation: u64) -> &mut Option<(u64, u16)> {
        // Operations of one communicator follow each other; contexts differ by small numbers too.
        let mixed = operation ^ (operation >> Tag::OPERATION_BITS).wrapping_mul(97);
        &mut self.0[mixed as usize % REMEMBERED]
    }

    /// Takes note of an operation; true if it is a new one.
    pub(super) fn enter(&mut self, tag: Tag) -> bool {
        let entry = Some((tag.operation_id(), tag.call));
        std::mem::replace(self.place(tag.operation_id()), entry) != entry
    }

    /// True if this rank makes another call as the same operation, and what it sends and receives
    /// need not meet what the peer does.
    pub(super) fn misses(&mut self, tag: Tag) -> bool {
        let operation = tag.operation_id();
        matches!(*self.place(operation), Some((own, made)) if own == operation
            && !Tag::do_meet(made, tag.call))
    }

    /// True if this rank makes another call as the same operation.
    pub(super) fn differs(&mut self, tag: Tag) -> bool {
        let operation = tag.operation_id();
        matches!(*self.place(operation), Some((own, made)) if own == operation && made != tag.call)
    }
}
