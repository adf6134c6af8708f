//! Unexpected messages and announcements, which are kept until the matching post.

use utofu::Stadd;

use crate::endpoint::matcher;

use super::channel::{EAGER_BYTES, Lane, TINY_BYTES, Window};

/// A message whose receive has not been posted, or a peer's announced receive whose send has not.
pub(super) type Unexpected = matcher::Unexpected<Body>;

/// What has arrived of an unexpected message.
#[derive(Debug)]
pub(super) enum Body {
    /// A short message.
    Kept(Kept),
    /// The announcement of a message that the peer holds back.
    Announced,
    /// The announcement of a receive, with the STADD of its region in the peer's memory.
    ClearToSend(Stadd),
}

/// A short message in the endpoint's memory.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) bytes: Bytes,
    /// Whether the credit of the message's slot is withheld.
    pub(super) holds: bool,
}

/// The bytes of a kept message.
#[derive(Debug)]
pub(super) enum Bytes {
    /// The length, and the bytes in its first part.
    Tiny(u8, [u8; TINY_BYTES]),
    /// A buffer with the message's bytes.
    Eager(Vec<u8>),
}

impl Kept {
    /// Bytes of the matcher's record of a message.
    const RECORD_BYTES: usize = size_of::<Unexpected>();

    /// The payload of the message.
    pub(super) fn data(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Tiny(len, data) => &data[..usize::from(*len)],
            Bytes::Eager(buffer) => buffer,
        }
    }

    /// The lane by which the message arrived.
    pub(super) fn lane(&self) -> Lane {
        match self.bytes {
            Bytes::Tiny(..) => Lane::Descriptors,
            Bytes::Eager(_) => Lane::Eager,
        }
    }

    /// Bytes of memory that the message takes, with its record.
    pub(super) fn bytes(&self) -> usize {
        let buffer = match &self.bytes {
            Bytes::Tiny(..) => 0,
            Bytes::Eager(buffer) => buffer.capacity(),
        };
        Kept::RECORD_BYTES + buffer
    }

    /// Most bytes taken by messages of one peer that use all message credits of its channel.
    pub(super) fn window_bytes(window: Window) -> usize {
        let (tiny, eager) = (window.slots(Lane::Descriptors), window.slots(Lane::Eager));
        let tiny = (tiny - window.kept(Lane::Descriptors)) as usize;
        tiny * Kept::RECORD_BYTES + eager as usize * (Kept::RECORD_BYTES + EAGER_BYTES)
    }
}
