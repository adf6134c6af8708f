//! Time stamps: a counter common to all cores if the machine has one, and its conversion to nanoseconds.

use std::sync::Arc;

use crate::endpoint::Clock;

/// The source of time stamps.
#[derive(Clone, Debug)]
pub(crate) enum Ticks {
    /// The processor's counter at a constant rate, independent of the core's frequency: the time stamp counter of
    /// x86-64 if it is invariant, the virtual counter of AArch64.
    Counter {
        /// Counter and `CLOCK_MONOTONIC` (ns), sampled at the same time.
        at: [u64; 2],
    },
    /// `CLOCK_MONOTONIC`, ns.
    Nanoseconds,
    /// The wire's own clock, ns since its time 0.
    Wire(Arc<dyn Clock>),
}

/// `CLOCK_MONOTONIC`, ns: all processes of a host share it.
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
    // SAFETY: reads a register that Linux makes readable for user code.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter() -> u64 {
    0
}

/// Whether the counter has a constant rate (Intel's manual, volume 3B, 19.17.1: "Invariant TSC").
#[cfg(target_arch = "x86_64")]
fn is_steady() -> bool {
    use std::arch::x86_64::__cpuid;
    // `__cpuid` is safe in later versions of the standard library.
    #[allow(unused_unsafe, reason = "depends on the compiler's version")]
    // SAFETY: every x86-64 processor has the instruction; leaf 0x8000_0000 gives the highest leaf available.
    unsafe {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx >> 8 & 1 == 1
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn is_steady() -> bool {
    cfg!(target_arch = "aarch64")
}

impl Ticks {
    /// The wire's clock if it has one; otherwise the cheapest source of the machine.
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

    /// The conversion of ticks to nanoseconds, by the counter's mean rate since `self` was created.
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

    /// Whether the time is that of a wire with a clock of its own.
    pub(super) fn is_virtual(&self) -> bool {
        matches!(self, Ticks::Wire(_))
    }
}

/// Counter and `CLOCK_MONOTONIC` at the same time, to some tens of nanoseconds. Of 8 samples the quickest counts,
/// since the thread may lose its core during a sample.
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

/// A conversion of ticks to nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    ticks: u64,
    ns: u64,
    rate: f64,
}

impl Scale {
    /// Nanoseconds of `CLOCK_MONOTONIC` or of the wire's clock.
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

    /// A stamp taken between two readings of the clock lies between them, within the accuracy of the conversion.
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
        // Exact, beyond the integers that an f64 represents.
        assert_eq!(same.ns((1 << 62) + 1), (1 << 62) + 1);
    }
}
