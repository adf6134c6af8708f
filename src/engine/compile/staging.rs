//! Where messages are packed and where they land: the layout of one port's staging.
//!
//! Three areas, assigned at compile time:
//! - a ring of slots from which packed messages are sent,
//! - a ring of slots in which messages land that are to be reduced or unpacked,
//! - the exchange area, whose bytes are handed out once per step, for messages that cannot
//!   leave staging before a later message of the same step was sent (see the module
//!   documentation of the engine, "No deadlock").
//!
//! Reuse of a slot is ordered like every other conflict, by the hazards of the compiler.

use super::program::{Buffer, Region};

/// Slots of a ring unless a step needs more at once: enough that some messages are under way
/// while one is reduced, and no more than these bytes, which stay in a core's cache, unless that
/// were one only.
const SLOTS: (u64, u64) = (2, 8);
const RING_BYTES: u64 = 512 * 1024;
/// Slots and exchange bytes start at cache lines.
const ALIGN: u64 = 64;
/// While tasks are emitted the sizes of the areas are not known yet: their offsets carry the
/// number of the area in these bits.
const AREA_SHIFT: u32 = 60;

/// Hands out staging regions.
#[derive(Debug)]
pub(crate) struct Staging {
    slot_bytes: u64,
    rings: [Ring; 2],
    exchange_at: u64,
}

#[derive(Clone, Copy, Debug)]
struct Ring {
    slots: u64,
    next: u64,
}

impl Ring {
    fn used_slots(self) -> u64 {
        self.next.min(self.slots)
    }
}

impl Staging {
    /// Staging for messages of at most `slot_bytes`, of which no step sends more than
    /// `sends` or receives more than `recvs` with the same piece number.
    pub(crate) fn new(slot_bytes: u64, sends: u64, recvs: u64) -> Self {
        let slot_bytes = slot_bytes.next_multiple_of(ALIGN);
        let usual = (RING_BYTES / slot_bytes.max(1)).clamp(SLOTS.0, SLOTS.1);
        let ring = |need: u64| Ring { slots: need.max(usual), next: 0 };
        Staging { slot_bytes, rings: [ring(sends), ring(recvs)], exchange_at: 0 }
    }

    /// A slot to pack a message in.
    pub(crate) fn pack(&mut self, len: u64) -> Region {
        self.slot(0, len)
    }

    /// A slot for a message to land in.
    pub(crate) fn land(&mut self, len: u64) -> Region {
        self.slot(1, len)
    }

    fn slot(&mut self, area: usize, len: u64) -> Region {
        debug_assert!(len <= self.slot_bytes);
        let ring = &mut self.rings[area];
        let offset = (area as u64) << AREA_SHIFT | (ring.next % ring.slots * self.slot_bytes);
        ring.next += 1;
        Region { buffer: Buffer::Staging, offset, len }
    }

    /// Bytes that no other message of this step uses.
    pub(crate) fn exchange(&mut self, len: u64) -> Region {
        let offset = 2 << AREA_SHIFT | self.exchange_at;
        self.exchange_at += len.next_multiple_of(ALIGN);
        Region { buffer: Buffer::Staging, offset, len }
    }

    /// Begins a new step.
    pub(crate) fn next_step(&mut self) {
        self.exchange_at = 0;
    }

    /// The offset in the finished staging of an offset handed out.
    pub(crate) fn place(&self, offset: u64) -> u64 {
        let within = offset & ((1 << AREA_SHIFT) - 1);
        let [pack, land] = self.rings.map(|ring| ring.used_slots() * self.slot_bytes);
        match offset >> AREA_SHIFT {
            0 => within,
            1 => pack + within,
            _ => pack + land + within,
        }
    }
}
