//! Status words and the news of failures, in the last words of the mailboxes; see
//! [`status`](crate::endpoint::status) for what they say.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use utofu_sys::handles::{Mark, PostError, PostFlags, Transfer};
use utofu_sys::{Cookie, Stadd};

use crate::endpoint::status::{blame_from_word, blame_to_word, confidants};
use crate::endpoint::{Rank, Status, WireError};
use crate::error::Blame;

use super::UtofuEndpoint;

/// Words behind the places for hellos.
pub(super) const TROUBLE_WORDS: usize = 3;
/// This rank's status: written here, read by others.
const STATUS: usize = 0;
/// The news of a failure: written by others, all of whom have news, so that it matters little
/// who is the last.
const NEWS: usize = 1;
/// Where answers arrive.
const ANSWER: usize = 2;

/// How often a full queue is tried again to tell somebody something. What keeps it full may
/// never end.
const TELLING_TRIES: u32 = 1000;

/// The most that counts between two polls.
const LONGEST_GAP: Duration = Duration::from_millis(10);

impl UtofuEndpoint {
    /// A word's distance from the start of any rank's mailbox, in bytes.
    fn trouble_offset(&self, word: usize) -> u64 {
        8 * (self.addresses.len() + word) as u64
    }

    fn trouble_word(&self, word: usize) -> &AtomicU64 {
        self.mailbox_word(self.addresses.len() + word)
    }

    pub(super) fn show_status(&mut self, status: Status) {
        // Relaxed: a word that says everything by itself.
        self.trouble_word(STATUS).store(status.to_word(), Ordering::Relaxed);
    }

    pub(super) fn news(&self) -> Option<Blame> {
        // Relaxed: as above. Should a device write it in parts, half a word is no news.
        blame_from_word(self.trouble_word(NEWS).load(Ordering::Relaxed))
    }

    /// Takes note of something that others would otherwise tell.
    pub(super) fn note(&self, blame: Blame) {
        // Relaxed: as above. What others write there would do as well.
        self.trouble_word(NEWS).store(blame_to_word(blame), Ordering::Relaxed);
    }

    pub(super) fn ask_status(
        &mut self,
        rank: Rank,
        patience: Duration,
    ) -> Result<Status, WireError> {
        let Some(&address) = self.addresses.get(rank as usize) else {
            // Not what a rank of ours would write; its memory may be somebody else's by now.
            return Ok(Status::Unknown);
        };
        if self.is_asking {
            return Ok(Status::Unknown);
        }
        let what = Transfer {
            local: self.mailbox_registration.stadd() + self.trouble_offset(ANSWER),
            remote: address.mailbox + self.trouble_offset(STATUS),
            length: 8,
        };
        let mark = Mark { edata: 0, flags: PostFlags::LOCAL, cookie: Cookie(0) };
        let start = Instant::now();
        loop {
            // SAFETY: both words belong to mailboxes, which are registered; the answer's is
            // used for one question at a time.
            let posted = unsafe { self.vcq.get(address.vcq, what, mark) };
            if self.accepted(posted)? {
                break;
            }
            self.poll_completions()?;
            if start.elapsed() > patience {
                return Ok(Status::Unknown);
            }
            std::thread::yield_now();
        }
        self.is_asking = true;
        // Time in which this thread had no core is not the other's fault: what counts is how
        // long was polled.
        let (mut polled, mut last) = (Duration::ZERO, Instant::now());
        while self.is_asking {
            match self.take_notice() {
                Ok(true) => {}
                Ok(false) if polled > patience => return Ok(Status::Silent),
                Ok(false) => {
                    std::thread::yield_now();
                    let before = std::mem::replace(&mut last, Instant::now());
                    polled += (last - before).min(LONGEST_GAP);
                }
                // Whatever it was that failed, the rank asked is the one not reached.
                Err(WireError { peer: Some(peer), .. }) if peer == rank => {
                    return Ok(Status::Silent);
                }
                Err(error) => return Err(error),
            }
        }
        // Relaxed: the notice says that the answer is there.
        Ok(Status::from_word(self.trouble_word(ANSWER).load(Ordering::Relaxed)))
    }

    pub(super) fn tell_confidants(&mut self, blame: Blame) {
        const QUIETLY: Mark = Mark { edata: 0, flags: PostFlags::NONE, cookie: Cookie(0) };
        let word = blame_to_word(blame);
        for rank in confidants(self.rank, self.addresses.len() as u32) {
            let address = self.addresses[rank as usize];
            let at: Stadd = address.mailbox + self.trouble_offset(NEWS);
            for _ in 0..TELLING_TRIES {
                // SAFETY: the word is there for everybody to write.
                match unsafe { self.vcq.put_piggyback8(address.vcq, word, at, QUIETLY) } {
                    Err(PostError::Busy) => {
                        // What failed before has been reported, or will not matter any more.
                        let _ = self.vcq.poll_tcq();
                        std::thread::yield_now();
                    }
                    // Somebody who cannot be told is somebody who is gone.
                    Ok(()) | Err(_) => break,
                }
            }
        }
    }
}
