//! Ranges of addresses.

use thiserror::Error;

/// A range of addresses `[start, end)`, in bytes, never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    start: usize,
    end: usize,
}

/// An address range that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SpanError {
    /// The length is zero: there is nothing to register.
    #[error("the range at {addr:#x} is empty; at least one byte is needed")]
    Empty {
        /// Address of the range.
        addr: usize,
    },
    /// The range leaves the address space.
    #[error("{len} bytes at {addr:#x} reach beyond the last page of the address space")]
    TooLong {
        /// Address of the range.
        addr: usize,
        /// Its length in bytes.
        len: usize,
    },
}

impl Span {
    /// The range of `len` bytes at `addr`, widened to whole pages of `page`
    /// bytes (a power of two): interfaces pin pages, and memory comes and goes by
    /// pages.
    ///
    /// # Errors
    /// [`SpanError`] when `len` is zero or the range leaves the address space.
    pub fn of_pages(addr: usize, len: usize, page: usize) -> Result<Self, SpanError> {
        debug_assert!(page.is_power_of_two());
        if len == 0 {
            return Err(SpanError::Empty { addr });
        }
        let end = addr
            .checked_add(len)
            .and_then(|end| end.checked_next_multiple_of(page))
            .ok_or(SpanError::TooLong { addr, len })?;
        let start = addr & !(page - 1);
        Ok(Self { start, end })
    }

    /// `[start, end)` as it stands.
    ///
    /// # Panics
    /// When the range is empty or reversed, which is a defect of the caller.
    pub(super) fn raw(start: usize, end: usize) -> Self {
        assert!(start < end, "a span is never empty: {start:#x}..{end:#x}");
        Self { start, end }
    }

    /// First address.
    pub fn start(self) -> usize {
        self.start
    }

    /// First address behind the range.
    pub fn end(self) -> usize {
        self.end
    }

    /// Length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a span is never empty")]
    pub fn len(self) -> usize {
        self.end - self.start
    }

    /// Does this range contain all of `other`?
    pub fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Do the two ranges share a byte?
    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_whole_pages() {
        let span = Span::of_pages(4097, 4095, 4096).unwrap();
        assert_eq!((span.start(), span.end(), span.len()), (4096, 8192, 4096));
        let span = Span::of_pages(8191, 2, 4096).unwrap();
        assert_eq!((span.start(), span.end()), (4096, 12288));
        assert_eq!(Span::of_pages(64, 0, 4096), Err(SpanError::Empty { addr: 64 }));
        for (addr, len) in [(usize::MAX, 1), (usize::MAX - 4096, 4097), (2, usize::MAX)] {
            assert_eq!(Span::of_pages(addr, len, 4096), Err(SpanError::TooLong { addr, len }));
        }
    }
}
