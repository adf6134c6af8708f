//! The layout of one lane's staging, in which messages are packed and received.
//!
//! Three areas, assigned at compile time:
//! - a ring of slots from which packed messages are sent,
//! - a ring of slots for received messages that are reduced or unpacked,
//! - the exchange area, whose bytes are allocated once per step, for messages that cannot leave staging before a
//!   later message of the same step has been sent (see the module documentation of the engine, "No deadlock").
//!
//! The hazards of the compiler order the reuse of a slot, like every other conflict.

use super::program::{Buffer, Region};

/// Least and most slots of a ring, unless a step needs more at once: enough that some messages are in flight while
/// one is reduced, but at most [`RING_BYTES`], which stay in a core's cache, unless fewer than the least would fit.
const SLOTS: (u64, u64) = (2, 8);
const RING_BYTES: u64 = 512 * 1024;
/// Alignment of slots and exchange bytes: a cache line.
const ALIGN: u64 = 64;
/// While tasks are emitted, the sizes of the areas are unknown: the bits of an offset from this one on hold the
/// number of the area.
const AREA_SHIFT: u32 = 44;
/// Areas per staging.
const AREAS: u64 = 3;

/// Allocates staging regions.
#[derive(Debug)]
pub(crate) struct Staging {
    /// The number of this staging's first area.
    first: u64,
    slot_bytes: u64,
    rings: [SlotRing; 2],
    exchange_at: u64,
    /// Largest `exchange_at` of all steps.
    exchange_end: u64,
}

#[derive(Clone, Copy, Debug)]
struct SlotRing {
    slots: u64,
    next: u64,
}

impl SlotRing {
    fn used_slots(self) -> u64 {
        self.next.min(self.slots)
    }
}

impl Staging {
    /// Staging number `number` for messages of at most `slot_bytes` bytes. No step sends more than `sends`, or
    /// receives more than `recvs`, with the same piece number. With `abreast` these arrive at the same time, through
    /// different ports.
    pub(crate) fn new(
        number: u64,
        slot_bytes: u64,
        [sends, recvs]: [u64; 2],
        abreast: bool,
    ) -> Self {
        let slot_bytes = slot_bytes.next_multiple_of(ALIGN);
        let usual = |bytes: u64| (RING_BYTES / bytes.max(1)).clamp(SLOTS.0, SLOTS.1);
        let slots = |need: u64| match abreast {
            true => need * usual(need * slot_bytes),
            false => need.max(usual(slot_bytes)),
        };
        let ring = |need: u64| SlotRing { slots: slots(need), next: 0 };
        let rings = [ring(sends), ring(recvs)];
        Staging { first: number * AREAS, slot_bytes, rings, exchange_at: 0, exchange_end: 0 }
    }

    /// Allocates a slot to pack a message in.
    pub(crate) fn pack(&mut self, len: u64) -> Region {
        self.slot(0, len)
    }

    /// Allocates a slot to receive a message in.
    pub(crate) fn receive(&mut self, len: u64) -> Region {
        self.slot(1, len)
    }

    fn slot(&mut self, area: usize, len: u64) -> Region {
        debug_assert!(len <= self.slot_bytes);
        let ring = &mut self.rings[area];
        let offset =
            (self.first + area as u64) << AREA_SHIFT | (ring.next % ring.slots * self.slot_bytes);
        ring.next += 1;
        Region { buffer: Buffer::Staging, offset, len }
    }

    /// Allocates bytes that no other message of this step uses.
    pub(crate) fn exchange(&mut self, len: u64) -> Region {
        let offset = (self.first + 2) << AREA_SHIFT | self.exchange_at;
        self.exchange_at += len.next_multiple_of(ALIGN);
        self.exchange_end = self.exchange_at.max(self.exchange_end);
        Region { buffer: Buffer::Staging, offset, len }
    }

    /// Begins a new step.
    pub(crate) fn next_step(&mut self) {
        self.exchange_at = 0;
    }

    /// Number of the staging that has allocated an offset.
    pub(crate) fn number(offset: u64) -> usize {
        ((offset >> AREA_SHIFT) / AREAS) as usize
    }

    fn ring_bytes(&self) -> [u64; 2] {
        self.rings.map(|ring| ring.used_slots() * self.slot_bytes)
    }

    /// Bytes of the staging, once all regions have been allocated.
    pub(crate) fn len(&self) -> u64 {
        self.ring_bytes().into_iter().sum::<u64>() + self.exchange_end
    }

    /// The final offset, within the staging, of an allocated offset.
    pub(crate) fn place(&self, offset: u64) -> u64 {
        let within = offset & ((1 << AREA_SHIFT) - 1);
        let [pack, receive] = self.ring_bytes();
        match (offset >> AREA_SHIFT) % AREAS {
            0 => within,
            1 => pack + within,
            _ => pack + receive + within,
        }
    }
}
