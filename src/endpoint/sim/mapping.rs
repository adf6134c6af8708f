//! Memory of the ranks' programs, in pages of its own: mapped, unmapped and mapped again, at places that the seed
//! chooses. What is unmapped no message may touch, nor the library.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use super::heap::{Free, GONE, UNIT};
use super::net::{Net, NetState};
use super::simulation::Simulated;
use super::trace::TraceStep;
use crate::Rank;

impl NetState {
    fn map(&mut self, rank: Rank, n_words: usize) -> (usize, usize) {
        let n_units = n_words.saturating_mul(size_of::<u64>()).div_ceil(UNIT).max(1);
        let mapped = self.heap.map(rank, n_units);
        self.check_unmapped(rank, mapped);
        self.forbidden.allow(self.heap.range(mapped.start, n_units));
        (mapped.start, n_units)
    }

    fn unmap(&mut self, rank: Rank, start: usize, n_units: usize) {
        let memory = self.heap.range(start, n_units);
        let bytes = std::ptr::with_exposed_provenance_mut::<u8>(start);
        // SAFETY: a mapping that has ended: nobody else has it.
        unsafe { bytes.write_bytes(GONE, memory.len()) };
        self.note(rank, TraceStep::Memory("is unmapped"));
        self.heap.free[rank as usize].push(Free { start, n_units, is_gone: true });
        self.forbidden.forbid(memory.clone());
        self.unmapped(rank, memory);
    }

    fn check_unmapped(&mut self, rank: Rank, free: Free) {
        if self.heap.is_written(free) {
            self.violated(format!("rank {rank}: memory was written after it had been unmapped"));
        }
    }

    /// The end: what is not mapped now must be as it was left.
    pub(super) fn check_all_unmapped(&mut self) {
        for (rank, free) in (0..).zip(self.heap.free.clone()) {
            free.into_iter().for_each(|free| self.check_unmapped(rank, free));
        }
    }
}

/// Memory of a simulated rank's program, in pages that it has alone; unmapped when it is dropped. From then on no
/// message may touch it, the rank's registration cache hears of that when the seed wants it to, and the same pages
/// may be mapped again.
#[derive(Debug)]
pub struct Mapping {
    net: Arc<Net>,
    rank: Rank,
    words: NonNull<u64>,
    n_words: usize,
    n_units: usize,
}

impl Simulated {
    /// Maps memory for so many words. What they hold is not specified.
    ///
    /// # Panics
    /// If the system has no memory.
    pub fn map(&self, n_words: usize) -> Mapping {
        let (start, n_units) = self.net.lock().map(self.rank, n_words);
        let words = NonNull::new(std::ptr::with_exposed_provenance_mut(start));
        let words = words.expect("a mapping is not at 0");
        Mapping { net: self.net.clone(), rank: self.rank, words, n_words, n_units }
    }
}

impl Deref for Mapping {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        // SAFETY: within whole pages that are initialised, and this value's alone.
        unsafe { slice::from_raw_parts(self.words.as_ptr(), self.n_words) }
    }
}

impl DerefMut for Mapping {
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts_mut(self.words.as_ptr(), self.n_words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.net.lock().unmap(self.rank, self.words.as_ptr().expose_provenance(), self.n_units);
    }
}
