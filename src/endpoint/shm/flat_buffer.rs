//! The flat buffer: short collectives without messages. Each rank writes its contribution once to its own place, and
//! the other ranks read it there.
//!
//! A rank has [`DEPTH`] places and uses them in turn, one for each call. The bulk place of a long contribution
//! ([`bulk`](super::bulk)) belongs to the call's place. A place is free again once every rank has read the call for
//! which it was written. A rank that enters a call publishes how far it has read. If no earlier call is unread, its
//! contribution says so, too, so that other ranks rarely poll the published word.
//!
//! A rank may enter calls before it has read earlier ones ([`FlatBuffer::read_later`]). It then publishes its
//! progress as long as other ranks may wait for it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bell::Doorbell;
use super::bulk::{BulkPlaces, HeldPlaces};
use super::flat_call::{Contribution, Entered, HAS_READ, NUMBER_BIT};
use super::flat_groups::FlatGroups;
use super::layout::{CONTRIBUTION_BYTES, DEPTH, LEADER_BYTES, LINE, PART_BYTES, ShmLayout};
use super::segment::Segment;
use super::store_policy::StorePolicy;
use crate::memory::stores::prefetch_write;

/// Words of the first line of a rank's part: the first call that the rank may still read; the base of the last lease
/// that it has left; in the owner's part, the base of the present lease (`flat_buffers`).
const READ: usize = 0;
pub(super) const LEFT: usize = 8;
pub(super) const BASE: usize = 16;
/// The longest contribution that shares the cache line of its stamp.
pub(super) const INLINE_BYTES: usize = LINE - 8;
/// A longer contribution may be in a bulk place. The word after the stamp is then one more than its offset there.
const PLACED_BYTES: usize = 4096;

/// A flat buffer as one rank sees it.
#[derive(Debug)]
pub struct FlatBuffer {
    /// Keeps the memory mapped.
    segment: Arc<Segment>,
    layout: ShmLayout,
    pub(super) me: usize,
    /// The start of each rank's part.
    parts: Vec<*mut u8>,
    bells: Vec<Doorbell>,
    /// The bulk places of this rank, and those that belong to its places in this flat buffer.
    bulk: Arc<BulkPlaces>,
    held: HeldPlaces,
    /// Address of each rank's bulk places, and their bytes per rank.
    bulk_parts: Vec<*mut u8>,
    bulk_bytes: usize,
    /// For each rank, and for all ranks together: the calls before this one are known to be read.
    pub(super) read: Vec<u64>,
    pub(super) all_read: u64,
    /// This rank has read the calls before this one; and the value of `own_read` that it published last.
    pub(super) own_read: u64,
    published: u64,
    /// Whether calls are to be read later.
    is_behind: bool,
    call: u64,
    /// Number before the first call.
    base: u64,
    pub(super) groups: Option<FlatGroups>,
    stores: StorePolicy,
    #[cfg(test)]
    pub(crate) counts: FlatCounts,
}

/// What a rank has written to a flat buffer, and fetched from other ranks.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlatCounts {
    /// Contributions, each of which writes the line of its stamp.
    pub(crate) n_contributions: usize,
    /// Bytes of all contributions.
    pub(crate) n_written: usize,
    /// Lines of other ranks' contributions.
    pub(crate) n_lines: usize,
}

// SAFETY: the parts are addresses within the segment; the protocol determines which rank writes what when.
unsafe impl Send for FlatBuffer {}

impl FlatBuffer {
    /// The flat buffer with this index, as `members[me]` sees it. The first call has the number `base + 1`.
    pub(super) fn new(
        segment: &Arc<Segment>,
        layout: ShmLayout,
        bulk: &Arc<BulkPlaces>,
        (index, members): (usize, &[usize]),
        me: usize,
        base: u64,
    ) -> Self {
        let part = |&rank: &usize| segment.at(layout.flat(index, rank), PART_BYTES);
        let bell = |&rank: &usize| Doorbell::new(segment, layout, rank);
        let bulk_bytes = layout.bulk_bytes();
        let bulk_part = |&rank: &usize| segment.at(layout.bulk(rank), bulk_bytes);
        FlatBuffer {
            segment: segment.clone(),
            layout,
            me,
            parts: members.iter().map(part).collect(),
            bells: members.iter().map(bell).collect(),
            bulk: bulk.clone(),
            held: HeldPlaces::default(),
            bulk_parts: members.iter().map(bulk_part).collect(),
            bulk_bytes,
            read: vec![0; members.len()],
            all_read: 0,
            own_read: base,
            published: base,
            is_behind: false,
            call: base,
            base,
            groups: None,
            stores: StorePolicy::default(),
            #[cfg(test)]
            counts: FlatCounts::default(),
        }
    }

    /// The same flat buffer with its ranks in groups: `of` holds a group number for each rank. It must be the world's
    /// flat buffer, and all ranks must pass the same `of`.
    pub fn in_groups(self, of: &[u32]) -> Self {
        let leader = |rank| self.segment.at(self.layout.leader(rank), LEADER_BYTES);
        let groups = Some(FlatGroups::new(of, self.me, leader));
        FlatBuffer { groups, ..self }
    }

    /// The longest contribution, in bytes.
    pub fn capacity(&self) -> usize {
        CONTRIBUTION_BYTES
    }

    /// This rank's index on the flat buffer.
    pub fn me(&self) -> usize {
        self.me
    }

    /// The number of the call that was entered last.
    pub fn call(&self) -> u64 {
        self.call
    }

    /// Number of ranks.
    pub fn n_ranks(&self) -> usize {
        self.parts.len()
    }

    #[inline]
    fn word(&self, rank: usize, offset: usize) -> &AtomicU64 {
        // SAFETY: an aligned word of the rank's part, which `segment` keeps mapped. Accesses are atomic, except for
        // short contributions to other calls behind a stamp.
        unsafe { AtomicU64::from_ptr(self.parts[rank].add(offset).cast()) }
    }

    /// Enters the next call; ranks that make the same call give the same `signature`. From now on other ranks may
    /// overwrite the contributions to earlier calls, except for calls that this rank reads later.
    #[inline]
    pub fn enter(&mut self, signature: u16) -> Entered {
        self.call += 1;
        if !self.is_behind {
            self.own_read = self.call;
        }
        self.publish();
        Entered::new(self.call, signature)
    }

    /// Postpones the reads of the call entered last, perhaps until after other calls are entered. Postponed calls are
    /// read in order.
    #[inline]
    pub fn read_later(&mut self) {
        self.is_behind = true;
    }

    /// Reports that postponed calls before `next` have been read; `None` means all of them.
    #[inline]
    pub fn has_read(&mut self, next: Option<Entered>) {
        self.is_behind = next.is_some();
        // Without `next`, the call entered last counts as unread until the next call is entered.
        self.own_read = next.map_or(self.call, Entered::number);
        // Publishes the progress before another rank can wait for it in a call that this rank has entered.
        if self.call - self.published >= DEPTH / 2 {
            self.publish();
        }
    }

    #[inline]
    fn publish(&mut self) {
        if self.published != self.own_read {
            self.published = self.own_read;
            // Release: pairs with the Acquire in `is_free`: this rank's reads come before it.
            self.word(self.me, READ).store(self.published, Ordering::Release);
            self.ring();
        }
    }

    /// Whether this rank may contribute to the call: no rank still reads the former contents of the call's place.
    /// This rank must have contributed to all earlier calls.
    ///
    /// # Errors
    /// The first rank that might still read the former contents; this rank is checked first.
    #[inline]
    pub fn is_free(&mut self, call: Entered) -> Result<(), usize> {
        let is_first = call.number <= self.base + DEPTH;
        let enough = if is_first { 0 } else { call.number - DEPTH + 1 };
        if self.own_read < enough {
            return Err(self.me);
        }
        if self.all_read >= enough {
            return Ok(());
        }
        for rank in 0..self.parts.len() {
            if self.read[rank] < enough && rank != self.me {
                // Acquire: see `publish`.
                self.read[rank] = self.word(rank, READ).load(Ordering::Acquire);
                if self.read[rank] < enough {
                    return Err(rank);
                }
            }
        }
        Ok(())
    }

    /// Contributes `bytes` to the call, whose place must be free ([`is_free`](FlatBuffer::is_free)).
    #[inline]
    pub fn contribute(&mut self, call: Entered, bytes: &[u8]) {
        assert!(bytes.len() <= CONTRIBUTION_BYTES);
        let into = self.begin(call, bytes.len());
        // SAFETY: there is room for the bytes; only this rank writes there, and no rank reads there now.
        unsafe { self.write(bytes, into, bytes.len()) };
        self.stamp(call);
        if bytes.len() <= INLINE_BYTES {
            // The next stamp then need not wait for its line, which other ranks still cache. If a longer contribution
            // precedes it, ranks that wait take the line again before.
            prefetch_write(self.word(self.me, call.next_place()));
        }
    }

    /// As [`contribute`](FlatBuffer::contribute), without the bytes in `unread`, which no rank reads.
    #[inline]
    pub fn contribute_without(&mut self, call: Entered, bytes: &[u8], unread: Range<usize>) {
        assert!(bytes.len() <= CONTRIBUTION_BYTES);
        let into = self.begin(call, bytes.len());
        for (at, piece) in [(0, &bytes[..unread.start]), (unread.end, &bytes[unread.end..])] {
            // SAFETY: as in `contribute`.
            unsafe { self.write(piece, into.add(at), bytes.len()) };
        }
        self.stamp(call);
    }

    /// Contributes `pieces` one after the other, `len` bytes in all. If readers get the length from the pieces
    /// themselves, `len` is 0, and the pieces have at most `CONTRIBUTION_BYTES` in all.
    #[inline]
    pub fn contribute_pieces<'a>(
        &mut self,
        call: Entered,
        len: usize,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) {
        let most = if len == 0 { CONTRIBUTION_BYTES } else { len };
        assert!(most <= CONTRIBUTION_BYTES);
        let start = self.begin(call, len);
        let mut at = 0;
        for piece in pieces {
            assert!(piece.len() <= most - at);
            // SAFETY: there is room for `most` bytes from `start` on; only this rank writes there, and no rank reads
            // there now.
            unsafe { self.write(piece, start.add(at), piece.len()) };
            at += piece.len();
        }
        self.stamp(call);
    }

    /// Writes a piece of a contribution of `len` bytes.
    ///
    /// # Safety
    /// There must be room at `into`, where only this rank writes, and where no rank reads now.
    #[inline]
    unsafe fn write(&mut self, piece: &[u8], into: *mut u8, len: usize) {
        #[cfg(test)]
        (self.counts.n_written += piece.len());
        // SAFETY: the caller's promise.
        unsafe { self.stores.copy(piece.as_ptr(), into, piece.len(), len) };
    }

    /// Address for this rank's contribution of `len` bytes to the call.
    #[inline]
    fn begin(&mut self, call: Entered, len: usize) -> *mut u8 {
        #[cfg(test)]
        (self.counts.n_contributions += 1);
        if len > PLACED_BYTES || self.held[call.turn()].is_some() {
            self.change_bulk(call, len);
        }
        self.own(call, len).cast_mut()
    }

    /// Returns the bulk place that belongs to the call's place, which no rank reads any more. Takes another one for a
    /// long contribution of `len` bytes.
    fn change_bulk(&mut self, call: Entered, len: usize) {
        let held = &mut self.held[call.turn()];
        let wanted = (len > PLACED_BYTES).then_some(len);
        *held = self.bulk.change(held.take(), wanted);
        if wanted.is_some() {
            let placed = held.map_or(0, |bulk| 1 + bulk.at() as u64);
            // Relaxed: the stamp's Release orders this store.
            self.word(self.me, call.place() + 8).store(placed, Ordering::Relaxed);
        }
    }

    /// Ends this rank's view, and returns its bulk places.
    pub(super) fn end(&mut self) -> HeldPlaces {
        std::mem::take(&mut self.held)
    }

    /// Marks this rank's contribution as complete.
    #[inline]
    fn stamp(&self, call: Entered) {
        let has_read = if self.own_read >= call.number { HAS_READ } else { 0 };
        // Release: pairs with the Acquire in `of`: orders the contribution and this rank's earlier reads.
        self.word(self.me, call.place()).store(call.stamp() | has_read, Ordering::Release);
        self.ring();
    }

    /// Wakes all ranks: any of them may wait for this one.
    #[inline]
    pub(super) fn ring(&self) {
        if self.bells[self.me].has_sleepers() {
            self.bells.iter().for_each(Doorbell::ring);
        }
    }

    /// Counts the lines that this rank fetches for a stamp of `rank` and the `len` bytes after it.
    #[cfg(test)]
    pub(super) fn fetched(&mut self, rank: usize, len: usize) {
        if rank != self.me {
            self.counts.n_lines += 1 + if len <= INLINE_BYTES { 0 } else { len.div_ceil(LINE) };
        }
    }

    /// Address of a contribution of `len` bytes to the call in the rank's own place.
    #[inline]
    fn contribution(&self, call: Entered, rank: usize, len: usize) -> *mut u8 {
        let offset = call.place() + if len <= INLINE_BYTES { 8 } else { LINE };
        // SAFETY: within the rank's part.
        unsafe { self.parts[rank].add(offset) }
    }

    /// This rank's contribution to the call; `len` is its length.
    #[inline]
    pub fn own(&self, call: Entered, len: usize) -> *const u8 {
        match self.held[call.turn()] {
            // SAFETY: within this rank's bulk places.
            Some(bulk) if len > PLACED_BYTES => unsafe { self.bulk_parts[self.me].add(bulk.at()) },
            _ => self.contribution(call, self.me, len),
        }
    }

    /// Address of a stamped contribution of more than [`PLACED_BYTES`]; `None` if its rank has written an invalid
    /// offset.
    fn placed(&self, call: Entered, rank: usize, len: usize) -> Option<*const u8> {
        // Relaxed: the Acquire load of the stamp comes before.
        let placed = self.word(rank, call.place() + 8).load(Ordering::Relaxed);
        let Some(at) = placed.checked_sub(1) else {
            return Some(self.contribution(call, rank, len));
        };
        let is_there = at.checked_add(len as u64).is_some_and(|end| end <= self.bulk_bytes as u64);
        // SAFETY: within the rank's bulk places.
        is_there.then(|| unsafe { self.bulk_parts[rank].add(at as usize) }.cast_const())
    }

    /// The contribution of `rank` to the call; `len` is its length.
    #[inline]
    pub fn of(&mut self, call: Entered, rank: usize, len: usize) -> Contribution {
        // Acquire: pairs with the Release in `stamp`.
        let stamp = self.word(rank, call.place()).load(Ordering::Acquire);
        if stamp & !HAS_READ == call.stamp() {
            if stamp & HAS_READ != 0 {
                self.read[rank] = self.read[rank].max(call.number);
            }
            #[cfg(test)]
            self.fetched(rank, len);
            if len > PLACED_BYTES {
                let placed = self.placed(call, rank, len);
                return placed.map_or(Contribution::Other(rank), Contribution::At);
            }
            return Contribution::At(self.contribution(call, rank, len));
        }
        match stamp >> NUMBER_BIT == call.number {
            true => Contribution::Other(rank),
            false => Contribution::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flats(n_ranks: usize) -> Vec<FlatBuffer> {
        let layout = ShmLayout { n_ranks, n_ports: 0, flats_per_rank: 0 };
        let (segment, _file) = Segment::create(layout.len(), 1).unwrap();
        let all: Vec<usize> = (0..n_ranks).collect();
        let bulk = || BulkPlaces::new(&segment, layout);
        let view = |me| FlatBuffer::new(&segment, layout, &bulk(), (0, &all), me, 0);
        (0..n_ranks).map(view).collect()
    }

    fn bytes(flat: &mut FlatBuffer, call: Entered, rank: usize, len: usize) -> Option<Vec<u8>> {
        match flat.of(call, rank, len) {
            // SAFETY: the flat buffer says that the bytes are there.
            Contribution::At(ptr) => Some(unsafe { std::slice::from_raw_parts(ptr, len) }.to_vec()),
            _ => None,
        }
    }

    #[test]
    fn contributions_are_seen_by_all_in_their_call_only() {
        let flats = &mut flats(3);
        for (round, len) in [0, 8, 56, 57, 4096, CONTRIBUTION_BYTES, 8].into_iter().enumerate() {
            let calls: Vec<Entered> = flats.iter_mut().map(|flat| flat.enter(7)).collect();
            let call = calls[0];
            assert!(calls.iter().all(|other| *other == call));
            assert_eq!(flats[0].of(call, 1, len), Contribution::Missing);
            for (rank, flat) in flats.iter_mut().enumerate() {
                flat.is_free(call).unwrap();
                flat.contribute(call, &vec![(10 * round + rank) as u8; len]);
            }
            for flat in flats.iter_mut() {
                assert_eq!(Contribution::At(flat.own(call, len)), flat.of(call, flat.me(), len));
                for from in 0..3 {
                    let want = vec![(10 * round + from) as u8; len];
                    assert_eq!(bytes(flat, call, from, len), Some(want));
                }
            }
        }
    }

    #[test]
    fn who_is_far_ahead_has_to_wait() {
        let flats = &mut flats(2);
        let mut sent = 0u8;
        let last = loop {
            let call = flats[0].enter(1);
            if flats[0].is_free(call).is_err() {
                break call;
            }
            sent += 1;
            flats[0].contribute(call, &[sent]);
        };
        assert_eq!(u64::from(sent), DEPTH);
        for value in 1..=sent {
            let call = flats[1].enter(1);
            assert_eq!(bytes(&mut flats[1], call, 0, 1), Some(vec![value]));
            // A view of the first contribution is valid until the second call.
            assert_eq!(flats[0].is_free(last).is_ok(), value > 1);
        }
    }

    /// A rank that reads later keeps the contributions to be read, whatever number of calls it enters.
    #[test]
    fn what_is_read_later_stays() {
        let flats = &mut flats(2);
        let mut calls = Vec::new();
        for value in 1..=DEPTH as u8 + 2 {
            let call = flats[0].enter(1);
            if flats[0].is_free(call).is_ok() {
                flats[0].contribute(call, &[value]);
            }
            calls.push(flats[1].enter(1));
            flats[1].read_later();
            if flats[1].is_free(call).is_ok() {
                flats[1].contribute(call, &[value]);
            }
        }
        let fifth = calls[DEPTH as usize];
        // Both ranks have entered the call, and rank 1 has not read the first one.
        assert_eq!(flats[0].is_free(fifth), Err(1));
        assert_eq!(flats[1].is_free(fifth), Err(1));
        for (at, value) in (1..=DEPTH as u8).enumerate() {
            assert_eq!(bytes(&mut flats[1], calls[at], 0, 1), Some(vec![value]));
            // A contribution made while earlier calls were unread does not say that these were read.
            assert_eq!(bytes(&mut flats[0], calls[at], 1, 1), Some(vec![value]));
            assert_eq!(flats[0].is_free(fifth).is_ok(), at > 0, "{at}");
            flats[1].has_read(calls.get(at + 1).copied());
        }
        assert_eq!(flats[1].is_free(fifth), Ok(()));
        assert_eq!(flats[0].is_free(calls[DEPTH as usize + 1]), Ok(()));
    }

    /// Whatever offset a rank writes for its contribution, no rank reads beyond that rank's bulk places.
    #[test]
    fn a_contribution_that_cannot_be_there_is_of_another_call() {
        let flats = &mut flats(2);
        let calls = [flats[0].enter(1), flats[1].enter(1)];
        let len = PLACED_BYTES + 1;
        flats[0].contribute(calls[0], &vec![1; len]);
        let last = (flats[0].bulk_bytes - len) as u64;
        for (at, is_there) in [(0, true), (last, true), (last + 1, false), (u64::MAX - 1, false)] {
            flats[0].word(0, calls[0].place() + 8).store(at + 1, Ordering::Relaxed);
            let found = flats[1].of(calls[1], 0, len);
            assert_eq!(matches!(found, Contribution::At(_)), is_there, "{found:?}");
        }
    }

    #[test]
    fn another_call_is_noticed() {
        let flats = &mut flats(2);
        let calls = [flats[0].enter(1), flats[1].enter(2)];
        flats[0].contribute(calls[0], &[1]);
        assert_eq!(flats[1].of(calls[1], 0, 1), Contribution::Other(0));
    }
}
