//! The flat buffer: short collectives without messages. Each rank writes its contribution once, to a place
//! of its own; the others read it there.
//!
//! A rank has [`DEPTH`] places and uses them in turn, one for each call. A place is free again once
//! every rank has entered a later call than the one it was written for, as all have read it then. A
//! rank knows how far those are that it has waited for in recent calls, and reads it of the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bell::Doorbell;
use super::layout::{CONTRIBUTION_BYTES, DEPTH, LINE, Layout, PART_BYTES, STRIDE};
use super::segment::Segment;

/// The words of the first line of a rank's part: the call that it has entered; the base of the
/// last lease that it has left; that of the present one, in its owner's part (`flat_buffers`).
const ENTERED: usize = 0;
pub(super) const LEFT: usize = 8;
pub(super) const BASE: usize = 16;
/// A contribution up to this length shares the cache line of its stamp.
const INLINE_BYTES: usize = LINE - 8;

/// A rank's contribution to the call that was entered last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contribution {
    /// The rank has not contributed yet.
    Missing,
    /// The contribution starts here; it stays until this rank enters the next call.
    At(*const u8),
    /// The rank makes another call: its signature differs.
    Other,
}

/// A rank's view of the flat buffer.
#[derive(Debug)]
pub struct FlatBuffer {
    /// Keeps the memory mapped.
    _segment: Arc<Segment>,
    me: usize,
    /// The start of each rank's part.
    parts: Vec<*mut u8>,
    bells: Vec<Doorbell>,
    /// The latest call that each rank is known to have entered.
    entered: Vec<u64>,
    call: u64,
    /// Calls are numbered from here on.
    base: u64,
    signature: u16,
}

// SAFETY: the parts are addresses within the segment; the protocol says who writes what when.
unsafe impl Send for FlatBuffer {}

impl FlatBuffer {
    /// The flat buffer with this index, as `members[me]` sees it. The members' first call is number
    /// `base + 1`.
    pub(super) fn new(
        segment: &Arc<Segment>,
        layout: Layout,
        (index, members): (usize, &[usize]),
        me: usize,
        base: u64,
    ) -> Self {
        let part = |&rank: &usize| segment.at(layout.flat(index, rank), PART_BYTES);
        let bell = |&rank: &usize| Doorbell::new(segment, layout, rank);
        FlatBuffer {
            _segment: segment.clone(),
            me,
            parts: members.iter().map(part).collect(),
            bells: members.iter().map(bell).collect(),
            entered: vec![0; members.len()],
            call: base,
            base,
            signature: 0,
        }
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

    #[inline]
    fn place(&self) -> usize {
        LINE + (self.call % DEPTH) as usize * STRIDE
    }

    /// Enters the next call; ranks that make the same call give the same `signature`. From now on
    /// others may overwrite what this rank has read in the call before.
    #[inline]
    pub fn enter(&mut self, signature: u16) {
        self.call += 1;
        self.signature = signature;
        // Release: pairs with the Acquire in `is_free`: what was read was read before.
        self.word(self.me, ENTERED).store(self.call, Ordering::Release);
        self.ring();
    }

    /// Whether this rank may contribute: no rank still reads what its place held before.
    ///
    /// # Errors
    /// The first rank that might still read it.
    #[inline]
    pub fn is_free(&mut self) -> Result<(), usize> {
        // Whoever has entered this call has left the one that used the place before.
        let is_first = self.call <= self.base + DEPTH;
        let enough = if is_first { 0 } else { self.call - DEPTH + 1 };
        for rank in 0..self.parts.len() {
            if self.entered[rank] < enough && rank != self.me {
                // Acquire: see `enter`.
                self.entered[rank] = self.word(rank, ENTERED).load(Ordering::Acquire);
                if self.entered[rank] < enough {
                    return Err(rank);
                }
            }
        }
        Ok(())
    }

    /// Contributes `bytes` to the call; the place [`is_free`](FlatBuffer::is_free).
    #[inline]
    pub fn contribute(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= CONTRIBUTION_BYTES);
        let (place, into) = (self.place(), self.contribution(self.me, bytes.len()));
        // SAFETY: within this rank's part, which it alone writes; nobody reads it now.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), into, bytes.len()) };
        // Release: pairs with the Acquire in `of`.
        self.word(self.me, place).store(self.stamp(), Ordering::Release);
        self.ring();
    }

    /// Contributes several pieces one after the other, `CONTRIBUTION_BYTES` in all at most. They begin where a
    /// contribution of `len` bytes does: 0 where readers learn the length from the pieces themselves.
    #[inline]
    pub fn contribute_pieces<'a>(&mut self, len: usize, pieces: impl Iterator<Item = &'a [u8]>) {
        let (place, start) = (self.place(), self.contribution(self.me, len));
        let mut at = 0;
        for piece in pieces {
            assert!(piece.len() <= CONTRIBUTION_BYTES - at);
            // SAFETY: within this rank's part, which it alone writes; nobody reads it now. From `start`
            // on there are more than `CONTRIBUTION_BYTES` up to the next place.
            unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), start.add(at), piece.len()) };
            at += piece.len();
        }
        // Release: pairs with the Acquire in `of`.
        self.word(self.me, place).store(self.stamp(), Ordering::Release);
        self.ring();
    }

    /// Wakes everybody: any rank may wait for this one.
    #[inline]
    fn ring(&self) {
        if self.bells[self.me].may_be_heard() {
            self.bells.iter().for_each(Doorbell::ring);
        }
    }

    #[inline]
    fn stamp(&self) -> u64 {
        self.call << 16 | u64::from(self.signature)
    }

    /// Where a contribution of `len` bytes to the call starts.
    #[inline]
    fn contribution(&self, rank: usize, len: usize) -> *mut u8 {
        let offset = self.place() + if len <= INLINE_BYTES { 8 } else { LINE };
        // SAFETY: within the rank's part.
        unsafe { self.parts[rank].add(offset) }
    }

    /// What this rank has contributed to the call; `len` is its length.
    #[inline]
    pub fn own(&self, len: usize) -> *const u8 {
        self.contribution(self.me, len)
    }

    /// What `rank` has contributed to the call; `len` is its length.
    #[inline]
    pub fn of(&mut self, rank: usize, len: usize) -> Contribution {
        let place = self.place();
        // Acquire: pairs with the Release in `contribute`.
        let stamp = self.word(rank, place).load(Ordering::Acquire);
        if stamp == self.stamp() {
            self.entered[rank] = self.call;
            return Contribution::At(self.contribution(rank, len));
        }
        match stamp >> 16 == self.call {
            true => Contribution::Other,
            false => Contribution::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flats(n_ranks: usize) -> Vec<FlatBuffer> {
        let layout = Layout { n_ranks, n_ports: 0, flats_per_rank: 0 };
        let (segment, _file) = Segment::create(layout.len(), 1).unwrap();
        let segment = Arc::new(segment);
        let all: Vec<usize> = (0..n_ranks).collect();
        (0..n_ranks).map(|me| FlatBuffer::new(&segment, layout, (0, &all), me, 0)).collect()
    }

    fn bytes(flat: &mut FlatBuffer, rank: usize, len: usize) -> Option<Vec<u8>> {
        match flat.of(rank, len) {
            // SAFETY: the flat buffer says that they are there.
            Contribution::At(ptr) => Some(unsafe { std::slice::from_raw_parts(ptr, len) }.to_vec()),
            _ => None,
        }
    }

    #[test]
    fn contributions_are_seen_by_all_in_their_call_only() {
        let flats = &mut flats(3);
        for (round, len) in [0, 8, 56, 57, 4096, CONTRIBUTION_BYTES, 8].into_iter().enumerate() {
            flats.iter_mut().for_each(|flat| flat.enter(7));
            assert_eq!(flats[0].of(1, len), Contribution::Missing);
            for (rank, flat) in flats.iter_mut().enumerate() {
                flat.is_free().unwrap();
                flat.contribute(&vec![(10 * round + rank) as u8; len]);
            }
            for flat in flats.iter_mut() {
                assert_eq!(Contribution::At(flat.own(len)), flat.of(flat.me(), len));
                for from in 0..3 {
                    let want = vec![(10 * round + from) as u8; len];
                    assert_eq!(bytes(flat, from, len), Some(want));
                }
            }
        }
    }

    #[test]
    fn who_is_far_ahead_has_to_wait() {
        let flats = &mut flats(2);
        let mut sent = 0u8;
        loop {
            flats[0].enter(1);
            if flats[0].is_free().is_err() {
                break;
            }
            sent += 1;
            flats[0].contribute(&[sent]);
        }
        assert_eq!(u64::from(sent), DEPTH);
        for value in 1..=sent {
            flats[1].enter(1);
            assert_eq!(bytes(&mut flats[1], 0, 1), Some(vec![value]));
            // A view of the first contribution lives until the second call.
            assert_eq!(flats[0].is_free().is_ok(), value > 1);
        }
    }

    #[test]
    fn another_call_is_noticed() {
        let flats = &mut flats(2);
        flats[0].enter(1);
        flats[1].enter(2);
        flats[0].contribute(&[1]);
        assert_eq!(flats[1].of(0, 1), Contribution::Other);
    }
}
