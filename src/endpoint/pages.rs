//! Memory that wires read and write: allocated at page boundaries and owned by nobody's
//! reference.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Registration works on whole pages; sharing one with other memory would register that too.
/// The largest page size in use on A64FX under Linux without huge pages.
const PAGE: usize = 65536;

/// Zeroed bytes in pages of their own, accessed through raw pointers only.
#[derive(Debug)]
pub(crate) struct Pages {
    ptr: NonNull<u8>,
    layout: Layout,
}

// SAFETY: plain memory; who may access it when is agreed on by its users.
unsafe impl Send for Pages {}
// SAFETY: as above: a shared reference gives out nothing but the address.
unsafe impl Sync for Pages {}

impl Pages {
    /// At least `len` bytes.
    ///
    /// # Panics
    /// If `len` exceeds the address space.
    pub(crate) fn new(len: u64) -> Self {
        let whole =
            usize::try_from(len.max(1)).ok().and_then(|len| len.checked_next_multiple_of(PAGE));
        let layout = whole.and_then(|len| Layout::from_size_align(len, PAGE).ok());
        let layout = layout.unwrap_or_else(|| panic!("{len} bytes exceed the address space"));
        // SAFETY: the layout's size is not 0.
        let ptr = unsafe { alloc_zeroed(layout) };
        let ptr = NonNull::new(ptr).unwrap_or_else(|| handle_alloc_error(layout));
        Pages { ptr, layout }
    }

    /// The first byte.
    pub(crate) fn ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.ptr.as_ptr(), self.layout) }
    }
}
