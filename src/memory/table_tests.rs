//! The table against a plain model: random lookups, leases, events and limits.

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
            assert!(self.leases.iter().all(|(used, _)| *used != id), "released in use");
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
        let mut spans: Vec<_> = self.live.iter().map(|region| (region.0, region.1)).collect();
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
        let bytes: usize = registered.iter().map(|id| self.slots[*id as usize].span().len()).sum();
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
