//! The memory that all ranks of a job map: queues, registration tables, gates.
//!
//! For ranks that are threads it is a private mapping, for ranks that are processes a shared one
//! of a file without a name. It is reserved generously and costs only the pages that are touched.
//! What lies in it refers to other parts of it by offset, since every process maps it elsewhere.
//!
//! This file must not know what is stored.

use crate::sync::{AtomicU64, Ordering};
use hopbine_meet::Mapping;
use std::fs::File;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Types that may lie in an arena.
///
/// # Safety
/// All-zero bytes are a valid value; there are no pointers or references inside; whatever is
/// written while shared lies in atomics, or in cells that a lock inside the value guards. No drop.
pub(crate) unsafe trait Shared: Sized {}

/// Where a value lies: bytes from the start of the arena.
pub(crate) struct Off<T>(u64, PhantomData<fn() -> T>);

impl<T> Clone for Off<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Off<T> {}

impl<T: Shared> Off<T> {
    pub(crate) fn new(bytes: u64) -> Self {
        Off(bytes, PhantomData)
    }

    pub(crate) fn bytes(self) -> u64 {
        self.0
    }

    /// The n-th of an array whose first this is.
    #[inline]
    pub(crate) fn nth(self, n: usize) -> Self {
        Off::new(self.0 + (n * size_of::<T>()) as u64)
    }
}

/// Where a value lies in this process: what [`Arena::at`] has found, to be followed without looking
/// again.
pub(crate) struct Found<T>(NonNull<T>);

impl<T> Clone for Found<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Found<T> {}

// SAFETY: it leads to a `Shared` value, which synchronises itself.
unsafe impl<T: Shared> Send for Found<T> {}
// SAFETY: as above.
unsafe impl<T: Shared> Sync for Found<T> {}

impl<T: Shared> Found<T> {
    /// The value.
    ///
    /// # Safety
    /// The arena that it was found in stays mapped for `'a`.
    #[inline]
    pub(crate) unsafe fn get<'a>(self) -> &'a T {
        // SAFETY: the caller's promise; the rest was checked when it was found.
        unsafe { self.0.as_ref() }
    }
}

impl<T> PartialEq for Found<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// One mapping of the arena. It hands out only shared references to [`Shared`] values, which synchronise
/// themselves.
pub(crate) struct Arena(Mapping);

impl Arena {
    /// An arena for the threads of this process.
    pub(crate) fn private(len: u64) -> std::io::Result<Arena> {
        Mapping::private(len as usize).map(Arena)
    }

    /// An arena in shared memory that has this length.
    pub(crate) fn shared(memory: &File, len: u64) -> std::io::Result<Arena> {
        Mapping::shared(memory, len as usize).map(Arena)
    }

    /// The value at `off`.
    #[inline]
    pub(crate) fn at<T: Shared>(&self, off: Off<T>) -> &T {
        let end = off.0 + size_of::<T>() as u64;
        assert!(
            end <= self.0.n_bytes() as u64 && off.0.is_multiple_of(align_of::<T>() as u64),
            "arena: offset {} is not a place for {} bytes",
            off.0,
            size_of::<T>()
        );
        // SAFETY: in range and aligned (just checked; the base is page-aligned); zeroed or written
        // memory is a valid T because T: Shared; the mapping lives as long as self.
        unsafe { &*self.0.base().as_ptr().add(off.0 as usize).cast::<T>() }
    }
}

impl<T> From<&T> for Found<T> {
    fn from(value: &T) -> Self {
        Found(value.into())
    }
}

/// The rest of the arena, given out once and for ever. Lies in the arena itself.
#[repr(C)]
pub(crate) struct Heap {
    /// Bytes given out so far, from the start of the arena.
    next: AtomicU64,
    end: AtomicU64,
}

impl Heap {
    /// Makes `from..to` the room to give out; more than once only with the same values, by ranks
    /// that have not seen each other yet.
    pub(crate) fn start(&self, from: u64, to: u64) {
        self.end.store(to, Ordering::Relaxed);
        // Only the first may set it: another rank may already have allocated.
        let _ = self.next.compare_exchange(0, from, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Room for a T, page-aligned if large; None if there is none left.
    pub(crate) fn create<T: Shared>(&self) -> Option<Off<T>> {
        let size = (size_of::<T>() as u64).next_multiple_of(64);
        // Relaxed: fresh memory is zero for everybody; the offset is published by its user.
        let off = self.next.fetch_add(size, Ordering::Relaxed);
        (off + size <= self.end.load(Ordering::Relaxed)).then(|| Off::new(off))
    }
}
