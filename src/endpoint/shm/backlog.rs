//! Answers that wait for room in a peer's queue.

use super::descriptor::Descriptor;
use super::{ShmEndpoint, WireError};

impl ShmEndpoint {
    /// Sends an answer, now or as soon as there is room.
    pub(super) fn answer(&mut self, peer: usize, descriptor: Descriptor) -> Result<(), WireError> {
        let answered = self.peers[peer].outbox.answer(&descriptor);
        if !answered.map_err(|garbled| self.garbled(peer, garbled))? {
            self.backlog.push((peer, descriptor));
        }
        Ok(())
    }

    /// Answers do not wait for each other, nor for a peer that takes none.
    pub(super) fn flush_backlog(&mut self) -> Result<(), WireError> {
        let ShmEndpoint { backlog, peers, .. } = self;
        let mut failed = None;
        backlog.retain(|(peer, descriptor)| {
            let answered = peers[*peer].outbox.answer(descriptor);
            !answered.unwrap_or_else(|garbled| {
                failed.get_or_insert((*peer, garbled));
                false
            })
        });
        failed.map_or(Ok(()), |(peer, garbled)| Err(self.garbled(peer, garbled)))
    }
}
