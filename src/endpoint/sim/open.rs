//! Which operations have something posted on a port: those of one communicator may not be far apart,
//! [`Tag::WINDOW`].

use rustc_hash::FxHashMap;

use crate::endpoint::{Event, Slot, Tag};

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct OpenOperations {
    /// By context: operations, and how much of each is posted. Few at a time.
    operations: FxHashMap<u64, Vec<(u32, u32)>>,
    of_slot: FxHashMap<(u32, u32), Tag>,
}

impl OpenOperations {
    /// An operation of this communicator that is under way on this port, and that the message's is too far
    /// from.
    pub(super) fn too_far(&self, tag: Tag) -> Option<u32> {
        if tag.message & Tag::LATE != 0 {
            return None;
        }
        let distance = |other: u32| {
            let ahead = tag.operation.wrapping_sub(other) % Tag::OPERATIONS;
            ahead.min(Tag::OPERATIONS - ahead)
        };
        let open = self.operations.get(&tag.context)?;
        open.iter().map(|(other, _)| *other).find(|&other| distance(other) >= Tag::WINDOW)
    }

    /// Something is posted that will be reported under this slot.
    pub(super) fn begin(&mut self, slot: Slot, tag: Tag) {
        if tag.message & Tag::LATE != 0 {
            return;
        }
        self.of_slot.insert((slot.run, slot.task), tag);
        let open = self.operations.entry(tag.context).or_default();
        match open.iter_mut().find(|(operation, _)| *operation == tag.operation) {
            Some((_, n)) => *n += 1,
            None => open.push((tag.operation, 1)),
        }
    }

    /// An event is reported.
    pub(super) fn end(&mut self, event: &Event) {
        let slot = match event {
            Event::Sent(slot) | Event::Received(slot) => slot,
            Event::Viewed(slot, _) | Event::Differs(slot, _) => slot,
            Event::News(_) => return,
        };
        let Some(tag) = self.of_slot.remove(&(slot.run, slot.task)) else { return };
        let Some(open) = self.operations.get_mut(&tag.context) else { return };
        if let Some(at) = open.iter().position(|(operation, _)| *operation == tag.operation) {
            open[at].1 -= 1;
            if open[at].1 == 0 {
                open.swap_remove(at);
            }
        }
    }
}
