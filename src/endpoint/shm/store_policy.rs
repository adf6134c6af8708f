//! How a rank writes memory that ranks on other cores read: through its cache, or past it (non-temporal stores).
//!
//! Before a core writes a line, it takes the line from the cache that read it last, and the next reader fetches the
//! line from this core's cache. Between distant cores this takes several times as long as memory: on a host with two
//! last-level caches, 64 KiB take 33 us from rank to rank through caches and 7 us through memory. Cores that share a
//! cache exchange lines faster than through memory, as long as the lines stay in the cache. So a rank chooses by the
//! recent cost of its copies, separately for each power of two of the message size: a host may move ranks to other
//! cores.

use super::copy_costs::{CopyCost, timed};
use crate::memory::stores::{self, LEAST_BYTES, can_stream};

/// Number of size classes: 4 KiB, 8 KiB, ... 8 MiB and above.
const CLASSES: usize = 12;
/// Bytes of a class that are copied before any copy is timed: the first ones touch pages for the first time. The slots
/// of a rank, and its bulk places, have less.
const UNTIMED_BYTES: usize = 2 * 1024 * 1024;
/// Copies of a class that are then timed before costs decide. Until then copies alternate between both kinds of stores.
const FIRST: u32 = 16;
/// Afterwards one in `EXPLORE_INTERVAL` copies uses the other kind of stores, and one in `TIMING_INTERVAL` is timed.
const EXPLORE_INTERVAL: u32 = 128;
const TIMING_INTERVAL: u32 = 16;
/// Additional cost of reading a message from memory instead of a near core's cache: per message (ns) and per byte
/// (ns). Measured with 4 to 64 KiB.
const READERS_LATENCY: f32 = 400.0;
const READERS_BYTE: f32 = 0.033;

/// Costs of the copies of one size class.
#[derive(Debug, Default)]
struct SizeClass {
    cached: CopyCost,
    streamed: CopyCost,
    /// Bytes copied before costs are measured.
    untimed: usize,
    n_copies: u32,
}

impl SizeClass {
    /// Whether copies of `len` bytes use non-temporal stores.
    fn prefers_stream(&self, len: usize) -> bool {
        let saved = self.cached.per_byte() - self.streamed.per_byte() - READERS_BYTE;
        saved * len as f32 > READERS_LATENCY
    }

    /// For the next copy: whether it uses non-temporal stores, and whether it is timed.
    fn next(&mut self, len: usize) -> (bool, bool) {
        let n = self.n_copies;
        if self.untimed < UNTIMED_BYTES {
            self.untimed += len;
            self.n_copies = (n + 1) % 2;
            return (n % 2 == 1, false);
        }
        self.n_copies = if n < FIRST + EXPLORE_INTERVAL - 1 { n + 1 } else { FIRST };
        match n {
            ..FIRST => (n % 2 == 1, true),
            FIRST => (!self.prefers_stream(len), true),
            _ => (self.prefers_stream(len), n.is_multiple_of(TIMING_INTERVAL)),
        }
    }
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct StorePolicy([SizeClass; CLASSES]);

impl StorePolicy {
    /// Copies `len` bytes of a message of `of` bytes. Later stores of this core become visible after these bytes.
    ///
    /// # Safety
    /// As for [`std::ptr::copy_nonoverlapping`].
    #[inline]
    pub(super) unsafe fn copy(&mut self, from: *const u8, into: *mut u8, len: usize, of: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match can_stream(len) {
                true => self.copy_long(from, into, len, of),
                false => std::ptr::copy_nonoverlapping(from, into, len),
            }
        }
    }

    /// # Safety
    /// As for [`copy`](StorePolicy::copy); `len` is at least [`LEAST_BYTES`].
    unsafe fn copy_long(&mut self, from: *const u8, into: *mut u8, len: usize, of: usize) {
        let class = ((of.max(len) / LEAST_BYTES).ilog2() as usize).min(CLASSES - 1);
        let class = &mut self.0[class];
        let (is_streamed, is_timed) = class.next(len);
        // SAFETY: the caller's promise.
        let copy = || unsafe { stores::copy(from, into, len, is_streamed) };
        match is_timed {
            true if is_streamed => timed(&mut class.streamed, len, copy),
            true => timed(&mut class.cached, len, copy),
            false => copy(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::memory::stores::tests::copies_all_lengths_and_places;

    /// A class of which the bytes without times have been copied in messages of `len` bytes.
    fn timed_class(len: usize) -> SizeClass {
        let mut class = SizeClass::default();
        let kinds = (0..UNTIMED_BYTES / len).map(|_| class.next(len));
        let n_streamed = kinds.filter(|&kind| kind == (true, false)).count();
        assert_eq!(n_streamed, UNTIMED_BYTES / len / 2);
        class
    }

    /// Number of non-temporal copies among `n_copies`, if 64 KiB cost the given times.
    fn streamed(len: usize, cached_us: u64, streamed_us: u64, n_copies: usize) -> usize {
        let mut class = timed_class(len);
        let mut next = || {
            let (is_streamed, is_timed) = class.next(len);
            let (cost, us) = match is_streamed {
                true => (&mut class.streamed, streamed_us),
                false => (&mut class.cached, cached_us),
            };
            if is_timed {
                cost.note(65536, Duration::from_micros(us));
            }
            is_streamed
        };
        (0..n_copies).filter(|_| next()).count()
    }

    #[test]
    fn the_way_is_the_cheaper_one_and_the_other_is_tried() {
        let (both, rest) = (FIRST as usize / 2, 10 * EXPLORE_INTERVAL as usize);
        // Distant cores, near cores with a small cache, and near cores.
        assert_eq!(streamed(65536, 28, 2, 2 * both + rest), both + rest - 10);
        assert_eq!(streamed(65536, 7, 2, 2 * both + rest), both + rest - 10);
        assert_eq!(streamed(65536, 1, 2, 2 * both + rest), both + 10);
        // Between near cores, the reader's latency outweighs the gain for a short message.
        assert_eq!(streamed(8192, 7, 2, 2 * both + rest), both + 10);
        assert_eq!(streamed(8192, 28, 2, 2 * both + rest), both + rest - 10);
    }

    #[test]
    fn a_host_that_moves_its_cores_is_followed() {
        let mut class = timed_class(65536);
        let mut play = |cached_us, n_copies| {
            for _ in 0..n_copies {
                let (is_streamed, is_timed) = class.next(65536);
                let us = Duration::from_micros(if is_streamed { 2 } else { cached_us });
                let cost = if is_streamed { &mut class.streamed } else { &mut class.cached };
                if is_timed {
                    cost.note(65536, us);
                }
            }
            class.prefers_stream(65536)
        };
        assert!(!play(1, 100));
        assert!(play(28, 1000), "apart");
        assert!(!play(1, 1000), "together again");
    }

    #[test]
    fn all_lengths_and_places_are_copied_whole() {
        let mut stores = StorePolicy::default();
        // SAFETY: both have the room.
        copies_all_lengths_and_places(|from, into, len| unsafe {
            stores.copy(from, into, len, len);
        });
    }
}
