//! What ranks can learn of each other besides messages: a status word and a news word of each in
//! the segment, and whether its process lives.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::endpoint::garbled::Garbled;
use crate::endpoint::status::{blame_from_word, blame_to_word};
use crate::endpoint::{Event, Observer, Rank, Status, WireError};
use crate::error::Blame;

use super::ShmEndpoint;
use super::layout::LINE;

/// Distances from the start of a rank's part: each word has a line of its own, since the owner
/// polls its news while others may read its status.
const STATUS: usize = 0;
const NEWS: usize = LINE;

impl ShmEndpoint {
    fn rank_word(&self, peer: usize, word: usize) -> &AtomicU64 {
        self.segment.word(self.layout.rank(peer) + word)
    }

    /// Writes news to this rank itself, as others would.
    pub(super) fn note(&self, blame: Blame) {
        // Relaxed: the word stands alone. News of others may overwrite it, and serve as well.
        self.rank_word(self.me, NEWS).store(blame_to_word(blame), Ordering::Relaxed);
    }

    /// The news that others have told this rank.
    fn news(&self) -> Result<Option<Blame>, Garbled> {
        // Relaxed: as above.
        let word = self.rank_word(self.me, NEWS).load(Ordering::Relaxed);
        if word == 0 { Ok(None) } else { blame_from_word(word, self.n_ranks) }
    }

    /// Reports news, once.
    #[inline]
    pub(super) fn report_news(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        // Any of the others may have told it.
        let news = self.news().map_err(|garbled| garbled.by_any("shared memory"))?;
        if let Some(blame) = news
            && self.reported.replace(blame).is_none()
        {
            events.push(Event::News(blame));
        }
        Ok(())
    }
}

impl Observer for ShmEndpoint {
    fn show(&mut self, status: Status) {
        // Relaxed: the word stands alone.
        self.rank_word(self.me, STATUS).store(status.to_word(), Ordering::Relaxed);
    }

    fn ask(&mut self, rank: Rank) -> Result<bool, WireError> {
        // No rank asks about one that the segment does not hold.
        let Ok(peer) = self.peer_of(rank) else {
            self.answer = Some(Status::Unknown);
            return Ok(true);
        };
        self.answer = Some(if self.peers[peer].process.is_alive() {
            // Relaxed: as above.
            let word = self.rank_word(peer, STATUS).load(Ordering::Relaxed);
            let status = Status::from_word(word, self.n_ranks);
            status.map_err(|garbled| self.garbled(peer, garbled))?
        } else {
            Status::Silent
        });
        Ok(true)
    }

    fn answer(&mut self) -> Option<Status> {
        self.answer.take()
    }

    fn tell(&mut self, blame: Blame) {
        // Everybody is told at once: it takes one store for each.
        for peer in (0..self.peers.len()).filter(|&peer| peer != self.me) {
            // Relaxed: as above.
            self.rank_word(peer, NEWS).store(blame_to_word(blame), Ordering::Relaxed);
        }
    }

    fn told(&mut self) -> Option<Blame> {
        // What is none fails the next poll.
        self.news().ok().flatten()
    }
}
