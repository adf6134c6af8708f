//! Staging slots: where a port copies messages of middle length, for their receivers to read in
//! place. A slot is the port's own again when its count of readers is back at zero.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hopbine_torus::PortId;

use super::descriptor::Staged;
use super::layout::{SLOT_BYTES, SLOTS, ShmLayout, behind};
use super::segment::Segment;
use super::stores::Stores;

/// Slots kept for pieces of messages that receivers do not read themselves. Slots are filled in turn, short messages each
/// behind the last one in its slot, and are more than a cache of the second level holds: a line that has just been read
/// is still in its reader's cache, which gives it up before it is written again.
pub(super) const KEPT_SLOTS: usize = 24;
const FIRST_KEPT: usize = SLOTS - KEPT_SLOTS;
/// So many polls long a message waits for a slot: readers mostly give theirs back soon. After that it is announced, and
/// so are all until one has found a slot: who does not read may wait for what is to be sent.
const PATIENCE: u32 = 256;

/// The slots of one port.
#[derive(Debug)]
pub(super) struct StagingSlots {
    segment: Arc<Segment>,
    layout: ShmLayout,
    port: PortId,
    me: usize,
    /// The message staged last, if its sender has not been told yet that it is sent: the same
    /// region still holds the same bytes, and another receiver can read the same slot.
    last: Option<(*const u8, usize, Staged)>,
    /// Whom the last piece in each of the kept slots was for.
    pieces_for: [usize; KEPT_SLOTS],
    /// Where in each slot the last one ends.
    ends: [usize; SLOTS],
    /// The slots that the next message and the next piece go to, if they are free.
    next: usize,
    next_piece: usize,
    /// Polls since a message found no slot; 0 if the last one found one.
    waited: u32,
    stores: Stores,
}

// SAFETY: `last` is an address, compared and not followed.
unsafe impl Send for StagingSlots {}

/// The count of readers of a slot.
pub(super) fn readers(
    segment: &Segment,
    layout: ShmLayout,
    port: PortId,
    rank: usize,
    slot: usize,
) -> &AtomicU64 {
    segment.word(layout.readers(port, rank, slot))
}

/// These slots, from one on.
fn in_turn(slots: Range<usize>, from: usize) -> impl Iterator<Item = usize> {
    (from..slots.end).chain(slots.start..from.min(slots.end))
}

impl StagingSlots {
    pub(super) fn new(segment: Arc<Segment>, layout: ShmLayout, port: PortId, me: usize) -> Self {
        StagingSlots {
            segment,
            layout,
            port,
            me,
            last: None,
            pieces_for: [usize::MAX; KEPT_SLOTS],
            ends: [0; SLOTS],
            next: 0,
            next_piece: FIRST_KEPT,
            waited: 0,
            stores: Stores::default(),
        }
    }

    fn readers(&self, slot: usize) -> &AtomicU64 {
        readers(&self.segment, self.layout, self.port, self.me, slot)
    }

    fn is_free(&self, slot: usize) -> bool {
        // Acquire: pairs with the Release of readers that are done.
        self.readers(slot).load(Ordering::Acquire) == 0
    }

    /// Puts a message into a slot, for one more reader; `None` if none is free.
    ///
    /// # Safety
    /// The `len` bytes, at most [`SLOT_BYTES`], must be valid for reads, and stay as they are until
    /// [`sent`](StagingSlots::sent).
    pub(super) unsafe fn put(&mut self, ptr: *const u8, len: usize) -> Option<Staged> {
        if let Some((last, last_len, at)) = self.last
            && (last, last_len) == (ptr, len)
        {
            // Relaxed: this port's own hold keeps the slot from being free.
            self.readers(at.slot()).fetch_add(1, Ordering::Relaxed);
            return Some(at);
        }
        self.sent();
        let Some(slot) = in_turn(0..FIRST_KEPT, self.next).find(|&slot| self.is_free(slot)) else {
            self.waited = self.waited.max(1);
            return None;
        };
        self.next = slot + 1;
        self.waited = 0;
        // SAFETY: the caller's promise.
        let at = unsafe { self.fill(slot, ptr, (len, len)) };
        // Relaxed: the reader learns of the slot through its queue. One is this port's own hold.
        self.readers(slot).store(2, Ordering::Relaxed);
        self.last = Some((ptr, len, at));
        Some(at)
    }

    /// Whether a message that has found no slot may wait for one.
    pub(super) fn may_wait(&self) -> bool {
        self.waited <= PATIENCE
    }

    /// Readers have had the time of a poll. True if a message waits for a slot.
    #[inline]
    pub(super) fn polled(&mut self) -> bool {
        let waits = (1..=PATIENCE).contains(&self.waited);
        self.waited += u32::from(waits);
        waits
    }

    /// Takes a reader off a message again: there is no room to tell that receiver of it now.
    pub(super) fn take_back(&mut self, at: Staged) {
        // Relaxed: nobody else has heard of this reader.
        self.readers(at.slot()).fetch_sub(1, Ordering::Relaxed);
    }

    /// Ends the sharing of the message staged last: its sender may change its memory from now on.
    pub(super) fn sent(&mut self) {
        if let Some((_, _, at)) = self.last.take() {
            // Release: pairs with the Acquire in `is_free`.
            self.readers(at.slot()).fetch_sub(1, Ordering::Release);
        }
    }

    /// How many of the next `most` pieces find a slot now.
    pub(super) fn n_free_for_pieces(&self, most: usize) -> usize {
        let next = in_turn(FIRST_KEPT..SLOTS, self.next_piece).take(most);
        next.take_while(|&slot| self.is_free(slot)).count()
    }

    /// As [`put`](StagingSlots::put), for a piece of a message of `of` bytes and exactly one reader, that peer.
    ///
    /// # Safety
    /// The `len` bytes, at most [`SLOT_BYTES`], must be valid for reads.
    pub(super) unsafe fn put_piece(
        &mut self,
        peer: usize,
        ptr: *const u8,
        (len, of): (usize, usize),
    ) -> Option<Staged> {
        let slot = in_turn(FIRST_KEPT..SLOTS, self.next_piece).find(|&slot| self.is_free(slot))?;
        self.next_piece = slot + 1;
        // SAFETY: the caller's promise.
        let at = unsafe { self.fill(slot, ptr, (len, of)) };
        // Relaxed: as above.
        self.readers(slot).store(1, Ordering::Relaxed);
        self.pieces_for[slot - FIRST_KEPT] = peer;
        Some(at)
    }

    /// Whether a piece for this peer is in a slot, and not read yet.
    pub(super) fn serves(&self, peer: usize) -> bool {
        // Relaxed: nothing is read or written on the strength of it.
        let is_read = |slot| self.readers(slot).load(Ordering::Relaxed) == 0;
        (FIRST_KEPT..SLOTS).zip(self.pieces_for).any(|(slot, to)| to == peer && !is_read(slot))
    }

    /// Copies the `len` bytes, of a message of `of`, into a slot.
    ///
    /// # Safety
    /// As [`put_piece`](StagingSlots::put_piece); nobody reads the slot.
    unsafe fn fill(&mut self, slot: usize, ptr: *const u8, (len, of): (usize, usize)) -> Staged {
        assert!(len <= SLOT_BYTES);
        let Range { start, end } = behind(self.ends[slot], len, SLOT_BYTES);
        self.ends[slot] = end;
        let into = self.segment.at(self.layout.slot(self.port, self.me, slot) + start, len);
        // SAFETY: the caller's promise; the slot has room.
        unsafe { self.stores.copy(ptr, into, len, of) };
        Staged::new(slot, start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_in_a_slot_follow_each_other() {
        let layout = ShmLayout { n_ranks: 2, n_ports: 1, flats_per_rank: 0 };
        let segment = Segment::create(layout.len(), 1).unwrap().0;
        let mut slots = StagingSlots::new(segment.clone(), layout, PortId(0), 0);
        let bytes = vec![7u8; SLOT_BYTES];
        let mut put = |len| {
            // SAFETY: the bytes stay until the end of the test.
            let at = unsafe { slots.put_piece(1, bytes.as_ptr(), (len, len)) }.unwrap();
            readers(&segment, layout, PortId(0), 0, at.slot()).store(0, Ordering::Relaxed);
            at
        };
        // Each starts at a line, and the fifth finds no room behind the fourth.
        let quarter = SLOT_BYTES / 4;
        for start in [0, quarter, 2 * quarter, 3 * quarter, 0] {
            for slot in FIRST_KEPT..SLOTS {
                assert_eq!(put(quarter - 5), Staged::new(slot, start));
            }
        }
        assert_eq!(put(SLOT_BYTES), Staged::new(FIRST_KEPT, 0));
    }
}
