//! The encoding of descriptors and eager headers, which travel in the slots of a [`channel`](super::channel).

use crate::endpoint::Tag;
use crate::endpoint::validation::{InvalidField, check_max};

use super::channel::{
    DESCRIPTOR_BYTES, EAGER_BYTES, EAGER_HEADER_BYTES, TINY_BYTES, TINY_HEADER_BYTES,
};

/// The values of a descriptor's first byte.
mod kind {
    pub(super) const CLEAR_TO_SEND: u8 = 1;
    pub(super) const TINY: u8 = 2;
    pub(super) const REQUEST_TO_SEND: u8 = 3;
    pub(super) const REFUSED: u8 = 4;
    pub(super) const WITHDRAWN: u8 = 5;
}

/// The credit by which a short message was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CreditKind {
    /// An ordinary credit; the message was not announced.
    Ordinary = 0,
    /// An ordinary credit, after the message had been announced.
    Announced = 1,
    /// A credit that the receiver granted for the announced message.
    Granted = 2,
}

impl CreditKind {
    fn of(number: u16) -> Result<Self, InvalidField> {
        const ALL: [CreditKind; 3] =
            [CreditKind::Ordinary, CreditKind::Announced, CreditKind::Granted];
        check_max("the leave of a short message", number.into(), ALL.len() - 1).map(|at| ALL[at])
    }
}

/// Bits of the length field of a tiny and of an eager message; the leave starts at the next bit.
const TINY_CREDIT_AT: u32 = 6;
const EAGER_CREDIT_AT: u32 = 14;

/// An entry of the descriptor ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UtofuDescriptor {
    /// The writer has posted a receive for message `tag`: long messages are put to STADD `at` of its memory. For a
    /// short length `at` is unused: the descriptor grants a credit for the message, or ends a long send whose receive
    /// is short.
    ClearToSend {
        /// The message.
        tag: Tag,
        /// STADD of the receive's region.
        at: u64,
        /// The length of the receive.
        len: u64,
    },
    /// The writer has waited for a while with message `tag`: for a clear to send if the message is long, for a credit
    /// if it is short.
    RequestToSend {
        /// The message.
        tag: Tag,
        /// The message's length.
        len: u64,
    },
    /// The message does not fit the receive that the reader announced, and will not be sent.
    Refused {
        /// The message.
        tag: Tag,
    },
    /// The writer's announced receive for message `tag` has ended: a short message has met it.
    Withdrawn {
        /// The message.
        tag: Tag,
    },
    /// A short message, including its payload.
    Tiny {
        /// The message.
        tag: Tag,
        /// The kind of credit.
        credit_kind: CreditKind,
        /// The message's length, up to 16 bytes.
        len: u8,
        /// The payload, padded with zeros.
        data: [u8; TINY_BYTES],
    },
}

impl UtofuDescriptor {
    /// The encoding, and the number of its first bytes that need to be sent.
    pub(super) fn encode(&self) -> ([u8; DESCRIPTOR_BYTES], usize) {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        let (first, tag) = match self {
            UtofuDescriptor::ClearToSend { tag, .. } => (kind::CLEAR_TO_SEND, tag),
            UtofuDescriptor::RequestToSend { tag, .. } => (kind::REQUEST_TO_SEND, tag),
            UtofuDescriptor::Refused { tag } => (kind::REFUSED, tag),
            UtofuDescriptor::Withdrawn { tag } => (kind::WITHDRAWN, tag),
            UtofuDescriptor::Tiny { tag, .. } => (kind::TINY, tag),
        };
        bytes[0] = first;
        bytes[2..16].copy_from_slice(&tag_bytes(*tag));
        let len = match self {
            UtofuDescriptor::ClearToSend { at, len, .. } => {
                bytes[16..24].copy_from_slice(&at.to_le_bytes());
                bytes[24..].copy_from_slice(&len.to_le_bytes());
                DESCRIPTOR_BYTES
            }
            UtofuDescriptor::RequestToSend { len, .. } => {
                bytes[16..24].copy_from_slice(&len.to_le_bytes());
                24
            }
            UtofuDescriptor::Refused { .. } | UtofuDescriptor::Withdrawn { .. } => {
                TINY_HEADER_BYTES
            }
            UtofuDescriptor::Tiny { credit_kind, len, data, .. } => {
                bytes[1] = *len | (*credit_kind as u8) << TINY_CREDIT_AT;
                bytes[TINY_HEADER_BYTES..].copy_from_slice(data);
                TINY_HEADER_BYTES + usize::from(*len)
            }
        };
        (bytes, len)
    }

    /// Decodes the bytes of [`encode`](UtofuDescriptor::encode).
    ///
    /// # Errors
    /// The first field with an invalid value.
    pub(super) fn decode(bytes: &[u8; DESCRIPTOR_BYTES]) -> Result<Self, InvalidField> {
        let tag = tag_at(bytes, 2);
        match bytes[0] {
            kind::CLEAR_TO_SEND => Ok(UtofuDescriptor::ClearToSend {
                tag,
                at: number(bytes, 16),
                len: number(bytes, 24),
            }),
            kind::REQUEST_TO_SEND => {
                Ok(UtofuDescriptor::RequestToSend { tag, len: number(bytes, 16) })
            }
            kind::REFUSED => Ok(UtofuDescriptor::Refused { tag }),
            kind::WITHDRAWN => Ok(UtofuDescriptor::Withdrawn { tag }),
            kind::TINY => {
                let len = u64::from(bytes[1] & ((1 << TINY_CREDIT_AT) - 1));
                let len = check_max("the length of a tiny message", len, TINY_BYTES)? as u8;
                let credit_kind = CreditKind::of(u16::from(bytes[1] >> TINY_CREDIT_AT))?;
                let mut data = [0; TINY_BYTES];
                data.copy_from_slice(&bytes[TINY_HEADER_BYTES..]);
                Ok(UtofuDescriptor::Tiny { tag, credit_kind, len, data })
            }
            other => Err(InvalidField {
                field: "a descriptor's kind",
                found: other.into(),
                valid: (kind::CLEAR_TO_SEND.into(), kind::WITHDRAWN.into()),
            }),
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

/// Encodes the header of an eager message.
pub(super) fn eager_header(
    tag: Tag,
    credit_kind: CreditKind,
    len: usize,
) -> [u8; EAGER_HEADER_BYTES] {
    let mut bytes = [0; EAGER_HEADER_BYTES];
    let word = len as u16 | (credit_kind as u16) << EAGER_CREDIT_AT;
    bytes[0..2].copy_from_slice(&word.to_le_bytes());
    bytes[2..2 + TAG_BYTES].copy_from_slice(&tag_bytes(tag));
    bytes
}

/// Decodes the tag, leave and length of an eager message.
///
/// # Errors
/// The first field with an invalid value.
pub(super) fn eager_message(
    header: &[u8; EAGER_HEADER_BYTES],
) -> Result<(Tag, CreditKind, usize), InvalidField> {
    let word = u16::from_le_bytes([header[0], header[1]]);
    let len = u64::from(word & ((1 << EAGER_CREDIT_AT) - 1));
    let len = check_max("the length of an eager message", len, EAGER_BYTES)?;
    Ok((tag_at(header, 2), CreditKind::of(word >> EAGER_CREDIT_AT)?, len))
}

/// The little-endian number in the (up to) 8 bytes from `at` on.
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
        for credit_kind in [CreditKind::Ordinary, CreditKind::Announced, CreditKind::Granted] {
            for len in [0, 99, EAGER_BYTES] {
                let header = eager_header(tag, credit_kind, len);
                assert_eq!(eager_message(&header), Ok((tag, credit_kind, len)));
            }
        }
        let mut data = [0; TINY_BYTES];
        data[..3].copy_from_slice(b"abc");
        for descriptor in [
            UtofuDescriptor::ClearToSend { tag, at: 0x1234_5678_9abc_def0, len: 1 << 40 },
            UtofuDescriptor::RequestToSend { tag, len: 1 << 40 },
            UtofuDescriptor::Refused { tag },
            UtofuDescriptor::Withdrawn { tag },
            UtofuDescriptor::Tiny { tag, credit_kind: CreditKind::Ordinary, len: 3, data },
            UtofuDescriptor::Tiny { tag, credit_kind: CreditKind::Granted, len: 3, data },
        ] {
            let (bytes, len) = descriptor.encode();
            let mut arrived = [0; DESCRIPTOR_BYTES];
            arrived[..len].copy_from_slice(&bytes[..len]);
            assert_eq!(UtofuDescriptor::decode(&arrived), Ok(descriptor));
        }
    }

    #[test]
    fn fields_that_cannot_be_are_named_with_what_they_can_be() {
        let descriptor = |kind, second| {
            let mut bytes = [0; DESCRIPTOR_BYTES];
            bytes[..2].copy_from_slice(&[kind, second]);
            UtofuDescriptor::decode(&bytes).unwrap_err()
        };
        let eager = |word: u16| {
            let mut header = [0; EAGER_HEADER_BYTES];
            header[..2].copy_from_slice(&word.to_le_bytes());
            eager_message(&header).unwrap_err()
        };
        let credit_kind = "the leave of a short message";
        for (invalid, field, found, valid) in [
            (descriptor(0, 0), "a descriptor's kind", 0, (1, 5)),
            (descriptor(6, 0), "a descriptor's kind", 6, (1, 5)),
            (descriptor(kind::TINY, 17), "the length of a tiny message", 17, (0, 16)),
            (descriptor(kind::TINY, 3 << TINY_CREDIT_AT | 16), credit_kind, 3, (0, 2)),
            (eager(2049), "the length of an eager message", 2049, (0, 2048)),
            (eager(3 << EAGER_CREDIT_AT | 2048), credit_kind, 3, (0, 2)),
        ] {
            assert_eq!(invalid, InvalidField { field, found, valid });
        }
    }
}
