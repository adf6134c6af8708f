//! How a thread waits: it spins, yields, or sleeps.
//!
//! A waiter with a core of its own spins, then yields, and never naps: a nap costs more than most waits. If ranks
//! outnumber cores, spinning keeps the awaited rank from running, and yielding at once is 4 to 12 times faster than
//! sleeping in the kernel. Only long waits sleep, so that idle ranks leave the cores to busy ones.
//!
//! This assumes that other programs yield too. A program that computes uses the whole time slice that a yield gives
//! it, several milliseconds, whereas a thread that is woken runs at once. So if yields take that long, and more
//! threads than the ranks want cores, this wait and some following ones sleep instead, if there is a bell to wake the
//! thread ([`Bell`]).
//!
//! Another library may make progress only when it is called, as MPI does ([`OnIdle`]): peers may then wait for this
//! rank's thread although no bell rings. The library is called more often if the core is given away anyway, and naps
//! are short.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::endpoint::{Bell, Clock, Time};

/// Polling rounds before a waiter with its own core first yields. More rounds would help it little (a yield on a core
/// of its own costs 1 us), and would hurt a rank whose core turns out to be busy with something else.
const SPIN_ROUNDS: u32 = 300;
/// The same if other programs are known to compute on the same cores.
const SPIN_ROUNDS_BESIDE_OTHERS: u32 = 30;
/// Time without progress after which a waiter without its own core naps.
const YIELD_TIME: Duration = Duration::from_millis(10);
/// A yield that takes longer has let a program run that does not yield.
const SLOW_YIELD: Duration = Duration::from_millis(1);
/// First and longest nap if no bell wakes the thread.
const NAPS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));
/// First and longest sleep if a bell wakes the thread: the awaited event may come without a ring, or concern other
/// ranks.
const SLEEPS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(4));
/// Number of waits that sleep before one tries to yield again: at first, and at most.
const SLEEPING_WAITS: (u32, u32) = (256, 2048);
/// Number of slow yields beside other programs, with at most [`FEW_YIELDS`] quick ones between two of them, that
/// count as contention; fewer may be an accident, such as a short-lived system thread. The second number applies if
/// waits have slept lately.
const SLOW_YIELDS: (u32, u32) = (8, 3);
const FEW_YIELDS: u32 = 8;
/// After this many quick yields the cores count as free again.
const MANY_YIELDS: u32 = 1000;
/// Rounds before the first call of [`OnIdle`], so that short waits cost nothing, and rounds between two calls while a
/// waiter spins.
const ROUNDS_PER_CALL: (u32, u32) = (32, 8);
/// Longest nap if there is an [`OnIdle`].
const LONGEST_NAP_BESIDE: Duration = Duration::from_micros(250);
/// Yields between two looks at the clock.
const YIELDS_PER_LOOK: u32 = 8;
/// First and longest pause on a wire's own clock; short enough that the watchdog counts all of it.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(64));

/// A function that a waiting thread calls from time to time.
pub type OnIdle = Box<dyn Fn() + Send + Sync>;

/// State that the waits of a rank share.
pub struct Waits {
    bell: Option<Arc<dyn Bell>>,
    /// Progress function of another library.
    pub(crate) on_idle: OnceLock<OnIdle>,
    pub(crate) time: Time,
    /// Cores that this process may use.
    n_cores: usize,
    /// Number of further waits that sleep before one yields again.
    sleeps_left: AtomicU32,
    /// Initial value of `sleeps_left` the last time.
    last_sleeps: AtomicU32,
    /// Quick yields since the last slow one beside other programs.
    quick_yields: AtomicU32,
    /// Slow yields beside other programs in a row.
    slow_yields: AtomicU32,
}

impl Default for Waits {
    fn default() -> Self {
        Waits::new(None, Time::default())
    }
}

impl Waits {
    /// `bell` rings whenever something may have arrived; `time` is the clock for waits.
    pub(crate) fn new(bell: Option<Arc<dyn Bell>>, time: Time) -> Self {
        let quick_yields = AtomicU32::new(MANY_YIELDS);
        let n_cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let (on_idle, sleeps_left, last_sleeps, slow_yields) = Default::default();
        Waits { bell, on_idle, time, n_cores, sleeps_left, last_sleeps, quick_yields, slow_yields }
    }

    // All of the atomics are Relaxed: a miscounted wait only waits in the other way.

    fn should_sleep(&self) -> bool {
        self.sleeps_left.load(Ordering::Relaxed) != 0
    }

    /// Longest nap, which without [`OnIdle`] is `longest`.
    fn nap(&self, longest: Duration) -> Duration {
        match self.on_idle.get() {
            Some(_) => longest.min(LONGEST_NAP_BESIDE),
            None => longest,
        }
    }

    /// Whether more threads want a core than there are cores, and than there are ranks here. (A yield may also take
    /// long while other ranks move long messages, but then it is worth its time.) At real-time priority this is
    /// false: other programs never get a core before this thread.
    #[cold]
    fn others_compute(&self) -> bool {
        let Some(bell) = &self.bell else { return false };
        if is_realtime() {
            return false;
        }
        runnable().is_some_and(|runnable| runnable > self.n_cores.max(bell.n_ranks()))
    }

    /// Notes a quick yield.
    fn note_quick_yield(&self) {
        let quick = self.quick_yields.load(Ordering::Relaxed);
        if quick < MANY_YIELDS {
            self.quick_yields.store(quick + 1, Ordering::Relaxed);
            if quick + 1 == MANY_YIELDS {
                self.last_sleeps.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Notes a slow yield; `beside_others` if not only other ranks have used it.
    #[cold]
    fn note_slow_yield(&self, beside_others: bool) {
        if !beside_others {
            self.slow_yields.store(0, Ordering::Relaxed);
            return self.note_quick_yield();
        }
        let goes_on = self.quick_yields.swap(0, Ordering::Relaxed) <= FEW_YIELDS;
        let slow = if goes_on { self.slow_yields.load(Ordering::Relaxed) + 1 } else { 1 };
        let last = self.last_sleeps.load(Ordering::Relaxed);
        let enough = if last == 0 { SLOW_YIELDS.0 } else { SLOW_YIELDS.1 };
        self.slow_yields.store(slow % enough, Ordering::Relaxed);
        if slow < enough {
            return;
        }
        let (least, most) = SLEEPING_WAITS;
        let waits = (2 * last).clamp(least, most);
        self.last_sleeps.store(waits, Ordering::Relaxed);
        self.sleeps_left.store(waits, Ordering::Relaxed);
    }

    /// Notes that a wait has slept.
    fn note_sleep(&self) {
        let sleeps_left = self.sleeps_left.load(Ordering::Relaxed);
        self.sleeps_left.store(sleeps_left.saturating_sub(1), Ordering::Relaxed);
    }
}

/// Runnable threads of all programs; `None` if the system does not report them. Does not allocate, as no wait does.
fn runnable() -> Option<usize> {
    let mut text = [0; 128];
    let len = File::open("/proc/loadavg").ok()?.read(&mut text).ok()?;
    let text = std::str::from_utf8(&text[..len]).ok()?;
    text.split_ascii_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

/// Time of the clock that advances by system ticks, of 1 to 10 ms; it costs a fifth of the exact clock.
fn coarse_now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Whether this thread has real-time priority, so that it runs before threads without, and yields only to ranks.
fn is_realtime() -> bool {
    // SAFETY: no memory is involved.
    let policy = unsafe { libc::sched_getscheduler(0) };
    policy == libc::SCHED_FIFO || policy == libc::SCHED_RR
}

/// The state of one wait.
#[derive(Debug)]
pub struct Backoff {
    own_core: bool,
    rounds: u32,
    /// Time of this wait's first look at the clock.
    start: Option<Instant>,
    /// End of this wait's last yield, by the coarse clock.
    yielded: Option<Duration>,
    nap: Option<Duration>,
    /// The armed bell, and its number when it was last read.
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

    /// Resets the wait after something has happened.
    #[inline]
    pub fn reset(&mut self) {
        if self.rounds != 0 {
            (self.rounds, self.start, self.yielded, self.nap) = (0, None, None, None);
            if let Some((bell, _)) = self.armed.take() {
                bell.disarm();
            }
        }
    }

    /// Calls the [`OnIdle`], if it is due.
    fn call_on_idle(&self, waits: &Waits, spins: bool) {
        let (first, every) = ROUNDS_PER_CALL;
        let is_due = self.rounds >= first && (!spins || self.rounds.is_multiple_of(every));
        if (is_due || self.armed.is_some())
            && let Some(on_idle) = waits.on_idle.get()
        {
            on_idle();
        }
    }

    /// Waits a little, after nothing has happened; `waits` is the rank's shared state. Returns whether to look at the
    /// clock, which is not due each time.
    #[inline]
    pub fn idle(&mut self, waits: &Waits) -> bool {
        self.rounds = self.rounds.wrapping_add(1).max(1);
        // Short waits on a core of their own only spin.
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
        let sleeps = waits.should_sleep();
        let spins = self.own_core && !sleeps && self.rounds < SPIN_ROUNDS;
        self.call_on_idle(waits, spins);
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
        if let Some(bell) = waits.bell.as_ref().filter(|_| sleeps || self.nap.is_some()) {
            // The caller polls once more before this thread sleeps.
            self.armed = Some((bell.clone(), bell.arm()));
            self.nap = None;
            waits.note_sleep();
            return false;
        }
        if let Some(nap) = self.nap {
            std::thread::sleep(waits.nap(nap));
            self.nap = Some((nap * 2).min(NAPS.1));
            return true;
        }
        self.yield_core(waits)
    }

    /// Pauses on the wire's own clock.
    #[cold]
    fn pause(&mut self, clock: &dyn Clock) -> bool {
        let longest = self.nap.unwrap_or(PAUSES.0);
        clock.pause(longest);
        self.nap = Some((longest * 2).min(PAUSES.1));
        true
    }

    fn yield_core(&mut self, waits: &Waits) -> bool {
        if waits.bell.is_none() {
            std::thread::yield_now();
        } else {
            let before = self.yielded.unwrap_or_else(coarse_now);
            std::thread::yield_now();
            let now = coarse_now();
            self.yielded = Some(now);
            if now.saturating_sub(before) > SLOW_YIELD {
                waits.note_slow_yield(waits.others_compute());
            } else {
                waits.note_quick_yield();
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

    /// A bell that counts armed threads and sleeps, for the number of ranks in the last field.
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
        let should_sleep = |n_cores, n_ranks, n_quick| {
            let bell = Arc::new(Counter(0.into(), 0.into(), n_ranks));
            let waits = Waits { n_cores, ..Waits::new(Some(bell), Time::default()) };
            // Waits whose last yield seems to have ended so early, or so late, that the next one is slow, or quick.
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
            waits.should_sleep()
        };
        // At least this thread runs. At real-time priority it yields only to ranks.
        assert_eq!(should_sleep(0, 0, FEW_YIELDS), !is_realtime());
        assert!(!should_sleep(0, 0, FEW_YIELDS + 1), "accidents");
        assert!(!should_sleep(usize::MAX, 0, 0) && !should_sleep(0, usize::MAX, 0));
    }

    #[test]
    fn waits_sleep_after_slow_yields_and_try_again_later() {
        let bell = Arc::new(Counter::default());
        let waits = Waits::new(Some(bell.clone()), Time::default());
        // A few slow yields may be an accident, and so may many if only ranks use them.
        let (enough, enough_later) = SLOW_YIELDS;
        (1..enough).for_each(|_| waits.note_slow_yield(true));
        waits.note_slow_yield(false);
        (1..enough).for_each(|_| waits.note_slow_yield(true));
        (0..=FEW_YIELDS).for_each(|_| waits.note_quick_yield());
        (1..enough).for_each(|_| waits.note_slow_yield(true));
        assert!(!waits.should_sleep());
        waits.note_slow_yield(true);
        for own_core in [false, true] {
            assert!(waits.should_sleep());
            let mut n_waits = 0;
            while waits.should_sleep() {
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
            assert_eq!(n_waits, if own_core { 2 } else { 1 } * SLEEPING_WAITS.0);
            (0..enough_later).for_each(|_| waits.note_slow_yield(true));
        }
        // After many quick yields the cores are free, and everything starts anew.
        waits.sleeps_left.store(0, Ordering::Relaxed);
        (0..MANY_YIELDS).for_each(|_| waits.note_quick_yield());
        (0..enough_later).for_each(|_| waits.note_slow_yield(true));
        assert!(!waits.should_sleep());
        (enough_later..enough).for_each(|_| waits.note_slow_yield(true));
        assert_eq!(waits.sleeps_left.load(Ordering::Relaxed), SLEEPING_WAITS.0);
    }
}
