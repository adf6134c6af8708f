//! Memory of the library that wires read and write: whole pages from the operating system, to which no Rust reference
//! exists.

use hopbine_meet::Mapping;

use super::span::Span;
use crate::error::WireError;

/// Zeroed bytes in pages of their own, accessed through raw pointers only. Registration covers whole pages; if other
/// memory shared one of them, it would be registered too.
///
/// The pages come straight from `mmap`: a page takes no memory before it is touched (or pinned by a registration on
/// real hardware). An allocator's zeroed memory with the alignment of a page would be written, and so touched, at
/// once.
#[derive(Debug)]
pub(crate) struct Pages(Mapping);

impl Pages {
    /// At least `len` bytes, in whole pages. A child process does not inherit them: after a fork the registered pages
    /// would otherwise belong to the process that writes last.
    ///
    /// # Errors
    /// [`WireError`] if the operating system has no room for `len` bytes.
    pub(crate) fn new(len: u64) -> Result<Self, WireError> {
        let failed = |why: &dyn std::fmt::Display| {
            WireError::new("mmap", format!("no memory for {len} bytes of hopbine's buffers: {why}"))
        };
        let whole = usize::try_from(len.max(1))
            .ok()
            .and_then(|len| len.checked_next_multiple_of(super::page_bytes()));
        let len = whole.ok_or_else(|| failed(&"more than the address space"))?;
        let mapping = Mapping::committed(len).map_err(|error| failed(&error))?;
        Ok(Pages(mapping.without_fork()))
    }

    /// The first byte.
    pub(crate) fn ptr(&self) -> *mut u8 {
        self.0.base().as_ptr()
    }

    /// Number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.n_bytes()
    }

    /// The range of addresses.
    pub(super) fn span(&self) -> Span {
        let start = self.ptr().addr();
        Span::raw(start, start + self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_an_error() {
        assert_eq!(Pages::new(1).unwrap().len(), super::super::page_bytes());
        for len in [u64::MAX, 1 << 60, i64::MAX as u64] {
            let error = Pages::new(len).unwrap_err();
            assert_eq!(error.call, "mmap");
            assert!(error.reason.contains(&len.to_string()), "{error}");
        }
    }
}
