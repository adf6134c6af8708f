//! Lanes: MPI's tags of long messages, where both sides know them before the message goes. Such a
//! message needs no header, and its receive is posted before it comes.
//!
//! A sender opens a lane to a peer for each communicator that it sends long messages there on, and says
//! so once. From then on the tag follows from the message:
//!
//! | bits | |
//! | --- | --- |
//! | the highest | 1, which sets these tags apart from those of messages with a header |
//! | 4 | the lane |
//! | 6 | the operation's number, modulo [`Tag::WINDOW`] |
//! | 5 | the message's number |
//! | as many as MPI leaves, 8 to 16 | a hash of call and length, so that what differs does not meet |
//!
//! No two messages that are under way between two ranks have one tag, but for those of operations whose
//! numbers are equal modulo the window: and these are sent, and their receives posted, one operation
//! after the other (the contract of [`endpoint`](crate::endpoint)). MPI keeps that order.
//!
//! The length is part of the hash because no MPI can be trusted with a message that is longer than its
//! receive: Open MPI 4.1.4 writes all of a long one, also by TCP, and says so afterwards. Where ranks
//! disagree about a length, one time in 2^15 with Open MPI's 31 bits for a tag, the hash does not tell.

use super::transfers::MOST_BYTES;
use crate::endpoint::Tag;

const LANE_BITS: u32 = 4;
const OPERATION_BITS: u32 = Tag::WINDOW.ilog2();
const MESSAGE_BITS: u32 = 5;
/// Bits of a hash, at least and at most.
const HASH_BITS: (u32, u32) = (8, 16);

/// Which tags there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tags {
    /// Bits of a hash; 0 if there are no lanes.
    hash_bits: u32,
    last: i32,
}

impl Tags {
    /// Those up to `last`, the last that MPI allows. With few there are no lanes.
    pub(super) fn up_to(last: i32) -> Self {
        let bits = (i64::from(last) + 1).ilog2();
        let (least, most) = HASH_BITS;
        let left = bits.saturating_sub(1 + LANE_BITS + OPERATION_BITS + MESSAGE_BITS);
        Tags { hash_bits: if left < least { 0 } else { left.min(most) }, last }
    }

    /// The first of those for lanes.
    fn first(self) -> i32 {
        1 << (LANE_BITS + OPERATION_BITS + MESSAGE_BITS + self.hash_bits)
    }

    /// The last of all.
    pub(super) fn last(self) -> i32 {
        self.last
    }

    /// The last of those for messages with a header.
    pub(super) fn last_numbered(self) -> i32 {
        if self.hash_bits == 0 { self.last } else { self.first() - 1 }
    }

    /// The tag of a message that may go by a lane.
    pub(super) fn of(self, lane: u32, tag: Tag, len: usize) -> i32 {
        let operation = tag.operation % Tag::WINDOW;
        let message = (lane << OPERATION_BITS | operation) << MESSAGE_BITS | tag.message;
        let hash =
            (mixed(len as u64 ^ u64::from(tag.call) << 48) >> (u64::BITS - self.hash_bits)) as u32;
        self.first() | (message << self.hash_bits | hash) as i32
    }
}

/// A number of which every bit depends on all of `word`, the higher the better.
fn mixed(word: u64) -> u64 {
    let word = (word ^ word >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word ^ word >> 29).wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
}

/// Whether a lane can carry a message, which both sides know: not one of many, nor one of an operation
/// that keeps no order ([`Tag::LATE`]), nor one in several pieces.
#[inline]
pub(super) fn can_carry(tag: Tag, len: usize) -> bool {
    tag.message < 1 << MESSAGE_BITS && len <= MOST_BYTES
}

/// The lanes from one rank to another.
#[derive(Debug)]
pub(super) struct Lanes {
    /// By lane, the context of its communicator.
    contexts: Vec<u64>,
    /// Messages at least as long go by a lane. As long as there is none, none does.
    least_bytes: usize,
}

impl Default for Lanes {
    fn default() -> Self {
        Lanes { contexts: Vec::new(), least_bytes: usize::MAX }
    }
}

impl Lanes {
    /// The lane that carries a message, if there is one.
    #[inline]
    pub(super) fn carrying(&self, tag: Tag, len: usize) -> Option<u32> {
        if len < self.least_bytes || !can_carry(tag, len) {
            return None;
        }
        self.contexts.iter().position(|&context| context == tag.context).map(|lane| lane as u32)
    }

    /// Whether another lane can be opened.
    pub(super) fn has_room(&self, tags: Tags) -> bool {
        tags.hash_bits > 0 && self.contexts.len() < 1 << LANE_BITS
    }

    /// Opens a lane for a communicator. The first one says how long messages must be that go by lanes.
    pub(super) fn open(&mut self, context: u64, least_bytes: usize) {
        if self.contexts.is_empty() {
            self.least_bytes = least_bytes;
        }
        self.contexts.push(context);
    }

    /// The number of the next lane.
    pub(super) fn next(&self) -> u32 {
        self.contexts.len() as u32
    }

    /// How long messages must be, once there is a lane.
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
    fn tags_of_lanes_are_unique_within_the_window_and_what_mpi_allows() {
        for last in [i32::MAX, (1 << 28) - 1, 1 << 25, (1 << 24) - 1] {
            let tags = Tags::up_to(last);
            assert!(tags.hash_bits > 0 && tags.last_numbered() >= 32_767, "{last}");
            let mut seen = HashSet::new();
            for lane in 0..1 << LANE_BITS {
                for operation in (0..Tag::WINDOW).map(|at| Tag::OPERATIONS - 1 - at) {
                    for message in [0, 1, (1 << MESSAGE_BITS) - 1] {
                        let tag = tags.of(lane, Tag { operation, message, ..TAG }, 1 << 20);
                        assert!(
                            (tags.last_numbered() + 1..=last).contains(&tag),
                            "{tag} of {last}"
                        );
                        assert!(seen.insert(tag), "{lane} {operation} {message}");
                    }
                }
            }
        }
    }

    #[test]
    fn where_tags_are_few_there_are_no_lanes() {
        for last in [32_767, (1 << 24) - 2] {
            let tags = Tags::up_to(last);
            assert!(!Lanes::default().has_room(tags));
            assert_eq!(tags.last_numbered(), last);
        }
    }

    #[test]
    fn what_differs_does_not_meet() {
        for last in [i32::MAX, (1 << 28) - 1] {
            let tags = Tags::up_to(last);
            let of = |call, len| tags.of(3, Tag { call, ..TAG }, len);
            for call in [0x1235, 0x1334, Tag::not(TAG.call)] {
                assert_ne!(of(call, 1 << 20), of(TAG.call, 1 << 20), "{call:x}");
            }
            let lens = (0..1000).map(|at| of(TAG.call, (1 << 20) + 8 * at));
            let powers = (12..30).map(|power| of(TAG.call, 1 << power));
            let mut seen: Vec<i32> = lens.chain(powers).collect();
            let n = seen.len();
            seen.sort_unstable();
            seen.dedup();
            // 1018 random numbers below 2^12, of which MPICH has no more, would be some 900.
            assert!(seen.len() > n * 4 / 5, "{} of {n}", seen.len());
        }
    }

    #[test]
    fn lanes_carry_long_messages_of_their_communicator() {
        let mut lanes = Lanes::default();
        assert_eq!(lanes.carrying(TAG, MOST_BYTES), None);
        assert_eq!(lanes.least_bytes(), None);
        lanes.open(7, 1000);
        lanes.open(5, 1000);
        assert_eq!(lanes.carrying(TAG, 1000), Some(1));
        assert_eq!(lanes.carrying(TAG, 999), None);
        assert_eq!(lanes.carrying(TAG, MOST_BYTES + 1), None);
        for message in [1 << MESSAGE_BITS, Tag::LATE] {
            assert_eq!(lanes.carrying(Tag { message, ..TAG }, 1000), None);
        }
        assert_eq!(lanes.carrying(Tag { context: 6, ..TAG }, 1000), None);
    }
}
