//! Atomic read-modify-write operations on registered memory.
//!
//! Where all ranks share one address space and the target is aligned, the processor's own atomic
//! instructions are used, so the operations are atomic towards the ranks' code as well. Between
//! processes there is no such instruction: operations exclude each other by a lock of the rank
//! that owns the memory, and are atomic towards each other only. Misaligned targets, which the
//! device accepts, take that way too.

use crate::shared::copy::{self, CopyError, Space};
use crate::shared::lock::SpinLock;
use crate::shared::watched::Sequence;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use utofu_sys::*;

/// What is done to the old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    Swap(u64),
    Add(u64),
    Xor(u64),
    And(u64),
    Or(u64),
    /// Store `new` if the value is `old`.
    Compare {
        old: u64,
        new: u64,
    },
}

impl Update {
    /// The operator by its uTofu number.
    pub(crate) fn of(op: utofu_armw_op, value: u64) -> Option<Update> {
        Some(match op {
            UTOFU_ARMW_OP_SWAP => Update::Swap(value),
            UTOFU_ARMW_OP_ADD => Update::Add(value),
            UTOFU_ARMW_OP_XOR => Update::Xor(value),
            UTOFU_ARMW_OP_AND => Update::And(value),
            UTOFU_ARMW_OP_OR => Update::Or(value),
            _ => return None,
        })
    }

    /// The new value; of a 4-byte operation the low half counts.
    fn apply(self, v: u64) -> u64 {
        match self {
            Update::Swap(x) => x,
            Update::Add(x) => v.wrapping_add(x),
            Update::Xor(x) => v ^ x,
            Update::And(x) => v & x,
            Update::Or(x) => v | x,
            Update::Compare { old, new } if v == old => new,
            Update::Compare { .. } => v,
        }
    }
}

/// Does `update` on the `width` (4 or 8) bytes at `addr` in `space`; the value before comes back,
/// zero-extended. `alone` says that all ranks of the job are threads of this process.
///
/// # Safety
/// If `space` is here, the bytes are mapped writable.
pub(crate) unsafe fn run(
    space: Space,
    alone: bool,
    lock: &SpinLock,
    addr: u64,
    width: usize,
    update: Update,
) -> Result<u64, CopyError> {
    if alone && addr.is_multiple_of(width as u64) {
        // AcqRel: like the processor's own use of such a word as a lock or counter.
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        return Ok(if width == 4 {
            // SAFETY: mapped by the caller's promise, aligned as just checked.
            let word = unsafe { &*(addr as *const AtomicU32) };
            let old = word.fetch_update(set, fetch, |v| Some(update.apply(v.into()) as u32));
            u64::from(old.unwrap_or_else(|v| v))
        } else {
            // SAFETY: as above.
            let word = unsafe { &*(addr as *const AtomicU64) };
            word.fetch_update(set, fetch, |v| Some(update.apply(v))).unwrap_or_else(|v| v)
        });
    }
    let _guard = lock.lock();
    let mut bytes = [0u8; 8];
    // SAFETY: `bytes` has room for 8; the far side is the caller's promise.
    unsafe { copy::read(space, addr, bytes.as_mut_ptr() as u64, width)? };
    let old = u64::from_le_bytes(bytes);
    let new = update.apply(old).to_le_bytes();
    // A swap that does not happen writes nothing: the rank's own code may have written meanwhile.
    if new[..width] != bytes[..width] {
        // SAFETY: as above.
        unsafe { copy::write(space, new.as_ptr() as u64, addr, width, Sequence::HeadLast)? };
    }
    Ok(old)
}
