//! Views: messages that the engine reads in place, in an eager slot or in the buffer of an unexpected message. A view
//! is valid until the poll after the one that reports it.

use crate::endpoint::{Event, Slot, View, WireError};

use super::UtofuEndpoint;
use super::channel::ChannelRing;
use super::state::UtofuOpenView;

impl UtofuEndpoint {
    /// Reports a view of `data`, the message in eager slot `place` of a peer's channel.
    pub(super) fn view_slot(&mut self, slot: Slot, peer: u32, place: u32, data: &[u8]) {
        self.peers[peer as usize].incoming[ChannelRing::Eager as usize].begin_view();
        self.next_views.push(UtofuOpenView::Slot(peer, place));
        self.show_view(slot, data.as_ptr(), data.len());
    }

    /// Reports a view of an unexpected message.
    pub(super) fn view_buffer(&mut self, slot: Slot, buffer: Vec<u8>) {
        self.show_view(slot, buffer.as_ptr(), buffer.len());
        self.next_views.push(UtofuOpenView::Buffer(buffer));
    }

    fn show_view(&mut self, slot: Slot, ptr: *const u8, len: usize) {
        self.events.push(Event::Viewed(slot, View { ptr, len }));
    }

    /// Ends the views that the last poll reported.
    pub(super) fn end_views(&mut self) -> Result<(), WireError> {
        while let Some(viewed) = self.views.pop() {
            match viewed {
                UtofuOpenView::Buffer(buffer) => self.recycle(buffer),
                UtofuOpenView::Slot(peer, place) => {
                    self.peers[peer as usize].incoming[ChannelRing::Eager as usize].end_view();
                    self.slot_done(peer, ChannelRing::Eager, place)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the end of the open views may make credits due that a peer waits for.
    pub(super) fn due_after_views(&self) -> bool {
        self.views.iter().chain(&self.next_views).any(|viewed| match viewed {
            UtofuOpenView::Slot(peer, _) => {
                self.peers[*peer as usize].incoming[ChannelRing::Eager as usize].due_after_views()
            }
            UtofuOpenView::Buffer(_) => false,
        })
    }
}
