//! How to wait: spin, yield, sleep.
//!
//! A waiter with a core of its own spins, then yields, and never naps: a nap costs more than
//! most waits. Where ranks outnumber cores, spinning keeps the awaited rank from running, and
//! yielding at once is four to twelve times faster than sleeping in the kernel; only a wait that
//! has become long ends in sleep, so that idle ranks leave the cores to busy ones.
//!
//! All that holds among programs that yield too. A program that computes takes the whole time
//! slice that a yield offers it, milliseconds each, while a thread that is woken runs at once. So
//! whoever finds that its yields take that long, and that more threads than the ranks want cores,
//! sleeps instead, if there is a bell to wake it ([`Bell`]), for this wait and for some that follow.
//!
//! A library beside this one may make progress only when it is called, as MPI does ([`OnIdle`]): then peers
//! may wait for this rank's thread though no bell rings. It is called more often where the core is given away
//! anyway, and no nap is long.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::endpoint::{Bell, Clock, Time};

/// Rounds of polling before a waiter with its own core first gives it away. Longer would not
/// help it much (a yield on a core of its own costs a microsecond) and hurt a rank whose core is
/// busy with something else after all.
const SPIN_ROUNDS: u32 = 300;
/// As many where others are known to compute on the same cores.
const SPIN_ROUNDS_BESIDE_OTHERS: u32 = 30;
/// After this long without progress, nap.
const YIELD_TIME: Duration = Duration::from_millis(10);
/// A yield that takes as long has let a program run that does not yield.
const SLOW_YIELD: Duration = Duration::from_millis(1);
/// The first and the longest nap, if nothing wakes this thread,
const NAPS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));
/// and if something does: it may come from where no bell is rung, or be about other ranks.
const SLEEPS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(4));
/// So many waits sleep at first before one tries to yield again, and at most.
const SLEEPY_WAITS: (u32, u32) = (256, 2048);
/// So many slow yields beside others, with no more than a few quick ones between two of them, are no
/// accident: a thread of the system's may be about for a moment. The second number holds where waits
/// have slept lately.
const SLOW_YIELDS: (u32, u32) = (8, 3);
const FEW_YIELDS: u32 = 8;
/// After so many quick ones the cores are free again.
const MANY_YIELDS: u32 = 1000;
/// So many rounds pass before the first call to whoever else wants to move on meanwhile, so that short waits cost
/// nothing, and between two calls while a waiter spins.
const ROUNDS_PER_CALL: (u32, u32) = (32, 8);
/// The longest nap where there is somebody else.
const LONGEST_NAP_BESIDE: Duration = Duration::from_micros(250);
/// How many yields pass between two looks at the clock.
const YIELDS_PER_LOOK: u32 = 8;
/// The first and the longest pause on a wire's own clock: short enough that the watchdog counts all of
/// it.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(64));

/// Called now and then by a thread that waits.
pub type OnIdle = Box<dyn Fn() + Send + Sync>;

/// What the waits of a rank have in common.
pub struct Waits {
    bell: Option<Arc<dyn Bell>>,
    /// Whoever else moves on while a caller waits.
    pub(crate) on_idle: OnceLock<OnIdle>,
    pub(crate) time: Time,
    /// That this process may use.
    n_cores: usize,
    /// Waits that will sleep before one yields again.
    sleepy: AtomicU32,
    /// How many they were the last time.
    last_sleepy: AtomicU32,
    /// Quick yields since the last one that was slow beside others,
    quick: AtomicU32,
    /// and how many of those there have been in a row.
    slow: AtomicU32,
}

impl Default for Waits {
    fn default() -> Self {
        Waits::new(None, Time::default())
    }
}

impl Waits {
    /// `bell` is rung whenever something may have come; waits go by `time`.
    pub(crate) fn new(bell: Option<Arc<dyn Bell>>, time: Time) -> Self {
        let quick = AtomicU32::new(MANY_YIELDS);
        let n_cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let (on_idle, sleepy, last_sleepy, slow) = Default::default();
        Waits { bell, on_idle, time, n_cores, sleepy, last_sleepy, quick, slow }
    }

    // Relaxed, all of them: waits that are counted wrongly only wait in the other way.

    fn are_sleepy(&self) -> bool {
        self.sleepy.load(Ordering::Relaxed) != 0
    }

    /// How long a nap may be that would be so long without anybody else.
    fn nap(&self, longest: Duration) -> Duration {
        match self.on_idle.get() {
            Some(_) => longest.min(LONGEST_NAP_BESIDE),
            None => longest,
        }
    }

    /// Whether more threads want a core than there are cores, and than there are ranks here: a
    /// yield may take long as well while other ranks move long messages, and then it pays. What
    /// wants a core, but never gets one before this thread does, does not count.
    #[cold]
    fn others_compute(&self) -> bool {
        let Some(bell) = &self.bell else { return false };
        if is_realtime() {
            return false;
        }
        runnable().is_some_and(|runnable| runnable > self.n_cores.max(bell.n_ranks()))
    }

    /// A yield did not take long.
    fn yielded_quickly(&self) {
        let quick = self.quick.load(Ordering::Relaxed);
        if quick < MANY_YIELDS {
            self.quick.store(quick + 1, Ordering::Relaxed);
            if quick + 1 == MANY_YIELDS {
                self.last_sleepy.store(0, Ordering::Relaxed);
            }
        }
    }

    /// A yield took long; `beside_others` if not only other ranks have made use of it.
    #[cold]
    fn yielded_slowly(&self, beside_others: bool) {
        if !beside_others {
            self.slow.store(0, Ordering::Relaxed);
            return self.yielded_quickly();
        }
        let goes_on = self.quick.swap(0, Ordering::Relaxed) <= FEW_YIELDS;
        let slow = if goes_on { self.slow.load(Ordering::Relaxed) + 1 } else { 1 };
        let last = self.last_sleepy.load(Ordering::Relaxed);
        let enough = if last == 0 { SLOW_YIELDS.0 } else { SLOW_YIELDS.1 };
        self.slow.store(slow % enough, Ordering::Relaxed);
        if slow < enough {
            return;
        }
        let (least, most) = SLEEPY_WAITS;
        let waits = (2 * last).clamp(least, most);
        self.last_sleepy.store(waits, Ordering::Relaxed);
        self.sleepy.store(waits, Ordering::Relaxed);
    }

    /// A wait has slept.
    fn slept(&self) {
        let sleepy = self.sleepy.load(Ordering::Relaxed);
        self.sleepy.store(sleepy.saturating_sub(1), Ordering::Relaxed);
    }
}

/// Threads that run or could run now, of all programs; `None` if the system does not tell. Allocates
/// nothing, as waiting never does.
fn runnable() -> Option<usize> {
    let mut text = [0; 128];
    let len = File::open("/proc/loadavg").ok()?.read(&mut text).ok()?;
    let text = std::str::from_utf8(&text[..len]).ok()?;
    text.split_ascii_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

/// A clock that goes by the system's ticks, of 1 to 10 ms: a fifth of the price of the exact one.
fn coarse_now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Whether this thread runs before all that is not at real-time priority, and so yields to ranks
/// alone.
fn is_realtime() -> bool {
    // SAFETY: no memory is involved.
    let policy = unsafe { libc::sched_getscheduler(0) };
    policy == libc::SCHED_FIFO || policy == libc::SCHED_RR
}

/// One wait.
#[derive(Debug)]
pub struct Backoff {
    own_core: bool,
    rounds: u32,
    /// When this wait first looked at the clock.
    start: Option<Instant>,
    /// When its last yield ended, by the coarse clock.
    yielded: Option<Duration>,
    nap: Option<Duration>,
    /// The bell that rings if something comes, and its number.
    armed: Option<(Arc<dyn Bell>, u32)>,
}

impl Drop for Backoff {
    fn drop(&mut self) {
        self.reset();
    }
}

impl Backoff {
    /// A wait; `own_core` says whether it may keep its core busy.
    pub fn new(own_core: bool) -> Self {
        Backoff { own_core, rounds: 0, start: None, yielded: None, nap: None, armed: None }
    }

    /// Something has happened.
    #[inline]
    pub fn reset(&mut self) {
        if self.rounds != 0 {
            (self.rounds, self.start, self.yielded, self.nap) = (0, None, None, None);
            if let Some((bell, _)) = self.armed.take() {
                bell.disarm();
            }
        }
    }

    /// Calls whoever else wants to move on while this rank waits, if it is time.
    fn call_others(&self, waits: &Waits, spins: bool) {
        let (first, every) = ROUNDS_PER_CALL;
        let is_due = self.rounds >= first && (!spins || self.rounds.is_multiple_of(every));
        if (is_due || self.armed.is_some())
            && let Some(on_idle) = waits.on_idle.get()
        {
            on_idle();
        }
    }

    /// Nothing has happened: waits a little, as long as seems right; `waits` are those of this
    /// rank. Returns whether it is time to look at the clock: not each time.
    #[inline]
    pub fn idle(&mut self, waits: &Waits) -> bool {
        self.rounds = self.rounds.wrapping_add(1).max(1);
        // Short waits on a core of their own do nothing else.
        if self.own_core
            && self.rounds < SPIN_ROUNDS_BESIDE_OTHERS
            && waits.time.of_wire().is_none()
        {
            std::hint::spin_loop();
            return false;
        }
        self.idle_longer(waits)
    }

    #[inline(never)]
    fn idle_longer(&mut self, waits: &Waits) -> bool {
        let sleepy = waits.are_sleepy();
        let spins = self.own_core && !sleepy && self.rounds < SPIN_ROUNDS;
        self.call_others(waits, spins);
        if let Some(clock) = waits.time.of_wire() {
            return self.pause(clock);
        }
        if spins {
            std::hint::spin_loop();
            return false;
        }
        if let Some((bell, number)) = &mut self.armed {
            let longest = self.nap.unwrap_or(SLEEPS.0);
            bell.sleep(*number, waits.nap(longest));
            *number = bell.number();
            self.nap = Some((longest * 2).min(SLEEPS.1));
            return true;
        }
        if let Some(bell) = waits.bell.as_ref().filter(|_| sleepy || self.nap.is_some()) {
            // Another poll comes before it sleeps.
            self.armed = Some((bell.clone(), bell.arm()));
            self.nap = None;
            waits.slept();
            return false;
        }
        if let Some(nap) = self.nap {
            std::thread::sleep(waits.nap(nap));
            self.nap = Some((nap * 2).min(NAPS.1));
            return true;
        }
        self.give_way(waits)
    }

    /// The wire has a clock of its own.
    #[cold]
    fn pause(&mut self, clock: &dyn Clock) -> bool {
        let longest = self.nap.unwrap_or(PAUSES.0);
        clock.pause(longest);
        self.nap = Some((longest * 2).min(PAUSES.1));
        true
    }

    fn give_way(&mut self, waits: &Waits) -> bool {
        if waits.bell.is_none() {
            std::thread::yield_now();
        } else {
            let before = self.yielded.unwrap_or_else(coarse_now);
            std::thread::yield_now();
            let now = coarse_now();
            self.yielded = Some(now);
            if now.saturating_sub(before) > SLOW_YIELD {
                waits.yielded_slowly(waits.others_compute());
            } else {
                waits.yielded_quickly();
            }
        }
        if !self.rounds.is_multiple_of(YIELDS_PER_LOOK) {
            return false;
        }
        let start = *self.start.get_or_insert_with(Instant::now);
        if !self.own_core && start.elapsed() > YIELD_TIME {
            self.nap = Some(NAPS.0);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_waits_nap_without_a_core_until_there_is_progress() {
        let waits = Waits::default();
        let mut backoff = Backoff::new(false);
        while backoff.nap.is_none() {
            backoff.idle(&waits);
        }
        backoff.reset();
        assert!(backoff.nap.is_none() && backoff.start.is_none());
        let (mut backoff, start) = (Backoff::new(true), Instant::now());
        while start.elapsed() < YIELD_TIME * 2 {
            backoff.idle(&waits);
        }
        assert!(backoff.nap.is_none());
    }

    #[test]
    fn others_are_called_rarely_by_who_spins_and_in_each_round_by_who_gives_way() {
        for (own_core, n_calls) in [(false, 100 - 31), (true, 9)] {
            let called = Arc::new(AtomicU32::new(0));
            let waits = Waits::default();
            assert_eq!(waits.nap(SLEEPS.1), SLEEPS.1);
            let calls = called.clone();
            let on_idle = Box::new(move || _ = calls.fetch_add(1, Ordering::Relaxed));
            assert!(waits.on_idle.set(on_idle).is_ok());
            assert_eq!(waits.nap(SLEEPS.1), LONGEST_NAP_BESIDE);
            let mut backoff = Backoff::new(own_core);
            (0..100).for_each(|_| _ = backoff.idle(&waits));
            assert_eq!(called.load(Ordering::Relaxed), n_calls);
        }
    }

    /// A bell that counts its armed threads and those that slept, for so many ranks.
    #[derive(Debug, Default)]
    struct Counter(AtomicU32, AtomicU32, usize);

    impl Bell for Counter {
        fn arm(&self) -> u32 {
            self.0.fetch_add(1, Ordering::Relaxed)
        }
        fn number(&self) -> u32 {
            0
        }
        fn sleep(&self, _: u32, longest: Duration) {
            assert!(longest <= SLEEPS.1);
            self.1.fetch_add(1, Ordering::Relaxed);
        }
        fn n_ranks(&self) -> usize {
            self.2
        }
        fn ring(&self) {}
        fn disarm(&self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn this_thread_runs() {
        assert!(runnable() >= Some(1));
    }

    #[test]
    fn slow_yields_count_where_more_threads_run_than_cores_or_ranks_explain() {
        let are_sleepy = |n_cores, n_ranks, n_quick| {
            let bell = Arc::new(Counter(0.into(), 0.into(), n_ranks));
            let waits = Waits { n_cores, ..Waits::new(Some(bell), Time::default()) };
            // Waits whose last yields ended so early that the next one takes long, or no time at all.
            let yields = |n, ended| {
                for _ in 0..n {
                    let mut backoff = Backoff::new(false);
                    backoff.yielded = Some(ended);
                    backoff.idle(&waits);
                    assert_ne!(backoff.yielded, Some(ended));
                }
            };
            yields(SLOW_YIELDS.0 - 1, Duration::ZERO);
            yields(n_quick, Duration::MAX);
            yields(1, Duration::ZERO);
            waits.are_sleepy()
        };
        // One thread runs at least, this one. At real-time priority only ranks are yielded to.
        assert_eq!(are_sleepy(0, 0, FEW_YIELDS), !is_realtime());
        assert!(!are_sleepy(0, 0, FEW_YIELDS + 1), "accidents");
        assert!(!are_sleepy(usize::MAX, 0, 0) && !are_sleepy(0, usize::MAX, 0));
    }

    #[test]
    fn waits_sleep_after_slow_yields_and_try_again_later() {
        let bell = Arc::new(Counter::default());
        let waits = Waits::new(Some(bell.clone()), Time::default());
        // A few slow yields may be an accident, and many if only ranks make use of them.
        let (enough, enough_later) = SLOW_YIELDS;
        (1..enough).for_each(|_| waits.yielded_slowly(true));
        waits.yielded_slowly(false);
        (1..enough).for_each(|_| waits.yielded_slowly(true));
        (0..=FEW_YIELDS).for_each(|_| waits.yielded_quickly());
        (1..enough).for_each(|_| waits.yielded_slowly(true));
        assert!(!waits.are_sleepy());
        waits.yielded_slowly(true);
        for own_core in [false, true] {
            assert!(waits.are_sleepy());
            let mut n_waits = 0;
            while waits.are_sleepy() {
                let mut backoff = Backoff::new(own_core);
                let before = bell.1.load(Ordering::Relaxed);
                while bell.1.load(Ordering::Relaxed) == before {
                    backoff.idle(&waits);
                }
                assert_eq!(bell.0.load(Ordering::Relaxed), 1, "armed while it waits");
                drop(backoff);
                assert_eq!(bell.0.load(Ordering::Relaxed), 0, "and only then");
                n_waits += 1;
            }
            // The second time they are twice as many.
            assert_eq!(n_waits, if own_core { 2 } else { 1 } * SLEEPY_WAITS.0);
            (0..enough_later).for_each(|_| waits.yielded_slowly(true));
        }
        // Once the others are gone, all starts anew.
        waits.sleepy.store(0, Ordering::Relaxed);
        (0..MANY_YIELDS).for_each(|_| waits.yielded_quickly());
        (0..enough_later).for_each(|_| waits.yielded_slowly(true));
        assert!(!waits.are_sleepy());
        (enough_later..enough).for_each(|_| waits.yielded_slowly(true));
        assert_eq!(waits.sleepy.load(Ordering::Relaxed), SLEEPY_WAITS.0);
    }
}
