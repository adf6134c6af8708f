//! Failure detection through shared memory: a status word and a news word of each rank in the segment, and whether
//! the rank's process is alive.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::endpoint::status::{blame_from_word, blame_to_word};
use crate::endpoint::validation::InvalidField;
use crate::endpoint::{Event, Observer, Rank, Status, WireError};
use crate::error::Blame;

use super::ShmEndpoint;
use super::layout::APART;

/// Offsets within a rank's part. Each word has its own line, since the owner polls its news while other ranks may
/// read its status.
const STATUS: usize = 0;
const NEWS: usize = APART;

impl ShmEndpoint {
    fn rank_word(&self, peer: usize, word: usize) -> &AtomicU64 {
        self.segment.word(self.layout.rank(peer) + word)
    }

    /// Writes news for this rank itself, as other ranks would.
    pub(super) fn note(&self, blame: Blame) {
        // Relaxed: the word orders no other data. News of other ranks may overwrite it, and serve the same purpose.
        self.rank_word(self.me, NEWS).store(blame_to_word(blame), Ordering::Relaxed);
    }

    /// The news that this rank has been told.
    fn news(&self) -> Result<Option<Blame>, InvalidField> {
        // Relaxed: as above.
        let word = self.rank_word(self.me, NEWS).load(Ordering::Relaxed);
        if word == 0 { Ok(None) } else { blame_from_word(word, self.n_ranks) }
    }

    /// Reports news, once.
    #[inline]
    pub(super) fn report_news(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        // Any rank may have written it.
        let news = self.news().map_err(|invalid| invalid.wire_error("shared memory"))?;
        if let Some(blame) = news
            && self.reported.replace(blame).is_none()
        {
            events.push(Event::News(blame));
        }
        Ok(())
    }
}

impl Observer for ShmEndpoint {
    fn publish(&mut self, status: Status) {
        // Relaxed: the word orders no other data.
        self.rank_word(self.me, STATUS).store(status.to_word(), Ordering::Relaxed);
    }

    fn request_status(&mut self, rank: Rank) -> Result<bool, WireError> {
        // The engine does not ask about ranks outside the segment.
        let Ok(peer) = self.peer_of(rank) else {
            self.answer = Some(Status::Unknown);
            return Ok(true);
        };
        self.answer = Some(if self.peers[peer].process.is_alive() {
            // Relaxed: as above.
            let word = self.rank_word(peer, STATUS).load(Ordering::Relaxed);
            let status = Status::from_word(word, self.n_ranks);
            status.map_err(|invalid| self.invalid_from(peer, invalid))?
        } else {
            Status::Silent
        });
        Ok(true)
    }

    fn answer(&mut self) -> Option<Status> {
        self.answer.take()
    }

    fn send_news(&mut self, blame: Blame) {
        // Tells all ranks directly, with one store each.
        for peer in (0..self.peers.len()).filter(|&peer| peer != self.me) {
            // Relaxed: as above.
            self.rank_word(peer, NEWS).store(blame_to_word(blame), Ordering::Relaxed);
        }
    }

    fn received_news(&mut self) -> Option<Blame> {
        // An invalid word fails the next poll.
        self.news().ok().flatten()
    }
}
