//! Jobs without threads and without the machine's clock: their owner sets the time, and performs the stages that the
//! late device would have performed by that time, one by one.
//!
//! One thread acts as all ranks in turn and as the owner. The seed of the late mode and the owner's times then
//! determine everything that happens.

use crate::job::core::Job;
use crate::job::nodes::NodePlacement;
use crate::job::stepping::{StepEvent, Stepping};
use crate::limits::error::{JobError, fatal};
use crate::sync::Ordering;
use crate::timing::host_now;
use crate::timing::model::Model;
use std::ops::Range;
use std::sync::Arc;

impl Job {
    /// Creates a job whose ranks are one thread in turn, with arguments as in [`Job::with_model`]. Its time starts at
    /// 0 and passes as the owner sets it ([`step`](Job::step)). In the late mode the owner acts as the device.
    /// Without the late mode an operation moves its bytes within the post, and its notices become visible at their
    /// time.
    ///
    /// # Errors
    /// As [`Job::with_model`].
    pub fn stepped(coords: Vec<[u8; 6]>, model: Model) -> std::result::Result<Arc<Job>, JobError> {
        Job::of_threads(NodePlacement::new(&coords, None)?, model, Some(Stepping::default()))
    }

    /// Returns the time in ns: the host's clock, which all its processes share, or the owner's time.
    pub(crate) fn now(&self) -> u64 {
        // Relaxed: one thread.
        self.stepping
            .as_ref()
            .map_or_else(host_now, |stepping| stepping.now.load(Ordering::Relaxed))
    }

    fn stepping(&self) -> &Stepping {
        self.stepping.as_ref().expect("a stepped job")
    }

    /// Returns the time in ns at which the next stage is due; `None` if no operation is under way.
    ///
    /// # Panics
    /// If the job is not [`stepped`](Job::stepped), as for the owner's other calls.
    #[must_use]
    pub fn due(&self) -> Option<u64> {
        self.stepping();
        self.device.as_ref()?.due()
    }

    /// Performs the next stage, if it is due by `now`. Otherwise `now` becomes the time of the job, unless that is
    /// later already.
    pub fn step(&self, now: u64) -> Option<StepEvent> {
        let stepped = self.device.as_ref().and_then(|device| device.step(now));
        let reached = stepped.as_ref().map_or(now, |stepped| stepped.at);
        // Relaxed: one thread.
        self.stepping().now.fetch_max(reached, Ordering::Relaxed);
        stepped
    }

    /// Simulates the end of a rank: the operations that it has under way are dropped, and operations that reach it
    /// fail as for a process that has ended.
    pub fn fail_rank(&self, rank: usize) {
        self.cancel_pending(rank);
        self.stepping().state().failed.insert(rank);
    }

    /// Drops the operations that a rank has under way. Its memory stays accessible.
    pub fn cancel_pending(&self, rank: usize) {
        self.stepping();
        if let Some(device) = &self.device {
            device.cancel(rank);
        }
    }

    /// Exempts a rank that has given up from the checked mode: operations of other ranks may still be on their way to
    /// memory that the rank deregisters.
    pub fn exempt_from_checks(&self, rank: usize) {
        self.stepping().state().exempt.insert(rank);
    }

    /// Unmaps pages of a rank. A later mapping there has other pages, while an older registration still leads to the
    /// old pages; the checked mode reports its use as misuse.
    pub fn unmap(&self, rank: usize, memory: Range<usize>) {
        let state = &mut *self.stepping().state();
        state.unmap_epoch += 1;
        for page in memory.start as u64 / self.page..(memory.end as u64).div_ceil(self.page) {
            state.unmapped.insert((rank, page), state.unmap_epoch);
        }
    }

    /// Returns the number of [`unmap`](Job::unmap) calls so far.
    pub(crate) fn unmap_epoch(&self) -> u64 {
        self.stepping.as_ref().map_or(0, |stepping| stepping.state().unmap_epoch)
    }

    /// Returns whether some of these bytes of a rank were unmapped after the `unmap_epoch`-th unmapping.
    pub(crate) fn is_unmapped(&self, rank: usize, memory: Range<u64>, unmap_epoch: u64) -> bool {
        let Some(stepping) = &self.stepping else { return false };
        let pages = memory.start / self.page..memory.end.div_ceil(self.page);
        let state = stepping.state();
        state
            .unmapped
            .range((rank, pages.start)..(rank, pages.end))
            .any(|(_, &at)| at > unmap_epoch)
    }

    /// Makes the next `n` registrations of a rank fail as if no STag were left.
    pub fn refuse_registrations(&self, rank: usize, n: u32) {
        self.stepping().state().refusals.insert(rank, (n, false));
    }

    /// Returns whether a registration of the rank has been refused since the last call.
    #[must_use]
    pub fn take_refusal(&self, rank: usize) -> bool {
        let mut state = self.stepping().state();
        state.refusals.get_mut(&rank).is_some_and(|(_, refused)| std::mem::take(refused))
    }

    /// Returns whether a registration that the rank makes now is refused.
    pub(crate) fn refuses_registration(&self, rank: usize) -> bool {
        let Some(stepping) = &self.stepping else { return false };
        let mut state = stepping.state();
        match state.refusals.get_mut(&rank) {
            Some((left @ 1.., refused)) => {
                (*left, *refused) = (*left - 1, true);
                true
            }
            _ => false,
        }
    }

    /// Returns the misuse that the checked mode has found since the last call. Misuse does not end a stepped job.
    #[must_use]
    pub fn take_misuse(&self) -> Vec<String> {
        std::mem::take(&mut self.stepping().state().misuse)
    }

    /// Returns whether a rank has [failed](Job::fail_rank).
    pub(crate) fn is_failed(&self, rank: u32) -> bool {
        self.stepping
            .as_ref()
            .is_some_and(|stepping| stepping.state().failed.contains(&(rank as usize)))
    }

    /// Returns whether a rank is [exempt](Job::exempt_from_checks).
    pub(crate) fn is_exempt(&self, rank: usize) -> bool {
        self.stepping.as_ref().is_some_and(|stepping| stepping.state().exempt.contains(&rank))
    }

    /// Reports misuse that the checked mode has found: ends the process or, in a stepped job, keeps the text for the
    /// owner.
    pub(crate) fn report_misuse(&self, what: String) {
        match &self.stepping {
            None => fatal(&what),
            Some(stepping) => stepping.state().misuse.push(what),
        }
    }
}
