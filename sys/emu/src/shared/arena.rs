//! The memory that all ranks of a job map: queues, registration tables, gates.
//!
//! For ranks that are threads the arena is a private mapping, for ranks that are processes a shared mapping of an
//! unnamed file. The address range is reserved generously and costs only the pages that are touched. Values in the
//! arena refer to each other by offset, since every process maps the arena at another address.
//!
//! This file must not depend on what is stored.

use crate::sync::{AtomicU64, Ordering};
use hopbine_meet::Mapping;
use std::fs::File;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Types that may be stored in an arena.
///
/// # Safety
/// All-zero bytes are a valid value; the value contains no pointers or references; everything written while the value
/// is shared is in atomics, or in cells that a lock inside the value guards. The type has no drop.
pub(crate) unsafe trait Shared: Sized {}

/// Offset of a value, in bytes from the start of the arena.
pub(crate) struct Offset<T>(u64, PhantomData<fn() -> T>);

impl<T> Clone for Offset<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Offset<T> {}

impl<T: Shared> Offset<T> {
    pub(crate) fn new(bytes: u64) -> Self {
        Offset(bytes, PhantomData)
    }

    pub(crate) fn bytes(self) -> u64 {
        self.0
    }

    /// Returns the offset of the n-th element of an array whose first element is at this offset.
    #[inline]
    pub(crate) fn nth(self, n: usize) -> Self {
        Offset::new(self.0 + (n * size_of::<T>()) as u64)
    }
}

/// Address of a value in this process: a result of [`Arena::at`], to be used without another look-up.
pub(crate) struct ArenaRef<T>(NonNull<T>);

impl<T> Clone for ArenaRef<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for ArenaRef<T> {}

// SAFETY: it points to a `Shared` value, which synchronises itself.
unsafe impl<T: Shared> Send for ArenaRef<T> {}
// SAFETY: as above.
unsafe impl<T: Shared> Sync for ArenaRef<T> {}

impl<T: Shared> ArenaRef<T> {
    /// Returns the value.
    ///
    /// # Safety
    /// The arena of the value stays mapped for `'a`.
    #[inline]
    pub(crate) unsafe fn get<'a>(self) -> &'a T {
        // SAFETY: the caller's promise; [`Arena::at`] has checked range and alignment.
        unsafe { self.0.as_ref() }
    }
}

impl<T> PartialEq for ArenaRef<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// A mapping of the arena. It returns only shared references to [`Shared`] values, which synchronise themselves.
pub(crate) struct Arena(Mapping);

impl Arena {
    /// Creates an arena for the threads of this process.
    pub(crate) fn private(len: u64) -> std::io::Result<Arena> {
        Mapping::private(len as usize).map(Arena)
    }

    /// Maps an arena in shared memory of this length.
    pub(crate) fn shared(memory: &File, len: u64) -> std::io::Result<Arena> {
        Mapping::shared(memory, len as usize).map(Arena)
    }

    /// Returns the value at `off`.
    #[inline]
    pub(crate) fn at<T: Shared>(&self, off: Offset<T>) -> &T {
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

impl<T> From<&T> for ArenaRef<T> {
    fn from(value: &T) -> Self {
        ArenaRef(value.into())
    }
}

/// The unstructured rest of the arena: room is allocated from it and never freed. The heap is itself a value in the
/// arena.
#[repr(C)]
pub(crate) struct Heap {
    /// Bytes allocated so far, as an offset from the start of the arena.
    next: AtomicU64,
    end: AtomicU64,
}

impl Heap {
    /// Sets the heap's room to `from..to`. Every rank may call this, with the same values, before it has contacted
    /// the others.
    pub(crate) fn init(&self, from: u64, to: u64) {
        self.end.store(to, Ordering::Relaxed);
        // Only the first call may set `next`: another rank may already have allocated.
        let _ = self.next.compare_exchange(0, from, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Returns room for a T at a multiple of 64 bytes; `None` if none is left.
    pub(crate) fn create<T: Shared>(&self) -> Option<Offset<T>> {
        let size = (size_of::<T>() as u64).next_multiple_of(64);
        // Relaxed: fresh memory is zero for all ranks; the user of the offset publishes it.
        let off = self.next.fetch_add(size, Ordering::Relaxed);
        (off + size <= self.end.load(Ordering::Relaxed)).then(|| Offset::new(off))
    }
}
