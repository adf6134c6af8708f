//! The format of a queue's lines: as the sender writes them, as raw words, and decoded.

use super::EAGER_BYTES;
use super::layout::{LINE, SLOT_BYTES, SLOTS};
use crate::endpoint::Tag;
use crate::endpoint::validation::{InvalidField, check_max, check_range};

/// Bytes of a line after its head.
pub(super) const INLINE_BYTES: usize = 32;

/// Kinds of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum LineKind {
    /// A message, with its bytes in the line.
    Inline = 1,
    /// A message, with its bytes in the ring.
    Eager,
    /// A message in one of the sender's staging slots, at place `id` ([`StagingPlace`]).
    Staged,
    /// An announced message at address `words[0]` of the sender's memory. A receiver that reads it there answers
    /// `Done` for `id`. `words[1]` is the number of announced messages of the sender. Early bytes follow at once as
    /// `Early` lines: `words[2]` has their count in the lower half, their identifier in the upper half. If they are
    /// the whole message, the receiver does not answer.
    Rendezvous,
    /// The receiver has read the message announced as `id`.
    Done,
    /// The receiver requests the message announced as `id` in pieces, for its receive `words[0]`.
    ClearToSend,
    /// `len` bytes at offset `words[0]` of the message for receive `message`, in a staging slot at place `id`.
    Piece,
    /// As `Piece`, with its bytes in the ring.
    Fragment,
    /// As `Piece`, of the early bytes that the announcement identified by the number `message`.
    Early,
}

impl LineKind {
    /// Whether the payload is in the ring of bytes.
    #[inline]
    pub(super) fn is_in_ring(self) -> bool {
        matches!(self, LineKind::Eager | LineKind::Fragment)
    }
}

/// A line as its sender writes it, without stamp and payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShmDescriptor {
    pub(super) kind: LineKind,
    pub(super) call: u16,
    pub(super) message: u32,
    pub(super) operation: u64,
    pub(super) len: u64,
    pub(super) id: u32,
    /// The first 8 inline bytes of a line without inline payload.
    pub(super) word: u64,
}

impl ShmDescriptor {
    /// An answer about the message that the peer has announced as `id`.
    pub(super) fn answer(kind: LineKind, id: u32) -> Self {
        ShmDescriptor { kind, call: 0, message: 0, operation: 0, len: 0, id, word: 0 }
    }
}

/// The head of a line, and the first three words of its inline bytes, with arbitrary values. The other inline bytes
/// are only payload.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Raw {
    pub(super) stamp: u32,
    pub(super) kind: u8,
    pub(super) spare: u8,
    pub(super) call: u16,
    pub(super) operation: u64,
    pub(super) len: u64,
    pub(super) message: u32,
    pub(super) id: u32,
    pub(super) words: [u64; 3],
}

/// Words of a [`Raw`].
pub(super) const RAW_WORDS: usize = size_of::<Raw>() / 8;

/// A decoded line with valid fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// A message.
    Message(MessageHeader),
    /// The receiver has read the message announced as this number.
    Done(u32),
    /// The receiver requests the message announced as `id` in pieces, for its receive `recv`.
    ClearToSend { id: u32, recv: u32 },
    /// A piece of a message in pieces.
    Piece(CicoPiece),
    /// A piece of the early bytes of a message.
    Early(EarlyPiece),
}

/// Place of a message in its sender's staging slots: the lower `SLOT_BITS` bits are the slot, the bits above are the
/// index of the line within the slot at which the message starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StagingPlace(u32);

const SLOT_BITS: u32 = SLOTS.next_power_of_two().trailing_zeros();

impl StagingPlace {
    /// The place at byte `start` of a slot, a multiple of a line.
    pub(super) fn new(slot: usize, start: usize) -> Self {
        StagingPlace(((start / LINE) << SLOT_BITS | slot) as u32)
    }

    /// Decodes the field of a line, for a message of `len` bytes.
    fn of_line(id: u32, len: usize) -> Result<Self, InvalidField> {
        let staged = StagingPlace(id);
        let is_there = staged.slot() < SLOTS && staged.start() + len <= SLOT_BYTES;
        let valid = (0, StagingPlace::new(SLOTS - 1, SLOT_BYTES - len).0.into());
        let field = "the place of a message in a staging slot";
        if is_there { Ok(staged) } else { Err(InvalidField { field, found: id.into(), valid }) }
    }

    pub(super) fn in_line(self) -> u32 {
        self.0
    }

    pub(super) fn slot(self) -> usize {
        (self.0 & ((1 << SLOT_BITS) - 1)) as usize
    }

    pub(super) fn start(self) -> usize {
        (self.0 >> SLOT_BITS) as usize * LINE
    }
}

/// A message that has arrived or was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageHeader {
    pub(super) tag: Tag,
    pub(super) len: usize,
    pub(super) location: Location,
}

/// Location of a message's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// In its line, at most [`INLINE_BYTES`].
    Line,
    /// In the ring of bytes, at most [`EAGER_BYTES`].
    Ring,
    /// In a staging slot of the sender, at most [`SLOT_BYTES`].
    Slot(StagingPlace),
    /// In the sender's memory.
    Rendezvous(Rendezvous),
}

/// The announcement of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rendezvous {
    /// Address of the message in the sender's memory; the address of its end does not overflow.
    pub(super) from: u64,
    /// The sender's number of the message.
    pub(super) id: u32,
    /// Announced messages of the sender at the time of the announcement.
    pub(super) n_announced: u64,
    pub(super) early: Early,
}

/// The early bytes of an announced message: its first bytes, which follow the announcement at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Early {
    /// The sender's identifier of the early bytes.
    pub(super) number: u32,
    /// Number of early bytes.
    pub(super) len: usize,
    /// Whether the early bytes are the whole message.
    pub(super) is_all: bool,
}

impl Early {
    /// The word of the announcement that describes the early bytes.
    pub(super) fn word(number: u32, len: usize) -> u64 {
        u64::from(number) << 32 | len as u64
    }
}

/// Upper limit of early bytes: all slots full.
const MOST_EARLY: usize = SLOTS * SLOT_BYTES;

/// A piece of a message that this rank has requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CicoPiece {
    /// This rank's number of the receive.
    pub(super) recv: u32,
    /// Offset of the piece within the message.
    pub(super) at: u64,
    /// Length of the piece: at most [`SLOT_BYTES`], in the ring at most [`EAGER_BYTES`].
    pub(super) len: usize,
    /// Place of the piece in the sender's staging slots; `None` if it is in the ring.
    pub(super) staged: Option<StagingPlace>,
}

/// A piece of the early bytes of a message, which this rank has not requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EarlyPiece {
    /// The identifier of the early bytes in the announcement.
    pub(super) number: u32,
    /// Offset of the piece within the message.
    pub(super) at: u64,
    /// Length of the piece: from 1 to [`SLOT_BYTES`].
    pub(super) len: usize,
    /// Place of the piece in the sender's staging slots.
    pub(super) staged: StagingPlace,
}

impl Decoded {
    /// Length of the payload, if the payload is in the ring of bytes.
    #[inline]
    pub(super) fn ring_bytes(&self) -> Option<usize> {
        match *self {
            Decoded::Message(MessageHeader { len, location: Location::Ring, .. })
            | Decoded::Piece(CicoPiece { len, staged: None, .. }) => Some(len),
            _ => None,
        }
    }
}

impl Raw {
    /// # Errors
    /// The first invalid field.
    #[inline]
    pub(super) fn decode(&self) -> Result<Decoded, InvalidField> {
        let &Raw { kind, call, operation, len, message, id, words, .. } = self;
        let tag = Tag::of_operation(operation, message, call);
        let message_at = |len, location| Ok(Decoded::Message(MessageHeader { tag, len, location }));
        let piece = |len, staged| {
            Ok(Decoded::Piece(CicoPiece { recv: message, at: words[0], len, staged }))
        };
        match kind {
            1 => message_at(
                check_max("the length of a message in a line", len, INLINE_BYTES)?,
                Location::Line,
            ),
            2 => message_at(
                check_max("the length of a message in the ring", len, EAGER_BYTES)?,
                Location::Ring,
            ),
            3 => {
                let len = check_max("the length of a staged message", len, SLOT_BYTES)?;
                message_at(len, Location::Slot(StagingPlace::of_line(id, len)?))
            }
            4 => {
                let [from, n_announced, early] = words;
                let len =
                    check_max("the length of an announced message", len, isize::MAX as usize)?;
                check_range(
                    "the address of an announced message",
                    from,
                    (0, u64::MAX - len as u64),
                )?;
                let most = len.min(MOST_EARLY);
                let n_early = check_max("the early bytes of a message", early & 0xffff_ffff, most)?;
                let is_all = len > 0 && n_early == len;
                let early = Early { number: (early >> 32) as u32, len: n_early, is_all };
                message_at(len, Location::Rendezvous(Rendezvous { from, id, n_announced, early }))
            }
            5 => Ok(Decoded::Done(id)),
            6 => {
                let recv = check_max("a receive's number", words[0], u32::MAX as usize)? as u32;
                Ok(Decoded::ClearToSend { id, recv })
            }
            7 => {
                let len = check_max("the length of a piece", len, SLOT_BYTES)?;
                piece(len, Some(StagingPlace::of_line(id, len)?))
            }
            8 => piece(check_max("the length of a piece in the ring", len, EAGER_BYTES)?, None),
            9 => {
                check_range("the length of an early piece", len, (1, SLOT_BYTES as u64))?;
                let (len, staged) = (len as usize, StagingPlace::of_line(id, len as usize)?);
                Ok(Decoded::Early(EarlyPiece { number: message, at: words[0], len, staged }))
            }
            other => Err(InvalidField { field: "the kind", found: other.into(), valid: (1, 9) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: Raw = Raw {
        stamp: 1,
        kind: 1,
        spare: 0,
        call: 7,
        operation: 8,
        len: 16,
        message: 9,
        id: 3,
        words: [64, 2, 5 << 32 | 16],
    };

    #[test]
    fn every_kind_is_read() {
        let header = |location| {
            Decoded::Message(MessageHeader { tag: Tag::of_operation(8, 9, 7), len: 16, location })
        };
        let piece = |staged| Decoded::Piece(CicoPiece { recv: 9, at: 64, len: 16, staged });
        let all = [
            (LineKind::Inline, header(Location::Line)),
            (LineKind::Eager, header(Location::Ring)),
            (LineKind::Staged, header(Location::Slot(StagingPlace(3)))),
            (
                LineKind::Rendezvous,
                header(Location::Rendezvous(Rendezvous {
                    from: 64,
                    id: 3,
                    n_announced: 2,
                    early: Early { number: 5, len: 16, is_all: true },
                })),
            ),
            (LineKind::Done, Decoded::Done(3)),
            (LineKind::ClearToSend, Decoded::ClearToSend { id: 3, recv: 64 }),
            (LineKind::Piece, piece(Some(StagingPlace(3)))),
            (LineKind::Fragment, piece(None)),
            (
                LineKind::Early,
                Decoded::Early(EarlyPiece { number: 9, at: 64, len: 16, staged: StagingPlace(3) }),
            ),
        ];
        for (kind, decoded) in all {
            assert_eq!(Raw { kind: kind as u8, ..SOUND }.decode(), Ok(decoded), "{kind:?}");
        }
    }

    #[test]
    fn a_field_that_cannot_be_is_named() {
        let of = |kind: LineKind| Raw { kind: kind as u8, ..SOUND };
        let behind_end = StagingPlace::new(SLOTS - 1, SLOT_BYTES).in_line();
        let too_long = |kind, len: usize| (Raw { len: len as u64 + 1, ..of(kind) }, "length");
        for (raw, field) in [
            (Raw { kind: 0, ..SOUND }, "kind"),
            (Raw { kind: 10, ..SOUND }, "kind"),
            too_long(LineKind::Inline, INLINE_BYTES),
            too_long(LineKind::Eager, EAGER_BYTES),
            too_long(LineKind::Staged, SLOT_BYTES),
            too_long(LineKind::Piece, SLOT_BYTES),
            too_long(LineKind::Fragment, EAGER_BYTES),
            too_long(LineKind::Early, SLOT_BYTES),
            (Raw { words: [64, 2, 17], ..of(LineKind::Rendezvous) }, "early"),
            (Raw { len: u64::MAX, ..of(LineKind::Rendezvous) }, "length"),
            (Raw { words: [u64::MAX, 0, 0], ..of(LineKind::Rendezvous) }, "address"),
            (Raw { words: [1 << 32, 0, 0], ..of(LineKind::ClearToSend) }, "receive"),
            (Raw { id: SLOTS as u32, ..of(LineKind::Staged) }, "slot"),
            (Raw { id: u32::MAX, ..of(LineKind::Piece) }, "slot"),
            (Raw { id: behind_end, ..of(LineKind::Early) }, "slot"),
        ] {
            let invalid = raw.decode().unwrap_err();
            assert!(invalid.field.contains(field), "{invalid}");
        }
    }
}
