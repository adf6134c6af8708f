//! Bulk places: memory for long contributions to flat buffers, on hosts with few ranks.
//!
//! A core that writes a line waits for the cache that still holds the line. The readers of a flat buffer still hold
//! its places when these are written again. So each rank has bulk places, which all its flat buffers use in turn;
//! those of all ranks together exceed a second-level cache. The line of a contribution says where it is. A flat
//! buffer holds at most as many bulk places as places of its own, and returns each when it uses the corresponding
//! place again. If no bulk place is free, the contribution goes to the flat buffer's own place, without a wait.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::layout::{CONTRIBUTION_BYTES, DEPTH, STRIDE, ShmLayout, next_range};
use super::segment::Segment;
use crate::sync::lock;

/// A contribution in a bulk place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bulk {
    /// Offset of the place within the rank's bulk places.
    place: usize,
    /// Start and end of the contribution within the place.
    start: usize,
    end: usize,
}

impl Bulk {
    /// Offset of the contribution within the rank's bulk places.
    pub(super) fn at(self) -> usize {
        self.place + self.start
    }
}

/// The bulk places that a flat buffer holds, by its own places.
pub(super) type HeldPlaces = [Option<Bulk>; DEPTH as usize];

/// The bulk places of a flat buffer that has ended on this rank, but perhaps not on other ranks.
#[derive(Debug)]
struct RetiredPlaces {
    held: HeldPlaces,
    /// Offsets in the segment of the words by which members show that they have left, and the least value after that.
    left: Box<[usize]>,
    base: u64,
}

#[derive(Debug)]
struct Pool {
    /// Free places, the one free for longest first.
    free: VecDeque<Bulk>,
    retired: Vec<RetiredPlaces>,
}

/// The bulk places of a rank.
#[derive(Debug)]
pub(super) struct BulkPlaces {
    segment: Arc<Segment>,
    n_places: usize,
    pool: Mutex<Pool>,
}

impl BulkPlaces {
    pub(super) fn new(segment: &Arc<Segment>, layout: ShmLayout) -> Arc<Self> {
        let n_places = layout.n_bulk_places();
        let free = |number| Bulk { place: number * STRIDE, start: 0, end: 0 };
        let pool = Pool { free: (0..n_places).map(free).collect(), retired: Vec::new() };
        Arc::new(BulkPlaces { segment: segment.clone(), n_places, pool: Mutex::new(pool) })
    }

    /// Frees `read`, which no rank reads any more. Returns a place for a contribution of `wanted` bytes, if given and
    /// one is free.
    pub(super) fn change(&self, read: Option<Bulk>, wanted: Option<usize>) -> Option<Bulk> {
        let Pool { free, retired } = &mut *lock(&self.pool);
        free.extend(read);
        let len = wanted?;
        if free.len() < self.n_places / 2 {
            // Acquire: pairs with the Release in `FlatBufferLease::end`: members have finished their reads before
            // they leave.
            let word = |left: &usize| self.segment.word(*left).load(Ordering::Acquire);
            let all_left = |retired: &mut RetiredPlaces| {
                retired.left.iter().all(|at| word(at) >= retired.base)
            };
            let held = retired.extract_if(.., all_left).flat_map(|retired| retired.held);
            free.extend(held.flatten());
        }
        let Bulk { place, end, .. } = free.pop_front()?;
        let Range { start, end } = next_range(end, len, CONTRIBUTION_BYTES);
        Some(Bulk { place, start, end })
    }

    /// Takes the places of a flat buffer that has ended on this rank. Members may read them until they have left.
    pub(super) fn end(&self, held: HeldPlaces, left: Box<[usize]>, base: u64) {
        if held.iter().any(Option::is_some) {
            lock(&self.pool).retired.push(RetiredPlaces { held, left, base });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::flat_buffer::FlatBuffer;
    use super::super::flat_buffers::{FlatBufferLease, FlatBuffers};
    use super::super::flat_call::Contribution;
    use super::*;

    const LEN: usize = CONTRIBUTION_BYTES / 4;

    /// Two ranks with flat buffers.
    struct Pair {
        flats: [Arc<FlatBuffers>; 2],
        segment: Arc<Segment>,
        layout: ShmLayout,
    }

    impl Pair {
        fn new() -> Self {
            let layout = ShmLayout { n_ranks: 2, n_ports: 0, flats_per_rank: 20 };
            let segment = Segment::create(layout.len(), 1).unwrap().0;
            let flats = [0, 1].map(|me| FlatBuffers::new(&segment, layout, me));
            Pair { flats, segment, layout }
        }

        fn open(&self) -> [(FlatBuffer, FlatBufferLease); 2] {
            let number = self.flats[0].take().unwrap();
            [0, 1].map(|me| self.flats[me].open(number, &[0, 1], me).unwrap().unwrap())
        }

        /// Rank 0 contributes, and rank 1 reads. Returns whether the contribution is in a bulk place, and its offset.
        fn call(&self, from: &mut FlatBuffer, to: &mut FlatBuffer, value: u8) -> (bool, usize) {
            let call = from.enter(1);
            assert_eq!((to.enter(1), from.is_free(call)), (call, Ok(())));
            from.contribute(call, &[value; LEN]);
            assert_eq!(from.of(call, 0, LEN), Contribution::At(from.own(call, LEN)));
            let Contribution::At(ptr) = to.of(call, 0, LEN) else { panic!("{call:?}") };
            // SAFETY: the flat buffer says that the bytes are there.
            let found = unsafe { std::slice::from_raw_parts(ptr, LEN) };
            assert!(found.iter().all(|&byte| byte == value));
            let at = ptr as usize - self.segment.at(0, 1) as usize;
            let bulk = self.layout.bulk(0);
            ((bulk..bulk + self.layout.bulk_bytes()).contains(&at), at)
        }
    }

    #[test]
    fn long_contributions_of_all_communicators_use_all_places_in_turn() {
        let pair = Pair::new();
        let mut two = [pair.open(), pair.open()];
        let mut seen = std::collections::HashSet::new();
        let n = 4 * pair.layout.n_bulk_places();
        for round in 0..n {
            let [(from, _), (to, _)] = &mut two[round % 2];
            let (is_bulk, at) = pair.call(from, to, round as u8);
            assert!(is_bulk && seen.insert(at), "{round}");
        }
        let [(from, _), (to, _)] = &mut two[0];
        assert!(!seen.insert(pair.call(from, to, 1).1));
    }

    #[test]
    fn communicators_without_bulk_places_have_their_own() {
        let pair = Pair::new();
        let mut all: Vec<_> = (0..20).map(|_| pair.open()).collect();
        let mut n_bulk = 0;
        for (value, [(from, _), (to, _)]) in all.iter_mut().enumerate() {
            n_bulk += (0..DEPTH).filter(|_| pair.call(from, to, value as u8).0).count();
        }
        assert_eq!(n_bulk, pair.layout.n_bulk_places());
        // Short calls return the bulk places.
        let [(from, _), (to, _)] = &mut all[1];
        for _ in 0..DEPTH {
            let call = from.enter(2);
            assert_eq!((to.enter(2), from.is_free(call)), (call, Ok(())));
            from.contribute(call, &[1]);
            assert!(matches!(to.of(call, 0, 1), Contribution::At(_)));
        }
        let [(last, _), (reader, _)] = all.last_mut().unwrap();
        assert_eq!((0..DEPTH).filter(|_| pair.call(last, reader, 4).0).count(), DEPTH as usize);
        // A flat buffer ends on the writing rank, and then on the reading rank.
        let [(mut from, lease), (mut to, to_end)] = all.remove(0);
        lease.end(&mut from);
        let [(next, _), (reader, _)] = &mut all[17];
        assert!(!pair.call(next, reader, 5).0, "another may still read there");
        to_end.end(&mut to);
        let found = (0..2 * DEPTH).filter(|_| pair.call(next, reader, 6).0).count();
        assert_eq!(found, 2 * DEPTH as usize);
    }
}
