//! Measures the table's `stage_bytes`, for systems on which no registration can be kept: the size up to which copies
//! through registered memory are faster than registering the call's buffers each time.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use hopbine::reduce::Op;
use hopbine::{CacheMode, CallOptions, Communicator, Error, Hardware};
use hopbine_torus::{Collective, sizes as units};
use serde::{Deserialize, Serialize};

use super::cell::agreed;
use super::median::Median;

/// Exponents of the sizes, powers of two in bytes.
const SIZES: std::ops::RangeInclusive<u32> = 16..=24;

/// For each size in bytes, the ratio of the time with copies to the time with registrations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StagingRatios(Vec<(u64, Median)>);

impl StagingRatios {
    /// The size that minimises the product of the ratios up to it, so that no single disturbed ratio decides; 0 if
    /// copies are slower even at the first size, `None` if no call registered memory.
    pub fn bytes(&self) -> Option<u64> {
        let (mut product, mut least) = (1.0, (1.0, self.0.first().map(|_| 0)));
        for (bytes, ratio) in &self.0 {
            product *= ratio.value;
            if product < least.0 {
                least = (product, Some(*bytes));
            }
        }
        least.1
    }

    /// The measurements as text.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        if !self.0.is_empty() {
            text.push_str(
                "An allreduce on one port that copies, over one that registers its buffers (99 % interval):\n",
            );
        }
        for (bytes, Median { value, low, high }) in &self.0 {
            let _ = writeln!(
                text,
                "    {:>8}: {value:.2} ({low:.2} to {high:.2})",
                units::show(*bytes)
            );
        }
        text
    }
}

/// Measures size by size until registrations are certainly cheaper. `None` if registrations are kept or not needed,
/// or if the time ends before. All ranks get the same result.
///
/// # Errors
/// The errors of the collectives.
pub fn staging(
    world: &Communicator,
    start: Instant,
    time: Duration,
) -> Result<Option<StagingRatios>, Error> {
    let keeps = |mode| matches!(mode, CacheMode::Events { .. } | CacheMode::Trusted { .. });
    let mut kept = [u64::from(world.cache_stats().is_none_or(|stats| keeps(stats.mode)))];
    world.allreduce_in_place(&mut kept, Op::Max)?;
    if kept != [0] {
        return Ok(None);
    }
    // On one port a call needs two registrations, and `stage_bytes` is defined per two registrations.
    let plan = CallOptions::new().ports(1).hardware(Hardware::Never);
    let [copies, registers] =
        [u64::MAX, 0].map(|up_to| world.with(plan.clone().stage_bytes(up_to)));
    let mut found = StagingRatios::default();
    for bytes in SIZES.map(|log| 1u64 << log) {
        if agreed(world, start.elapsed() >= time)? {
            return Ok(None);
        }
        let case = super::call(world.size(), Collective::Allreduce, bytes).case;
        let ratio = super::with_bench(world, case, |mut bench| {
            let anew = registers_anew(world, || bench.call(&registers))?;
            anew.then(|| bench.compare(&copies, &registers)).transpose()
        })?;
        let Some(ratio) = ratio else { continue };
        found.0.push((bytes, ratio));
        if ratio.low >= 1.0 {
            break;
        }
    }
    Ok(Some(found))
}

/// Whether the second of two calls registers memory on some rank.
fn registers_anew(
    world: &Communicator,
    mut call: impl FnMut() -> Result<(), Error>,
) -> Result<bool, Error> {
    let made = || world.cache_stats().map_or(0, |stats| stats.registrations);
    call()?;
    let before = made();
    call()?;
    let mut anew = [made() - before];
    world.allreduce_in_place(&mut anew, Op::Max)?;
    Ok(anew != [0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_copies_save_up_to_a_size_decides() {
        let of = |ratios: &[f64]| {
            let at = |(log, &value): (usize, &f64)| {
                (1u64 << (16 + log), Median { value, low: value, high: value })
            };
            StagingRatios(ratios.iter().enumerate().map(at).collect())
        };
        for (ratios, bytes) in [
            (&[][..], None),
            (&[1.2], Some(0)),
            (&[0.4, 0.7, 1.0], Some(128 << 10)),
            (&[0.4, 1.1, 0.7, 1.3], Some(256 << 10)),
            (&[0.4, 1.3, 0.9, 1.3], Some(64 << 10)),
            (&[0.4, 0.7], Some(128 << 10)),
        ] {
            assert_eq!(of(ratios).bytes(), bytes, "{ratios:?}");
        }
        assert_eq!(of(&[]).summary(), "");
        let summary = of(&[0.4, 1.1]).summary();
        assert!(
            summary.contains("64 KiB: 0.40 (0.40 to 0.40)\n") && summary.contains("128 KiB: 1.10"),
            "{summary}"
        );
    }
}
