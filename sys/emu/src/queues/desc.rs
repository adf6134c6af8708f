//! An operation, and its form as a prepared descriptor of 32 or 64 bytes.

use crate::limits::error::{Result, fail};
use crate::limits::{MAX_LENGTH, MAX_PIGGYBACK};
use crate::queues::atomic_op::Update;
use std::ffi::c_ulong;
use utofu_sys::*;

/// Bytes of one TOQ entry.
pub(crate) const ENTRY: usize = 32;
/// One entry, at any address that the program chooses.
pub(crate) type Entry = [u8; ENTRY];
/// Kind and operands of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpAction {
    Nop,
    Put {
        lcl: u64,
        len: u32,
    },
    /// The descriptor carries the data; `entries` is 1 for piggyback8 and 2 for piggyback.
    Piggyback {
        data: [u64; 4],
        len: u32,
        entries: u8,
    },
    Get {
        lcl: u64,
        len: u32,
    },
    /// `width` is 4 or 8.
    Atomic {
        width: u8,
        update: Update,
    },
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    pub(crate) action: OpAction,
    /// Target VCQ.
    pub(crate) vcq: u64,
    /// Target STADD.
    pub(crate) rmt: u64,
    pub(crate) edata: u8,
    /// Low 16 bits of the flags: requested notices and other flags, some of which have no effect here.
    pub(crate) flags: u16,
    /// Session progress steps that the operation brings to the target, below 16.
    pub(crate) steps: u8,
}

/// First bit of the steps in a program's flags, and their mask.
const STEPS_AT: u32 = UTOFU_ONESIDED_FLAG_SPS(1).trailing_zeros();
const STEPS: u64 = UTOFU_ONESIDED_FLAG_SPS(15) >> STEPS_AT;

impl Op {
    /// Returns the steps in a program's flags.
    #[inline]
    pub(crate) fn steps_in(flags: c_ulong) -> u8 {
        (flags >> STEPS_AT & STEPS) as u8
    }

    /// Returns whether a flag is set.
    #[inline]
    pub(crate) fn has(&self, flag: c_ulong) -> bool {
        self.flags as c_ulong & flag != 0
    }

    /// Returns the number of TOQ entries that the operation takes.
    #[inline]
    pub(crate) fn entries(&self) -> usize {
        match self.action {
            OpAction::Piggyback { entries, .. } => entries.into(),
            OpAction::Atomic { width: 8, update: Update::Compare { .. } } => 2,
            _ => 1,
        }
    }

    /// Returns the descriptor: the first [`entries`](Op::entries) entries are used.
    #[inline]
    pub(crate) fn pack(&self) -> [Entry; 2] {
        let (kind, len, a, b) = match self.action {
            OpAction::Nop => (1, 0, 0, [0; 4]),
            OpAction::Put { lcl, len } => (2, len, lcl, [0; 4]),
            OpAction::Piggyback { data, len, entries: 1 } => (3, len, data[0], [0; 4]),
            OpAction::Piggyback { data, len, .. } => (4, len, 0, data),
            OpAction::Get { lcl, len } => (5, len, lcl, [0; 4]),
            OpAction::Atomic { width, update } => {
                let (op, a, b) = match update {
                    Update::Fetch { op, value } => (op, value, 0),
                    // Two 4-byte values fit into the first entry.
                    Update::Compare { old, new } if width == 4 => (0, old | new << 32, 0),
                    Update::Compare { old, new } => (0, old, new),
                };
                (if width == 4 { 6 } else { 7 }, op, a, [b, 0, 0, 0])
            }
        };
        let head = kind | u64::from(self.edata) << 8 | u64::from(self.flags) << 16;
        let head = head | u64::from(len) << 32 | u64::from(self.steps) << 56;
        [[head, self.vcq, self.rmt, a], b].map(bytes)
    }

    /// Decodes a descriptor at the start of `entries`; INVALID_DESC if there is none.
    #[inline]
    pub(crate) fn unpack(entries: &[Entry]) -> Result<Op> {
        let bad = |why| fail(UTOFU_ERR_INVALID_DESC, why);
        let [first, rest @ ..] = entries else {
            return bad("a descriptor has at least 32 bytes");
        };
        let [head, vcq, rmt, a] = words(first);
        let len = (head >> 32) as u32 & MAX_LENGTH as u32;
        let second = || match rest.first() {
            Some(second) => Ok(words(second)),
            None => fail(UTOFU_ERR_INVALID_DESC, "a descriptor of 64 bytes is cut short"),
        };
        let kind = head as u8;
        let action = match kind {
            1 => OpAction::Nop,
            2 => OpAction::Put { lcl: a, len },
            3 if len <= 8 => OpAction::Piggyback { data: [a, 0, 0, 0], len, entries: 1 },
            4 if len as usize <= MAX_PIGGYBACK => {
                OpAction::Piggyback { data: second()?, len, entries: 2 }
            }
            5 => OpAction::Get { lcl: a, len },
            6 if len == 0 => OpAction::Atomic {
                width: 4,
                update: Update::Compare { old: a & 0xffff_ffff, new: a >> 32 },
            },
            7 if len == 0 => {
                OpAction::Atomic { width: 8, update: Update::Compare { old: a, new: second()?[0] } }
            }
            6 | 7 => match Update::of(len, a) {
                Some(update) => OpAction::Atomic { width: if kind == 6 { 4 } else { 8 }, update },
                None => return bad("a descriptor names an unknown atomic operator"),
            },
            _ => return bad("this is not a descriptor that utofu_prepare_* wrote"),
        };
        let (edata, flags) = ((head >> 8) as u8, (head >> 16) as u16);
        Ok(Op { action, vcq, rmt, edata, flags, steps: (head >> 56 & STEPS) as u8 })
    }
}

fn bytes(words: [u64; ENTRY / 8]) -> Entry {
    let mut entry = [0; ENTRY];
    entry.as_chunks_mut().0.iter_mut().zip(words).for_each(|(to, word)| *to = word.to_ne_bytes());
    entry
}

fn words(entry: &Entry) -> [u64; ENTRY / 8] {
    let (words, _) = entry.as_chunks();
    std::array::from_fn(|i| u64::from_ne_bytes(words[i]))
}

#[cfg(test)]
#[path = "desc_tests.rs"]
mod tests;
