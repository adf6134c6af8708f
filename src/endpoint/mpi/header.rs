//! The header of a message between ports: 32 bytes, with the payload of a short message behind them.

use crate::endpoint::Tag;

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 32;

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// A short message, or the next of its `way` parts: the payload follows.
    Short = 1,
    /// A long message, which is on its way with the MPI tag `way`.
    Long,
    /// Gives credits back, and says nothing else.
    Credit,
    /// `operation` says who has failed, and why.
    News,
    /// Question `message`: what is the receiver of this doing?
    Ask,
    /// The answer to question `message`: the status is `operation`.
    Answer,
    /// From now on messages of this communicator that are at least `len` bytes long go by lane `way`.
    Lane,
    /// A message without a header, which has the MPI tag `way`, waits to be met.
    Unmet,
}

/// All kinds, in the order of their numbers on the wire, which start at 1.
const KINDS: [Kind; 8] = [
    Kind::Short,
    Kind::Long,
    Kind::Credit,
    Kind::News,
    Kind::Ask,
    Kind::Answer,
    Kind::Lane,
    Kind::Unmet,
];

/// See the module documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) call: u16,
    pub(super) message: u32,
    pub(super) operation: u64,
    /// The length of the message.
    pub(super) len: u64,
    /// How the message travels.
    pub(super) way: u32,
    /// Messages that its receiver may send in addition.
    pub(super) credits: u32,
}

impl Header {
    /// The header of a message.
    pub(super) fn of(kind: Kind, tag: Tag, len: usize, way: u32) -> Self {
        Header {
            kind,
            call: tag.call,
            message: tag.message,
            operation: tag.operation_id(),
            len: len as u64,
            way,
            credits: 0,
        }
    }

    /// A header that concerns no message.
    pub(super) fn plain(kind: Kind, operation: u64, message: u32) -> Self {
        Header { kind, call: 0, message, operation, len: 0, way: 0, credits: 0 }
    }

    /// The message that it is about.
    pub(super) fn tag(&self) -> Tag {
        Tag::of_operation(self.operation, self.message, self.call)
    }

    /// Ranks of one job have one byte order: the machine's.
    #[inline]
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&self.operation.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.message.to_ne_bytes());
        bytes[20..24].copy_from_slice(&self.way.to_ne_bytes());
        bytes[24..28].copy_from_slice(&self.credits.to_ne_bytes());
        bytes[28..30].copy_from_slice(&self.call.to_ne_bytes());
        bytes[30] = self.kind as u8;
        bytes
    }

    /// Reads a header; `None` if the bytes are none.
    #[inline]
    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let half = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let (words, _) = bytes.as_chunks::<8>();
        let kind = *KINDS.get(usize::from(bytes[30]).checked_sub(1)?)?;
        Some(Header {
            kind,
            call: u16::from_ne_bytes([bytes[28], bytes[29]]),
            message: u32::from_ne_bytes(half(16)),
            operation: u64::from_ne_bytes(words[0]),
            len: u64::from_ne_bytes(words[1]),
            way: u32::from_ne_bytes(half(20)),
            credits: u32::from_ne_bytes(half(24)),
        })
    }
}

/// How many parts of at most `most` bytes a short message of `len` bytes has: an empty one, too, has one.
#[inline]
pub(super) fn n_parts(len: usize, most: usize) -> usize {
    if len <= most { 1 } else { len.div_ceil(most) }
}

/// How long the part of a short message of `len` bytes in `n_parts` parts is that begins at `at`: all are
/// about as long, and so move while others are copied.
#[inline]
pub(super) fn part_len(len: usize, n_parts: usize, at: usize) -> usize {
    if n_parts == 1 { len } else { len.div_ceil(n_parts).min(len - at) }
}

#[cfg(test)]
mod tests {
    use super::super::lengths::LEAST_BYTES;
    use super::super::{EAGER_BYTES, PART_BYTES};
    use super::*;

    #[test]
    fn headers_round_trip_and_garbage_is_none() {
        for kind in KINDS {
            let header = Header {
                kind,
                call: 0xfedc,
                message: 0xdead_beef,
                operation: 1 << 63 | 7,
                len: 1 << 40,
                way: 32_767,
                credits: 9,
            };
            assert_eq!(Header::decode(&header.encode()), Some(header));
            assert_eq!(Header::decode(&[0; HEADER_BYTES]), None);
            assert_eq!(Header::decode(&[77; HEADER_BYTES]), None);
        }
        let tag = Tag { context: 5, operation: 6, message: 7, call: 8 };
        assert_eq!(Header::of(Kind::Long, tag, 100, 1).tag(), tag);
    }

    #[test]
    fn parts_make_up_a_message() {
        for most in [LEAST_BYTES, PART_BYTES / 8, PART_BYTES] {
            for len in [0, 1, most - 1, most, most + 1, 3 * most, EAGER_BYTES - 1, EAGER_BYTES] {
                let parts = n_parts(len, most);
                let (mut at, mut n) = (0, 0);
                while n == 0 || at < len {
                    let part = part_len(len, parts, at);
                    assert!(part <= most && (part > 0 || len == 0), "{part} at {at} of {len}");
                    (at, n) = (at + part, n + 1);
                }
                assert_eq!((at, n), (len, parts));
            }
        }
    }
}
