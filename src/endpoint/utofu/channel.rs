//! The layout of a channel: memory of the receiver that one sender writes to.
//!
//! ```text
//! offset 0     two credit cells of 8 bytes; their content means nothing, their notices do
//! offset 64    descriptors of 32 bytes: 64, or 4 in a narrow channel
//! behind       eager slots of 32 + 2048 bytes: 8, or 1 in a narrow channel
//! ```
//!
//! Every write has a notice, and the address in the notice identifies what was written, so the protocol does not
//! depend on the order in which two writes arrive.
//!
//! # Addresses
//! A port numbers its channels in the order of first contact. The number determines a channel's width, its slab of
//! memory and its offset in the slab; the steering tag of a slab follows from the slab's number. So a peer needs only
//! the number of its channel, and the address to which a hello is written encodes the number.

use crate::endpoint::validation::{InvalidField, check_max};

/// Bytes of a descriptor: the longest payload of a piggybacked put.
pub(super) const DESCRIPTOR_BYTES: usize = 32;
pub(super) const TINY_HEADER_BYTES: usize = 16;
/// Longest message, in bytes, that fits in a descriptor.
pub(super) const TINY_BYTES: usize = DESCRIPTOR_BYTES - TINY_HEADER_BYTES;
/// Longest message, in bytes, that is sent before its receive is posted. On the emulated device limits from 1 KiB to
/// 8 KiB make no clear difference, so memory per peer decides.
pub(super) const EAGER_BYTES: usize = 2048;
/// Bytes of an eager message's header; the payload behind it has the same alignment.
pub(super) const EAGER_HEADER_BYTES: usize = 32;

const EAGER_SLOT_BYTES: usize = EAGER_HEADER_BYTES + EAGER_BYTES;
const DESCRIPTORS_AT: usize = 64;
/// Bytes of a credit cell.
const CREDIT_BYTES: usize = 8;
/// Alignment of channels and bounce buffers in a slab: a cache line of A64FX.
const LINE: usize = 256;

/// One of a channel's two rings of slots. The discriminant is also the index of its credit cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChannelRing {
    /// Descriptors.
    Descriptors = 0,
    /// Eager slots.
    Eager = 1,
}

/// Slots of a channel, hence messages that its sender may have in flight. A slot costs a notice in the receiver's MRQ
/// and memory on both sides, so only the first peers get a wide window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChannelWindow {
    /// 64 descriptors, 8 eager slots.
    Wide,
    /// 4 descriptors, 1 eager slot.
    Narrow,
}

impl ChannelWindow {
    /// Slots of a kind (at most 64: one bit each in a u64), and the slots that one credit notice returns.
    const fn sizes(self, ring: ChannelRing) -> (u32, u32) {
        match (self, ring) {
            (ChannelWindow::Wide, ChannelRing::Descriptors) => (64, 16),
            (ChannelWindow::Wide, ChannelRing::Eager) => (8, 4),
            (ChannelWindow::Narrow, ChannelRing::Descriptors) => (4, 2),
            (ChannelWindow::Narrow, ChannelRing::Eager) => (1, 1),
        }
    }

    /// Slots of a kind; at most 64.
    pub(super) const fn slots(self, ring: ChannelRing) -> u32 {
        self.sizes(ring).0
    }

    /// Slots that one credit notice returns; a divisor of [`slots`](ChannelWindow::slots).
    pub(super) const fn credit(self, ring: ChannelRing) -> u32 {
        self.sizes(ring).1
    }

    /// Slots reserved for descriptors that are not messages: as many as can lack a credit while all other slots'
    /// credits are withheld.
    pub(super) const fn reserved(self, ring: ChannelRing) -> u32 {
        match ring {
            ChannelRing::Descriptors => self.credit(ring),
            ChannelRing::Eager => 0,
        }
    }

    const fn eager_at(self) -> usize {
        DESCRIPTORS_AT + self.slots(ChannelRing::Descriptors) as usize * DESCRIPTOR_BYTES
    }

    const fn eager_bytes(self) -> usize {
        self.slots(ChannelRing::Eager) as usize * EAGER_SLOT_BYTES
    }

    /// Offset of a slot in the channel, in bytes.
    pub(super) const fn offset(self, ring: ChannelRing, slot: u32) -> usize {
        match ring {
            ChannelRing::Descriptors => DESCRIPTORS_AT + slot as usize * DESCRIPTOR_BYTES,
            ChannelRing::Eager => self.eager_at() + slot as usize * EAGER_SLOT_BYTES,
        }
    }

    /// Bytes of a channel.
    pub(super) const fn channel_bytes(self) -> usize {
        (self.eager_at() + self.eager_bytes()).next_multiple_of(LINE)
    }

    /// Bytes of a sender's bounce buffers for the eager messages that are in flight in a channel.
    pub(super) const fn bounce_bytes(self) -> usize {
        self.eager_bytes().next_multiple_of(LINE)
    }

    /// Notices that a peer with this window can cause, apart from puts of data: its writes to this channel, its
    /// credits for this rank's writes to the peer's channel, and its hello.
    const fn notices(self) -> u32 {
        let credits = most_credits(ChannelRing::Descriptors) + most_credits(ChannelRing::Eager);
        self.slots(ChannelRing::Descriptors) + self.slots(ChannelRing::Eager) + credits + 1
    }

    /// Identifies what a write has written whose end (the offset behind its last byte) is `end`.
    ///
    /// # Errors
    /// If no slot or credit cell of the channel can end there.
    #[inline]
    pub(super) fn written(self, end: usize) -> Result<Written, InvalidField> {
        const CREDITS: [usize; 2] = [
            credit_offset(ChannelRing::Descriptors) + CREDIT_BYTES,
            credit_offset(ChannelRing::Eager) + CREDIT_BYTES,
        ];
        if end > DESCRIPTORS_AT {
            let (ring, at, bytes) = match end <= self.eager_at() {
                true => (ChannelRing::Descriptors, end - 1 - DESCRIPTORS_AT, DESCRIPTOR_BYTES),
                false => (ChannelRing::Eager, end - 1 - self.eager_at(), EAGER_SLOT_BYTES),
            };
            // There may be a gap between the last slot and the end of the channel.
            let most = self.slots(ring) as usize - 1;
            let slot = check_max("the slot that a write has ended in", (at / bytes) as u64, most)?;
            return Ok(Written::Slot(ring, slot as u32));
        }
        match end {
            _ if end == CREDITS[0] => Ok(Written::Credit(ChannelRing::Descriptors)),
            _ if end == CREDITS[1] => Ok(Written::Credit(ChannelRing::Eager)),
            _ => Err(InvalidField {
                field: "the end of a write of credits",
                found: end as u64,
                valid: (CREDITS[0] as u64, CREDITS[1] as u64),
            }),
        }
    }
}

/// Most credit notices of a ring that a peer can have outstanding.
const fn most_credits(ring: ChannelRing) -> u32 {
    let wide = ChannelWindow::Wide.slots(ring) / ChannelWindow::Wide.credit(ring);
    let narrow = ChannelWindow::Narrow.slots(ring) / ChannelWindow::Narrow.credit(ring);
    if wide > narrow { wide } else { narrow }
}

/// Notices that an MRQ holds (notes on uTofu; an overflow kills the process).
const MRQ_ENTRIES: u32 = 131_072;
/// MRQ entries reserved for puts into announced receives, of all operations together.
pub(super) const MRQ_FOR_DATA: u32 = MRQ_ENTRIES / 4;
/// Entries of a TOQ (notes on uTofu), hence most operations in it.
const TOQ_ENTRIES: u32 = 2048;
/// MRQ entries reserved for the port's own posts: of a full TOQ before the MRQ was last found empty, and of one since.
const MRQ_FOR_POSTS: u32 = 2 * TOQ_ENTRIES;
/// Peers with wide windows: more than the plans of most collectives have on any torus.
const WIDE_PEERS: u32 = 32;
/// Most peers of a port.
pub(super) const MOST_PEERS: u32 = WIDE_PEERS
    + (MRQ_ENTRIES - MRQ_FOR_DATA - MRQ_FOR_POSTS - WIDE_PEERS * ChannelWindow::Wide.notices())
        / ChannelWindow::Narrow.notices();

/// Channels in the first slab.
const FIRST_SLAB: u32 = 4;
/// Channels in the largest slabs: from this channel number on slabs no longer grow, so that a device does not pin
/// much more than is used.
const LARGEST_SLAB: u32 = 256;

/// The window and address that follow from a channel's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChannelLayout {
    pub(super) window: ChannelWindow,
    /// The number of the channel's slab, and the channel's offset in it in bytes.
    pub(super) at: (u32, usize),
}

impl ChannelLayout {
    pub(super) const fn of(number: u32) -> Self {
        let window = if number < WIDE_PEERS { ChannelWindow::Wide } else { ChannelWindow::Narrow };
        let (slab, start) = match number {
            0..FIRST_SLAB => (0, 0),
            FIRST_SLAB..LARGEST_SLAB => {
                let doublings = (number / FIRST_SLAB).ilog2();
                (doublings + 1, FIRST_SLAB << doublings)
            }
            _ => {
                let slab = number / LARGEST_SLAB;
                (slab + (LARGEST_SLAB / FIRST_SLAB).ilog2(), slab * LARGEST_SLAB)
            }
        };
        ChannelLayout { window, at: (slab, (number - start) as usize * window.channel_bytes()) }
    }

    /// Bytes of the slab whose first channel has this number.
    pub(super) const fn slab_bytes(number: u32) -> usize {
        let channels = match number {
            0..FIRST_SLAB => FIRST_SLAB,
            FIRST_SLAB..LARGEST_SLAB => number,
            _ => LARGEST_SLAB,
        };
        channels as usize * ChannelLayout::of(number).window.channel_bytes()
    }
}

/// Offset of an eager message in the sender's bounce buffers.
pub(super) const fn bounce_offset(slot: u32) -> usize {
    slot as usize * EAGER_SLOT_BYTES
}

/// Offset in the peer's channel of a ring's credit cell.
pub(super) const fn credit_offset(ring: ChannelRing) -> usize {
    ring as usize * CREDIT_BYTES
}

/// The part of a channel that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// A credit for a ring.
    Credit(ChannelRing),
    /// A slot of a ring.
    Slot(ChannelRing, u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_leave_room_in_the_queue() {
        let (wide, narrow) = (ChannelWindow::Wide.notices(), ChannelWindow::Narrow.notices());
        assert_eq!((wide, narrow), (79, 12));
        let most = WIDE_PEERS * wide + (MOST_PEERS - WIDE_PEERS) * narrow;
        assert!(most + MRQ_FOR_DATA + 2 * TOQ_ENTRIES <= MRQ_ENTRIES);
        // Enough for a pairwise alltoall of some thousand ranks.
        const { assert!(MOST_PEERS > 6000) };
        for window in [ChannelWindow::Wide, ChannelWindow::Narrow] {
            for ring in [ChannelRing::Descriptors, ChannelRing::Eager] {
                assert!(window.slots(ring).is_multiple_of(window.credit(ring)));
                assert!(window.slots(ring) <= u64::BITS);
            }
        }
        // Four messages in flight do not need the 18.5 KiB of a wide channel.
        assert_eq!(ChannelWindow::Narrow.channel_bytes(), 2304);
    }

    #[test]
    fn numbered_channels_fill_slabs_one_after_the_other() {
        let mut next = (0, 0);
        let mut slab_bytes = 0;
        for number in 0..MOST_PEERS {
            let ChannelLayout { window, at: (slab, offset) } = ChannelLayout::of(number);
            assert_eq!((slab, offset), next, "channel {number}");
            if offset == 0 {
                slab_bytes = ChannelLayout::slab_bytes(number);
            }
            let end = offset + window.channel_bytes();
            assert!(end <= slab_bytes);
            next = if end == slab_bytes { (slab + 1, 0) } else { (slab, end) };
            // A component id has 256 steering tags: tag 0 for the mailbox, the others for slabs.
            assert!(slab < 255);
        }
    }

    #[test]
    fn a_write_behind_the_last_slot_is_refused() {
        for window in [ChannelWindow::Wide, ChannelWindow::Narrow] {
            let end = window.offset(ChannelRing::Eager, window.slots(ChannelRing::Eager));
            assert!(window.written(end).is_ok());
            for end in end + 1..=window.channel_bytes() {
                assert!(window.written(end).is_err(), "{window:?} {end}");
            }
        }
    }

    #[test]
    fn the_end_of_a_write_names_its_slot() {
        for window in [ChannelWindow::Wide, ChannelWindow::Narrow] {
            for ring in [ChannelRing::Descriptors, ChannelRing::Eager] {
                let end = credit_offset(ring) + 8;
                assert_eq!(window.written(end), Ok(Written::Credit(ring)));
                // A write ends a credit only at this offset; ends inside a credit cell or in the gap are errors.
                assert!(window.written(end - 1).is_err());
                assert!(window.written(DESCRIPTORS_AT).is_err());
                let most =
                    if ring == ChannelRing::Eager { EAGER_SLOT_BYTES } else { DESCRIPTOR_BYTES };
                for slot in 0..window.slots(ring) {
                    for len in [TINY_HEADER_BYTES, most] {
                        let end = window.offset(ring, slot) + len;
                        assert_eq!(window.written(end), Ok(Written::Slot(ring, slot)));
                        assert!(end <= window.channel_bytes());
                    }
                }
            }
        }
    }
}
