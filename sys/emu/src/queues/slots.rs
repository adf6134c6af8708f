//! VCQ handles of this process.
//!
//! A handle consists of a slot number and a count of the slot's uses, so that a freed handle is detected instead of
//! leading to freed memory. Looking up a handle takes two loads and no lock.

use crate::limits::error::{Result, fail};
use crate::queues::vcq::Vcq;
use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use utofu_sys::*;

/// Largest number of VCQs in one process at one time.
const SLOTS: usize = 1 << 16;

/// Aligned to keep slots of different threads in different cache lines.
#[repr(align(128))]
struct Slot {
    /// The currently valid handle; 0 if there is none.
    handle: AtomicUsize,
    vcq: UnsafeCell<Option<Vcq>>,
}

// SAFETY: `vcq` is written only while `handle` is 0, that is before the handle is returned and after it is freed; Vcq
// itself is Sync.
unsafe impl Sync for Slot {}

/// Slots are allocated when first needed and never freed.
static TABLE: [AtomicPtr<Slot>; SLOTS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];

struct FreeList {
    /// Slot numbers that were used before, each with the count of its uses.
    reusable: Vec<(usize, usize)>,
    /// The first slot that was never used.
    next: usize,
}

static FREE: Mutex<FreeList> = Mutex::new(FreeList { reusable: Vec::new(), next: 0 });

fn free_list() -> std::sync::MutexGuard<'static, FreeList> {
    FREE.lock().unwrap_or_else(|e| e.into_inner())
}

/// Stores a VCQ and returns its handle. If no slot is left, frees the VCQ and returns OUT_OF_RESOURCE.
pub(crate) fn insert(vcq: Vcq) -> Result<utofu_vcq_hdl_t> {
    let mut free = free_list();
    let (n, uses) = match free.reusable.pop() {
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
    // SAFETY: the slot's handle is 0 and the free list has given the slot to this call alone.
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

/// Returns the VCQ of a handle.
///
/// # Safety
/// As the C interface demands: no thread frees the VCQ while another uses it.
#[inline]
pub(crate) unsafe fn get<'a>(handle: utofu_vcq_hdl_t) -> Result<&'a Vcq> {
    let slot = slot(handle)?;
    // SAFETY: the handle is valid, so the cell was filled before and is not written until the handle is freed, which
    // the caller excludes while the reference lives.
    match unsafe { &*slot.vcq.get() } {
        Some(vcq) => Ok(vcq),
        None => fail(UTOFU_ERR_INVALID_VCQ_HDL, "the VCQ is being freed"),
    }
}

/// Invalidates a handle and returns its VCQ.
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
    free.reusable.push((handle & (SLOTS - 1), handle >> 16));
    match vcq {
        Some(vcq) => Ok(vcq),
        None => fail(UTOFU_ERR_INVALID_VCQ_HDL, "the VCQ is being freed"),
    }
}
