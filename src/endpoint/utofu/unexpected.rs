//! Messages that came before their receives, and are kept.

use crate::endpoint::Tag;

use super::channel::{EAGER_BYTES, Lane, TINY_BYTES, Window};

/// A message that has arrived before its receive was posted.
#[derive(Debug)]
pub(super) struct Unexpected {
    pub(super) tag: Tag,
    pub(super) body: Body,
    /// It holds the credit of its slot.
    pub(super) holds: bool,
}

/// The bytes of a message that is kept.
#[derive(Debug)]
pub(super) enum Body {
    /// Its length and its bytes.
    Tiny(u8, [u8; TINY_BYTES]),
    /// A buffer with its bytes.
    Eager(Vec<u8>),
}

impl Unexpected {
    /// Bytes of a record.
    const RECORD_BYTES: usize = size_of::<Unexpected>();

    /// The bytes of the message.
    pub(super) fn data(&self) -> &[u8] {
        match &self.body {
            Body::Tiny(len, data) => &data[..usize::from(*len)],
            Body::Eager(buffer) => buffer,
        }
    }

    /// The lane by which it came.
    pub(super) fn lane(&self) -> Lane {
        match self.body {
            Body::Tiny(..) => Lane::Descriptors,
            Body::Eager(_) => Lane::Eager,
        }
    }

    /// Bytes of memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        let buffer = match &self.body {
            Body::Tiny(..) => 0,
            Body::Eager(buffer) => buffer.capacity(),
        };
        Unexpected::RECORD_BYTES + buffer
    }

    /// Bytes that messages of a peer take at most that hold all credits of its channel.
    pub(super) fn window_bytes(window: Window) -> usize {
        let (tiny, eager) = (window.slots(Lane::Descriptors), window.slots(Lane::Eager));
        let tiny = (tiny - window.kept(Lane::Descriptors)) as usize;
        tiny * Unexpected::RECORD_BYTES + eager as usize * (Unexpected::RECORD_BYTES + EAGER_BYTES)
    }
}
