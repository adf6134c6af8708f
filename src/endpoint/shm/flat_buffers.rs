//! Flat buffers for communicators of some ranks, or of all ranks in another order. Each rank owns a few, which it
//! leases to communicators of which it is the first member.
//!
//! The first member sends the flat buffer's number to the others during the agreement on the communicator; everything
//! else is in the segment. A flat buffer is free again when its last communicator has ended on all members, each of
//! which records that in the segment. Until then the owner leases another one, or none.
//!
//! The flat buffer that has been free for longest is leased first. Communicators are created collectively, so that a
//! rank is not far ahead of the other members, and mostly the same communicators get a flat buffer in every run of a
//! program.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::bulk::BulkPlaces;
use super::flat_buffer::{BASE, FlatBuffer, LEFT};
use super::layout::{DEPTH, PART_BYTES, ShmLayout};
use super::segment::Segment;
use crate::Rank;
use crate::endpoint::WireError;
use crate::endpoint::validation::check_range;
use crate::sync::lock;

/// Flat buffers of each rank, if memory allows. Programs and libraries keep communicators; IMB keeps one for each
/// benchmark.
const MOST_PER_RANK: usize = 32;
/// Address space of all flat buffers together. Only written pages take memory.
const MOST_BYTES: usize = 1 << 30;

/// Flat buffers that each of `n_ranks` ranks owns.
pub(super) fn per_rank(n_ranks: usize) -> usize {
    (MOST_BYTES / (n_ranks * n_ranks * PART_BYTES)).min(MOST_PER_RANK)
}

/// Upper limit of a lease's base: a stamp has 47 bits for a call's number, and a communicator makes fewer than 2^46
/// calls.
const MOST_CALLS: u64 = 1 << 46;

/// A flat buffer that this rank owns and that no communicator uses on this rank.
#[derive(Debug)]
struct Free {
    number: u32,
    /// All call numbers used so far are below this.
    next: u64,
    /// The members of the last lease, who may not have left it yet, and the base of that lease.
    last: (Box<[usize]>, u64),
}

/// All flat buffers of a segment, as one rank sees them.
#[derive(Debug)]
pub struct FlatBuffers {
    segment: Arc<Segment>,
    layout: ShmLayout,
    me: usize,
    bulk: Arc<BulkPlaces>,
    /// Flat buffers of this rank that no communicator uses on this rank, the one free for longest first.
    free: Mutex<VecDeque<Free>>,
    /// Indices of the flat buffers that communicators use on this rank.
    open: Mutex<HashSet<usize>>,
}

/// The use of a flat buffer by a communicator, on one member.
#[derive(Debug)]
pub struct FlatBufferLease {
    flats: Arc<FlatBuffers>,
    /// The rank that owns the flat buffer.
    owner: usize,
    number: u32,
    members: Box<[usize]>,
    /// The number before the communicator's first call.
    base: u64,
}

impl FlatBuffers {
    pub(super) fn new(segment: &Arc<Segment>, layout: ShmLayout, me: usize) -> Arc<Self> {
        let free = |number| Free { number, next: 1, last: (Box::default(), 0) };
        let free = Mutex::new((0..layout.flats_per_rank as u32).map(free).collect());
        let bulk = BulkPlaces::new(segment, layout);
        let open = Mutex::default();
        Arc::new(FlatBuffers { segment: segment.clone(), layout, me, bulk, free, open })
    }

    /// The flat buffer of the world.
    pub(super) fn of_all(&self) -> FlatBuffer {
        let all: Vec<usize> = (0..self.layout.n_ranks).collect();
        self.view((0, &all), self.me, 0)
    }

    fn view(&self, (index, members): (usize, &[usize]), me: usize, base: u64) -> FlatBuffer {
        FlatBuffer::new(&self.segment, self.layout, &self.bulk, (index, members), me, base)
    }

    /// The index of a flat buffer in the segment.
    fn index(&self, owner: usize, number: u32) -> usize {
        1 + owner * self.layout.flats_per_rank + number as usize
    }

    /// A word of a rank's part of a flat buffer.
    fn word(&self, flat: usize, rank: usize, word: usize) -> &AtomicU64 {
        self.segment.word(self.layout.flat(flat, rank) + word)
    }

    /// Takes a free flat buffer for a communicator of which this rank may turn out to be the first member; otherwise
    /// the caller gives it back. `None` if none is free.
    pub fn take(&self) -> Option<u32> {
        let free = &mut *lock(&self.free);
        let has_ended = |free: &Free| {
            let (members, base) = &free.last;
            let flat = self.index(self.me, free.number);
            // Acquire: pairs with the Release in `end`: members have finished their reads before they leave.
            let left = |&rank: &usize| self.word(flat, rank, LEFT).load(Ordering::Acquire);
            members.iter().all(|rank| left(rank) == *base)
        };
        let place = free.iter().position(has_ended)?;
        let Free { number, next, .. } = free.remove(place)?;
        // Relaxed: the message that tells the members of the flat buffer orders the store. Members of the last lease
        // have read the old base.
        let base = self.word(self.index(self.me, number), self.me, BASE);
        base.store(next, Ordering::Relaxed);
        Some(number)
    }

    /// Gives back a flat buffer that no communicator uses.
    pub fn give_back(&self, number: u32) {
        let next = self.base(self.me, number);
        lock(&self.free).push_front(Free { number, next, last: (Box::default(), 0) });
    }

    fn base(&self, owner: usize, number: u32) -> u64 {
        // Relaxed: see `take`.
        self.word(self.index(owner, number), owner, BASE).load(Ordering::Relaxed)
    }

    /// Opens the flat buffer with this number of the first of `members`, as `members[me]`. `None` if it does not
    /// exist, or if a communicator uses it on this rank: the ranks have agreed on a number that the owner has not sent.
    ///
    /// # Errors
    /// The owner has written an invalid base.
    pub fn open(
        self: &Arc<Self>,
        number: u32,
        members: &[Rank],
        me: usize,
    ) -> Result<Option<(FlatBuffer, FlatBufferLease)>, WireError> {
        let members: Box<[usize]> = members.iter().map(|&rank| rank as usize).collect();
        let Some(&owner) = members.first() else { return Ok(None) };
        let is_there = (number as usize) < self.layout.flats_per_rank
            && members.iter().all(|&member| member < self.layout.n_ranks);
        if !is_there {
            return Ok(None);
        }
        let base = check_range("a call's number", self.base(owner, number), (0, MOST_CALLS))
            .map_err(|invalid| invalid.wire_error_from(owner as Rank, "shared memory"))?;
        let index = self.index(owner, number);
        if !lock(&self.open).insert(index) {
            return Ok(None);
        }
        let lease = FlatBufferLease { flats: self.clone(), owner, number, members, base };
        let flat = self.view((index, &lease.members), me, base);
        Ok(Some((flat, lease)))
    }
}

impl FlatBufferLease {
    /// Ends the use of `view`, this rank's view of the flat buffer, when the communicator has ended on this rank.
    pub fn end(self, view: &mut FlatBuffer) {
        let FlatBufferLease { flats, owner, number, members, base } = self;
        let flat = flats.index(owner, number);
        let left = members.iter().map(|&member| flats.layout.flat(flat, member) + LEFT).collect();
        flats.bulk.end(view.end(), left, base);
        // First: once all members have left, the owner may give it to the next communicator.
        lock(&flats.open).remove(&flat);
        // Release: pairs with the Acquire in `take`, and with that in `BulkPlaces::change`.
        flats.word(flat, flats.me, LEFT).store(base, Ordering::Release);
        if owner == flats.me {
            // No member gets further ahead of this rank, even if the others make wrong calls.
            let next = view.call() + DEPTH + 1;
            lock(&flats.free).push_back(Free { number, next, last: (members, base) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::flat_call::{Contribution, Entered};
    use super::*;

    fn all(n_ranks: usize) -> Vec<Arc<FlatBuffers>> {
        let layout = ShmLayout { n_ranks, n_ports: 0, flats_per_rank: per_rank(n_ranks) };
        let (segment, _file) = Segment::create(layout.len(), 1).unwrap();
        (0..n_ranks).map(|me| FlatBuffers::new(&segment, layout, me)).collect()
    }

    /// Opens a flat buffer of the first of `members`, as the member with index `me`.
    fn open(
        flats: &Arc<FlatBuffers>,
        number: u32,
        members: &[Rank],
        me: usize,
    ) -> (FlatBuffer, FlatBufferLease) {
        flats.open(number, members, me).unwrap().unwrap()
    }

    fn seen(flat: &mut FlatBuffer, call: Entered, rank: usize) -> Option<u8> {
        match flat.of(call, rank, 1) {
            // SAFETY: the flat buffer says that the byte is there.
            Contribution::At(ptr) => Some(unsafe { ptr.read() }),
            _ => None,
        }
    }

    #[test]
    fn a_flat_buffer_is_given_away_again_when_all_have_left() {
        let flats = all(3);
        // Ranks 2 and 0; rank 2 is the first member.
        let mut round = 0;
        loop {
            let number = flats[2].take().unwrap();
            if round == 2 * MOST_PER_RANK {
                assert_eq!(number, 0, "the one that is free for longest");
                break;
            }
            let mut pair = [(2, 0), (0, 1)]
                .map(|(rank, me): (usize, usize)| open(&flats[rank], number, &[2, 0], me));
            let [(one, _), (other, _)] = &mut pair;
            // Contributions of earlier communicators are not seen.
            for call in 0..DEPTH + 2 {
                let value = (round as u64 + call) as u8 % 100;
                let call = one.enter(5);
                assert_eq!(other.enter(5), call);
                assert_eq!((one.is_free(call), other.is_free(call)), (Ok(()), Ok(())));
                assert_eq!(seen(other, call, 0), None);
                one.contribute(call, &[value]);
                other.contribute(call, &[value + 100]);
                assert_eq!(seen(other, call, 0), Some(value));
                assert_eq!(seen(one, call, 1), Some(value + 100));
            }
            pair.into_iter().for_each(|(mut flat, lease)| lease.end(&mut flat));
            round += 1;
        }
        let is_none =
            |number, members: &[Rank]| flats[0].open(number, members, 0).unwrap().is_none();
        assert!(is_none(0, &[]) && is_none(99, &[0, 1]));
    }

    #[test]
    fn who_has_not_left_keeps_its_flat_buffer() {
        let flats = all(2);
        let mut kept = Vec::new();
        for number in 0..MOST_PER_RANK as u32 {
            assert_eq!(flats[0].take(), Some(number));
            kept.push(open(&flats[1], number, &[0, 1], 1));
            let (mut flat, lease) = open(&flats[0], number, &[0, 1], 0);
            lease.end(&mut flat);
        }
        assert_eq!(flats[0].take(), None);
        let (mut flat, lease) = kept.remove(3);
        lease.end(&mut flat);
        assert_eq!(flats[0].take(), Some(3));
        flats[0].give_back(3);
        assert_eq!([flats[0].take(), flats[0].take()], [Some(3), None]);
        // Each rank owns separate flat buffers.
        assert_eq!(flats[1].take(), Some(0));
    }

    #[test]
    fn a_flat_buffer_is_open_once() {
        let flats = all(2);
        let number = flats[0].take().unwrap();
        for me in [0, 1, 0] {
            let (mut flat, lease) = open(&flats[me], number, &[0, 1], me);
            assert!(flats[me].open(number, &[0, 1], me).unwrap().is_none());
            lease.end(&mut flat);
        }
    }

    /// Whatever the owner writes, a member reads within the segment, and call numbers stay within a stamp's bits.
    #[test]
    fn words_of_an_owner_that_make_no_sense_are_refused() {
        let flats = all(2);
        for base in [MOST_CALLS + 1, u64::MAX - DEPTH, u64::MAX] {
            flats[0].word(flats[0].index(0, 0), 0, BASE).store(base, Ordering::Relaxed);
            let refused = flats[1].open(0, &[0, 1], 1).map(drop).unwrap_err().to_string();
            assert!(refused.contains("rank 0 sent a garbled message"), "{refused}");
        }
        flats[0].word(flats[0].index(0, 0), 0, BASE).store(MOST_CALLS, Ordering::Relaxed);
        let (mut flat, _lease) = open(&flats[1], 0, &[0, 1], 1);
        for word in [0, 1, MOST_CALLS, u64::MAX] {
            let call = flat.enter(7);
            for offset in (0..PART_BYTES - 8).step_by(8) {
                flats[0].word(flats[0].index(0, 0), 0, offset).store(word, Ordering::Relaxed);
            }
            if flat.is_free(call).is_ok() {
                flat.contribute(call, &[1]);
            }
            assert_eq!(seen(&mut flat, call, 0), None);
        }
    }
}
