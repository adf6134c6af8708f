//! The header of a message between ports: 32 bytes; the payload of a short message follows it.

use std::ops::Range;

use crate::endpoint::status::blame_from_word;
use crate::endpoint::validation::{InvalidField, check_max, check_range};
use crate::endpoint::{Status, Tag};
use crate::error::Blame;

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 32;
/// Longest part, in bytes, that follows a header: just short of what Open MPI sends eagerly by TCP. Other MPIs send
/// less eagerly, see `lengths`.
pub(super) const PART_BYTES: usize = 64 * 1024 - 256;
/// Most parts of a message.
pub(super) const MOST_PARTS: usize = 5;
/// Longest message, in bytes, that may follow headers.
pub const EAGER_BYTES: usize = MOST_PARTS * PART_BYTES;
/// The MPI tag of the first long message with a header; further messages use the tags after it.
pub(super) const FIRST_DATA: i32 = 1;
/// Credits: messages with a header that may be in flight to a peer. MPI buffers those that the peer has not taken, so
/// this bounds MPI's memory.
pub(super) const CREDITS: u32 = 32;
/// Credits reserved for headers whose message stays with its sender; the peer never withholds these credits.
pub(super) const RESERVED_CREDITS: u32 = 2;

/// The kind of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum HeaderKind {
    /// A short message, or the next of its `arg` parts; the payload follows.
    Short = 1,
    /// A long message, which is sent with the MPI tag `arg`.
    Long,
    /// Only returns credits.
    Credit,
    /// `operation` encodes which rank has failed, and why.
    News,
    /// Requests the receiver's status; `message` is the request's number.
    StatusRequest,
    /// The answer to status request `message`: `operation` is the status word.
    StatusReply,
    /// From now on messages of this communicator of at least `len` bytes go by stream `arg`.
    Stream,
    /// A message without a header, which has the MPI tag `arg`, has waited for its receive.
    Unmatched,
    /// Closes stream `arg`, by which the sender has sent `len` messages since it opened the stream.
    Close,
    /// The receiver has closed stream `arg`; another communicator may use it.
    Closed,
}

/// All kinds, in the order of their numbers on the wire, which start at 1.
const KINDS: [HeaderKind; 10] = [
    HeaderKind::Short,
    HeaderKind::Long,
    HeaderKind::Credit,
    HeaderKind::News,
    HeaderKind::StatusRequest,
    HeaderKind::StatusReply,
    HeaderKind::Stream,
    HeaderKind::Unmatched,
    HeaderKind::Close,
    HeaderKind::Closed,
];

/// The fields of a header; `kind` says which of them matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: HeaderKind,
    pub(super) call: u16,
    pub(super) message: u32,
    pub(super) operation: u64,
    /// The length of the message in bytes, unless the kind says otherwise.
    pub(super) len: u64,
    /// By kind: the number of parts, the MPI tag, or the stream.
    pub(super) arg: u32,
    /// Credits that this header returns to its receiver.
    pub(super) credits: u32,
}

impl Header {
    /// The header of a message.
    pub(super) fn of(kind: HeaderKind, tag: Tag, len: usize, arg: u32) -> Self {
        Header {
            kind,
            call: tag.call,
            message: tag.message,
            operation: tag.operation_id(),
            len: len as u64,
            arg,
            credits: 0,
        }
    }

    /// A header without a message.
    pub(super) fn control(kind: HeaderKind, operation: u64, message: u32) -> Self {
        Header { kind, call: 0, message, operation, len: 0, arg: 0, credits: 0 }
    }

    /// Encodes the header in the machine's byte order, which all ranks of a job share.
    #[inline]
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&self.operation.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.message.to_ne_bytes());
        bytes[20..24].copy_from_slice(&self.arg.to_ne_bytes());
        bytes[24..28].copy_from_slice(&self.credits.to_ne_bytes());
        bytes[28..30].copy_from_slice(&self.call.to_ne_bytes());
        bytes[30] = self.kind as u8;
        bytes
    }
}

/// The receiver's bounds for the fields of a header.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderLimits {
    pub(super) n_ranks: u32,
    /// Most credits that the sender may return: those in use.
    pub(super) credits: u32,
    /// The last MPI tag of messages with headers, and the last tag of all.
    pub(super) last_tags: [i32; 2],
}

/// The content of a header, with each field checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checked {
    /// Credits that the header returns to its receiver.
    pub(super) credits: u32,
    pub(super) content: HeaderContent,
}

/// A [`HeaderKind`] with its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderContent {
    Short(ShortMessage),
    Long { tag: Tag, len: usize, mpi_tag: i32 },
    Credit,
    News(Option<Blame>),
    StatusRequest(u32),
    StatusReply(u32, Status),
    Stream { context: u64, stream: u32, least_bytes: usize },
    Unmatched { tag: Tag, len: usize, mpi_tag: i32 },
    Close { stream: u32, n_messages: u64 },
    Closed { stream: u32 },
}

/// A short message of at most [`EAGER_BYTES`]; a part of it follows the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShortMessage {
    pub(super) tag: Tag,
    pub(super) len: usize,
    n_parts: usize,
}

impl Checked {
    /// Decodes a header.
    ///
    /// # Errors
    /// The first field with an invalid value.
    #[inline]
    pub(super) fn of(
        bytes: &[u8; HEADER_BYTES],
        limits: &HeaderLimits,
    ) -> Result<Self, InvalidField> {
        let half = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let (words, _) = bytes.as_chunks::<8>();
        let [operation, len] = [words[0], words[1]].map(u64::from_ne_bytes);
        let (message, arg, credits) = (half(16), half(20), half(24));
        let call = u16::from_ne_bytes([bytes[28], bytes[29]]);
        let credits = check_range("credits", credits.into(), (0, limits.credits.into()))? as u32;
        let at =
            check_range("a header's kind", bytes[30].into(), (1, KINDS.len() as u64))? as usize - 1;
        let tag = Tag::of_operation(operation, message, call);
        let long = || check_max("the length of a long message", len, isize::MAX as usize);
        let [last_numbered, last_tag] = limits.last_tags;
        let mpi_tag = |first: i32, last: i32| {
            check_range("MPI's tag of a message", arg.into(), (first as u64, last as u64))
                .map(|tag| tag as i32)
        };
        let content = match KINDS[at] {
            HeaderKind::Short => {
                let len = check_max("the length of a short message", len, EAGER_BYTES)?;
                let most = len.clamp(1, MOST_PARTS);
                let n_parts = check_range("the parts of a message", arg.into(), (1, most as u64))?;
                let most = n_parts as usize * PART_BYTES;
                check_max("the length of a message in so many parts", len as u64, most)?;
                HeaderContent::Short(ShortMessage { tag, len, n_parts: n_parts as usize })
            }
            HeaderKind::Long => {
                let mpi_tag = mpi_tag(FIRST_DATA, last_numbered)?;
                HeaderContent::Long { tag, len: long()?, mpi_tag }
            }
            HeaderKind::Credit => HeaderContent::Credit,
            HeaderKind::News => HeaderContent::News(blame_from_word(operation, limits.n_ranks)?),
            HeaderKind::StatusRequest => HeaderContent::StatusRequest(message),
            HeaderKind::StatusReply => {
                HeaderContent::StatusReply(message, Status::from_word(operation, limits.n_ranks)?)
            }
            HeaderKind::Stream => {
                let field = "the least length of messages that go by a stream";
                let least_bytes = check_range(field, len, (1, EAGER_BYTES as u64 + 1))? as usize;
                HeaderContent::Stream { context: tag.context, stream: arg, least_bytes }
            }
            HeaderKind::Unmatched => {
                let mpi_tag = mpi_tag(last_numbered.saturating_add(1), last_tag)?;
                HeaderContent::Unmatched { tag, len: long()?, mpi_tag }
            }
            HeaderKind::Close => HeaderContent::Close { stream: arg, n_messages: len },
            HeaderKind::Closed => HeaderContent::Closed { stream: arg },
        };
        Ok(Checked { credits, content })
    }
}

/// The state of the multi-part short message that a peer is sending; its parts arrive one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    /// The message whose last parts have not arrived, and the number of its bytes that have.
    begun: Option<(ShortMessage, usize)>,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessagePart {
    /// The part's bytes within the message; at most [`PART_BYTES`] of them.
    pub(super) range: Range<usize>,
    pub(super) is_last: bool,
}

impl Parts {
    /// The part that follows a header of `of`.
    ///
    /// # Errors
    /// If parts of another message have yet to arrive.
    #[inline]
    pub(super) fn next(&mut self, of: ShortMessage) -> Result<MessagePart, InvalidField> {
        if of.n_parts == 1 && self.begun.is_none() {
            return Ok(MessagePart { range: 0..of.len, is_last: true });
        }
        let start = match self.begun {
            None => 0,
            Some((begun, came)) if begun == of => came,
            Some(_) => return Err(self.unfinished()),
        };
        let len = part_len(of.len, of.n_parts, start);
        let end = start + len;
        let is_last = end == of.len;
        self.begun = (!is_last).then_some((of, end));
        Ok(MessagePart { range: start..end, is_last })
    }

    /// Checks that a long message may begin.
    ///
    /// # Errors
    /// If parts of a short message have yet to arrive.
    #[inline]
    pub(super) fn none(&self) -> Result<(), InvalidField> {
        if self.begun.is_none() { Ok(()) } else { Err(self.unfinished()) }
    }

    #[cold]
    fn unfinished(&self) -> InvalidField {
        let (len, came) = self.begun.map_or((0, 0), |(of, came)| (of.len as u64, came as u64));
        let field = "the number of bytes of a message before the next one begins";
        InvalidField { field, found: came, valid: (len, len) }
    }
}

/// The number of parts of at most `most` bytes of a short message of `len` bytes; an empty message has one.
#[inline]
pub(super) fn n_parts(len: usize, most: usize) -> usize {
    if len <= most { 1 } else { len.div_ceil(most) }
}

/// Bytes of the part at offset `at` of a short message of `len` bytes in `n_parts` parts. All parts are about as
/// long, so that MPI can move one while the next is copied.
#[inline]
pub(super) fn part_len(len: usize, n_parts: usize, at: usize) -> usize {
    if n_parts == 1 { len } else { len.div_ceil(n_parts).min(len - at) }
}

#[cfg(feature = "fuzzing")]
/// Decodes `bytes` as consecutive headers of a peer that sends arbitrary bytes, and copies parts of messages as a
/// port would.
pub(crate) fn play(bytes: &[u8]) {
    let limits = HeaderLimits { n_ranks: 9, credits: CREDITS, last_tags: [1000, 5000] };
    let (mut parts, mut region) = (Parts::default(), Vec::new());
    let slot = vec![7; PART_BYTES];
    for header in bytes.as_chunks().0 {
        let Ok(Checked { credits, content }) = Checked::of(header, &limits) else { continue };
        assert!(credits <= CREDITS);
        match content {
            HeaderContent::Short(of) => {
                let Ok(MessagePart { range, is_last }) = parts.next(of) else { return };
                region.resize(of.len, 0);
                assert_eq!(is_last, range.end == of.len);
                assert!(!range.is_empty() || is_last, "no end");
                region[range.clone()].copy_from_slice(&slot[..range.len()]);
            }
            HeaderContent::Long { mpi_tag, .. } => assert!((FIRST_DATA..=1000).contains(&mpi_tag)),
            HeaderContent::Unmatched { mpi_tag, .. } => assert!((1001..=5000).contains(&mpi_tag)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::status::blame_to_word;

    const TAG: Tag = Tag { context: 5, operation: 6, message: 7, call: 0xfedc };
    const LIMITS: HeaderLimits = HeaderLimits { n_ranks: 9, credits: 4, last_tags: [1000, 5000] };

    fn content(header: &Header) -> Result<HeaderContent, InvalidField> {
        Checked::of(&header.encode(), &LIMITS).map(|checked| checked.content)
    }

    #[test]
    fn headers_round_trip_and_garbage_is_none() {
        let (tag, len) = (TAG, 1 << 40);
        let short = Header { credits: 4, ..Header::of(HeaderKind::Short, TAG, 3 * PART_BYTES, 3) };
        let blame = Blame { rank: 8, fault: crate::error::Fault::Left, by: 0 };
        let status = Status::WaitsFor(8, 77);
        for (header, want) in [
            (short, HeaderContent::Short(ShortMessage { tag, len: 3 * PART_BYTES, n_parts: 3 })),
            (
                Header::of(HeaderKind::Short, TAG, 0, 1),
                HeaderContent::Short(ShortMessage { tag, len: 0, n_parts: 1 }),
            ),
            (
                Header::of(HeaderKind::Long, TAG, len, 1000),
                HeaderContent::Long { tag, len, mpi_tag: 1000 },
            ),
            (
                Header::of(HeaderKind::Unmatched, TAG, len, 1001),
                HeaderContent::Unmatched { tag, len, mpi_tag: 1001 },
            ),
            (
                Header::of(HeaderKind::Stream, TAG, 4096, 3),
                HeaderContent::Stream { context: 5, stream: 3, least_bytes: 4096 },
            ),
            (
                Header::of(HeaderKind::Close, TAG, 12, 3),
                HeaderContent::Close { stream: 3, n_messages: 12 },
            ),
            (Header::of(HeaderKind::Closed, TAG, 0, 3), HeaderContent::Closed { stream: 3 }),
            (Header::control(HeaderKind::Credit, 0, 0), HeaderContent::Credit),
            (
                Header::control(HeaderKind::News, blame_to_word(blame), 0),
                HeaderContent::News(Some(blame)),
            ),
            (Header::control(HeaderKind::StatusRequest, 0, 5), HeaderContent::StatusRequest(5)),
            (
                Header::control(HeaderKind::StatusReply, status.to_word(), 5),
                HeaderContent::StatusReply(5, status),
            ),
        ] {
            assert_eq!(content(&header), Ok(want));
        }
        let checked = Checked::of(&short.encode(), &LIMITS);
        assert_eq!(checked.map(|checked| checked.credits), Ok(4));
        for byte in [0, 77] {
            assert!(Checked::of(&[byte; HEADER_BYTES], &LIMITS).is_err());
        }
    }

    #[test]
    fn fields_that_cannot_be_are_named() {
        let of = |kind, len, arg| Header::of(kind, TAG, len, arg);
        let news = Header::control(HeaderKind::News, u64::MAX, 0);
        for (header, field) in [
            (Header { credits: 5, ..of(HeaderKind::Credit, 0, 0) }, "credits"),
            (of(HeaderKind::Short, EAGER_BYTES + 1, 5), "length of a short"),
            (of(HeaderKind::Short, 9, 0), "parts"),
            (of(HeaderKind::Short, EAGER_BYTES, MOST_PARTS as u32 + 1), "parts"),
            (of(HeaderKind::Short, 3, 4), "parts"),
            (of(HeaderKind::Short, PART_BYTES + 1, 1), "so many parts"),
            (of(HeaderKind::Long, usize::MAX, 1), "length of a long"),
            (of(HeaderKind::Long, 9, 0), "tag"),
            (of(HeaderKind::Long, 9, 1001), "tag"),
            (of(HeaderKind::Long, 9, u32::MAX), "tag"),
            (of(HeaderKind::Unmatched, 9, 1000), "tag"),
            (of(HeaderKind::Unmatched, 9, 5001), "tag"),
            (of(HeaderKind::Stream, 0, 0), "stream"),
            (of(HeaderKind::Stream, EAGER_BYTES + 2, 0), "stream"),
            (Header { kind: HeaderKind::StatusReply, ..news }, "status"),
            (news, "fault"),
        ] {
            let invalid = content(&header).unwrap_err();
            assert!(invalid.field.contains(field), "{invalid}");
        }
    }

    #[test]
    fn parts_of_another_message_do_not_follow() {
        let short = |message, len| ShortMessage { tag: Tag { message, ..TAG }, len, n_parts: 2 };
        let mut parts = Parts::default();
        let first = || Ok(MessagePart { range: 0..5, is_last: false });
        assert_eq!(parts.next(short(1, 10)), first());
        for other in [short(2, 10), short(1, 11)] {
            let invalid = { parts }.next(other).unwrap_err();
            assert_eq!((invalid.found, invalid.valid), (5, (10, 10)));
        }
        assert!(parts.none().is_err());
        assert_eq!(parts.next(short(1, 10)), Ok(MessagePart { range: 5..10, is_last: true }));
        assert!(parts.none().is_ok());
        assert_eq!(parts.next(short(2, 10)), first());
    }

    #[test]
    fn parts_make_up_a_message() {
        for most in [4064, PART_BYTES / 8, PART_BYTES] {
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
