//! VCQ handles of this process.
//!
//! A handle is a slot number and a count of the slot's uses, so that a freed handle is recognised
//! instead of leading into freed memory. Looking a handle up takes two loads and no lock.

use crate::limits::error::{Result, fail};
use crate::queues::vcq::Vcq;
use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use utofu_sys::*;

/// VCQs that may exist at once in one process.
const SLOTS: usize = 1 << 16;

/// Apart from others, which other threads use.
#[repr(align(128))]
struct Slot {
    /// The handle that is valid now; 0: none.
    handle: AtomicUsize,
    vcq: UnsafeCell<Option<Vcq>>,
}

// SAFETY: `vcq` is written only while `handle` is 0, that is before the handle is given out and
// after it was taken back; Vcq itself is Sync.
unsafe impl Sync for Slot {}

/// Slots are made when first needed and never go away.
static TABLE: [AtomicPtr<Slot>; SLOTS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];

struct Free {
    /// Slot numbers that were used before, with the count of their uses.
    again: Vec<(usize, usize)>,
    /// The first slot that was never used.
    next: usize,
}

static FREE: Mutex<Free> = Mutex::new(Free { again: Vec::new(), next: 0 });

fn free_list() -> std::sync::MutexGuard<'static, Free> {
    FREE.lock().unwrap_or_else(|e| e.into_inner())
}

/// Stores a VCQ; its handle. OUT_OF_RESOURCE, and the VCQ is freed.
pub(crate) fn insert(vcq: Vcq) -> Result<utofu_vcq_hdl_t> {
    let mut free = free_list();
    let (n, uses) = match free.again.pop() {
        Some(known) => known,
        None if free.next < SLOTS => {
            let slot = Box::new(Slot { handle: AtomicUsize::new(0), vcq: UnsafeCell::new(None) });
            // Release pairs with the Acquire in get.
            TABLE[free.next].store(Box::into_raw(slot), Ordering::Release);
            free.next += 1;
            (free.next - 1, 0)
        }
        None => {
            vcq.free();
            return fail(UTOFU_ERR_OUT_OF_RESOURCE, format!("{SLOTS} VCQs exist in this process"));
        }
    };
    let handle = (uses + 1) << 16 | n;
    // SAFETY: slots are never freed.
    let slot = unsafe { &*TABLE[n].load(Ordering::Acquire) };
    // SAFETY: the slot's handle is 0 and the free list has given it to this call alone.
    unsafe { *slot.vcq.get() = Some(vcq) };
    // Release pairs with the Acquire in get: the VCQ is complete.
    slot.handle.store(handle, Ordering::Release);
    Ok(handle)
}

fn slot(handle: utofu_vcq_hdl_t) -> Result<&'static Slot> {
    let slot = TABLE[handle & (SLOTS - 1)].load(Ordering::Acquire);
    if !slot.is_null() {
        // SAFETY: slots are never freed.
        let slot = unsafe { &*slot };
        if slot.handle.load(Ordering::Acquire) == handle {
            return Ok(slot);
        }
    }
    fail(
        UTOFU_ERR_INVALID_VCQ_HDL,
        format!("{handle:#x} is not the handle of a VCQ of this process, or it was freed"),
    )
}

/// The VCQ of a handle.
///
/// # Safety
/// As the C interface demands: no thread frees the VCQ while another uses it.
#[inline]
pub(crate) unsafe fn get<'a>(handle: utofu_vcq_hdl_t) -> Result<&'a Vcq> {
    let slot = slot(handle)?;
    // SAFETY: the handle is valid, so the cell was filled before and is not written until the
    // handle is freed, which the caller excludes while the reference lives.
    match unsafe { &*slot.vcq.get() } {
        Some(vcq) => Ok(vcq),
        None => fail(UTOFU_ERR_INVALID_VCQ_HDL, "the VCQ is being freed"),
    }
}

/// Takes a VCQ back.
///
/// # Safety
/// As [`get`].
pub(crate) unsafe fn remove(handle: utofu_vcq_hdl_t) -> Result<Vcq> {
    let mut free = free_list();
    let slot = slot(handle)?;
    // Relaxed: the free list's lock orders this before the slot's next use.
    slot.handle.store(0, Ordering::Relaxed);
    // SAFETY: no other thread uses the VCQ (the caller's promise) or the slot (the lock).
    let vcq = unsafe { (*slot.vcq.get()).take() };
    free.again.push((handle & (SLOTS - 1), handle >> 16));
    match vcq {
        Some(vcq) => Ok(vcq),
        None => fail(UTOFU_ERR_INVALID_VCQ_HDL, "the VCQ is being freed"),
    }
}
