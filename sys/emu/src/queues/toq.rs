//! The transmit order queue of one VCQ and its completions, private to the rank.
//!
//! A TOQ has 2048 entries of 32 bytes, of which 2011 can be used before a post is refused. Only polling the TCQ frees
//! entries, in order, including those of operations that requested no notice.

use crate::limits::error::{Code, Result};
use std::ffi::c_int;
use utofu_sys::*;

/// Entries that can be in use.
pub(crate) const DEPTH: usize = 2011;

/// Slots for operations: a power of two, and at least as many as entries can be in use.
const RING: usize = DEPTH.next_power_of_two();

/// Value of `ready_at`: the late device decides when the completion is visible, and its code.
pub(crate) const LATE: u64 = u64::MAX;

/// A posted operation that polling has not passed, or several consecutive ones that are over and that no poll will
/// return.
#[derive(Clone, Copy)]
struct ToqEntry {
    cbdata: usize,
    /// Time in ns from which a poll may return the completion; 0 for at once.
    ready_at: u64,
    code: i16,
    entries: u16,
    count: u16,
    tcq_notice: bool,
}

/// A packed [`ToqEntry`]. Zeros cost no memory until the page is written.
type Packed = [u64; 3];

impl ToqEntry {
    #[inline]
    fn is_past(&self) -> bool {
        !self.tcq_notice && self.ready_at == 0
    }

    #[inline]
    fn pack(self) -> Packed {
        let ToqEntry { code, entries, count, tcq_notice, .. } = self;
        let rest = u64::from(code as u16)
            | u64::from(entries) << 16
            | u64::from(count) << 32
            | u64::from(tcq_notice) << 48;
        [self.cbdata as u64, self.ready_at, rest]
    }

    #[inline]
    fn unpack([cbdata, ready_at, rest]: Packed) -> ToqEntry {
        ToqEntry {
            cbdata: cbdata as usize,
            ready_at,
            code: rest as u16 as i16,
            entries: (rest >> 16) as u16,
            count: (rest >> 32) as u16,
            tcq_notice: rest >> 48 != 0,
        }
    }
}

/// The queue. All of its memory is allocated at its creation, as on the device: posting allocates nothing.
pub(crate) struct Toq {
    ring: Box<[Packed; RING]>,
    /// Index of the next operation for polling to pass.
    first: usize,
    len: usize,
    /// TOQ entries in use. An operation takes at least one.
    entries: usize,
    /// Operations that polling has not passed.
    unread: usize,
}

impl Default for Toq {
    fn default() -> Self {
        let Ok(ring) = vec![[0; 3]; RING].try_into() else { unreachable!("of this length") };
        Toq { ring, first: 0, len: 0, entries: 0, unread: 0 }
    }
}

impl Toq {
    /// Checks that this many entries are free; BUSY otherwise.
    #[inline]
    pub(crate) fn room_for(&self, entries: usize) -> Result<()> {
        // No sum of `entries` and entries in use: with a huge count it would wrap and seem to fit.
        if entries <= DEPTH - self.entries { Ok(()) } else { Err(Code(UTOFU_ERR_BUSY)) }
    }

    /// Appends an executed operation. A poll reports its error even if no notice was requested.
    #[inline]
    pub(crate) fn push(
        &mut self,
        entries: usize,
        cbdata: usize,
        tcq_notice: bool,
        code: c_int,
        ready_at: u64,
    ) {
        self.entries += entries;
        self.unread += 1;
        let new = ToqEntry {
            cbdata,
            ready_at,
            // All codes lie between -768 and 0.
            code: code as i16,
            entries: entries as u16,
            count: 1,
            tcq_notice: tcq_notice || code != UTOFU_SUCCESS,
        };
        if new.is_past() && self.len > 0 {
            let last = &mut self.ring[(self.first + self.len - 1) % RING];
            let before = ToqEntry::unpack(*last);
            if before.is_past() {
                let (entries, count) = (before.entries + new.entries, before.count + 1);
                *last = ToqEntry { entries, count, ..new }.pack();
                return;
            }
        }
        self.ring[(self.first + self.len) % RING] = new.pack();
        self.len += 1;
    }

    /// Passes completions up to the first one that was requested, and returns its code and cbdata. `late` returns the
    /// codes of the late device's operations, in order; `None` if the next code is not known yet.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        now: impl Fn() -> u64,
        late: impl Fn() -> Option<c_int>,
    ) -> Option<(c_int, usize)> {
        while self.len > 0 {
            let mut p = ToqEntry::unpack(self.ring[self.first % RING]);
            if p.ready_at == LATE {
                let code = late()?;
                p.code = code as i16;
                p.tcq_notice |= code != UTOFU_SUCCESS;
            } else if p.ready_at != 0 && p.ready_at > now() {
                return None;
            }
            self.len -= 1;
            // Restarts at index 0: a queue that stays short stays in few cache lines.
            self.first = if self.len == 0 { 0 } else { self.first + 1 };
            self.entries -= usize::from(p.entries);
            self.unread -= usize::from(p.count);
            if p.tcq_notice {
                return Some((c_int::from(p.code), p.cbdata));
            }
        }
        None
    }

    /// Reserves entries for an operation that waits for its session and is not pushed yet.
    pub(crate) fn reserve(&mut self, entries: usize) {
        self.entries += entries;
        self.unread += 1;
    }

    /// Frees the entries that `reserve` has reserved, before the operation is pushed.
    pub(crate) fn unreserve(&mut self, entries: usize) {
        self.entries -= entries;
        self.unread -= 1;
    }

    /// Returns the number of operations that polling has not passed.
    pub(crate) fn unread(&self) -> usize {
        self.unread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_by_polling_only() {
        let mut q = Toq::default();
        let mut posted = 0;
        while q.room_for(1).is_ok() {
            q.push(1, posted, posted % 2 == 1, 0, 0);
            posted += 1;
        }
        assert_eq!(posted, 2011);
        assert_eq!(q.room_for(1), Err(Code(UTOFU_ERR_BUSY)));
        assert_eq!(q.room_for(usize::MAX), Err(Code(UTOFU_ERR_BUSY)));
        // One poll passes the first operation, which requested no notice, and returns the second.
        assert_eq!(q.poll(|| 0, || None), Some((0, 1)));
        assert!(q.room_for(2).is_ok() && q.room_for(3).is_err());
        for i in (3..2011).step_by(2) {
            assert_eq!(q.poll(|| 0, || None), Some((0, i)));
        }
        assert_eq!(q.poll(|| 0, || None), None);
        assert_eq!((q.unread(), q.entries), (0, 0));
    }

    #[test]
    fn silent_operations_in_a_row_are_counted_one_by_one() {
        let mut q = Toq::default();
        for (n, tcq_notice) in [false, false, true, false, false, false].into_iter().enumerate() {
            q.push(2, n, tcq_notice, 0, 0);
        }
        assert_eq!((q.len, q.unread(), q.entries), (3, 6, 12));
        assert_eq!(q.poll(|| 0, || None), Some((0, 2)));
        assert_eq!((q.unread(), q.entries), (3, 6));
        assert_eq!(q.poll(|| 0, || None), None);
        assert_eq!((q.unread(), q.entries), (0, 0));
    }

    #[test]
    fn a_silent_operation_that_fails_is_shown() {
        let mut q = Toq::default();
        q.push(2, 7, false, UTOFU_ERR_TCQ_STADD, 0);
        assert_eq!(q.poll(|| 0, || None), Some((UTOFU_ERR_TCQ_STADD, 7)));
    }

    #[test]
    fn what_is_not_due_blocks_what_is_behind_it() {
        let mut q = Toq::default();
        q.push(1, 1, true, 0, 100);
        q.push(1, 2, true, 0, 0);
        assert_eq!(q.poll(|| 99, || None), None);
        assert_eq!(q.poll(|| 100, || None), Some((0, 1)));
        assert_eq!(q.poll(|| 100, || None), Some((0, 2)));
    }

    #[test]
    fn the_late_device_says_when() {
        let mut q = Toq::default();
        q.push(1, 1, false, 0, LATE);
        q.push(1, 2, true, 0, LATE);
        q.push(1, 3, false, 0, LATE);
        assert_eq!(q.poll(|| LATE, || None), None);
        let codes = std::cell::RefCell::new(vec![UTOFU_ERR_TCQ_STADD, 0, 0]);
        let late = || codes.borrow_mut().pop();
        assert_eq!(q.poll(|| 0, late), Some((0, 2)));
        assert_eq!(q.poll(|| 0, late), Some((UTOFU_ERR_TCQ_STADD, 3)), "silent, but it failed");
        assert_eq!(q.unread(), 0);
    }
}
