//! The cache's book-keeping behind its lock: which regions are live, which slots
//! are free, what must go when a limit is reached. Pure: knows nothing of
//! registrars, events or the lock itself, and allocates nothing after
//! construction.
//!
//! Regions leave in [`Chain`]s, to be released by the caller outside the lock and
//! then handed back with [`Table::recycle`]. A region that is in use leaves the
//! map at once, yet keeps its slot until its last user lets go.
//!
//! Events are remembered for a while, so that a registration made outside the lock can
//! be told whether one of its pages was disturbed meanwhile.
//!
//! Least recently used: the clock ticks once per admission. Hits between two
//! admissions are not told apart; nothing can be evicted between them either.

use super::config::Limits;
use super::events::Event;
use super::interval::{IntervalMap, Span};
use super::slots::{Chain, Slot};

/// What became of a registration that was offered to the table.
#[derive(Debug)]
pub(super) enum Admission<H> {
    /// It is the live region of this slot now, pinned once for the caller.
    Admitted(u32),
    /// Somebody else was faster: this region, pinned for the caller, covers the
    /// range. The handle comes back.
    Covered(u32, H),
    /// The limits leave no room, as too much is in use. The handle comes back.
    NoRoom(H),
}

/// Events remembered.
const RECENT: usize = 64;

#[derive(Debug)]
pub(super) struct Table {
    map: IntervalMap,
    free: Vec<u32>,
    limits: Limits,
    /// Events heard so far; the last ones are in `recent`, at this modulo its length.
    heard: u64,
    recent: [Event; RECENT],
    clock: u64,
    live_bytes: u64,
    waiting_bytes: u64,
    waiting_regions: u64,
    past_hits: u64,
    evictions: u64,
    invalidations: u64,
}

/// Regions that leave the map, counted.
#[derive(Clone, Copy, Debug, Default)]
struct Leaving {
    regions: u64,
    bytes: u64,
}

impl Leaving {
    /// Ends the life of a region; it is released now or by its last user.
    fn note<H>(&mut self, slots: &[Slot<H>], span: Span, id: u32, doomed: &mut Chain) {
        if slots[id as usize].kill() {
            doomed.push(slots, id);
        }
        self.regions += 1;
        self.bytes += span.len() as u64;
    }
}

/// The table's part of the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) hits: u64,
    pub(super) evictions: u64,
    pub(super) invalidations: u64,
    pub(super) regions: u64,
    pub(super) bytes: u64,
    pub(super) waiting_regions: u64,
}

/// Slots for the live regions, and as many again for those that are no longer
/// live but still in use or about to be released by some thread.
pub(super) fn slot_count(limits: Limits) -> u32 {
    limits.max_regions.get() * 2 + 64
}

impl Table {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            map: IntervalMap::with_capacity(limits.max_regions.get() as usize),
            free: (0..slot_count(limits)).rev().collect(),
            limits,
            heard: 0,
            recent: [Event::Everything; RECENT],
            clock: 0,
            live_bytes: 0,
            waiting_bytes: 0,
            waiting_regions: 0,
            past_hits: 0,
            evictions: 0,
            invalidations: 0,
        }
    }

    /// Finds and pins the live region that covers `span`.
    pub(super) fn lookup<H>(&self, slots: &[Slot<H>], span: Span) -> Option<u32> {
        let id = self.map.covering(span)?;
        let slot = &slots[id as usize];
        slot.try_pin().then(|| {
            slot.touch(self.clock);
            id
        })
    }

    /// The time to note for a use, in admissions.
    pub(super) fn clock(&self) -> u64 {
        self.clock
    }

    /// Offers a fresh registration of exactly `span`. Regions that must make way
    /// are added to `doomed`.
    pub(super) fn admit<H>(
        &mut self,
        slots: &[Slot<H>],
        span: Span,
        handle: H,
        doomed: &mut Chain,
    ) -> Admission<H> {
        if let Some(id) = self.lookup(slots, span) {
            return Admission::Covered(id, handle);
        }
        if self.map.covering(span).is_some() || !self.make_room(slots, span, doomed) {
            // Covered yet not to be pinned: more leases than a slot can count.
            return Admission::NoRoom(handle);
        }
        let Some(id) = self.free.pop() else {
            return Admission::NoRoom(handle);
        };
        self.clock += 1;
        // SAFETY: the slot comes from the list of free slots, which we own.
        unsafe { slots[id as usize].publish(span, handle, self.clock) };
        let mut gone = Leaving::default();
        self.map.insert(span, id, |old, id| gone.note(slots, old, id, doomed));
        self.account(gone);
        self.live_bytes += span.len() as u64;
        Admission::Admitted(id)
    }

    /// Ends every live region that shares a byte with `span`.
    pub(super) fn invalidate<H>(&mut self, slots: &[Slot<H>], span: Span, doomed: &mut Chain) {
        let mut gone = Leaving::default();
        self.map.remove_overlapping(span, |old, id| gone.note(slots, old, id, doomed));
        self.invalidations += gone.regions;
        self.account(gone);
    }

    /// Ends every live region.
    pub(super) fn invalidate_all<H>(&mut self, slots: &[Slot<H>], doomed: &mut Chain) {
        let mut gone = Leaving::default();
        self.map.remove_all(|old, id| gone.note(slots, old, id, doomed));
        self.invalidations += gone.regions;
        self.account(gone);
    }

    /// Applies an event.
    pub(super) fn hear<H>(&mut self, slots: &[Slot<H>], event: Event, doomed: &mut Chain) {
        self.recent[self.heard as usize % RECENT] = event;
        self.heard += 1;
        match event {
            Event::Range(span) => self.invalidate(slots, span, doomed),
            Event::Everything => self.invalidate_all(slots, doomed),
        }
    }

    /// Events heard so far, to ask [`Table::disturbed_since`] later.
    pub(super) fn heard(&self) -> u64 {
        self.heard
    }

    /// Has an event met `span` since `before` were heard? Yes also when more came than
    /// are remembered.
    pub(super) fn disturbed_since(&self, before: u64, span: Span) -> bool {
        self.heard - before > RECENT as u64
            || (before..self.heard).any(|at| match self.recent[at as usize % RECENT] {
                Event::Range(gone) => gone.overlaps(span),
                Event::Everything => true,
            })
    }

    /// Evicts every live region that nobody uses.
    pub(super) fn evict_idle<H>(&mut self, slots: &[Slot<H>], doomed: &mut Chain) {
        while self.evict_one(slots, doomed) {}
    }

    /// Takes back the slot of a released region.
    pub(super) fn recycle(&mut self, id: u32, bytes: usize, hits: u64) {
        self.waiting_bytes -= bytes as u64;
        self.waiting_regions -= 1;
        self.past_hits += hits;
        self.free.push(id);
    }

    /// Present figures; hits of regions that wait for their release come later.
    pub(super) fn counts<H>(&self, slots: &[Slot<H>]) -> Counts {
        let live_hits: u64 = self.map.iter().map(|(_, id)| slots[id as usize].hits()).sum();
        Counts {
            hits: self.past_hits + live_hits,
            evictions: self.evictions,
            invalidations: self.invalidations,
            regions: self.map.len() as u64 + self.waiting_regions,
            bytes: self.live_bytes + self.waiting_bytes,
            waiting_regions: self.waiting_regions,
        }
    }

    /// Evicts until one more region of this size keeps within both limits. Ranges
    /// that `span` will replace are counted as staying: a little early, never late.
    fn make_room<H>(&mut self, slots: &[Slot<H>], span: Span, doomed: &mut Chain) -> bool {
        let bytes = span.len() as u64;
        let max_bytes = self.limits.max_bytes.unwrap_or(u64::MAX);
        if bytes > max_bytes {
            return false;
        }
        let max_regions = self.limits.max_regions.get() as usize;
        while self.map.len() >= max_regions || self.live_bytes > max_bytes - bytes {
            if !self.evict_one(slots, doomed) {
                return false;
            }
        }
        true
    }

    /// Evicts the least recently used region that nobody uses. The scan is linear:
    /// it only runs when a registration, dearer by far, has just been made.
    fn evict_one<H>(&mut self, slots: &[Slot<H>], doomed: &mut Chain) -> bool {
        loop {
            let oldest = self
                .map
                .iter()
                .filter(|(_, id)| !slots[*id as usize].in_use())
                .min_by_key(|(_, id)| slots[*id as usize].last_use());
            let Some((span, id)) = oldest else {
                return false;
            };
            // A lookup without the lock may have been faster; then it is in use.
            if slots[id as usize].retire() {
                self.map.remove_exact(span);
                doomed.push(slots, id);
                self.evictions += 1;
                self.account(Leaving { regions: 1, bytes: span.len() as u64 });
                return true;
            }
        }
    }

    /// Moves regions that have left the map to the account of those that wait.
    fn account(&mut self, gone: Leaving) {
        self.live_bytes -= gone.bytes;
        self.waiting_bytes += gone.bytes;
        self.waiting_regions += gone.regions;
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
