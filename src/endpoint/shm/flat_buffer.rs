//! The flat buffer: short collectives without messages. Each rank writes its contribution once, to a place
//! of its own; the others read it there.
//!
//! A rank has [`DEPTH`] places and uses them in turn, one for each call; what a long contribution to a call is written to
//! ([`bulk`](super::bulk)) belongs to the call's place. A place is free again once every rank has read the call that it
//! was written for. Each shows up to where it has read, when it enters a call: a rank that has no earlier call left to
//! read says so in its contribution, too, so that others mostly need not look.
//!
//! A rank may enter calls before it has read earlier ones ([`FlatBuffer::read_later`]). It shows how far it has
//! come as long as others may wait for that.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bell::Doorbell;
use super::bulk::{BulkPlaces, Held};
use super::flat_groups::FlatGroups;
use super::layout::{CONTRIBUTION_BYTES, DEPTH, LEADER_BYTES, LINE, PART_BYTES, STRIDE, ShmLayout};
use super::segment::Segment;
use super::stores::Stores;

/// The words of the first line of a rank's part: the first call that it may still read; the base of the
/// last lease that it has left; that of the present one, in its owner's part (`flat_buffers`).
const READ: usize = 0;
pub(super) const LEFT: usize = 8;
pub(super) const BASE: usize = 16;
/// A contribution up to this length shares the cache line of its stamp.
pub(super) const INLINE_BYTES: usize = LINE - 8;
/// A longer one may be in a bulk place, and then that line says where: one more than its first byte there.
const PLACED_BYTES: usize = 4096;

/// A stamp has the signature of a call, whether its rank had read all calls before, and from this bit on its number.
const NUMBER_BIT: u32 = 17;
pub(super) const HAS_READ: u64 = 1 << 16;

/// A call that this rank has entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    number: u64,
    signature: u16,
}

impl Entered {
    /// Its number on the flat buffer.
    pub fn number(self) -> u64 {
        self.number
    }

    /// What all ranks stamp their contributions with, but for [`HAS_READ`].
    #[inline]
    pub(super) fn stamp(self) -> u64 {
        self.number << NUMBER_BIT | u64::from(self.signature)
    }

    #[inline]
    fn turn(self) -> usize {
        (self.number % DEPTH) as usize
    }

    #[inline]
    fn place(self) -> usize {
        LINE + self.turn() * STRIDE
    }
}

/// A rank's contribution to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contribution {
    /// The rank has not contributed yet.
    Missing,
    /// The contribution starts here; it stays until this rank has read it: until it enters another call, or, after
    /// [`read_later`](FlatBuffer::read_later), says that it has.
    At(*const u8),
    /// The rank makes another call: its signature differs.
    Other,
}

/// A rank's view of the flat buffer.
#[derive(Debug)]
pub struct FlatBuffer {
    /// Keeps the memory mapped.
    segment: Arc<Segment>,
    layout: ShmLayout,
    pub(super) me: usize,
    /// The start of each rank's part.
    parts: Vec<*mut u8>,
    bells: Vec<Doorbell>,
    /// The bulk places of this rank, and those that belong to its places here.
    bulk: Arc<BulkPlaces>,
    held: Held,
    /// The start of each rank's bulk places, and their bytes.
    bulk_parts: Vec<*mut u8>,
    bulk_bytes: usize,
    /// Each rank is known to have read the calls before this one, and all ranks those before that.
    pub(super) read: Vec<u64>,
    pub(super) all_read: u64,
    /// The calls before this one have been read by this rank, and those that it has shown.
    pub(super) own_read: u64,
    shown: u64,
    /// There are calls to be read later.
    is_behind: bool,
    call: u64,
    /// Calls are numbered from here on.
    base: u64,
    pub(super) groups: Option<FlatGroups>,
    stores: Stores,
    /// Lines that this rank has fetched from others.
    #[cfg(test)]
    pub(super) n_lines: usize,
}

// SAFETY: the parts are addresses within the segment; the protocol says who writes what when.
unsafe impl Send for FlatBuffer {}

impl FlatBuffer {
    /// The flat buffer with this index, as `members[me]` sees it. The members' first call is number
    /// `base + 1`.
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
            held: Held::default(),
            bulk_parts: members.iter().map(bulk_part).collect(),
            bulk_bytes,
            read: vec![0; members.len()],
            all_read: 0,
            own_read: base,
            shown: base,
            is_behind: false,
            call: base,
            base,
            groups: None,
            stores: Stores::default(),
            #[cfg(test)]
            n_lines: 0,
        }
    }

    /// With its ranks in groups: `of` has a number for each, which the ranks of a group share. It must be the world's
    /// flat buffer, and all ranks must say the same.
    pub fn in_groups(self, of: &[u32]) -> Self {
        let leader = |rank| self.segment.at(self.layout.leader(rank), LEADER_BYTES);
        let groups = Some(FlatGroups::new(of, self.me, leader));
        FlatBuffer { groups, ..self }
    }

    /// The longest contribution, in bytes.
    pub fn capacity(&self) -> usize {
        CONTRIBUTION_BYTES
    }

    /// This rank's number on the flat buffer.
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
        // SAFETY: an aligned word of the rank's part, which `segment` keeps mapped; this one is
        // accessed as an atomic only.
        unsafe { AtomicU64::from_ptr(self.parts[rank].add(offset).cast()) }
    }

    /// Enters the next call; ranks that make the same call give the same `signature`. From now on
    /// others may overwrite what this rank has read in calls before, but for those that it reads later.
    #[inline]
    pub fn enter(&mut self, signature: u16) -> Entered {
        self.call += 1;
        if !self.is_behind {
            self.own_read = self.call;
        }
        self.show();
        Entered { number: self.call, signature }
    }

    /// The call entered last is read later, perhaps after others have been entered. Such calls are read in
    /// their order.
    #[inline]
    pub fn read_later(&mut self) {
        self.is_behind = true;
    }

    /// Of the calls to be read later this one is the first now; without one, all have been read.
    #[inline]
    pub fn has_read(&mut self, next: Option<Entered>) {
        self.is_behind = next.is_some();
        // Nobody has read the call that was entered last before the next is entered.
        self.own_read = next.map_or(self.call, Entered::number);
        // As soon as others can wait for it, in one of the calls that this rank has entered; and a little before.
        if self.call - self.shown >= DEPTH / 2 {
            self.show();
        }
    }

    #[inline]
    fn show(&mut self) {
        if self.shown != self.own_read {
            self.shown = self.own_read;
            // Release: pairs with the Acquire in `is_free`: what was read was read before.
            self.word(self.me, READ).store(self.shown, Ordering::Release);
            self.ring();
        }
    }

    /// Whether this rank may contribute to the call: no rank still reads what its place held before, and it has
    /// contributed to all calls before.
    ///
    /// # Errors
    /// The first rank that might still read it, this rank before others.
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
                // Acquire: see `show`.
                self.read[rank] = self.word(rank, READ).load(Ordering::Acquire);
                if self.read[rank] < enough {
                    return Err(rank);
                }
            }
        }
        Ok(())
    }

    /// Contributes `bytes` to the call; the place [`is_free`](FlatBuffer::is_free).
    #[inline]
    pub fn contribute(&mut self, call: Entered, bytes: &[u8]) {
        assert!(bytes.len() <= CONTRIBUTION_BYTES);
        let into = self.begin(call, bytes.len());
        // SAFETY: there is room for them, which this rank alone writes; nobody reads it now.
        unsafe { self.stores.copy(bytes.as_ptr(), into, bytes.len(), bytes.len()) };
        self.stamp(call);
    }

    /// As [`contribute`](FlatBuffer::contribute), but for bytes that nobody reads.
    #[inline]
    pub fn contribute_without(&mut self, call: Entered, bytes: &[u8], unread: Range<usize>) {
        assert!(bytes.len() <= CONTRIBUTION_BYTES);
        let into = self.begin(call, bytes.len());
        for (at, piece) in [(0, &bytes[..unread.start]), (unread.end, &bytes[unread.end..])] {
            // SAFETY: as in `contribute`.
            unsafe { self.stores.copy(piece.as_ptr(), into.add(at), piece.len(), bytes.len()) };
        }
        self.stamp(call);
    }

    /// Contributes several pieces one after the other, `len` bytes in all. Where readers learn the length from the
    /// pieces themselves, that is 0, and there are `CONTRIBUTION_BYTES` in all at most.
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
            // SAFETY: from `start` on there is room for so many bytes, which this rank alone writes; nobody reads
            // it now.
            unsafe { self.stores.copy(piece.as_ptr(), start.add(at), piece.len(), piece.len()) };
            at += piece.len();
        }
        self.stamp(call);
    }

    /// Where this rank writes a contribution of `len` bytes to the call.
    #[inline]
    fn begin(&mut self, call: Entered, len: usize) -> *mut u8 {
        if len > PLACED_BYTES || self.held[call.turn()].is_some() {
            self.change_bulk(call, len);
        }
        self.own(call, len).cast_mut()
    }

    /// Nobody reads what the call's place held before, and so its bulk place: gives that back, and has another for a
    /// contribution of `len` bytes if that is long.
    fn change_bulk(&mut self, call: Entered, len: usize) {
        let held = &mut self.held[call.turn()];
        let wanted = (len > PLACED_BYTES).then_some(len);
        *held = self.bulk.change(held.take(), wanted);
        if wanted.is_some() {
            let placed = held.map_or(0, |bulk| 1 + bulk.at() as u64);
            // Relaxed: the stamp orders it.
            self.word(self.me, call.place() + 8).store(placed, Ordering::Relaxed);
        }
    }

    /// This rank's view has ended: what it has of bulk places.
    pub(super) fn end(&mut self) -> Held {
        std::mem::take(&mut self.held)
    }

    /// This rank's contribution is there.
    #[inline]
    fn stamp(&self, call: Entered) {
        let has_read = if self.own_read >= call.number { HAS_READ } else { 0 };
        // Release: pairs with the Acquire in `of`: with the contribution, and with what this rank has read.
        self.word(self.me, call.place()).store(call.stamp() | has_read, Ordering::Release);
        self.ring();
    }

    /// Wakes everybody: any rank may wait for this one.
    #[inline]
    pub(super) fn ring(&self) {
        if self.bells[self.me].may_be_heard() {
            self.bells.iter().for_each(Doorbell::ring);
        }
    }

    /// This rank fetches a stamp of `rank`, and the `len` bytes behind it.
    #[cfg(test)]
    pub(super) fn fetched(&mut self, rank: usize, len: usize) {
        if rank != self.me {
            self.n_lines += 1 + if len <= INLINE_BYTES { 0 } else { len.div_ceil(LINE) };
        }
    }

    /// Where a contribution of `len` bytes to the call starts, if that is in the rank's place.
    #[inline]
    fn contribution(&self, call: Entered, rank: usize, len: usize) -> *mut u8 {
        let offset = call.place() + if len <= INLINE_BYTES { 8 } else { LINE };
        // SAFETY: within the rank's part.
        unsafe { self.parts[rank].add(offset) }
    }

    /// What this rank has contributed to the call; `len` is its length.
    #[inline]
    pub fn own(&self, call: Entered, len: usize) -> *const u8 {
        match self.held[call.turn()] {
            // SAFETY: within this rank's bulk places.
            Some(bulk) if len > PLACED_BYTES => unsafe { self.bulk_parts[self.me].add(bulk.at()) },
            _ => self.contribution(call, self.me, len),
        }
    }

    /// Where a contribution of more than [`PLACED_BYTES`] starts that has been stamped; `None` if its rank says what cannot
    /// be.
    fn placed(&self, call: Entered, rank: usize, len: usize) -> Option<*const u8> {
        // Relaxed: the stamp has been read.
        let placed = self.word(rank, call.place() + 8).load(Ordering::Relaxed);
        let Some(at) = placed.checked_sub(1) else {
            return Some(self.contribution(call, rank, len));
        };
        let is_there = at.checked_add(len as u64).is_some_and(|end| end <= self.bulk_bytes as u64);
        // SAFETY: within the rank's bulk places.
        is_there.then(|| unsafe { self.bulk_parts[rank].add(at as usize) }.cast_const())
    }

    /// What `rank` has contributed to the call; `len` is its length.
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
                return self.placed(call, rank, len).map_or(Contribution::Other, Contribution::At);
            }
            return Contribution::At(self.contribution(call, rank, len));
        }
        match stamp >> NUMBER_BIT == call.number {
            true => Contribution::Other,
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
            // SAFETY: the flat buffer says that they are there.
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
            // A view of the first contribution lives until the second call.
            assert_eq!(flats[0].is_free(last).is_ok(), value > 1);
        }
    }

    /// Who reads later keeps what is to be read, however many calls it enters.
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
        // Both have entered it, and one has not read the first.
        assert_eq!(flats[0].is_free(fifth), Err(1));
        assert_eq!(flats[1].is_free(fifth), Err(1));
        for (at, value) in (1..=DEPTH as u8).enumerate() {
            assert_eq!(bytes(&mut flats[1], calls[at], 0, 1), Some(vec![value]));
            // A contribution that was made before others were read says nothing of them.
            assert_eq!(bytes(&mut flats[0], calls[at], 1, 1), Some(vec![value]));
            assert_eq!(flats[0].is_free(fifth).is_ok(), at > 0, "{at}");
            flats[1].has_read(calls.get(at + 1).copied());
        }
        assert_eq!(flats[1].is_free(fifth), Ok(()));
        assert_eq!(flats[0].is_free(calls[DEPTH as usize + 1]), Ok(()));
    }

    /// Whatever a rank writes in place of where its contribution is, nobody reads behind its places.
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
        assert_eq!(flats[1].of(calls[1], 0, 1), Contribution::Other);
    }
}
