//! Bulk places: where ranks of a few put long contributions to flat buffers.
//!
//! A core that writes a line which another's cache still holds waits for that cache. The readers of a flat buffer still
//! hold all of its own places when these are written again. So a rank has further ones, in turn for all its flat buffers;
//! those of all ranks together are more than a cache of the second level holds. A contribution's line says where it is. A
//! flat buffer has as many at a time as it has places of its own, and gives each back when it uses that place again.
//! Where none is free, a contribution goes to the flat buffer's own place: nothing waits for a bulk place.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::layout::{CONTRIBUTION_BYTES, DEPTH, STRIDE, ShmLayout, behind};
use super::segment::Segment;
use crate::sync::lock;

/// A contribution in a bulk place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bulk {
    /// The place's start among the rank's.
    place: usize,
    /// The contribution's bytes in it.
    start: usize,
    end: usize,
}

impl Bulk {
    /// Where it starts among all bytes of the rank's bulk places.
    pub(super) fn at(self) -> usize {
        self.place + self.start
    }
}

/// Those that a flat buffer has.
pub(super) type Held = [Option<Bulk>; DEPTH as usize];

/// Those of a flat buffer that has ended on this rank, but maybe not on others.
#[derive(Debug)]
struct Ended {
    held: Held,
    /// The words by which members show that they have left, in the segment, and what they show then at least.
    left: Box<[usize]>,
    base: u64,
}

#[derive(Debug)]
struct Pool {
    /// The one that is free for longest first.
    free: VecDeque<Bulk>,
    ended: Vec<Ended>,
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
        let pool = Pool { free: (0..n_places).map(free).collect(), ended: Vec::new() };
        Arc::new(BulkPlaces { segment: segment.clone(), n_places, pool: Mutex::new(pool) })
    }

    /// Takes back one that nobody reads any more, and gives one for a contribution of so many bytes, if that is wanted and
    /// one is free.
    pub(super) fn change(&self, read: Option<Bulk>, wanted: Option<usize>) -> Option<Bulk> {
        let Pool { free, ended } = &mut *lock(&self.pool);
        free.extend(read);
        let len = wanted?;
        if free.len() < self.n_places / 2 {
            // Acquire: pairs with the Release in `FlatBufferLease::end`: what was read was read before.
            let word = |left: &usize| self.segment.word(*left).load(Ordering::Acquire);
            let all_left = |ended: &mut Ended| ended.left.iter().all(|at| word(at) >= ended.base);
            let held = ended.extract_if(.., all_left).flat_map(|ended| ended.held);
            free.extend(held.flatten());
        }
        let Bulk { place, end, .. } = free.pop_front()?;
        let Range { start, end } = behind(end, len, CONTRIBUTION_BYTES);
        Some(Bulk { place, start, end })
    }

    /// Takes over what a flat buffer has that has ended on this rank: others may still read it until they have left.
    pub(super) fn end(&self, held: Held, left: Box<[usize]>, base: u64) {
        if held.iter().any(Option::is_some) {
            lock(&self.pool).ended.push(Ended { held, left, base });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::flat_buffer::{Contribution, FlatBuffer};
    use super::super::flat_buffers::{FlatBufferLease, FlatBuffers};
    use super::*;

    const LEN: usize = CONTRIBUTION_BYTES / 4;

    /// Two ranks with a flat buffer, number by number.
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

        /// Rank 0 contributes, and rank 1 reads: whether the contribution is in a bulk place, and where.
        fn call(&self, from: &mut FlatBuffer, to: &mut FlatBuffer, value: u8) -> (bool, usize) {
            let call = from.enter(1);
            assert_eq!((to.enter(1), from.is_free(call)), (call, Ok(())));
            from.contribute(call, &[value; LEN]);
            assert_eq!(from.of(call, 0, LEN), Contribution::At(from.own(call, LEN)));
            let Contribution::At(ptr) = to.of(call, 0, LEN) else { panic!("{call:?}") };
            // SAFETY: the flat buffer says that they are there.
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
        // Short calls give them back.
        let [(from, _), (to, _)] = &mut all[1];
        for _ in 0..DEPTH {
            let call = from.enter(2);
            assert_eq!((to.enter(2), from.is_free(call)), (call, Ok(())));
            from.contribute(call, &[1]);
            assert!(matches!(to.of(call, 0, 1), Contribution::At(_)));
        }
        let [(last, _), (reader, _)] = all.last_mut().unwrap();
        assert_eq!((0..DEPTH).filter(|_| pair.call(last, reader, 4).0).count(), DEPTH as usize);
        // One ends on the rank that writes, and then on the one that reads.
        let [(mut from, lease), (mut to, to_end)] = all.remove(0);
        lease.end(&mut from);
        let [(next, _), (reader, _)] = &mut all[17];
        assert!(!pair.call(next, reader, 5).0, "another may still read there");
        to_end.end(&mut to);
        let found = (0..2 * DEPTH).filter(|_| pair.call(next, reader, 6).0).count();
        assert_eq!(found, 2 * DEPTH as usize);
    }
}
