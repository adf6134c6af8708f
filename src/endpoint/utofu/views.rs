//! Views: messages that the engine reads in place, in an eager slot or in the buffer of an unexpected message. A view
//! is valid until the poll after the one that reports it.

use crate::endpoint::{Event, Slot, View, WireError};

use super::UtofuEndpoint;
use super::channel::Lane;
use super::state::Viewed;

impl UtofuEndpoint {
    /// Reports a view of `data`, the message in eager slot `place` of a peer's channel.
    pub(super) fn view_slot(&mut self, slot: Slot, peer: u32, place: u32, data: &[u8]) {
        self.peers[peer as usize].incoming[Lane::Eager as usize].view();
        self.due_views.push(Viewed::Slot(peer, place));
        self.show_view(slot, data.as_ptr(), data.len());
    }

    /// Reports a view of an unexpected message.
    pub(super) fn view_buffer(&mut self, slot: Slot, buffer: Vec<u8>) {
        self.show_view(slot, buffer.as_ptr(), buffer.len());
        self.due_views.push(Viewed::Buffer(buffer));
    }

    fn show_view(&mut self, slot: Slot, ptr: *const u8, len: usize) {
        self.events.push(Event::Viewed(slot, View { ptr, len }));
    }

    /// Ends the views that the last poll reported.
    pub(super) fn take_back(&mut self) -> Result<(), WireError> {
        while let Some(viewed) = self.views.pop() {
            match viewed {
                Viewed::Buffer(buffer) => self.recycle(buffer),
                Viewed::Slot(peer, place) => {
                    self.peers[peer as usize].incoming[Lane::Eager as usize].returned();
                    self.slot_done(peer, Lane::Eager, place)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the end of the open views may make credits due that a peer waits for.
    pub(super) fn will_owe(&self) -> bool {
        self.views.iter().chain(&self.due_views).any(|viewed| match viewed {
            Viewed::Slot(peer, _) => {
                self.peers[*peer as usize].incoming[Lane::Eager as usize].will_owe()
            }
            Viewed::Buffer(_) => false,
        })
    }
}
