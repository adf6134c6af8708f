//! Unexpected messages and announcements, which are kept until the matching post.

use utofu::Stadd;

use crate::endpoint::matcher;

use super::channel::{ChannelRing, ChannelWindow, EAGER_BYTES, TINY_BYTES};

/// A message whose receive has not been posted, or a peer's announced receive whose send has not.
pub(super) type Unexpected = matcher::Unexpected<UtofuBody>;

/// What has arrived of an unexpected message.
#[derive(Debug)]
pub(super) enum UtofuBody {
    /// A short message.
    Buffered(Buffered),
    /// The announcement of a message that the peer holds back.
    Announced,
    /// The announcement of a receive, with the STADD of its region in the peer's memory.
    ClearToSend(Stadd),
}

/// A short message in the endpoint's memory.
#[derive(Debug)]
pub(super) struct Buffered {
    pub(super) bytes: Bytes,
    /// Whether the credit of the message's slot is withheld.
    pub(super) holds_credit: bool,
}

/// The bytes of a kept message.
#[derive(Debug)]
pub(super) enum Bytes {
    /// The length, and the bytes in its first part.
    Tiny(u8, [u8; TINY_BYTES]),
    /// A buffer with the message's bytes.
    Eager(Vec<u8>),
}

impl Buffered {
    /// Bytes of the matcher's record of a message.
    const RECORD_BYTES: usize = size_of::<Unexpected>();

    /// The payload of the message.
    pub(super) fn data(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Tiny(len, data) => &data[..usize::from(*len)],
            Bytes::Eager(buffer) => buffer,
        }
    }

    /// The ring by which the message arrived.
    pub(super) fn ring(&self) -> ChannelRing {
        match self.bytes {
            Bytes::Tiny(..) => ChannelRing::Descriptors,
            Bytes::Eager(_) => ChannelRing::Eager,
        }
    }

    /// Bytes of memory that the message takes, with its record.
    pub(super) fn bytes(&self) -> usize {
        let buffer = match &self.bytes {
            Bytes::Tiny(..) => 0,
            Bytes::Eager(buffer) => buffer.capacity(),
        };
        Buffered::RECORD_BYTES + buffer
    }

    /// Most bytes taken by messages of one peer that use all message credits of its channel.
    pub(super) fn window_bytes(window: ChannelWindow) -> usize {
        let (tiny, eager) =
            (window.slots(ChannelRing::Descriptors), window.slots(ChannelRing::Eager));
        let tiny = (tiny - window.reserved(ChannelRing::Descriptors)) as usize;
        tiny * Buffered::RECORD_BYTES + eager as usize * (Buffered::RECORD_BYTES + EAGER_BYTES)
    }
}
