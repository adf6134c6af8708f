//! Answers for which a peer's queue has no room yet.

use super::descriptor::ShmDescriptor;
use super::{ShmEndpoint, WireError};

impl ShmEndpoint {
    /// Sends an answer now, or as soon as there is room.
    pub(super) fn answer(
        &mut self,
        peer: usize,
        descriptor: ShmDescriptor,
    ) -> Result<(), WireError> {
        let answered = self.peers[peer].outbox.answer(&descriptor);
        if !answered.map_err(|invalid| self.invalid_from(peer, invalid))? {
            self.backlog.push((peer, descriptor));
        }
        Ok(())
    }

    /// Sends the answers for which there is room; answers do not wait for each other.
    pub(super) fn flush_backlog(&mut self) -> Result<(), WireError> {
        let ShmEndpoint { backlog, peers, .. } = self;
        let mut failed = None;
        backlog.retain(|(peer, descriptor)| {
            let answered = peers[*peer].outbox.answer(descriptor);
            !answered.unwrap_or_else(|invalid| {
                failed.get_or_insert((*peer, invalid));
                false
            })
        });
        failed.map_or(Ok(()), |(peer, invalid)| Err(self.invalid_from(peer, invalid)))
    }
}
