//! Where messages are packed and where they land: the layout of one lane's staging.
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
const AREA_SHIFT: u32 = 44;
/// Areas of each staging.
const AREAS: u64 = 3;

/// Hands out staging regions.
#[derive(Debug)]
pub(crate) struct Staging {
    /// The number of its first area.
    first: u64,
    slot_bytes: u64,
    rings: [Ring; 2],
    exchange_at: u64,
    /// Of all steps.
    exchange_end: u64,
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
    /// Staging number `number` for messages of at most `slot_bytes`, of which no step sends more than
    /// `sends` or receives more than `recvs` with the same piece number. With `abreast` these arrive
    /// at the same time, through different ports.
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
        let ring = |need: u64| Ring { slots: slots(need), next: 0 };
        let rings = [ring(sends), ring(recvs)];
        Staging { first: number * AREAS, slot_bytes, rings, exchange_at: 0, exchange_end: 0 }
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
        let offset =
            (self.first + area as u64) << AREA_SHIFT | (ring.next % ring.slots * self.slot_bytes);
        ring.next += 1;
        Region { buffer: Buffer::Staging, offset, len }
    }

    /// Bytes that no other message of this step uses.
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

    /// Which staging has handed out an offset.
    pub(crate) fn number(offset: u64) -> usize {
        ((offset >> AREA_SHIFT) / AREAS) as usize
    }

    fn ring_bytes(&self) -> [u64; 2] {
        self.rings.map(|ring| ring.used_slots() * self.slot_bytes)
    }

    /// Bytes of the finished staging.
    pub(crate) fn len(&self) -> u64 {
        self.ring_bytes().into_iter().sum::<u64>() + self.exchange_end
    }

    /// The offset in the finished staging of an offset handed out.
    pub(crate) fn place(&self, offset: u64) -> u64 {
        let within = offset & ((1 << AREA_SHIFT) - 1);
        let [pack, land] = self.ring_bytes();
        match (offset >> AREA_SHIFT) % AREAS {
            0 => within,
            1 => pack + within,
            _ => pack + land + within,
        }
    }
}
