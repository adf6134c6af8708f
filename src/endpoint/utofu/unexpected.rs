//! What came before what it meets, and is kept.

use utofu::Stadd;

use crate::endpoint::matcher;

use super::channel::{EAGER_BYTES, Lane, TINY_BYTES, Window};

/// A message whose receive has not been posted, or a receive of a peer whose send has not.
pub(super) type Unexpected = matcher::Unexpected<Body>;

/// What has come of it.
#[derive(Debug)]
pub(super) enum Body {
    /// A short message.
    Kept(Kept),
    /// The announcement of a message, with which the peer waits.
    Announced,
    /// The announcement of a receive, at this place in the peer's memory.
    ClearToSend(Stadd),
}

/// A short message that is kept.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) bytes: Bytes,
    /// It holds the credit of its slot.
    pub(super) holds: bool,
}

/// The bytes of a message that is kept.
#[derive(Debug)]
pub(super) enum Bytes {
    /// Its length and its bytes.
    Tiny(u8, [u8; TINY_BYTES]),
    /// A buffer with its bytes.
    Eager(Vec<u8>),
}

impl Kept {
    /// Bytes of a record.
    const RECORD_BYTES: usize = size_of::<Unexpected>();

    /// The bytes of the message.
    pub(super) fn data(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Tiny(len, data) => &data[..usize::from(*len)],
            Bytes::Eager(buffer) => buffer,
        }
    }

    /// The lane by which it came.
    pub(super) fn lane(&self) -> Lane {
        match self.bytes {
            Bytes::Tiny(..) => Lane::Descriptors,
            Bytes::Eager(_) => Lane::Eager,
        }
    }

    /// Bytes of memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        let buffer = match &self.bytes {
            Bytes::Tiny(..) => 0,
            Bytes::Eager(buffer) => buffer.capacity(),
        };
        Kept::RECORD_BYTES + buffer
    }

    /// Bytes that messages of a peer take at most that hold all credits of its channel.
    pub(super) fn window_bytes(window: Window) -> usize {
        let (tiny, eager) = (window.slots(Lane::Descriptors), window.slots(Lane::Eager));
        let tiny = (tiny - window.kept(Lane::Descriptors)) as usize;
        tiny * Kept::RECORD_BYTES + eager as usize * (Kept::RECORD_BYTES + EAGER_BYTES)
    }
}
