//! Where memory of the ranks' programs is: places that the seed chooses, by sizes and by the order of calls, never by
//! addresses.

use std::ops::Range;
use std::slice;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Rank;
use crate::memory::{Pages, page_bytes};

/// Places are chosen by units of so many bytes, on every machine; a unit is a page where pages are longer.
pub(super) const UNIT: usize = 4096;
/// Units that are asked of the system at once, at least.
const AREA: usize = 64;
/// What unmapped memory holds.
pub(super) const GONE: u8 = 0xdd;

/// Units in a row that belong to a rank and are not mapped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Free {
    pub(super) start: usize,
    pub(super) n_units: usize,
    /// They were mapped before.
    pub(super) is_gone: bool,
}

/// The memory of all ranks' programs.
#[derive(Debug)]
pub(super) struct SimHeap {
    /// Its own, so that a wire without registrations goes its way whatever programs map.
    rng: Xoshiro256PlusPlus,
    areas: Vec<Pages>,
    /// By rank, in the order in which they came.
    pub(super) free: Vec<Vec<Free>>,
    unit: usize,
}

impl SimHeap {
    pub(super) fn new(seed: u64, n_ranks: usize) -> Self {
        SimHeap {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x6d65_6d6f_7279),
            areas: Vec::new(),
            free: vec![Vec::new(); n_ranks],
            unit: UNIT.max(page_bytes()),
        }
    }

    /// Maps units of a rank: their address, and whether they were mapped before.
    pub(super) fn map(&mut self, rank: Rank, n_units: usize) -> Free {
        let free = &mut self.free[rank as usize];
        let fits = |free: &Free| free.n_units >= n_units;
        if !free.iter().any(fits) {
            let n_units = n_units.max(AREA);
            // More than the address space is refused there.
            let area = Pages::new(n_units.saturating_mul(self.unit) as u64);
            let area = area.unwrap_or_else(|error| panic!("memory of a simulated rank: {error}"));
            free.push(Free { start: area.ptr().expose_provenance(), n_units, is_gone: false });
            self.areas.push(area);
        }
        let fitting: Vec<usize> = (0..free.len()).filter(|&at| fits(&free[at])).collect();
        // Half of the time what was unmapped last, as allocators do.
        let at = match self.rng.random() {
            true => fitting.len() - 1,
            false => self.rng.random_range(0..fitting.len()),
        };
        let whole = free.remove(fitting[at]);
        let left = whole.n_units - n_units;
        let before = if self.rng.random_bool(0.75) { 0 } else { self.rng.random_range(0..=left) };
        let part =
            |from: usize, n_units| Free { start: whole.start + from * self.unit, n_units, ..whole };
        let rest = [part(0, before), part(before + n_units, left - before)];
        free.extend(rest.into_iter().filter(|part| part.n_units > 0));
        part(before, n_units)
    }

    /// Whether somebody has written what is not mapped.
    pub(super) fn is_written(&self, Free { start, n_units, is_gone }: Free) -> bool {
        let start = std::ptr::with_exposed_provenance::<u8>(start);
        // SAFETY: within an area, in units that no program has.
        let bytes = unsafe { slice::from_raw_parts(start, n_units * self.unit) };
        is_gone && bytes.iter().any(|&byte| byte != GONE)
    }

    pub(super) fn range(&self, start: usize, n_units: usize) -> Range<usize> {
        start..start + n_units * self.unit
    }
}
