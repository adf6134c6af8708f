//! Stamps: a counter that all cores have in common where there is one, and what its ticks are in nanoseconds.

use std::sync::Arc;

use crate::endpoint::Clock;

/// What stamps are taken from.
#[derive(Clone, Debug)]
pub(crate) enum Ticks {
    /// The processor's counter, which runs at one rate whatever the core does: x86-64's time stamp counter where
    /// it is invariant, AArch64's virtual counter.
    Counter {
        /// The counter and `CLOCK_MONOTONIC` at one time.
        at: [u64; 2],
    },
    /// `CLOCK_MONOTONIC`, ns.
    Nanoseconds,
    /// The wire's own clock, ns since its time 0.
    Wire(Arc<dyn Clock>),
}

/// `CLOCK_MONOTONIC`, ns: the same clock for all processes of a host.
pub(super) fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The processor's counter.
#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The processor's counter.
#[cfg(target_arch = "aarch64")]
#[inline]
fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: reads a register that Linux lets every program read.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter() -> u64 {
    0
}

/// Whether the counter has one rate (Intel's manual, volume 3B, 19.17.1: "Invariant TSC").
#[cfg(target_arch = "x86_64")]
fn is_steady() -> bool {
    use std::arch::x86_64::__cpuid;
    // Not unsafe any more in later versions of the standard library.
    #[allow(unused_unsafe, reason = "depends on the compiler's version")]
    // SAFETY: every x86-64 processor has the instruction; what leaves it has is in leaf 0x8000_0000.
    unsafe {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx >> 8 & 1 == 1
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn is_steady() -> bool {
    cfg!(target_arch = "aarch64")
}

impl Ticks {
    /// Those of a wire that has a clock; else the cheapest that the machine has.
    pub(super) fn new(of_wire: Option<Arc<dyn Clock>>) -> Self {
        match of_wire {
            Some(clock) => Ticks::Wire(clock),
            None if is_steady() => Ticks::Counter { at: both() },
            None => Ticks::Nanoseconds,
        }
    }

    #[inline]
    pub(super) fn now(&self) -> u64 {
        match self {
            Ticks::Counter { .. } => counter(),
            Ticks::Nanoseconds => monotonic_ns(),
            Ticks::Wire(clock) => clock.elapsed().as_nanos() as u64,
        }
    }

    /// The nanoseconds that ticks stand for, by the rate that the counter has had since these were made.
    pub(super) fn scale(&self) -> Scale {
        match self {
            Ticks::Counter { at: [ticks, ns] } => {
                let [ticks_now, ns_now] = both();
                let n_ticks = ticks_now.saturating_sub(*ticks).max(1);
                let rate = ns_now.saturating_sub(*ns) as f64 / n_ticks as f64;
                Scale { ticks: *ticks, ns: *ns, rate }
            }
            Ticks::Nanoseconds | Ticks::Wire(_) => Scale { ticks: 0, ns: 0, rate: 1.0 },
        }
    }

    /// Whether the time is the wire's own.
    pub(super) fn is_virtual(&self) -> bool {
        matches!(self, Ticks::Wire(_))
    }
}

/// The counter and `CLOCK_MONOTONIC` at one time, to some tens of nanoseconds: of a few looks the quickest, as
/// the thread may lose its core in the middle of one.
fn both() -> [u64; 2] {
    let look = || {
        let before = counter();
        let ns = monotonic_ns();
        let took = counter().saturating_sub(before);
        (took, [before + took / 2, ns])
    };
    let looks: [_; 8] = std::array::from_fn(|_| look());
    looks.into_iter().min_by_key(|(took, _)| *took).map_or([0; 2], |(_, both)| both)
}

/// What ticks are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    ticks: u64,
    ns: u64,
    rate: f64,
}

impl Scale {
    /// Whole nanoseconds, on the scale of `CLOCK_MONOTONIC` or the wire's.
    pub(super) fn ns(&self, ticks: u64) -> u64 {
        let since = ticks.wrapping_sub(self.ticks) as i64;
        match self.rate {
            1.0 => self.ns.wrapping_add_signed(since),
            rate => self.ns.saturating_add_signed((since as f64 * rate).round() as i64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stamp between two looks at the clock lies between them, as far as the two are known to fit together.
    #[test]
    fn ticks_become_the_time_of_the_clock() {
        let ticks = Ticks::new(None);
        let before = monotonic_ns();
        let stamp = ticks.now();
        let after = monotonic_ns();
        while monotonic_ns() < after + 2_000_000 {}
        let ns = ticks.scale().ns(stamp);
        assert!((before..=after + 1_000_000).contains(&(ns + 500_000)), "{before} {ns} {after}");
    }

    #[test]
    fn a_scale_goes_both_ways_from_where_it_was_set() {
        let scale = Scale { ticks: 1000, ns: 50_000, rate: 0.5 };
        assert_eq!([900, 1000, 1200].map(|ticks| scale.ns(ticks)), [49_950, 50_000, 50_100]);
        let same = Scale { ticks: 0, ns: 0, rate: 1.0 };
        // Exactly, whatever an f64 can hold.
        assert_eq!(same.ns((1 << 62) + 1), (1 << 62) + 1);
    }
}
