//! Status words and the news of failures, in the first words of the mailboxes; for their meaning see
//! [`status`](crate::endpoint::status).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use utofu::handles::{PostError, PostFlags, PostOptions, Transfer};
use utofu::{Cookie, Stadd, VcqId};

use crate::endpoint::status::{blame_from_word, blame_to_word, gossip_peers};
use crate::endpoint::{Observer, Rank, Status, WireError};
use crate::error::Blame;

use super::channels::MAILBOX_STAG;
use super::state::{HELLOS_AT, NEWS_COOKIE};
use super::{SHORT_WAIT, UtofuEndpoint, failed};

/// Word of this rank's status: written by this rank, read by others.
const STATUS: usize = 0;
/// Word of the news of a failure, written by other ranks. One piece of news suffices, so a later one may overwrite an
/// earlier one.
const NEWS: usize = 1;
/// Word that receives the answers to this rank's status gets.
const ANSWER: usize = 2;

/// Longest time for which [`send_news`](Observer::send_news) waits for entries of a full TOQ, which may never become
/// free.
const NEWS_TIMEOUT: Duration = Duration::from_millis(50);

impl UtofuEndpoint {
    /// A word of the mailbox. The device may access it at any time, in whole words.
    fn mailbox_word(&self, word: usize) -> &AtomicU64 {
        const { assert!(8 * (ANSWER + 1) <= HELLOS_AT) };
        assert!(word <= ANSWER);
        // SAFETY: the mailbox has this word, aligned, for as long as the endpoint lives, and this process accesses it
        // in no other way.
        unsafe { AtomicU64::from_ptr(self.mailbox.ptr().cast::<u64>().add(word)) }
    }

    /// The VCQ of a rank, and the STADD of its mailbox.
    pub(super) fn mailbox_of(&self, rank: Rank) -> Result<(VcqId, Stadd), WireError> {
        let at = self
            .addresses
            .vcq(rank)
            .and_then(|vcq| Ok((vcq, vcq.stadd_of_stag(self.addresses.api(), MAILBOX_STAG)?)));
        at.map_err(|error| failed(error, Some(rank)))
    }

    /// The news that other ranks have written to this rank's mailbox.
    #[inline]
    pub(super) fn news(&self) -> Result<Option<Blame>, WireError> {
        // Relaxed: the word refers to no other memory. If a device writes it in parts, a partial word is not news.
        let word = self.mailbox_word(NEWS).load(Ordering::Relaxed);
        if word == 0 { Ok(None) } else { self.decode_news(word) }
    }

    /// Decodes the news that another rank has written.
    #[cold]
    fn decode_news(&self, word: u64) -> Result<Option<Blame>, WireError> {
        let news = blame_from_word(word, self.addresses.n_ranks());
        // Any other rank may have written the word.
        news.map_err(|invalid| invalid.wire_error("reading news"))
    }

    /// Records a failure that this rank has found as if another rank had reported it.
    pub(super) fn note(&self, blame: Blame) {
        // Relaxed: the word refers to no other memory. Another rank may overwrite it with other news.
        self.mailbox_word(NEWS).store(blame_to_word(blame), Ordering::Relaxed);
    }

    /// Takes the answer to the status request, which has arrived.
    pub(super) fn answered(&mut self) -> Result<(), WireError> {
        // Relaxed: the notice reports that the answer is complete.
        let word = self.mailbox_word(ANSWER).load(Ordering::Relaxed);
        let asked = self.asked.take();
        let status = Status::from_word(word, self.addresses.n_ranks()).map_err(|invalid| {
            let call = "reading a status";
            asked.map_or_else(
                || invalid.wire_error(call),
                |rank| invalid.wire_error_from(rank, call),
            )
        });
        self.answer = Some(status?);
        Ok(())
    }
}

impl Observer for UtofuEndpoint {
    fn publish(&mut self, status: Status) {
        // Relaxed: the word refers to no other memory.
        self.mailbox_word(STATUS).store(status.to_word(), Ordering::Relaxed);
    }

    fn request_status(&mut self, rank: Rank) -> Result<bool, WireError> {
        self.answer = None;
        if rank >= self.addresses.n_ranks() {
            // No rank of this world names such a rank: the word that did may lie in reused memory.
            self.answer = Some(Status::Unknown);
            return Ok(true);
        }
        if self.asked.is_some() || self.is_abandoned {
            return Ok(false);
        }
        let (vcq, mailbox) = self.mailbox_of(rank)?;
        let what = Transfer {
            local: self.mailbox_registration.at(8 * ANSWER),
            remote: mailbox + 8 * STATUS as u64,
            length: 8,
        };
        let options = PostOptions { edata: 0, flags: PostFlags::LOCAL, cookie: Cookie(0) };
        // SAFETY: both words belong to mailboxes, which are registered; the word for answers serves one request at a
        // time.
        let posted = unsafe { self.vcq.get(vcq, what, options) };
        let posted = self.accepted(posted)?;
        self.asked = posted.then_some(rank);
        Ok(posted)
    }

    fn answer(&mut self) -> Option<Status> {
        self.answer.take()
    }

    fn send_news(&mut self, blame: Blame) {
        let flags = PostFlags::TCQ;
        let options = PostOptions { edata: 0, flags, cookie: NEWS_COOKIE };
        let word = blame_to_word(blame);
        let start = self.time.now();
        for rank in gossip_peers(self.rank, self.addresses.n_ranks()) {
            // A rank without an address is gone.
            let Ok((vcq, mailbox)) = self.mailbox_of(rank) else { continue };
            let at = mailbox + 8 * NEWS as u64;
            loop {
                // SAFETY: any rank may write this word.
                match unsafe { self.vcq.put_piggyback8(vcq, word, at, options) } {
                    Err(PostError::Busy) if self.time.now() - start < NEWS_TIMEOUT => {
                        self.has_posted = true;
                        // An earlier failure has been reported, or no longer matters.
                        let _ = self.poll_completions();
                        self.time.yield_now(SHORT_WAIT);
                    }
                    Ok(()) => {
                        (self.n_open, self.has_posted) = (self.n_open + 1, true);
                        break;
                    }
                    Err(_) => break,
                }
            }
        }
    }

    fn received_news(&mut self) -> Option<Blame> {
        // A garbled word fails the next poll.
        self.news().ok().flatten()
    }
}
