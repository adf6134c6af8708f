//! Staging buffers: memory of the library, registered once and used again and again.
//!
//! Buffers are whole pages, in classes of a power of two pages. They are zero when
//! first made and hold what their last user left when they come again. The pool
//! owns the memory, so its registrations are kept without any memory events. Knows
//! nothing of what is staged.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::error::Error;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

use super::cache::RegistrationCache;
use super::lease::HeldLease;
use super::registrar::{CacheError, Registrar};

/// Why there is no staging buffer.
#[derive(Debug, Error)]
pub enum StagingError<E: Error + 'static> {
    /// No memory of this size.
    #[error("{len} bytes of staging memory cannot be allocated")]
    Memory {
        /// Bytes asked for.
        len: usize,
    },
    /// Memory, but no registration.
    #[error(transparent)]
    Register(#[from] CacheError<E>),
}

/// Page-aligned memory that is ours.
struct Pages {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory is owned and reached through this value only.
unsafe impl Send for Pages {}
// SAFETY: a shared reference gives no access to the memory beyond its address.
unsafe impl Sync for Pages {}

impl Pages {
    fn zeroed(len: usize, page: usize) -> Option<Self> {
        let layout = Layout::from_size_align(len, page).ok()?;
        debug_assert!(layout.size() > 0, "callers ask for a page at least");
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { start, layout })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `zeroed`, and freed only here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// A registered buffer. Its order of fields is the order of its end: the
/// registration goes before the memory.
struct Registered<R: Registrar> {
    lease: HeldLease<R>,
    _forget: Forget<R>,
    pages: Pages,
}

/// Ends the kept registration of a range when dropped.
struct Forget<R: Registrar> {
    cache: Arc<RegistrationCache<R>>,
    addr: usize,
    len: usize,
}

impl<R: Registrar> Drop for Forget<R> {
    fn drop(&mut self) {
        self.cache.invalidate(self.addr, self.len);
    }
}

struct Shelves<R: Registrar> {
    cache: Arc<RegistrationCache<R>>,
    page: usize,
    /// Idle buffers of 2^n pages at index n. The lock guards moves of values; it may
    /// allocate, as no event ever waits for it.
    idle: Mutex<Vec<Vec<Registered<R>>>>,
}

/// Lends registered buffers and takes them back when they are dropped. Memory is
/// freed when the pool and its last buffer are gone.
pub struct StagingPool<R: Registrar> {
    shelves: Arc<Shelves<R>>,
}

impl<R: Registrar> StagingPool<R> {
    /// An empty pool whose buffers are registered with `cache`.
    pub fn new(cache: Arc<RegistrationCache<R>>) -> Self {
        Self {
            shelves: Arc::new(Shelves {
                cache,
                page: super::page_bytes(),
                idle: Mutex::new(Vec::new()),
            }),
        }
    }

    /// A buffer of at least `len` bytes: one that is idle, or a new one.
    ///
    /// # Errors
    /// [`StagingError`] when there is no memory or no registration.
    pub fn take(&self, len: usize) -> Result<StagingBuffer<R>, StagingError<R::Error>> {
        let shelves = &self.shelves;
        let too_much = StagingError::Memory { len };
        let pages = len.div_ceil(shelves.page).max(1);
        let Some(pages) = pages.checked_next_power_of_two() else {
            return Err(too_much);
        };
        let class = pages.trailing_zeros() as usize;
        let idle = shelves
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(class)
            .and_then(Vec::pop);
        let buffer = match idle {
            Some(buffer) => buffer,
            None => {
                let bytes = pages.checked_mul(shelves.page);
                let pages = bytes.and_then(|bytes| Pages::zeroed(bytes, shelves.page));
                shelves.register(pages.ok_or(too_much)?)?
            }
        };
        Ok(StagingBuffer { buffer: Some(buffer), class, shelves: Arc::clone(shelves) })
    }
}

impl<R: Registrar> Shelves<R> {
    fn register(&self, pages: Pages) -> Result<Registered<R>, StagingError<R::Error>> {
        let (addr, len) = (pages.start.as_ptr() as usize, pages.layout.size());
        let lease = self.cache.hold_owned(addr, len)?;
        let cache = Arc::clone(&self.cache);
        Ok(Registered { lease, _forget: Forget { cache, addr, len }, pages })
    }
}

/// A page-aligned, registered buffer, on loan from its pool.
pub struct StagingBuffer<R: Registrar> {
    /// `None` only while it is being dropped.
    buffer: Option<Registered<R>>,
    class: usize,
    shelves: Arc<Shelves<R>>,
}

impl<R: Registrar> StagingBuffer<R> {
    /// The registration of its start: for uTofu the STADD.
    pub fn handle(&self) -> &R::Handle {
        &self.registered().lease
    }

    /// Distance of its start from the start of the registered range, in bytes.
    pub fn offset(&self) -> u64 {
        self.registered().lease.offset()
    }

    fn registered(&self) -> &Registered<R> {
        self.buffer.as_ref().expect("there until dropped")
    }
}

impl<R: Registrar> Deref for StagingBuffer<R> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let pages = &self.registered().pages;
        // SAFETY: the pages are initialised (zeroed at first), live as long as the
        // loan, and are written only through `&mut self` or by an interface whose
        // user keeps to that.
        unsafe { std::slice::from_raw_parts(pages.start.as_ptr(), pages.layout.size()) }
    }
}

impl<R: Registrar> DerefMut for StagingBuffer<R> {
    fn deref_mut(&mut self) -> &mut [u8] {
        let pages = &self.registered().pages;
        // SAFETY: as above, and `&mut self` excludes other users.
        unsafe { std::slice::from_raw_parts_mut(pages.start.as_ptr(), pages.layout.size()) }
    }
}

impl<R: Registrar> Drop for StagingBuffer<R> {
    fn drop(&mut self) {
        let Some(buffer) = self.buffer.take() else {
            return;
        };
        let mut idle = self.shelves.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() <= self.class {
            idle.resize_with(self.class + 1, Vec::new);
        }
        idle[self.class].push(buffer);
    }
}
