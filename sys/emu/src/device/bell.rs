//! Sleeping until the device has something for a rank.
//!
//! The interface knows only polls. A program on this device may also sleep between them. Each rank
//! has a bell: a count of its threads that sleep or are about to, and a number that changes when
//! it rings. Whoever has delivered a notice, or ended an operation of the gates, looks at one word
//! that counts the sleepers of the whole job.
//!
//! A sleeper counts itself, has all processors of the job's processes pass a barrier
//! (`membarrier`), polls once more, and sleeps if the number is still what it was. So whoever
//! delivers needs no barrier. Without that system call a sleeper may miss its bell: a sleep has an
//! end of its own.

use crate::job::{self, Context, Job};
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

/// The words of a rank's bell.
#[repr(C)]
pub(crate) struct BellWords {
    number: AtomicU32,
    sleepers: AtomicU32,
}

impl Job {
    /// Wakes a rank for which something has been delivered.
    #[inline]
    pub(crate) fn ring(&self, rank: &AtomicU32) {
        // Relaxed: the sleeper's barrier orders this load behind what was delivered.
        if self.header().sleepers.load(Ordering::Relaxed) != 0 {
            self.wake(rank.load(Ordering::Relaxed) as usize);
        }
    }

    #[cold]
    fn wake(&self, rank: usize) {
        let BellWords { number, sleepers } = &self.rank_record(rank).bell;
        // SeqCst: stronger than `membarrier` needs; waking is rare.
        if sleepers.load(Ordering::SeqCst) == 0 {
            return;
        }
        number.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the word is mapped; waking reads nothing else.
        unsafe { libc::syscall(libc::SYS_futex, number.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }
}

/// The bell of one rank; see the module documentation. `arm`, poll, `sleep` and poll as often as
/// need be, `disarm`.
pub struct Bell(Context);

impl Bell {
    /// That of the rank that the calling thread acts for. None where things are not delivered by
    /// the thread that posts them, or are not to be seen at once (the late mode, latencies), and
    /// for a thread that acts for no rank.
    #[must_use]
    pub fn of_this_rank() -> Option<Bell> {
        let context = job::current().ok()?;
        let is_plain = context.job.device.is_none() && !context.job.model.takes_time();
        // Without the system call sleepers are served as well as can be.
        membarrier(REGISTER_GLOBAL_EXPEDITED);
        is_plain.then_some(Bell(context))
    }

    fn words(&self) -> &BellWords {
        &self.0.job.rank_record(self.0.rank).bell
    }

    /// Counts a thread that is about to sleep; the bell's number.
    #[must_use]
    pub fn arm(&self) -> u32 {
        self.0.job.header().sleepers.fetch_add(1, Ordering::SeqCst);
        self.words().sleepers.fetch_add(1, Ordering::SeqCst);
        let number = self.number();
        if !membarrier(GLOBAL_EXPEDITED) {
            fence(Ordering::SeqCst);
        }
        number
    }

    /// A number that changes whenever it rings.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.words().number.load(Ordering::SeqCst)
    }

    /// Sleeps until it rings, but not if its number is no longer `number`; `longest` at most.
    pub fn sleep(&self, number: u32, longest: Duration) {
        let longest = libc::timespec {
            tv_sec: longest.as_secs() as libc::time_t,
            tv_nsec: longest.subsec_nanos().into(),
        };
        let word = self.words().number.as_ptr();
        // SAFETY: the word is mapped, and the time lives until the call returns.
        unsafe {
            libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, number, &raw const longest)
        };
    }

    /// Takes back one `arm`.
    pub fn disarm(&self) {
        self.words().sleepers.fetch_sub(1, Ordering::SeqCst);
        self.0.job.header().sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes the threads of this rank that sleep.
    pub fn ring(&self) {
        if self.words().sleepers.load(Ordering::SeqCst) != 0 {
            self.0.job.wake(self.0.rank);
        }
    }

    /// Ranks of the job.
    #[must_use]
    pub fn n_ranks(&self) -> usize {
        self.0.job.size()
    }
}

impl std::fmt::Debug for Bell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bell").field("rank", &self.0.rank).finish()
    }
}

const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: no memory is involved.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}
