//! Memory that a simulated wire reads and writes, and what nobody may touch: buffers of users that are
//! not in a call, and memory that is not registered.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::endpoint::WireRegion;

/// Addresses that no message may be read from or written to.
#[derive(Debug, Default)]
pub(super) struct Forbidden(BTreeMap<usize, usize>);

impl Forbidden {
    pub(super) fn forbid(&mut self, range: Range<usize>) {
        self.allow(range.clone());
        if !range.is_empty() {
            self.0.insert(range.start, range.end);
        }
    }

    pub(super) fn allow(&mut self, range: Range<usize>) {
        while let Some((&start, &end)) = self.0.range(..range.end).next_back()
            && end > range.start
        {
            self.0.remove(&start);
            for (start, end) in [(start, range.start), (range.end, end)] {
                if start < end {
                    self.0.insert(start, end);
                }
            }
        }
    }

    /// Whether some of these bytes are forbidden.
    pub(super) fn meets(&self, ptr: *const u8, len: usize) -> bool {
        let (start, end) = (ptr.addr(), ptr.addr() + len);
        self.0.range(..end).next_back().is_some_and(|(_, &last)| last > start && len > 0)
    }
}

/// A registration: its key, and what it covers.
#[derive(Clone, Copy, Debug)]
struct Registered {
    start: usize,
    len: usize,
}

/// The registrations of one port.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    by_key: BTreeMap<u64, Registered>,
    next: u64,
}

/// Keys of neighbours are as far apart, so that one beyond its end is none.
const GAP: u64 = 4096;

impl Registrations {
    pub(super) fn add(&mut self, ptr: *mut u8, len: usize) -> u64 {
        let key = self.next.max(GAP);
        self.next = key + len as u64 + GAP;
        self.by_key.insert(key, Registered { start: ptr.addr(), len });
        key
    }

    /// False if there is no such registration.
    pub(super) fn remove(&mut self, key: u64) -> bool {
        self.by_key.remove(&key).is_some()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether the key of a region is that of its memory.
    pub(super) fn covers(&self, region: &WireRegion) -> bool {
        let Some((key, of)) = self.by_key.range(..=region.key).next_back() else { return false };
        let offset = (region.key - key) as usize;
        of.start + offset == region.ptr.addr() && offset + region.len <= of.len
    }
}

/// Copies bytes between regions that do not overlap.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
pub(super) unsafe fn copy(from: *const u8, into: *mut u8, len: usize) {
    if len > 0 {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, into, len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: usize) -> *mut u8 {
        std::ptr::without_provenance_mut(start)
    }

    #[test]
    fn what_is_forbidden_is_found_at_both_ends() {
        let mut forbidden = Forbidden::default();
        forbidden.forbid(100..200);
        forbidden.forbid(300..301);
        for (start, len, meets) in [
            (99, 1, false),
            (99, 2, true),
            (199, 1, true),
            (200, 100, false),
            (200, 101, true),
            (150, 0, false),
        ] {
            assert_eq!(forbidden.meets(at(start), len), meets, "{start} {len}");
        }
        forbidden.allow(120..150);
        for (start, len, meets) in [(110, 10, true), (120, 30, false), (149, 2, true)] {
            assert_eq!(forbidden.meets(at(start), len), meets, "{start} {len}");
        }
        forbidden.forbid(90..130);
        forbidden.allow(90..200);
        assert!(!forbidden.meets(at(90), 110) && forbidden.meets(at(300), 1));
    }

    #[test]
    fn a_key_belongs_to_its_memory() {
        let mut keys = Registrations::default();
        let key = keys.add(at(1000), 100);
        let region = |offset: usize, len, key| WireRegion { ptr: at(1000 + offset), len, key };
        assert!(keys.covers(&region(0, 100, key)) && keys.covers(&region(10, 90, key + 10)));
        assert!(!keys.covers(&region(10, 91, key + 10)) && !keys.covers(&region(10, 1, key)));
        assert!(!keys.covers(&region(0, 1, key - 1)));
        assert!(keys.remove(key) && !keys.remove(key) && !keys.covers(&region(0, 1, key)));
    }
}
