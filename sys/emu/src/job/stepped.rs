//! Jobs without threads and without the machine's clock: their owner says what time it is, and does
//! what the late device would do by then, one stage after the other.
//!
//! One thread is all ranks in turn, and the owner beside them. Then the seed of the late mode and the
//! owner's times decide all that happens.

use crate::job::core::Job;
use crate::job::nodes::Placement;
use crate::job::stepping::{Stepped, Stepping};
use crate::limits::error::{JobError, fatal};
use crate::sync::Ordering;
use crate::timing::host_now;
use crate::timing::model::Model;
use std::ops::Range;
use std::sync::Arc;

impl Job {
    /// A job whose ranks are one thread in turn, as in [`Job::with_model`]. Its time starts at 0 and
    /// passes as its owner says ([`step`](Job::step)). In the late mode the owner is the device; without
    /// it an operation moves its bytes within the post, and its notices can be seen when their time has
    /// come.
    ///
    /// # Errors
    /// As [`Job::with_model`].
    pub fn stepped(coords: Vec<[u8; 6]>, model: Model) -> std::result::Result<Arc<Job>, JobError> {
        Job::of_threads(Placement::new(&coords, None)?, model, Some(Stepping::default()))
    }

    /// The time, in ns: that of the host, which its processes share, or the owner's.
    pub(crate) fn now(&self) -> u64 {
        // Relaxed: one thread.
        self.stepping.as_ref().map_or_else(host_now, |owned| owned.now.load(Ordering::Relaxed))
    }

    fn owned(&self) -> &Stepping {
        self.stepping.as_ref().expect("a stepped job")
    }

    /// When the next stage is due, in ns; `None` if nothing is under way.
    ///
    /// # Panics
    /// As the other calls of the owner, if the job is not [`stepped`](Job::stepped).
    #[must_use]
    pub fn due(&self) -> Option<u64> {
        self.owned();
        self.device.as_ref()?.due()
    }

    /// Does the next stage, if it is due by `now`. If there is none, `now` becomes the time of the job;
    /// it never goes back.
    pub fn step(&self, now: u64) -> Option<Stepped> {
        let stepped = self.device.as_ref().and_then(|device| device.step(now));
        let reached = stepped.as_ref().map_or(now, |stepped| stepped.at);
        // Relaxed: one thread.
        self.owned().now.fetch_max(reached, Ordering::Relaxed);
        stepped
    }

    /// A rank is gone: what it has under way ends without a trace, and operations that reach it fail as
    /// those to a process that has ended.
    pub fn lose(&self, rank: usize) {
        self.forget(rank);
        self.owned().state().lost.insert(rank);
    }

    /// What a rank has under way ends without a trace. Its memory can still be reached.
    pub fn forget(&self, rank: usize) {
        self.owned();
        if let Some(device) = &self.device {
            device.forget(rank);
        }
    }

    /// In the checked mode nothing is checked any more of this rank, which has given up: operations of
    /// others may still be on their way to memory that it deregisters.
    pub fn excuse(&self, rank: usize) {
        self.owned().state().excused.insert(rank);
    }

    /// These pages of a rank are unmapped. What is mapped there later has other pages, but what was registered
    /// before leads to the old ones: in the checked mode its use is misuse.
    pub fn unmap(&self, rank: usize, memory: Range<usize>) {
        let state = &mut *self.owned().state();
        state.n_unmapped += 1;
        for page in memory.start as u64 / self.page..(memory.end as u64).div_ceil(self.page) {
            state.unmapped.insert((rank, page), state.n_unmapped);
        }
    }

    /// How often memory was unmapped so far.
    pub(crate) fn n_unmapped(&self) -> u64 {
        self.stepping.as_ref().map_or(0, |owned| owned.state().n_unmapped)
    }

    /// Whether some of these bytes of a rank have been unmapped since `born`.
    pub(crate) fn is_unmapped(&self, rank: usize, memory: Range<u64>, born: u64) -> bool {
        let Some(owned) = &self.stepping else { return false };
        let pages = memory.start / self.page..memory.end.div_ceil(self.page);
        let state = owned.state();
        state.unmapped.range((rank, pages.start)..(rank, pages.end)).any(|(_, &at)| at > born)
    }

    /// The next `n` registrations of a rank are refused, as if there were no STag left.
    pub fn refuse(&self, rank: usize, n: u32) {
        self.owned().state().refusals.insert(rank, (n, false));
    }

    /// Whether one has been since this was asked last.
    #[must_use]
    pub fn take_refused(&self, rank: usize) -> bool {
        let mut state = self.owned().state();
        state.refusals.get_mut(&rank).is_some_and(|(_, refused)| std::mem::take(refused))
    }

    /// Whether the registration at hand is refused.
    pub(crate) fn refuses(&self, rank: usize) -> bool {
        let Some(owned) = &self.stepping else { return false };
        let mut state = owned.state();
        match state.refusals.get_mut(&rank) {
            Some((left @ 1.., refused)) => {
                (*left, *refused) = (*left - 1, true);
                true
            }
            _ => false,
        }
    }

    /// Misuse that the checked mode has found since the last call. It does not end a stepped job.
    #[must_use]
    pub fn take_misuse(&self) -> Vec<String> {
        std::mem::take(&mut self.owned().state().misuse)
    }

    /// Whether a rank is [lost](Job::lose).
    pub(crate) fn is_lost(&self, rank: u32) -> bool {
        self.stepping.as_ref().is_some_and(|owned| owned.state().lost.contains(&(rank as usize)))
    }

    /// Whether a rank is [excused](Job::excuse).
    pub(crate) fn is_excused(&self, rank: usize) -> bool {
        self.stepping.as_ref().is_some_and(|owned| owned.state().excused.contains(&rank))
    }

    /// The checked mode has found misuse: the process ends, or the owner learns of it.
    pub(crate) fn misused(&self, what: String) {
        match &self.stepping {
            None => fatal(&what),
            Some(owned) => owned.state().misuse.push(what),
        }
    }
}
