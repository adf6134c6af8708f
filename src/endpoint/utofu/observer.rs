//! Status words and the news of failures, in the first words of the mailboxes; see
//! [`status`](crate::endpoint::status) for what they say.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use utofu::handles::{Mark, PostError, PostFlags, Transfer};
use utofu::{Cookie, Stadd, VcqId};

use crate::endpoint::status::{blame_from_word, blame_to_word, gossip_peers};
use crate::endpoint::{Observer, Rank, Status, WireError};
use crate::error::Blame;

use super::channels::MAILBOX_STAG;
use super::state::{HELLOS_AT, NEWS_COOKIE};
use super::{SHORT_WAIT, UtofuEndpoint, failed};

/// This rank's status: written here, read by others.
const STATUS: usize = 0;
/// The news of a failure, written by others. Any of the news will do, so the last one may replace the
/// others.
const NEWS: usize = 1;
/// Where answers arrive.
const ANSWER: usize = 2;

/// How long full queues may keep this rank from telling others something. What keeps them full
/// may never end.
const LONGEST_TELLING: Duration = Duration::from_millis(50);

impl UtofuEndpoint {
    /// A word of the mailbox, which the device may access at any time, by whole words.
    fn trouble_word(&self, word: usize) -> &AtomicU64 {
        const { assert!(8 * (ANSWER + 1) <= HELLOS_AT) };
        assert!(word <= ANSWER);
        // SAFETY: the mailbox has this word, aligned, for as long as the endpoint lives, and
        // nobody on this side accesses it in any other way.
        unsafe { AtomicU64::from_ptr(self.mailbox.ptr().cast::<u64>().add(word)) }
    }

    /// How to reach a rank's mailbox.
    pub(super) fn mailbox_of(&self, rank: Rank) -> Result<(VcqId, Stadd), WireError> {
        let at = self
            .addresses
            .vcq(rank)
            .and_then(|vcq| Ok((vcq, vcq.stadd_of_stag(self.addresses.api(), MAILBOX_STAG)?)));
        at.map_err(|error| failed(error, Some(rank)))
    }

    /// The news that others have told this rank.
    #[inline]
    pub(super) fn news(&self) -> Result<Option<Blame>, WireError> {
        // Relaxed: as above. Should a device write it in parts, half a word is no news.
        let word = self.trouble_word(NEWS).load(Ordering::Relaxed);
        if word == 0 { Ok(None) } else { self.told_by(word) }
    }

    /// What another rank has told by this word.
    #[cold]
    fn told_by(&self, word: u64) -> Result<Option<Blame>, WireError> {
        let news = blame_from_word(word, self.addresses.n_ranks());
        // Any of the others may have told it.
        news.map_err(|garbled| garbled.by_any("reading news"))
    }

    /// Takes note of something that others would otherwise tell.
    pub(super) fn note(&self, blame: Blame) {
        // Relaxed: as above. What others write there would do as well.
        self.trouble_word(NEWS).store(blame_to_word(blame), Ordering::Relaxed);
    }

    /// The answer to the question has arrived.
    pub(super) fn answered(&mut self) -> Result<(), WireError> {
        // Relaxed: the notice says that the answer is there.
        let word = self.trouble_word(ANSWER).load(Ordering::Relaxed);
        let asked = self.asked.take();
        let status = Status::from_word(word, self.addresses.n_ranks()).map_err(|garbled| {
            let call = "reading a status";
            asked.map_or_else(|| garbled.by_any(call), |rank| garbled.by(rank, call))
        });
        self.answer = Some(status?);
        Ok(())
    }
}

impl Observer for UtofuEndpoint {
    fn show(&mut self, status: Status) {
        // Relaxed: a word that says everything by itself.
        self.trouble_word(STATUS).store(status.to_word(), Ordering::Relaxed);
    }

    fn ask(&mut self, rank: Rank) -> Result<bool, WireError> {
        self.answer = None;
        if rank >= self.addresses.n_ranks() {
            // Not what a rank of ours would write; its memory may be somebody else's by now.
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
        let mark = Mark { edata: 0, flags: PostFlags::LOCAL, cookie: Cookie(0) };
        // SAFETY: both words belong to mailboxes, which are registered; the answer's is used for
        // one question at a time.
        let posted = unsafe { self.vcq.get(vcq, what, mark) };
        let posted = self.accepted(posted)?;
        self.asked = posted.then_some(rank);
        Ok(posted)
    }

    fn answer(&mut self) -> Option<Status> {
        self.answer.take()
    }

    fn tell(&mut self, blame: Blame) {
        let flags = PostFlags::TCQ;
        let mark = Mark { edata: 0, flags, cookie: NEWS_COOKIE };
        let word = blame_to_word(blame);
        let start = self.time.now();
        for rank in gossip_peers(self.rank, self.addresses.n_ranks()) {
            // A rank that cannot be told is gone.
            let Ok((vcq, mailbox)) = self.mailbox_of(rank) else { continue };
            let at = mailbox + 8 * NEWS as u64;
            loop {
                // SAFETY: the word is there for everybody to write.
                match unsafe { self.vcq.put_piggyback8(vcq, word, at, mark) } {
                    Err(PostError::Busy) if self.time.now() - start < LONGEST_TELLING => {
                        self.has_posted = true;
                        // What failed before has been reported, or will not matter any more.
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

    fn told(&mut self) -> Option<Blame> {
        // What is none fails the next poll.
        self.news().ok().flatten()
    }
}
