//! A channel: memory of the receiver that one sender writes to, and how much of it.
//!
//! ```text
//! offset 0     two credit cells of 8 bytes; their content means nothing, their notices do
//! offset 64    descriptors of 32 bytes: 64, or 4 in a narrow channel
//! behind       eager slots of 32 + 2048 bytes: 8, or 1 in a narrow channel
//! ```
//!
//! Every write has a notice of its own, and its address says what was written; so nothing
//! depends on the order in which two writes arrive.
//!
//! # Addresses
//! A port numbers its channels in the order of first contact. The number says how wide a
//! channel is, in which slab of memory it lies and where there; and slabs are registered under
//! steering tags that follow from their numbers. So a number is all that a peer has to learn, and
//! a hello says it by where it is written.

use crate::endpoint::garbled::{Garbled, at_most};

/// Bytes of a descriptor: what fits in a piggybacked put.
pub(super) const DESCRIPTOR_BYTES: usize = 32;
pub(super) const TINY_HEADER_BYTES: usize = 16;
/// The longest message inside a descriptor.
pub(super) const TINY_BYTES: usize = DESCRIPTOR_BYTES - TINY_HEADER_BYTES;
/// The longest message that is sent without waiting for its receive. On the emulated device
/// 1 KiB to 8 KiB make no clear difference, so the memory for each peer decides.
pub(super) const EAGER_BYTES: usize = 2048;
/// Header of an eager message; what follows is as well aligned.
pub(super) const EAGER_HEADER_BYTES: usize = 32;

const EAGER_SLOT_BYTES: usize = EAGER_HEADER_BYTES + EAGER_BYTES;
const DESCRIPTORS_AT: usize = 64;
/// Bytes of a credit cell.
const CREDIT_BYTES: usize = 8;
/// Parts of a slab start at cache lines of A64FX.
const LINE: usize = 256;

/// One of a channel's two kinds of slots; its credit cell has the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Descriptors.
    Descriptors = 0,
    /// Eager slots.
    Eager = 1,
}

/// How many slots a channel has: what its sender may have under way. Each is a notice in the
/// receiver's MRQ and memory on both sides, so only the first peers have many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    /// Many slots.
    Wide,
    /// A few.
    Narrow,
}

impl Window {
    /// Slots of a kind, a bit each in a u64, and those of them that one credit notice gives back.
    const fn sizes(self, lane: Lane) -> (u32, u32) {
        match (self, lane) {
            (Window::Wide, Lane::Descriptors) => (64, 16),
            (Window::Wide, Lane::Eager) => (8, 4),
            (Window::Narrow, Lane::Descriptors) => (4, 2),
            (Window::Narrow, Lane::Eager) => (1, 1),
        }
    }

    /// Slots of a kind; at most 64.
    pub(super) const fn slots(self, lane: Lane) -> u32 {
        self.sizes(lane).0
    }

    /// Slots that one credit notice gives back; divides their number.
    pub(super) const fn credit(self, lane: Lane) -> u32 {
        self.sizes(lane).1
    }

    /// Slots that are kept for what is no message: as many as may be without credit while all
    /// others hold theirs.
    pub(super) const fn kept(self, lane: Lane) -> u32 {
        match lane {
            Lane::Descriptors => self.credit(lane),
            Lane::Eager => 0,
        }
    }

    const fn eager_at(self) -> usize {
        DESCRIPTORS_AT + self.slots(Lane::Descriptors) as usize * DESCRIPTOR_BYTES
    }

    const fn eager_bytes(self) -> usize {
        self.slots(Lane::Eager) as usize * EAGER_SLOT_BYTES
    }

    /// Where in the channel a slot starts.
    pub(super) const fn offset(self, lane: Lane, slot: u32) -> usize {
        match lane {
            Lane::Descriptors => DESCRIPTORS_AT + slot as usize * DESCRIPTOR_BYTES,
            Lane::Eager => self.eager_at() + slot as usize * EAGER_SLOT_BYTES,
        }
    }

    /// Bytes of a channel.
    pub(super) const fn channel_bytes(self) -> usize {
        (self.eager_at() + self.eager_bytes()).next_multiple_of(LINE)
    }

    /// Bytes of a sender's copies of the eager messages that are under way in a channel.
    pub(super) const fn copies_bytes(self) -> usize {
        self.eager_bytes().next_multiple_of(LINE)
    }

    /// Notices that a peer with this window can cause beside those of data: its writes to the
    /// channel, its credits for writes to its own, and its hello.
    const fn notices(self) -> u32 {
        let credits = most_credits(Lane::Descriptors) + most_credits(Lane::Eager);
        self.slots(Lane::Descriptors) + self.slots(Lane::Eager) + credits + 1
    }

    /// What a write that ended at `end` (offset behind its last byte) has written.
    ///
    /// # Errors
    /// If there is nothing of the channel that it can have been.
    #[inline]
    pub(super) fn written(self, end: usize) -> Result<Written, Garbled> {
        const CREDITS: [usize; 2] = [
            credit_offset(Lane::Descriptors) + CREDIT_BYTES,
            credit_offset(Lane::Eager) + CREDIT_BYTES,
        ];
        if end > DESCRIPTORS_AT {
            let (lane, at, bytes) = match end <= self.eager_at() {
                true => (Lane::Descriptors, end - 1 - DESCRIPTORS_AT, DESCRIPTOR_BYTES),
                false => (Lane::Eager, end - 1 - self.eager_at(), EAGER_SLOT_BYTES),
            };
            // Behind the last slot there may be a gap up to the end of the channel.
            let most = self.slots(lane) as usize - 1;
            let slot = at_most("the slot that a write has ended in", (at / bytes) as u64, most)?;
            return Ok(Written::Slot(lane, slot as u32));
        }
        match end {
            _ if end == CREDITS[0] => Ok(Written::Credit(Lane::Descriptors)),
            _ if end == CREDITS[1] => Ok(Written::Credit(Lane::Eager)),
            _ => Err(Garbled {
                field: "the end of a write of credits",
                found: end as u64,
                valid: (CREDITS[0] as u64, CREDITS[1] as u64),
            }),
        }
    }
}

/// The most credits that a peer can owe at a time.
const fn most_credits(lane: Lane) -> u32 {
    let wide = Window::Wide.slots(lane) / Window::Wide.credit(lane);
    let narrow = Window::Narrow.slots(lane) / Window::Narrow.credit(lane);
    if wide > narrow { wide } else { narrow }
}

/// Notices that an MRQ holds (notes on uTofu; an overflow kills the process).
const MRQ_ENTRIES: u32 = 131_072;
/// The part of them for the data of announced receives, of all operations together.
pub(super) const MRQ_FOR_DATA: u32 = MRQ_ENTRIES / 4;
/// Peers with wide windows: more than the plans of most collectives have on any torus.
const WIDE_PEERS: u32 = 32;
/// The most peers of a port.
pub(super) const MOST_PEERS: u32 = WIDE_PEERS
    + (MRQ_ENTRIES - MRQ_FOR_DATA - WIDE_PEERS * Window::Wide.notices()) / Window::Narrow.notices();

/// Channels in the first slab.
const FIRST_SLAB: u32 = 4;
/// From here on slabs do not grow any more, so that no device pins much more than is used.
const LARGEST_SLAB: u32 = 256;

/// A number of a channel, and what follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    pub(super) window: Window,
    /// The slab that it lies in, and where there.
    pub(super) at: (u32, usize),
}

impl Numbered {
    pub(super) const fn of(number: u32) -> Self {
        let window = if number < WIDE_PEERS { Window::Wide } else { Window::Narrow };
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
        Numbered { window, at: (slab, (number - start) as usize * window.channel_bytes()) }
    }

    /// Bytes of the slab whose first channel has this number.
    pub(super) const fn slab_bytes(number: u32) -> usize {
        let channels = match number {
            0..FIRST_SLAB => FIRST_SLAB,
            FIRST_SLAB..LARGEST_SLAB => number,
            _ => LARGEST_SLAB,
        };
        channels as usize * Numbered::of(number).window.channel_bytes()
    }
}

/// Where an eager message is kept by its sender, from the start of its copies.
pub(super) const fn copy_offset(slot: u32) -> usize {
    slot as usize * EAGER_SLOT_BYTES
}

/// Where in the peer's channel a credit is written.
pub(super) const fn credit_offset(lane: Lane) -> usize {
    lane as usize * CREDIT_BYTES
}

/// What was written to a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// A credit for a lane.
    Credit(Lane),
    /// A slot of a lane.
    Slot(Lane, u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_leave_room_in_the_queue() {
        let (wide, narrow) = (Window::Wide.notices(), Window::Narrow.notices());
        assert_eq!((wide, narrow), (79, 12));
        let most = WIDE_PEERS * wide + (MOST_PEERS - WIDE_PEERS) * narrow;
        assert!(most + MRQ_FOR_DATA <= MRQ_ENTRIES);
        // Pairwise alltoall on some thousand ranks.
        const { assert!(MOST_PEERS > 6000) };
        for window in [Window::Wide, Window::Narrow] {
            for lane in [Lane::Descriptors, Lane::Eager] {
                assert!(window.slots(lane).is_multiple_of(window.credit(lane)));
                assert!(window.slots(lane) <= u64::BITS);
            }
        }
        // Four messages under way need no 35 KiB.
        assert_eq!(Window::Narrow.channel_bytes(), 2304);
    }

    #[test]
    fn numbered_channels_fill_slabs_one_after_the_other() {
        let mut next = (0, 0);
        let mut slab_bytes = 0;
        for number in 0..MOST_PEERS {
            let Numbered { window, at: (slab, offset) } = Numbered::of(number);
            assert_eq!((slab, offset), next, "channel {number}");
            if offset == 0 {
                slab_bytes = Numbered::slab_bytes(number);
            }
            let end = offset + window.channel_bytes();
            assert!(end <= slab_bytes);
            next = if end == slab_bytes { (slab + 1, 0) } else { (slab, end) };
            // As many steering tags as a component id has, and one for the mailbox.
            assert!(slab < 255);
        }
    }

    #[test]
    fn a_write_behind_the_last_slot_is_refused() {
        for window in [Window::Wide, Window::Narrow] {
            let end = window.offset(Lane::Eager, window.slots(Lane::Eager));
            assert!(window.written(end).is_ok());
            for end in end + 1..=window.channel_bytes() {
                assert!(window.written(end).is_err(), "{window:?} {end}");
            }
        }
    }

    #[test]
    fn the_end_of_a_write_names_its_slot() {
        for window in [Window::Wide, Window::Narrow] {
            for lane in [Lane::Descriptors, Lane::Eager] {
                let end = credit_offset(lane) + 8;
                assert_eq!(window.written(end), Ok(Written::Credit(lane)));
                // Only there, and not in the gaps.
                assert!(window.written(end - 1).is_err());
                assert!(window.written(DESCRIPTORS_AT).is_err());
                let most = if lane == Lane::Eager { EAGER_SLOT_BYTES } else { DESCRIPTOR_BYTES };
                for slot in 0..window.slots(lane) {
                    for len in [TINY_HEADER_BYTES, most] {
                        let end = window.offset(lane, slot) + len;
                        assert_eq!(window.written(end), Ok(Written::Slot(lane, slot)));
                        assert!(end <= window.channel_bytes());
                    }
                }
            }
        }
    }
}
