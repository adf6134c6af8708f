//! Streams: MPI tags for long messages that both sides compute beforehand. A message on a stream needs no header, and
//! its receive is posted before it arrives.
//!
//! A sender opens a stream to a peer for each communicator on which it sends long messages there, and announces the
//! stream once. If all streams are open, it closes one that has been idle for long: it sends nothing more on that
//! stream, and tells the peer how many messages it has sent. When the receiver has got all of these, it cancels the
//! receives that are still open on the stream, and answers. Only then another communicator may use the stream, so no
//! message meets a receive of the previous communicator. While a stream is open the tag follows from the message:
//!
//! | bits | |
//! | --- | --- |
//! | the highest | 1, which distinguishes these tags from those of messages with a header |
//! | 4 | the stream |
//! | 6 | the operation's number, modulo [`Tag::WINDOW`] |
//! | 5 | the message's number |
//! | as many as MPI leaves, 8 to 16 | a hash of call and length, so that messages that differ do not meet |
//!
//! Two messages in flight between two ranks have the same tag only if their operations' numbers are equal modulo the
//! window. Such messages are sent, and their receives posted, one operation after the other (the contract of
//! [`endpoint`](crate::endpoint)), and MPI keeps that order.
//!
//! The hash includes the length because a message longer than its receive is unsafe in MPI: Open MPI 4.1.4 writes all
//! of a long one, also by TCP, and reports the error afterwards. With Open MPI's 31 bits for a tag the hash misses
//! one difference in 2^15.

use super::long_message::MOST_BYTES;
use crate::endpoint::Tag;
use crate::endpoint::validation::{InvalidField, check_range};

const STREAM_BITS: u32 = 4;
const OPERATION_BITS: u32 = Tag::WINDOW.ilog2();
const MESSAGE_BITS: u32 = 5;
/// Least and most bits of the hash.
const HASH_BITS: (u32, u32) = (8, 16);

/// The division of MPI's tags.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tags {
    /// Bits of the hash; 0 if there are no streams.
    hash_bits: u32,
    last: i32,
}

impl Tags {
    /// Divides the tags up to `last`, the last that MPI allows. With few tags there are no streams.
    pub(super) fn up_to(last: i32) -> Self {
        let bits = (i64::from(last) + 1).ilog2();
        let (least, most) = HASH_BITS;
        let left = bits.saturating_sub(1 + STREAM_BITS + OPERATION_BITS + MESSAGE_BITS);
        Tags { hash_bits: if left < least { 0 } else { left.min(most) }, last }
    }

    /// The first tag of streams.
    fn first(self) -> i32 {
        1 << (STREAM_BITS + OPERATION_BITS + MESSAGE_BITS + self.hash_bits)
    }

    /// The last tag.
    pub(super) fn last(self) -> i32 {
        self.last
    }

    /// The last tag for messages with a header.
    pub(super) fn last_numbered(self) -> i32 {
        if self.hash_bits == 0 { self.last } else { self.first() - 1 }
    }

    /// The stream that a tag belongs to.
    pub(super) fn stream_of(self, mpi_tag: i32) -> u32 {
        mpi_tag as u32 >> (self.hash_bits + MESSAGE_BITS + OPERATION_BITS)
            & ((1 << STREAM_BITS) - 1)
    }

    /// The tag of a message on a stream.
    pub(super) fn of(self, stream: u32, tag: Tag, len: usize) -> i32 {
        let operation = tag.operation % Tag::WINDOW;
        let message = (stream << OPERATION_BITS | operation) << MESSAGE_BITS | tag.message;
        let hash =
            (mixed(len as u64 ^ u64::from(tag.call) << 48) >> (u64::BITS - self.hash_bits)) as u32;
        self.first() | (message << self.hash_bits | hash) as i32
    }
}

/// A hash of `word`. Every bit depends on all of `word`; the upper bits are the best mixed.
fn mixed(word: u64) -> u64 {
    let word = (word ^ word >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word ^ word >> 29).wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
}

/// Whether tag and length allow a stream; both sides get the same result. Excluded are messages from number 32 on in
/// their operation, operations that keep no order ([`Tag::LATE`]), and messages of several pieces.
#[inline]
pub(super) fn can_carry(tag: Tag, len: usize) -> bool {
    tag.message < 1 << MESSAGE_BITS && len <= MOST_BYTES
}

/// The context of a stream that is not open; not a communicator's context.
const NO_CONTEXT: u64 = u64::MAX;
/// Long messages on other streams to the same peer after which an unused stream may be closed. More than all streams
/// carry in turn, so communicators that are in use do not keep taking streams from each other.
const IDLE_MESSAGES: u64 = 64;

/// Not a stream's number; a header cannot name it.
const NO_STREAM: u64 = u64::MAX;

fn only_stream(field: &'static str, stream: u32, valid: u64) -> Result<(), InvalidField> {
    check_range(field, stream.into(), (valid, valid)).map(|_| ())
}

/// The streams from one rank to another, as known to one of the two.
#[derive(Debug)]
pub(super) struct Streams {
    /// For each stream, the context of its communicator.
    contexts: Vec<u64>,
    uses: Vec<Use>,
    /// Long messages so far; used by the sender.
    clock: u64,
    /// The stream that is being closed, and the number of messages sent on it since it was opened.
    closing: Option<(u32, u64)>,
    /// The least length of messages on streams; `usize::MAX` before the first stream opens.
    least_bytes: usize,
}

/// The use of a stream since it was opened.
#[derive(Clone, Copy, Debug)]
struct Use {
    n_messages: u64,
    /// The sender's clock at the latest message.
    last: u64,
}

impl Default for Streams {
    fn default() -> Self {
        let (contexts, uses) = Default::default();
        Streams { contexts, uses, clock: 0, closing: None, least_bytes: usize::MAX }
    }
}

impl Streams {
    /// The open stream that carries a message, if any.
    #[inline]
    pub(super) fn carrying(&self, tag: Tag, len: usize) -> Option<u32> {
        if len < self.least_bytes || !can_carry(tag, len) {
            return None;
        }
        self.contexts.iter().position(|&context| context == tag.context).map(|stream| stream as u32)
    }

    /// Counts a message on a stream: the sender before it sends the message, the receiver when it has arrived.
    #[inline]
    pub(super) fn count(&mut self, stream: u32) {
        self.clock += 1;
        if let Some(of) = self.uses.get_mut(stream as usize) {
            *of = Use { n_messages: of.n_messages + 1, last: self.clock };
        }
    }

    /// Counts a long message that goes without a stream.
    pub(super) fn count_other(&mut self) {
        self.clock += 1;
    }

    /// Whether this stream can be opened.
    fn can_open(&self, stream: u32, tags: Tags) -> bool {
        let is_closing = self.closing.is_some_and(|(closing, _)| closing == stream);
        let is_free = match self.contexts.get(stream as usize) {
            Some(&context) => context == NO_CONTEXT && !is_closing,
            None => stream as usize == self.contexts.len(),
        };
        tags.hash_bits > 0 && stream < 1 << STREAM_BITS && is_free
    }

    /// The first stream that can be opened.
    pub(super) fn free(&self, tags: Tags) -> Option<u32> {
        (0..=self.contexts.len() as u32).find(|&stream| self.can_open(stream, tags))
    }

    /// Opens a stream for a communicator. The first stream that is opened sets the least length of messages on streams.
    pub(super) fn open(&mut self, stream: u32, context: u64, least_bytes: usize) {
        if self.contexts.is_empty() {
            self.least_bytes = least_bytes;
        }
        if stream as usize == self.contexts.len() {
            self.contexts.push(NO_CONTEXT);
            self.uses.push(Use { n_messages: 0, last: 0 });
        }
        self.contexts[stream as usize] = context;
        self.uses[stream as usize] = Use { n_messages: 0, last: self.clock };
    }

    /// On the sender: starts to close the stream that has been idle for longest, if for long enough. Returns the stream
    /// and the number of messages sent on it; it carries no more.
    pub(super) fn close_idle(&mut self) -> Option<(u32, u64)> {
        let streams = 0..self.contexts.len() as u32;
        let stream = streams.min_by_key(|&stream| self.uses[stream as usize].last)?;
        let Use { n_messages, last } = self.uses[stream as usize];
        if self.closing.is_some() || self.clock - last < IDLE_MESSAGES {
            return None;
        }
        self.contexts[stream as usize] = NO_CONTEXT;
        self.closing = Some((stream, n_messages));
        self.closing
    }

    /// On the sender: the receiver has closed a stream.
    ///
    /// # Errors
    /// If the sender is not closing that stream.
    pub(super) fn closed(&mut self, stream: u32) -> Result<(), InvalidField> {
        let closing = self.closing.map_or(NO_STREAM, |(closing, _)| closing.into());
        only_stream("the number of a stream that was being closed", stream, closing)?;
        self.closing = None;
        Ok(())
    }

    /// On the receiver: the sender has opened a stream.
    ///
    /// # Errors
    /// If the stream is open already.
    pub(super) fn opened(
        &mut self,
        stream: u32,
        context: u64,
        least_bytes: usize,
        tags: Tags,
    ) -> Result<(), InvalidField> {
        let openable = if self.can_open(stream, tags) { stream.into() } else { NO_STREAM };
        only_stream("the number of a stream that was not open", stream, openable)?;
        self.open(stream, context, least_bytes);
        Ok(())
    }

    /// On the receiver: the sender closes a stream on which it has sent `n_messages`.
    ///
    /// # Errors
    /// If the stream is not open, another one is being closed, or more messages have arrived.
    pub(super) fn close(&mut self, stream: u32, n_messages: u64) -> Result<(), InvalidField> {
        let is_open = self.contexts.get(stream as usize).is_some_and(|&of| of != NO_CONTEXT);
        let closable = if is_open && self.closing.is_none() { stream.into() } else { NO_STREAM };
        only_stream("the number of a stream that was open", stream, closable)?;
        let n_come = self.uses[stream as usize].n_messages;
        check_range(
            "the number of messages that a stream has carried",
            n_messages,
            (n_come, u64::MAX),
        )?;
        self.closing = Some((stream, n_messages));
        Ok(())
    }

    /// On the receiver: completes the close once all messages of the stream have arrived. Returns stream and context.
    pub(super) fn take_closed(&mut self) -> Option<(u32, u64)> {
        let uses = &self.uses;
        let (stream, _) =
            self.closing.take_if(|(stream, n)| uses[*stream as usize].n_messages == *n)?;
        let context = std::mem::replace(&mut self.contexts[stream as usize], NO_CONTEXT);
        Some((stream, context))
    }

    /// The least length of messages on streams, once a stream has been opened.
    pub(super) fn least_bytes(&self) -> Option<usize> {
        (!self.contexts.is_empty()).then_some(self.least_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const TAG: Tag = Tag { context: 5, operation: 0, message: 0, call: 0x1234 };

    #[test]
    fn tags_of_streams_are_unique_within_the_window_and_what_mpi_allows() {
        for last in [i32::MAX, (1 << 28) - 1, 1 << 25, (1 << 24) - 1] {
            let tags = Tags::up_to(last);
            assert!(tags.hash_bits > 0 && tags.last_numbered() >= 32_767, "{last}");
            let mut seen = HashSet::new();
            for stream in 0..1 << STREAM_BITS {
                for operation in (0..Tag::WINDOW).map(|at| Tag::OPERATIONS - 1 - at) {
                    for message in [0, 1, (1 << MESSAGE_BITS) - 1] {
                        let tag = tags.of(stream, Tag { operation, message, ..TAG }, 1 << 20);
                        assert!(
                            (tags.last_numbered() + 1..=last).contains(&tag),
                            "{tag} of {last}"
                        );
                        assert!(seen.insert(tag), "{stream} {operation} {message}");
                        assert_eq!(tags.stream_of(tag), stream);
                    }
                }
            }
        }
    }

    #[test]
    fn where_tags_are_few_there_are_no_streams() {
        for last in [32_767, (1 << 24) - 2] {
            let tags = Tags::up_to(last);
            assert_eq!(Streams::default().free(tags), None);
            assert_eq!(tags.last_numbered(), last);
        }
    }

    #[test]
    fn what_differs_does_not_meet() {
        for last in [i32::MAX, (1 << 28) - 1] {
            let tags = Tags::up_to(last);
            let of = |call, len| tags.of(3, Tag { call, ..TAG }, len);
            for call in [0x1235, 0x1334, Tag::other_call(TAG.call)] {
                assert_ne!(of(call, 1 << 20), of(TAG.call, 1 << 20), "{call:x}");
            }
            let lens = (0..1000).map(|at| of(TAG.call, (1 << 20) + 8 * at));
            let powers = (12..30).map(|power| of(TAG.call, 1 << power));
            let mut seen: Vec<i32> = lens.chain(powers).collect();
            let n = seen.len();
            seen.sort_unstable();
            seen.dedup();
            // 1018 random numbers below 2^12 (MPICH's tags leave no more bits) would give some 900 different ones.
            assert!(seen.len() > n * 4 / 5, "{} of {n}", seen.len());
        }
    }

    #[test]
    fn streams_carry_long_messages_of_their_communicator() {
        let mut streams = Streams::default();
        assert_eq!(streams.carrying(TAG, MOST_BYTES), None);
        assert_eq!(streams.least_bytes(), None);
        streams.open(0, 7, 1000);
        streams.open(1, 5, 1000);
        assert_eq!(streams.carrying(TAG, 1000), Some(1));
        assert_eq!(streams.carrying(TAG, 999), None);
        assert_eq!(streams.carrying(TAG, MOST_BYTES + 1), None);
        for message in [1 << MESSAGE_BITS, Tag::LATE] {
            assert_eq!(streams.carrying(Tag { message, ..TAG }, 1000), None);
        }
        assert_eq!(streams.carrying(Tag { context: 6, ..TAG }, 1000), None);
    }
    /// All streams of a sender and its receiver, open for contexts 0 to 15.
    fn all_open(tags: Tags) -> (Streams, Streams) {
        let (mut to, mut from) = (Streams::default(), Streams::default());
        while let Some(stream) = to.free(tags) {
            to.open(stream, u64::from(stream), 1000);
            assert_eq!(from.opened(stream, u64::from(stream), 1000, tags), Ok(()));
        }
        assert_eq!(to.contexts.len(), 1 << STREAM_BITS);
        (to, from)
    }

    #[test]
    fn the_stream_that_was_used_longest_ago_is_closed_when_its_messages_have_come() {
        let tags = Tags::up_to(i32::MAX);
        let (mut to, mut from) = all_open(tags);
        let used = Tag { context: 3, ..TAG };
        to.count(3);
        to.count(3);
        // No stream is idle while all are in use.
        assert_eq!(to.close_idle(), None);
        (0..IDLE_MESSAGES).for_each(|at| to.count((at % 16) as u32));
        assert_eq!(to.close_idle(), None);
        for stream in (0..16).filter(|&stream| stream != 3) {
            (0..IDLE_MESSAGES).for_each(|_| to.count(stream));
        }
        let n_sent = 2 + IDLE_MESSAGES / 16;
        assert_eq!(to.close_idle(), Some((3, n_sent)));
        // It carries no more and cannot be opened before the receiver agrees; meanwhile no other stream is closed.
        assert_eq!(to.carrying(used, 1000), None);
        (0..IDLE_MESSAGES).for_each(|_| to.count_other());
        assert_eq!((to.free(tags), to.close_idle()), (None, None));
        assert!(to.closed(4).is_err());
        // The receiver waits for the messages in flight.
        assert_eq!(from.close(3, n_sent), Ok(()));
        (1..n_sent).for_each(|_| from.count(3));
        assert_eq!((from.take_closed(), from.carrying(used, 1000)), (None, Some(3)));
        assert!(!from.can_open(3, tags));
        from.count(3);
        assert_eq!(from.take_closed(), Some((3, 3)));
        assert_eq!((from.take_closed(), from.carrying(used, 1000)), (None, None));
        assert_eq!((to.closed(3), to.free(tags)), (Ok(()), Some(3)));
        to.open(3, 99, 1000);
        assert_eq!(from.opened(3, 99, 1000, tags), Ok(()));
        assert_eq!(to.carrying(Tag { context: 99, ..TAG }, 1000), Some(3));
        assert_eq!(to.free(tags), None);
    }

    #[test]
    fn streams_are_not_opened_or_closed_against_what_is_known_of_them() {
        let tags = Tags::up_to(i32::MAX);
        let (mut to, mut from) = all_open(tags);
        for stream in [0, 15, 16, u32::MAX] {
            assert!(
                from.opened(stream, 77, 1000, tags).is_err() && to.closed(stream).is_err(),
                "{stream}"
            );
        }
        from.count(3);
        from.count(3);
        for (stream, n_messages) in [(3, 1), (16, 0), (u32::MAX, 5)] {
            assert!(from.close(stream, n_messages).is_err(), "{stream}");
        }
        assert!(from.close(3, 2).is_ok() && from.close(4, 0).is_err());
        assert_eq!(from.take_closed(), Some((3, 3)));
        assert!(from.close(3, 2).is_err());
    }
}
