//! The bytes that uTofu endpoints exchange besides the data: the layout of a channel and of
//! the descriptors in it.
//!
//! A *channel* is memory of the receiver that one sender writes to:
//!
//! ```text
//! offset 0     two credit cells of 8 bytes; their content means nothing, their notices do
//! offset 64    64 descriptors of 32 bytes
//! offset 2112  8 eager slots of 32 + 2048 bytes
//! ```
//!
//! Every write has a notice of its own, and its address says what was written; so nothing
//! depends on the order in which two writes arrive.

use utofu::Stadd;

use crate::endpoint::Tag;

/// Descriptors in a channel. One bit each in a u64.
pub(super) const DESCRIPTORS: u32 = 64;
/// Bytes of a descriptor: what fits in a piggybacked put.
pub(super) const DESCRIPTOR_BYTES: usize = 32;
/// Eager slots in a channel.
pub(super) const EAGER_SLOTS: u32 = 8;
/// The longest message that is sent without waiting for its receive. On the emulated device
/// 1 KiB to 8 KiB make no clear difference, so the memory for each peer decides.
pub(super) const EAGER_BYTES: usize = 2048;
/// Header of an eager message; what follows is as well aligned.
pub(super) const EAGER_HEADER_BYTES: usize = 32;
/// The longest message inside a descriptor.
pub(super) const TINY_BYTES: usize = DESCRIPTOR_BYTES - TINY_HEADER_BYTES;
const TINY_HEADER_BYTES: usize = 16;

const EAGER_SLOT_BYTES: usize = EAGER_HEADER_BYTES + EAGER_BYTES;
const DESCRIPTORS_AT: usize = 64;
const EAGER_AT: usize = DESCRIPTORS_AT + DESCRIPTORS as usize * DESCRIPTOR_BYTES;
/// Bytes of a channel, whole cache lines of A64FX (256 bytes).
pub(super) const CHANNEL_BYTES: usize =
    (EAGER_AT + EAGER_SLOTS as usize * EAGER_SLOT_BYTES).next_multiple_of(256);
/// Bytes of a sender's copies of the eager messages under way to one peer.
pub(super) const BOUNCE_BYTES: usize =
    (EAGER_SLOTS as usize * EAGER_SLOT_BYTES).next_multiple_of(256);

const KIND_READY: u8 = 1;
const KIND_TINY: u8 = 2;
const KIND_WAITING: u8 = 3;

/// One of a channel's two kinds of slots; its credit cell has the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Descriptors.
    Descriptors = 0,
    /// Eager slots.
    Eager = 1,
}

impl Lane {
    /// Slots of this kind.
    pub(super) const fn slots(self) -> u32 {
        match self {
            Lane::Descriptors => DESCRIPTORS,
            Lane::Eager => EAGER_SLOTS,
        }
    }

    /// Where in the channel a slot starts.
    pub(super) const fn offset(self, slot: u32) -> usize {
        match self {
            Lane::Descriptors => DESCRIPTORS_AT + slot as usize * DESCRIPTOR_BYTES,
            Lane::Eager => EAGER_AT + slot as usize * EAGER_SLOT_BYTES,
        }
    }
}

/// How much of a channel its sender may have in use at a time. Every slot in use is a notice in
/// the receiver's MRQ, which has room for a few hundred peers with wide windows and for
/// thousands with narrow ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    /// The whole channel.
    Wide = 0,
    /// A few slots.
    Narrow = 1,
}

impl Window {
    /// Slots in use at most.
    pub(super) const fn slots(self, lane: Lane) -> u32 {
        match (self, lane) {
            (Window::Wide, lane) => lane.slots(),
            (Window::Narrow, Lane::Descriptors) => 4,
            (Window::Narrow, Lane::Eager) => 1,
        }
    }

    /// Slots that one credit notice gives back; divides the slots in use.
    pub(super) const fn credit(self, lane: Lane) -> u32 {
        match (self, lane) {
            (Window::Wide, Lane::Descriptors) => 16,
            (Window::Narrow, Lane::Descriptors) => 4,
            (Window::Wide, Lane::Eager) => 4,
            (Window::Narrow, Lane::Eager) => 1,
        }
    }

    /// Notices that a peer with this window can cause beside those of data: its writes to the
    /// channel, its credits for writes to its own, and its hello.
    const fn notices(self) -> u32 {
        let credits = most_credits(Lane::Descriptors) + most_credits(Lane::Eager);
        self.slots(Lane::Descriptors) + self.slots(Lane::Eager) + credits + 1
    }

    /// The window of the next peer, if there are `n_peers` already; none if there can be no
    /// more.
    pub(super) fn next(n_peers: usize) -> Option<Self> {
        if n_peers < WIDE_PEERS as usize {
            Some(Window::Wide)
        } else {
            (n_peers < MOST_PEERS as usize).then_some(Window::Narrow)
        }
    }

    /// What a rank tells a peer: the STADD of the channel, which is even, and the window.
    pub(super) fn hello(self, channel: Stadd) -> u64 {
        channel.0 | self as u64
    }

    /// Reads a hello.
    pub(super) fn of_hello(hello: u64) -> (Stadd, Window) {
        let window = if hello & 1 == 0 { Window::Wide } else { Window::Narrow };
        (Stadd(hello & !1), window)
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
/// What is left of them for the data of announced receives, of all operations together.
pub(super) const MRQ_FOR_DATA: u32 = MRQ_ENTRIES / 4;
/// Peers with wide windows: more than the plans of most collectives have on any torus.
pub(super) const WIDE_PEERS: u32 = 256;
/// The most peers of a port.
pub(super) const MOST_PEERS: u32 = WIDE_PEERS
    + (MRQ_ENTRIES - MRQ_FOR_DATA - WIDE_PEERS * Window::Wide.notices()) / Window::Narrow.notices();

/// Where an eager message is kept by its sender.
pub(super) const fn bounce_offset(slot: u32) -> usize {
    slot as usize * EAGER_SLOT_BYTES
}

/// Where in the peer's channel a credit is written.
pub(super) const fn credit_offset(lane: Lane) -> usize {
    lane as usize * 8
}

/// What was written to a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// A credit for a lane.
    Credit(Lane),
    /// A slot of a lane.
    Slot(Lane, u32),
}

/// What a write that ended at `end` (offset behind its last byte) has written.
pub(super) fn written(end: usize) -> Written {
    match end {
        0..=8 => Written::Credit(Lane::Descriptors),
        9..=DESCRIPTORS_AT => Written::Credit(Lane::Eager),
        _ if end <= EAGER_AT => {
            let slot = (end - 1 - DESCRIPTORS_AT) / DESCRIPTOR_BYTES;
            Written::Slot(Lane::Descriptors, slot as u32)
        }
        _ => Written::Slot(Lane::Eager, ((end - 1 - EAGER_AT) / EAGER_SLOT_BYTES) as u32),
    }
}

/// A message in a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Descriptor {
    /// The sender of this waits for message `tag` at STADD `at` of its own memory.
    Ready {
        /// Which message.
        tag: Tag,
        /// Where to put it.
        at: u64,
        /// The length that it must have.
        len: u64,
    },
    /// The sender of this has message `tag` for whoever reads it, and has waited for a while to
    /// be told where to put it.
    Waiting {
        /// Which message.
        tag: Tag,
        /// Its length.
        len: u64,
    },
    /// A short message, here in full.
    Tiny {
        /// Which message.
        tag: Tag,
        /// Its length.
        len: u8,
        /// Its bytes, and zeros.
        data: [u8; TINY_BYTES],
    },
}

impl Descriptor {
    /// The bytes, and how many of them need to travel.
    pub(super) fn encode(&self) -> ([u8; DESCRIPTOR_BYTES], usize) {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        let (kind, tag) = match self {
            Descriptor::Ready { tag, .. } => (KIND_READY, tag),
            Descriptor::Waiting { tag, .. } => (KIND_WAITING, tag),
            Descriptor::Tiny { tag, .. } => (KIND_TINY, tag),
        };
        bytes[0] = kind;
        bytes[2..16].copy_from_slice(&tag_bytes(*tag));
        let len = match self {
            Descriptor::Ready { at, len, .. } => {
                bytes[16..24].copy_from_slice(&at.to_le_bytes());
                bytes[24..].copy_from_slice(&len.to_le_bytes());
                DESCRIPTOR_BYTES
            }
            Descriptor::Waiting { len, .. } => {
                bytes[16..24].copy_from_slice(&len.to_le_bytes());
                24
            }
            Descriptor::Tiny { len, data, .. } => {
                bytes[1] = *len;
                bytes[TINY_HEADER_BYTES..].copy_from_slice(data);
                TINY_HEADER_BYTES + usize::from(*len)
            }
        };
        (bytes, len)
    }

    /// Reads what `encode` has written; `None` if this is no descriptor.
    pub(super) fn decode(bytes: &[u8; DESCRIPTOR_BYTES]) -> Option<Self> {
        let tag = tag_at(bytes, 2);
        match bytes[0] {
            KIND_READY => {
                Some(Descriptor::Ready { tag, at: number(bytes, 16), len: number(bytes, 24) })
            }
            KIND_WAITING => Some(Descriptor::Waiting { tag, len: number(bytes, 16) }),
            KIND_TINY if usize::from(bytes[1]) <= TINY_BYTES => {
                let mut data = [0; TINY_BYTES];
                data.copy_from_slice(&bytes[TINY_HEADER_BYTES..]);
                Some(Descriptor::Tiny { tag, len: bytes[1], data })
            }
            _ => None,
        }
    }
}

/// Bytes of a tag.
const TAG_BYTES: usize = 14;

fn tag_bytes(tag: Tag) -> [u8; TAG_BYTES] {
    let mut bytes = [0; TAG_BYTES];
    bytes[0..2].copy_from_slice(&tag.call.to_le_bytes());
    bytes[2..10].copy_from_slice(&tag.operation_id().to_le_bytes());
    bytes[10..14].copy_from_slice(&tag.message.to_le_bytes());
    bytes
}

fn tag_at(bytes: &[u8], at: usize) -> Tag {
    let call = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    Tag::of_operation(number(bytes, at + 2), number(bytes, at + 10) as u32, call)
}

/// Header of an eager message.
pub(super) fn eager_header(tag: Tag, len: usize) -> [u8; EAGER_HEADER_BYTES] {
    let mut bytes = [0; EAGER_HEADER_BYTES];
    bytes[0..2].copy_from_slice(&(len as u16).to_le_bytes());
    bytes[2..2 + TAG_BYTES].copy_from_slice(&tag_bytes(tag));
    bytes
}

/// Tag and length of an eager message; `None` if the length cannot be.
pub(super) fn eager_message(header: &[u8; EAGER_HEADER_BYTES]) -> Option<(Tag, usize)> {
    let len = usize::from(u16::from_le_bytes([header[0], header[1]]));
    (len <= EAGER_BYTES).then(|| (tag_at(header, 2), len))
}

/// The number in the (up to) 8 bytes from `at` on.
fn number(bytes: &[u8], at: usize) -> u64 {
    let end = bytes.len().min(at + 8);
    bytes[at..end].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_survive_the_wire() {
        let tag = Tag {
            context: 0x98_7654_3210,
            operation: 0xad_beef,
            message: 0x7766_5544,
            call: 0x1234,
        };
        assert_eq!(eager_message(&eager_header(tag, 99)), Some((tag, 99)));
        let mut data = [0; TINY_BYTES];
        data[..3].copy_from_slice(b"abc");
        for descriptor in [
            Descriptor::Ready { tag, at: 0x1234_5678_9abc_def0, len: 1 << 40 },
            Descriptor::Waiting { tag, len: 1 << 40 },
            Descriptor::Tiny { tag, len: 3, data },
        ] {
            let (bytes, len) = descriptor.encode();
            let mut arrived = [0; DESCRIPTOR_BYTES];
            arrived[..len].copy_from_slice(&bytes[..len]);
            assert_eq!(Descriptor::decode(&arrived), Some(descriptor));
        }
        assert_eq!(Descriptor::decode(&[0; DESCRIPTOR_BYTES]), None);
    }

    #[test]
    fn windows_leave_room_in_the_queue() {
        let (wide, narrow) = (Window::Wide.notices(), Window::Narrow.notices());
        assert_eq!((wide, narrow), (79, 12));
        let most = WIDE_PEERS * wide + (MOST_PEERS - WIDE_PEERS) * narrow;
        assert!(most + MRQ_FOR_DATA <= MRQ_ENTRIES);
        // Pairwise alltoall on some thousand ranks.
        const { assert!(MOST_PEERS > 6000) };
        assert_eq!(Window::next(0), Some(Window::Wide));
        assert_eq!(Window::next(WIDE_PEERS as usize), Some(Window::Narrow));
        assert_eq!(Window::next(MOST_PEERS as usize - 1), Some(Window::Narrow));
        assert_eq!(Window::next(MOST_PEERS as usize), None);
        for window in [Window::Wide, Window::Narrow] {
            for lane in [Lane::Descriptors, Lane::Eager] {
                assert!(window.slots(lane).is_multiple_of(window.credit(lane)));
                assert!(window.slots(lane) <= lane.slots());
            }
            let channel = Stadd(5 << 40 | 0x300);
            assert_eq!(Window::of_hello(window.hello(channel)), (channel, window));
        }
    }

    #[test]
    fn the_end_of_a_write_names_its_slot() {
        for lane in [Lane::Descriptors, Lane::Eager] {
            assert_eq!(written(credit_offset(lane) + 8), Written::Credit(lane));
            let most = if lane == Lane::Eager { EAGER_SLOT_BYTES } else { DESCRIPTOR_BYTES };
            for slot in 0..lane.slots() {
                for len in [TINY_HEADER_BYTES, most] {
                    assert_eq!(written(lane.offset(slot) + len), Written::Slot(lane, slot));
                }
            }
        }
        assert!(Lane::Eager.offset(EAGER_SLOTS) <= CHANNEL_BYTES);
    }
}
