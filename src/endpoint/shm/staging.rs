//! Staging slots: a port copies messages of medium length to them, and the receivers read the messages in place. A
//! slot is free when its number of readers is zero.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hopbine_torus::PortId;

use super::descriptor::StagingPlace;
use super::layout::{SLOT_BYTES, SLOTS, ShmLayout, next_range};
use super::segment::Segment;
use super::store_policy::StorePolicy;

/// Slots reserved for pieces of messages that receivers do not read themselves. Slots are filled in turn, and short
/// messages follow each other within a slot. Together the slots exceed a second-level cache: a line stays in its
/// reader's cache after it was read, and has been evicted from there before it is written again.
pub(super) const RESERVED_SLOTS: usize = 24;
const FIRST_RESERVED: usize = SLOTS - RESERVED_SLOTS;
/// Polls for which a message waits for a slot: readers mostly release slots soon. Then all messages are announced
/// until one finds a slot: a receiver that does not read its slots may wait for them.
const PATIENCE: u32 = 256;

/// Staging slots of one port.
#[derive(Debug)]
pub(super) struct StagingSlots {
    segment: Arc<Segment>,
    layout: ShmLayout,
    port: PortId,
    me: usize,
    /// The message staged last (address, length, place), until its sender learns that it is sent. Until then its
    /// region holds the same bytes, and another receiver can read the same slot.
    last: Option<(*const u8, usize, StagingPlace)>,
    /// The peer that has requested the last piece in each reserved slot; `None` for early bytes.
    requested_by: [Option<usize>; RESERVED_SLOTS],
    /// End of the last message in each slot.
    ends: [usize; SLOTS],
    /// The slots to try first for the next message and for the next piece.
    next: usize,
    next_piece: usize,
    /// Polls since a message found no free slot; 0 if the last message found one.
    waited: u32,
    stores: StorePolicy,
}

// SAFETY: the pointer in `last` is compared, never dereferenced.
unsafe impl Send for StagingSlots {}

/// The number of readers of a slot.
pub(super) fn readers(
    segment: &Segment,
    layout: ShmLayout,
    port: PortId,
    rank: usize,
    slot: usize,
) -> &AtomicU64 {
    segment.word(layout.readers(port, rank, slot))
}

/// The range of slots in cyclic order, beginning at `from`.
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
            requested_by: [None; RESERVED_SLOTS],
            ends: [0; SLOTS],
            next: 0,
            next_piece: FIRST_RESERVED,
            waited: 0,
            stores: StorePolicy::default(),
        }
    }

    fn readers(&self, slot: usize) -> &AtomicU64 {
        readers(&self.segment, self.layout, self.port, self.me, slot)
    }

    fn is_free(&self, slot: usize) -> bool {
        // Acquire: pairs with the Release of readers when they release the slot.
        self.readers(slot).load(Ordering::Acquire) == 0
    }

    /// Copies a message to a slot, or adds a reader to the last slot if that holds the message; `None` without a free
    /// slot.
    ///
    /// # Safety
    /// The `len` bytes, at most [`SLOT_BYTES`], must be valid for reads, and must not change before
    /// [`sent`](StagingSlots::sent).
    pub(super) unsafe fn put(&mut self, ptr: *const u8, len: usize) -> Option<StagingPlace> {
        if let Some((last, last_len, at)) = self.last
            && (last, last_len) == (ptr, len)
        {
            // Relaxed: this port is itself counted as a reader, which keeps the slot in use.
            self.readers(at.slot()).fetch_add(1, Ordering::Relaxed);
            return Some(at);
        }
        self.sent();
        let Some(slot) = in_turn(0..FIRST_RESERVED, self.next).find(|&slot| self.is_free(slot))
        else {
            self.waited = self.waited.max(1);
            return None;
        };
        self.next = slot + 1;
        self.waited = 0;
        // SAFETY: the caller's promise.
        let at = unsafe { self.fill(slot, ptr, (len, len)) };
        // Relaxed: the reader learns of the slot through its queue. One of the two is this port itself.
        self.readers(slot).store(2, Ordering::Relaxed);
        self.last = Some((ptr, len, at));
        Some(at)
    }

    /// Whether a message that has found no slot may wait for one instead of being announced.
    pub(super) fn may_wait(&self) -> bool {
        self.waited <= PATIENCE
    }

    /// Counts a poll for a waiting message. True if a message waits for a slot.
    #[inline]
    pub(super) fn polled(&mut self) -> bool {
        let waits = (1..=PATIENCE).contains(&self.waited);
        self.waited += u32::from(waits);
        waits
    }

    /// Removes a reader that could not be told of the message, because its queue had no room.
    pub(super) fn take_back(&mut self, at: StagingPlace) {
        // Relaxed: the reader does not know of the slot.
        self.readers(at.slot()).fetch_sub(1, Ordering::Relaxed);
    }

    /// Ends the sharing of the message staged last, whose sender may change its memory from now on.
    pub(super) fn sent(&mut self) {
        if let Some((_, _, at)) = self.last.take() {
            // Release: pairs with the Acquire in `is_free`.
            self.readers(at.slot()).fetch_sub(1, Ordering::Release);
        }
    }

    /// Number of slots that are free for the next pieces, at most `most`.
    pub(super) fn n_free_for_pieces(&self, most: usize) -> usize {
        let next = in_turn(FIRST_RESERVED..SLOTS, self.next_piece).take(most);
        next.take_while(|&slot| self.is_free(slot)).count()
    }

    /// As [`put`](StagingSlots::put), for a piece of a message of `of` bytes with one reader. `requested_by`: the reader,
    /// if it has requested the message.
    ///
    /// # Safety
    /// The `len` bytes, at most [`SLOT_BYTES`], must be valid for reads.
    pub(super) unsafe fn put_piece(
        &mut self,
        requested_by: Option<usize>,
        ptr: *const u8,
        (len, of): (usize, usize),
    ) -> Option<StagingPlace> {
        let slot =
            in_turn(FIRST_RESERVED..SLOTS, self.next_piece).find(|&slot| self.is_free(slot))?;
        self.next_piece = slot + 1;
        // SAFETY: the caller's promise.
        let at = unsafe { self.fill(slot, ptr, (len, of)) };
        // Relaxed: as in `put`.
        self.readers(slot).store(1, Ordering::Relaxed);
        self.requested_by[slot - FIRST_RESERVED] = requested_by;
        Some(at)
    }

    /// Whether a slot holds a piece that this peer has requested and not read.
    pub(super) fn serves(&self, peer: usize) -> bool {
        // Relaxed: no memory access depends on this value.
        let is_read = |slot| self.readers(slot).load(Ordering::Relaxed) == 0;
        (FIRST_RESERVED..SLOTS)
            .zip(self.requested_by)
            .any(|(slot, by)| by == Some(peer) && !is_read(slot))
    }

    /// Copies the `len` bytes, part of a message of `of` bytes, into a slot.
    ///
    /// # Safety
    /// As for [`put_piece`](StagingSlots::put_piece); the slot has no readers.
    unsafe fn fill(
        &mut self,
        slot: usize,
        ptr: *const u8,
        (len, of): (usize, usize),
    ) -> StagingPlace {
        assert!(len <= SLOT_BYTES);
        let Range { start, end } = next_range(self.ends[slot], len, SLOT_BYTES);
        self.ends[slot] = end;
        let into = self.segment.at(self.layout.slot(self.port, self.me, slot) + start, len);
        // SAFETY: the caller's promise; the slot has room.
        unsafe { self.stores.copy(ptr, into, len, of) };
        StagingPlace::new(slot, start)
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
            let at = unsafe { slots.put_piece(Some(1), bytes.as_ptr(), (len, len)) }.unwrap();
            readers(&segment, layout, PortId(0), 0, at.slot()).store(0, Ordering::Relaxed);
            at
        };
        // Each message starts at a line; the fifth does not fit behind the fourth.
        let quarter = SLOT_BYTES / 4;
        for start in [0, quarter, 2 * quarter, 3 * quarter, 0] {
            for slot in FIRST_RESERVED..SLOTS {
                assert_eq!(put(quarter - 5), StagingPlace::new(slot, start));
            }
        }
        assert_eq!(put(SLOT_BYTES), StagingPlace::new(FIRST_RESERVED, 0));
    }
}
