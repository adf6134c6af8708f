//! The header of a message between ports: 32 bytes, with the payload of a short message behind them.

use super::PART_BYTES;
use crate::endpoint::Tag;

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 32;

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// A short message, or its next part: the payload follows.
    Short = 1,
    /// A long message, which is on its way with the MPI tag `mpi_tag`.
    Long,
    /// Gives credits back, and says nothing else.
    Credit,
    /// `operation` says who has failed, and why.
    News,
    /// Question `message`: what is the receiver of this doing?
    Ask,
    /// The answer to question `message`: the status is `operation`.
    Answer,
}

/// All kinds, in the order of their numbers on the wire, which start at 1.
const KINDS: [Kind; 6] =
    [Kind::Short, Kind::Long, Kind::Credit, Kind::News, Kind::Ask, Kind::Answer];

/// See the module documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) call: u16,
    pub(super) message: u32,
    pub(super) operation: u64,
    /// The length of the message.
    pub(super) len: u64,
    pub(super) mpi_tag: i32,
    /// Messages that its receiver may send in addition.
    pub(super) credits: u32,
}

impl Header {
    /// The header of a message.
    pub(super) fn of(kind: Kind, tag: Tag, len: usize) -> Self {
        Header {
            kind,
            call: tag.call,
            message: tag.message,
            operation: tag.operation_id(),
            len: len as u64,
            mpi_tag: 0,
            credits: 0,
        }
    }

    /// A header that concerns no message.
    pub(super) fn plain(kind: Kind, operation: u64, message: u32) -> Self {
        Header { kind, call: 0, message, operation, len: 0, mpi_tag: 0, credits: 0 }
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
        bytes[20..24].copy_from_slice(&self.mpi_tag.to_ne_bytes());
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
            mpi_tag: i32::from_ne_bytes(half(20)),
            credits: u32::from_ne_bytes(half(24)),
        })
    }
}

/// How many parts a short message of `len` bytes has: an empty one, too, has one.
#[inline]
pub(super) fn n_parts(len: usize) -> usize {
    if len <= PART_BYTES { 1 } else { len.div_ceil(PART_BYTES) }
}

/// How long the part of a short message of `len` bytes is that begins at `at`: all are about as long, and
/// so move while others are copied.
#[inline]
pub(super) fn part_len(len: usize, at: usize) -> usize {
    if len <= PART_BYTES { len } else { len.div_ceil(n_parts(len)).min(len - at) }
}

#[cfg(test)]
mod tests {
    use super::super::EAGER_BYTES;
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
                mpi_tag: 32_767,
                credits: 9,
            };
            assert_eq!(Header::decode(&header.encode()), Some(header));
            assert_eq!(Header::decode(&[0; HEADER_BYTES]), None);
            assert_eq!(Header::decode(&[77; HEADER_BYTES]), None);
        }
        let tag = Tag { context: 5, operation: 6, message: 7, call: 8 };
        assert_eq!(Header::of(Kind::Long, tag, 100).tag(), tag);
    }

    #[test]
    fn parts_make_up_a_message() {
        for len in [0, 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES, EAGER_BYTES - 1, EAGER_BYTES]
        {
            let (mut at, mut n) = (0, 0);
            while n == 0 || at < len {
                let part = part_len(len, at);
                assert!(part <= PART_BYTES && (part > 0 || len == 0), "{part} at {at} of {len}");
                (at, n) = (at + part, n + 1);
            }
            assert_eq!((at, n), (len, n_parts(len)));
        }
    }
}
