//! Registered memory: one table of STags per CQ.
//!
//! A STADD consists of a STag and a byte offset. Looking up a STADD takes no lock: every entry is a small sequence
//! lock, whose state word is odd while the entry is valid and differs after every change. Changing a table takes the
//! table's own lock; registration is not the hot path.
//!
//! `reg_mem` registers whole pages and shares registrations: a range within pages that the same rank has already
//! registered on the CQ with the same flags gets the same STag. An entry without registrations remembers its range
//! until its STag is needed: the same range, but no part of it, gets the same STADD again.
//!
//! Hardware ends a registration between two packets, never within one. Here a thread that moves more than a line
//! [holds](RegistrationEntry::hold) the entry meanwhile, and a thread that ends the registration waits for it, but not
//! for ever for a process that is stopped: hardware would have finished the stopped process's operation.

use crate::limits::error::{Result, fail};
use crate::limits::ids::{FIRST_DYNAMIC, OFFSET_MASK, STAG_AT, USER_STAGS};
use crate::limits::{FIRST_EXTRA, VCQS};
use crate::shared::arena::Shared;
use crate::shared::lock::SpinLock;
use crate::sync::{AtomicU64, Ordering};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::fence;
use std::time::{Duration, Instant};
use utofu_sys::*;

/// Time that the end of a registration waits for operations on it before it checks whether their processes live: a
/// process that is killed during an operation never releases its hold.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(10);

/// Time that the end of a registration waits for operations of processes that are all stopped (SIGSTOP). The kernel
/// stops a process between two system calls, so the operation's copy is usually over; if it is not and the process
/// continues later, it still writes.
const STOPPED_WAIT: Duration = Duration::from_secs(1);

/// Entries for user STags: 256 for each of eight VCQs.
const USER: usize = VCQS * USER_STAGS as usize;
/// Entries for `reg_mem`, which uses every second STag from 4096 to 16382.
pub(crate) const DYNAMIC: usize = 6144;

#[repr(C, align(64))]
pub(crate) struct RegistrationEntry {
    /// Odd while the entry is valid; changes with every change of the entry.
    state: AtomicU64,
    /// Address of offset 0 in the owner's process.
    base: AtomicU64,
    /// Length of the range, in bytes.
    len: AtomicU64,
    /// Rank that owns the memory.
    owner: AtomicU32,
    flags: AtomicU32,
    /// Number of registrations; changed under the table's lock.
    refs: AtomicU32,
    /// Operations that may be reading or writing the range.
    holders: AtomicU32,
    /// Time at which the pages were pinned, as a count of unmappings ([`Range::unmap_epoch`]).
    unmap_epoch: AtomicU64,
}

/// The registrations of one CQ. Valid when zeroed.
#[repr(C, align(64))]
pub(crate) struct StagTable {
    lock: SpinLock,
    /// Number of the last dynamic entry filled since the CQ's first VCQ was created, plus one.
    high: AtomicU32,
    user: [RegistrationEntry; USER],
    dynamic: [RegistrationEntry; DYNAMIC],
}

/// Guard returned by [`RegistrationEntry::hold`].
pub(crate) struct Hold<'a> {
    entry: &'a RegistrationEntry,
    process: Option<&'a AtomicU32>,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        // Release pairs with the SeqCst load in wait_for_holders: the range is not accessed any more.
        self.entry.holders.fetch_sub(1, Ordering::Release);
        if let Some(process) = self.process {
            // Release: not before the decrement above.
            process.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Processes that [hold](RegistrationEntry::hold) entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EntryHolders {
    /// No living process.
    None,
    /// Only processes that are stopped.
    Stopped,
    /// At least one process that runs, or that a debugger has stopped.
    Running,
}

/// Function that returns which living processes may hold entries that ended before its first call. Its argument says
/// whether it finds out anew which processes live, and which are stopped.
pub(crate) type FindHolders<'a> = &'a mut dyn FnMut(bool) -> EntryHolders;

/// Memory that a valid STADD refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegisteredRegion {
    /// Address in the owner's process.
    pub(crate) addr: u64,
    /// Bytes from `addr` to the end of the registered range; negative behind the end.
    pub(crate) bytes_left: i64,
    pub(crate) owner: u32,
    pub(crate) read_only: bool,
    /// As [`Range::unmap_epoch`].
    pub(crate) unmap_epoch: u64,
}

/// A range to be registered, and its owner.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub(crate) addr: u64,
    pub(crate) size: u64,
    pub(crate) owner: u32,
    /// READ_ONLY or nothing.
    pub(crate) flags: u32,
    /// Number of unmappings of job memory before the registration ([`Job::unmap`](crate::Job::unmap)).
    pub(crate) unmap_epoch: u64,
}

impl RegistrationEntry {
    /// Sets the range; the caller holds the table's lock.
    fn fill(&self, base: u64, len: u64, range: Range) {
        let state = self.state.load(Ordering::Relaxed) & !1;
        self.state.store(state + 2, Ordering::Relaxed);
        // Release, before the fields change: pairs with the fence in get, so that a reader that
        // sees a new field also sees the state change.
        fence(Ordering::Release);
        self.base.store(base, Ordering::Relaxed);
        self.len.store(len, Ordering::Relaxed);
        self.owner.store(range.owner, Ordering::Relaxed);
        self.flags.store(range.flags, Ordering::Relaxed);
        self.unmap_epoch.store(range.unmap_epoch, Ordering::Relaxed);
        self.refs.store(1, Ordering::Relaxed);
        // Release pairs with the Acquire in get.
        self.state.store(state + 3, Ordering::Release);
    }

    /// Adds a registration; the caller holds the table's lock. The first registration of an invalid entry pins the
    /// pages again.
    fn share(&self, unmap_epoch: u64) {
        let refs = self.refs.load(Ordering::Relaxed) + 1;
        self.refs.store(refs, Ordering::Relaxed);
        let state = self.state.load(Ordering::Relaxed);
        if state & 1 == 0 {
            self.unmap_epoch.store(unmap_epoch, Ordering::Relaxed);
            // Release pairs with the Acquire in get: the other fields are unchanged since fill.
            self.state.store(state + 1, Ordering::Release);
        }
    }

    /// Removes one of `refs` registrations; the caller holds the table's lock.
    fn release(&self, refs: u32) {
        self.refs.store(refs - 1, Ordering::Relaxed);
        if refs == 1 {
            let state = self.state.load(Ordering::Relaxed);
            // SeqCst, as in hold, get and wait_for_holders: an operation that still finds the entry valid is counted
            // among the holders.
            self.state.store((state | 1) + 1, Ordering::SeqCst);
        }
    }

    /// If the entry is no longer valid, waits for the operations that found it valid.
    fn wait_for_holders(&self, find_holders: FindHolders<'_>) {
        let mut check_at = None;
        let mut stopped_at = None;
        while self.holders.load(Ordering::SeqCst) > 0 && self.refs.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
            let now = Instant::now();
            let checks = now >= *check_at.get_or_insert(now + LIVENESS_INTERVAL);
            if checks {
                check_at = None;
            }
            match find_holders(checks) {
                // The remaining holders have died.
                EntryHolders::None => return,
                EntryHolders::Stopped => {
                    if now > *stopped_at.get_or_insert(now) + STOPPED_WAIT {
                        return;
                    }
                }
                EntryHolders::Running => stopped_at = None,
            }
        }
    }

    /// Returns a guard: while it lives, the end of the registration does not return. `process` counts the entries
    /// that the calling process holds, if other processes may outlive it.
    pub(crate) fn hold<'a>(&'a self, process: Option<&'a AtomicU32>) -> Hold<'a> {
        if let Some(process) = process {
            // SeqCst, as below: if this process is counted among the holders, it is counted here.
            process.fetch_add(1, Ordering::SeqCst);
        }
        self.holders.fetch_add(1, Ordering::SeqCst);
        Hold { entry: self, process }
    }

    /// Returns whether the entry may describe another range: all operations on its last range are over.
    fn is_free(&self) -> bool {
        self.refs.load(Ordering::Relaxed) == 0 && self.holders.load(Ordering::SeqCst) == 0
    }

    /// Returns the memory that a STADD of this entry refers to now; `None` if its STag is not registered.
    #[inline]
    pub(crate) fn get(&self, stadd: u64) -> Option<RegisteredRegion> {
        let offset = stadd & OFFSET_MASK;
        loop {
            // Acquire pairs with the Release in fill and share; for SeqCst see release.
            let state = self.state.load(Ordering::SeqCst);
            if state & 1 == 0 {
                return None;
            }
            let base = self.base.load(Ordering::Relaxed);
            let len = self.len.load(Ordering::Relaxed);
            let owner = self.owner.load(Ordering::Relaxed);
            let flags = self.flags.load(Ordering::Relaxed);
            let unmap_epoch = self.unmap_epoch.load(Ordering::Relaxed);
            // Acquire pairs with the Release fence in fill.
            fence(Ordering::Acquire);
            if self.state.load(Ordering::Relaxed) == state {
                return Some(RegisteredRegion {
                    addr: base.wrapping_add(offset),
                    bytes_left: len as i64 - offset as i64,
                    owner,
                    read_only: flags != 0,
                    unmap_epoch,
                });
            }
        }
    }
}

// SAFETY: repr(C) of atomics, locks and arrays of such.
unsafe impl Shared for StagTable {}

impl StagTable {
    /// Returns the entry of a STADD's STag, if the STag exists.
    #[inline]
    pub(crate) fn entry(&self, stadd: u64) -> Option<&RegistrationEntry> {
        let stag = stadd >> STAG_AT;
        if stag >= FIRST_DYNAMIC {
            let n = stag - FIRST_DYNAMIC;
            n.is_multiple_of(2).then(|| self.dynamic.get(n as usize / 2))?
        } else {
            let first = u64::from(FIRST_EXTRA) * u64::from(USER_STAGS);
            self.user.get(stag.checked_sub(first)? as usize)
        }
    }

    /// Returns the memory that a STADD refers to now; `None` if its STag is not registered.
    #[inline]
    pub(crate) fn lookup(&self, stadd: u64) -> Option<RegisteredRegion> {
        self.entry(stadd)?.get(stadd)
    }

    /// `utofu_reg_mem`.
    pub(crate) fn register(&self, range: Range, page: u64) -> Result<u64> {
        let offset = range.addr % page;
        let first = range.addr - offset;
        let len = range
            .addr
            .checked_add(range.size)
            .and_then(|end| end.checked_next_multiple_of(page))
            .map(|end| end - first)
            .filter(|len| *len <= OFFSET_MASK);
        let Some(len) = len else {
            return fail(
                UTOFU_ERR_INVALID_SIZE,
                format!(
                    "{} bytes from {:#x}: beyond the address space, or more than 2^40",
                    range.size, range.addr
                ),
            );
        };
        let _guard = self.lock.lock();
        let high = self.high.load(Ordering::Relaxed) as usize;
        let mut spare = None;
        for (n, e) in self.dynamic[..high].iter().enumerate() {
            let base = e.base.load(Ordering::Relaxed);
            let end = base + e.len.load(Ordering::Relaxed);
            let is_there = match e.refs.load(Ordering::Relaxed) {
                0 => (base, end) == (first, first + len),
                _ => base <= first && first + len <= end,
            };
            if is_there
                && e.owner.load(Ordering::Relaxed) == range.owner
                && e.flags.load(Ordering::Relaxed) == range.flags
            {
                e.share(range.unmap_epoch);
                return Ok(dynamic_stadd(n) + (range.addr - base));
            }
            if spare.is_none() && e.is_free() {
                spare = Some(n);
            }
        }
        let Some(n) = (high..DYNAMIC).find(|n| self.dynamic[*n].is_free()).or(spare) else {
            return fail(UTOFU_ERR_FULL, format!("all {DYNAMIC} STags of the CQ are registered"));
        };
        self.high.store(high.max(n + 1) as u32, Ordering::Relaxed);
        self.dynamic[n].fill(first, len, range);
        Ok(dynamic_stadd(n) + offset)
    }

    /// `utofu_reg_mem_with_stag`; `stadd` is the STADD of the user STag.
    pub(crate) fn register_user(&self, range: Range, stadd: u64) -> Result<()> {
        let _guard = self.lock.lock();
        match self.entry(stadd) {
            Some(e) if e.is_free() => {
                e.fill(range.addr, range.size, range);
                Ok(())
            }
            _ => fail(
                UTOFU_ERR_INVALID_STAG,
                format!(
                    "STag {} of this VCQ is in use: deregister it first",
                    stadd >> STAG_AT & 0xff
                ),
            ),
        }
    }

    /// `utofu_dereg_mem`; accepts any offset of the STag.
    pub(crate) fn deregister(&self, stadd: u64, find_holders: FindHolders<'_>) -> Result<()> {
        let guard = self.lock.lock();
        match self.entry(stadd).map(|e| (e, e.refs.load(Ordering::Relaxed))) {
            Some((e, refs)) if refs > 0 => {
                e.release(refs);
                drop(guard);
                e.wait_for_holders(find_holders);
                Ok(())
            }
            _ => fail(
                UTOFU_ERR_INVALID_STADD,
                format!("STADD {stadd:#x} is not registered on this CQ"),
            ),
        }
    }

    /// Returns whether a STADD's STag has exactly one registration, so that deregistering it ends its use.
    pub(crate) fn is_last(&self, stadd: u64) -> bool {
        self.entry(stadd).is_some_and(|e| e.refs.load(Ordering::Relaxed) == 1)
    }

    /// Returns the number of registrations made by `reg_mem`.
    pub(crate) fn n_registered(&self) -> u32 {
        let _guard = self.lock.lock();
        let high = self.high.load(Ordering::Relaxed) as usize;
        self.dynamic[..high].iter().map(|e| e.refs.load(Ordering::Relaxed)).sum()
    }

    /// Ends all registrations under the user STags of one VCQ.
    pub(crate) fn deregister_user(&self, extra: u8, find_holders: FindHolders<'_>) {
        let guard = self.lock.lock();
        let from = usize::from(extra - FIRST_EXTRA) * USER_STAGS as usize;
        let entries = &self.user[from..from + USER_STAGS as usize];
        for e in entries {
            if e.refs.load(Ordering::Relaxed) > 0 {
                e.release(1);
            }
        }
        drop(guard);
        entries.iter().for_each(|e| e.wait_for_holders(&mut *find_holders));
    }

    /// Ends all registrations of `reg_mem`: the CQ has no VCQ any more.
    pub(crate) fn deregister_dynamic(&self, find_holders: FindHolders<'_>) {
        let guard = self.lock.lock();
        let high = self.high.load(Ordering::Relaxed) as usize;
        for e in &self.dynamic[..high] {
            if e.refs.load(Ordering::Relaxed) > 0 {
                e.release(1);
            }
        }
        self.high.store(0, Ordering::Relaxed);
        drop(guard);
        self.dynamic[..high].iter().for_each(|e| e.wait_for_holders(&mut *find_holders));
    }
}

fn dynamic_stadd(n: usize) -> u64 {
    (FIRST_DYNAMIC + 2 * n as u64) << STAG_AT
}

#[cfg(test)]
#[path = "registrations_tests.rs"]
mod tests;
