//! Atomic read-modify-write operations on registered memory.
//!
//! If all ranks share one address space and the target is aligned, the processor's atomic instructions are used, and
//! the operations are atomic towards the ranks' own code as well. Between processes there is no such instruction: a
//! lock of the rank that owns the memory serialises the operations, which are then atomic towards each other only.
//! Misaligned targets, which the device accepts, also use the lock.

use crate::shared::copy::{self, AddressSpace, CopyError};
use crate::shared::lock::SpinLock;
use crate::shared::watched::WriteOrder;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use utofu_sys::*;

/// Update of the old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// One of uTofu's operators, SWAP to OR, with a value.
    Fetch { op: utofu_armw_op, value: u64 },
    /// Store `new` if the value is `old`.
    Compare { old: u64, new: u64 },
}

impl Update {
    /// Returns the update for a uTofu operator number.
    pub(crate) fn of(op: utofu_armw_op, value: u64) -> Option<Update> {
        let is_known = (UTOFU_ARMW_OP_SWAP..=UTOFU_ARMW_OP_OR).contains(&op);
        is_known.then_some(Update::Fetch { op, value })
    }

    /// Returns the new value, of which a 4-byte operation uses the low half.
    fn apply(self, v: u64) -> u64 {
        match self {
            Update::Fetch { op: UTOFU_ARMW_OP_SWAP, value } => value,
            Update::Fetch { op: UTOFU_ARMW_OP_ADD, value } => v.wrapping_add(value),
            Update::Fetch { op: UTOFU_ARMW_OP_XOR, value } => v ^ value,
            Update::Fetch { op: UTOFU_ARMW_OP_AND, value } => v & value,
            Update::Fetch { value, .. } => v | value,
            Update::Compare { old, new } if v == old => new,
            Update::Compare { .. } => v,
        }
    }
}

/// Applies `update` to the `width` (4 or 8) bytes at `addr` in `space` and returns the old value, zero-extended.
/// `alone` means that all ranks of the job are threads of this process.
///
/// # Safety
/// If `space` is here, the bytes are mapped writable.
pub(crate) unsafe fn run(
    space: AddressSpace,
    alone: bool,
    lock: &SpinLock,
    addr: u64,
    width: usize,
    update: Update,
) -> Result<u64, CopyError> {
    if alone && addr.is_multiple_of(width as u64) {
        // AcqRel: as if the program used such a word as a lock or counter with processor atomics.
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
    // SAFETY: `bytes` has room for 8; the remote range is valid by the caller's promise.
    unsafe { copy::read(space, addr, bytes.as_mut_ptr() as u64, width)? };
    let old = u64::from_le_bytes(bytes);
    let new = update.apply(old).to_le_bytes();
    // An update that changes nothing does not write: the rank's own code may have written meanwhile.
    if new[..width] != bytes[..width] {
        // SAFETY: as above.
        unsafe { copy::write(space, new.as_ptr() as u64, addr, width, WriteOrder::HeadLast)? };
    }
    Ok(old)
}
