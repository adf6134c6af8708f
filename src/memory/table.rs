//! The cache's book-keeping behind its lock: which regions are live, which slots
//! are free, what must go when a limit is reached. Pure: knows nothing of
//! registrars, events or the lock itself, and allocates nothing after
//! construction.
//!
//! Regions leave in [`Chain`]s, to be released by the caller outside the lock and
//! then handed back with [`Table::recycle`]. A region that is in use leaves the
//! map at once, yet keeps its slot until its last user lets go.
//!
//! Least recently used: the clock ticks once per admission. Hits between two
//! admissions are not told apart; nothing can be evicted between them either.

use super::config::Limits;
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

#[derive(Debug)]
pub(super) struct Table {
    map: IntervalMap,
    free: Vec<u32>,
    limits: Limits,
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
        self.map
            .insert(span, id, |old, id| gone.note(slots, old, id, doomed));
        self.account(gone);
        self.live_bytes += span.len() as u64;
        Admission::Admitted(id)
    }

    /// Ends every live region that shares a byte with `span`.
    pub(super) fn invalidate<H>(&mut self, slots: &[Slot<H>], span: Span, doomed: &mut Chain) {
        let mut gone = Leaving::default();
        self.map
            .remove_overlapping(span, |old, id| gone.note(slots, old, id, doomed));
        self.invalidations += gone.regions;
        self.account(gone);
    }

    /// Ends every live region.
    pub(super) fn invalidate_all<H>(&mut self, slots: &[Slot<H>], doomed: &mut Chain) {
        let mut gone = Leaving::default();
        self.map
            .remove_all(|old, id| gone.note(slots, old, id, doomed));
        self.invalidations += gone.regions;
        self.account(gone);
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
        let live_hits: u64 = self
            .map
            .iter()
            .map(|(_, id)| slots[id as usize].hits())
            .sum();
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
                self.account(Leaving {
                    regions: 1,
                    bytes: span.len() as u64,
                });
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::num::NonZeroU32;

    const PAGE: usize = 4096;

    /// Drives a table as the cache does, and keeps a plain model beside it.
    struct Rig {
        slots: Vec<Slot<u64>>,
        table: Table,
        limits: Limits,
        /// Live regions of the model: range, slot, last use, handle.
        live: Vec<(Span, u32, u64, u64)>,
        /// Users: slot and the handle they must keep seeing.
        leases: Vec<(u32, u64)>,
        clock: u64,
        next_handle: u64,
        released: Vec<u64>,
    }

    impl Rig {
        fn new(max_regions: u32, max_pages: Option<u64>) -> Self {
            let limits = Limits {
                max_bytes: max_pages.map(|pages| pages * PAGE as u64),
                max_regions: NonZeroU32::new(max_regions).unwrap(),
            };
            Self {
                slots: (0..slot_count(limits)).map(|_| Slot::free()).collect(),
                table: Table::new(limits),
                limits,
                live: Vec::new(),
                leases: Vec::new(),
                clock: 0,
                next_handle: 0,
                released: Vec::new(),
            }
        }

        fn release(&mut self, mut doomed: Chain) {
            while let Some(id) = doomed.pop(&self.slots) {
                assert!(
                    self.leases.iter().all(|(used, _)| *used != id),
                    "released in use"
                );
                let slot = &self.slots[id as usize];
                let bytes = slot.span().len();
                // SAFETY: the chain holds what its pusher was the releaser of.
                let (handle, hits) = unsafe { slot.take() };
                assert!(!self.released.contains(&handle), "released twice");
                self.released.push(handle);
                self.table.recycle(id, bytes, hits);
            }
        }

        fn used(&self, id: u32) -> bool {
            self.leases.iter().any(|(used, _)| *used == id)
        }

        fn get(&mut self, span: Span) {
            let covering = self.live.iter().position(|region| region.0.covers(span));
            if let Some(id) = self.table.lookup(&self.slots, span) {
                assert!(covering.is_some(), "hit without a live region");
                let region = self.live.iter_mut().find(|region| region.1 == id).unwrap();
                assert!(region.0.covers(span));
                region.2 = self.clock;
                self.leases.push((id, region.3));
                return;
            }
            assert!(covering.is_none(), "missed a live region");
            let handle = self.next_handle;
            self.next_handle += 1;
            let mut doomed = Chain::new();
            let admission = self.table.admit(&self.slots, span, handle, &mut doomed);
            let fits = self.model_makes_room(span);
            match admission {
                Admission::Admitted(id) => {
                    assert!(fits, "admitted beyond a limit");
                    self.clock += 1;
                    self.live.retain(|region| !span.covers(region.0));
                    self.live.push((span, id, self.clock, handle));
                    self.leases.push((id, handle));
                }
                Admission::NoRoom(back) => {
                    assert!(!fits, "turned away although there is room");
                    assert_eq!(back, handle);
                }
                Admission::Covered(..) => panic!("covered right after a miss"),
            }
            self.release(doomed);
        }

        /// Evicts in the model; several regions of the same age leave in the order
        /// of their addresses.
        fn model_makes_room(&mut self, span: Span) -> bool {
            let max = self.limits.max_bytes.unwrap_or(u64::MAX);
            let bytes = |live: &[(Span, u32, u64, u64)]| {
                live.iter().map(|region| region.0.len() as u64).sum::<u64>()
            };
            if span.len() as u64 > max {
                return false;
            }
            while self.live.len() >= self.limits.max_regions.get() as usize
                || bytes(&self.live) + span.len() as u64 > max
            {
                let oldest = self
                    .live
                    .iter()
                    .filter(|region| !self.used(region.1))
                    .min_by_key(|region| (region.2, region.0.start()))
                    .map(|region| region.0);
                let Some(oldest) = oldest else { return false };
                self.live.retain(|region| region.0 != oldest);
            }
            true
        }

        fn drop_lease(&mut self, pick: usize) {
            if self.leases.is_empty() {
                return;
            }
            let (id, _) = self.leases.swap_remove(pick % self.leases.len());
            let mut doomed = Chain::new();
            if self.slots[id as usize].unpin() {
                doomed.push(&self.slots, id);
            }
            self.release(doomed);
        }

        fn check(&self) {
            let mut spans: Vec<_> = self
                .live
                .iter()
                .map(|region| (region.0, region.1))
                .collect();
            spans.sort_by_key(|(span, _)| span.start());
            assert_eq!(self.table.map.iter().collect::<Vec<_>>(), spans);
            for (id, handle) in &self.leases {
                // SAFETY: the lease holds a pin.
                assert_eq!(unsafe { self.slots[*id as usize].handle() }, handle);
            }
            let mut registered: Vec<u32> = self.leases.iter().map(|lease| lease.0).collect();
            registered.extend(self.live.iter().map(|region| region.1));
            registered.sort_unstable();
            registered.dedup();
            let bytes: usize = registered
                .iter()
                .map(|id| self.slots[*id as usize].span().len())
                .sum();
            let counts = self.table.counts(&self.slots);
            assert_eq!(counts.regions, registered.len() as u64);
            assert_eq!(counts.bytes, bytes as u64);
        }
    }

    #[derive(Clone, Debug)]
    enum Op {
        Get(usize, usize),
        Drop(usize),
        Invalidate(usize, usize),
        InvalidateAll,
        EvictIdle,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            8 => (0..40usize, 1..12usize).prop_map(|(at, len)| Op::Get(at, len)),
            6 => any::<usize>().prop_map(Op::Drop),
            2 => (0..40usize, 1..12usize).prop_map(|(at, len)| Op::Invalidate(at, len)),
            1 => Just(Op::InvalidateAll),
            1 => Just(Op::EvictIdle),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_the_model(
            max_regions in 1..8u32,
            max_pages in prop::option::of(1..40u64),
            ops in prop::collection::vec(op(), 1..120),
        ) {
            let mut rig = Rig::new(max_regions, max_pages);
            for op in ops {
                let mut doomed = Chain::new();
                let pages = |at: usize, len: usize| Span::raw(at * PAGE, (at + len) * PAGE);
                match op {
                    Op::Get(at, len) => rig.get(pages(at, len)),
                    Op::Drop(pick) => rig.drop_lease(pick),
                    Op::Invalidate(at, len) => {
                        rig.table.invalidate(&rig.slots, pages(at, len), &mut doomed);
                        rig.live.retain(|region| !region.0.overlaps(pages(at, len)));
                    }
                    Op::InvalidateAll => {
                        rig.table.invalidate_all(&rig.slots, &mut doomed);
                        rig.live.clear();
                    }
                    Op::EvictIdle => {
                        rig.table.evict_idle(&rig.slots, &mut doomed);
                        let used: Vec<_> = rig.leases.iter().map(|lease| lease.0).collect();
                        rig.live.retain(|region| used.contains(&region.1));
                    }
                }
                rig.release(doomed);
                rig.check();
            }
            while !rig.leases.is_empty() {
                rig.drop_lease(0);
            }
            let mut doomed = Chain::new();
            rig.table.invalidate_all(&rig.slots, &mut doomed);
            rig.release(doomed);
            let handles = rig.released.len() as u64;
            let counts = rig.table.counts(&rig.slots);
            prop_assert_eq!((counts.regions, counts.bytes), (0, 0));
            prop_assert!(handles <= rig.next_handle);
            prop_assert_eq!(rig.table.free.len(), rig.slots.len());
        }
    }
}
