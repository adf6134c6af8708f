//! Ranges of addresses.

/// A range of addresses `[start, end)`, in bytes, never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    start: usize,
    end: usize,
}

impl Span {
    /// The range that overlaps every other.
    pub const EVERYTHING: Span = Span { start: 0, end: usize::MAX };

    /// The range of `len` bytes at `addr`, widened to whole pages of `page` bytes (a power of two), since interfaces
    /// pin, and the system maps and unmaps, whole pages. `None` if `len` is zero or the range leaves the address
    /// space.
    pub fn of_pages(addr: usize, len: usize, page: usize) -> Option<Self> {
        debug_assert!(page.is_power_of_two());
        let end = addr.checked_add(len)?.checked_next_multiple_of(page)?;
        (len > 0).then_some(Self { start: addr & !(page - 1), end })
    }

    /// The range `[start, end)`, not widened.
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

    /// First address after the range.
    pub fn end(self) -> usize {
        self.end
    }

    /// Length in bytes.
    #[cfg_attr(
        feature = "internals",
        expect(clippy::len_without_is_empty, reason = "a span is never empty")
    )]
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
        for (addr, len, expected) in [
            (4097, 4095, Some((4096, 8192))),
            (8191, 2, Some((4096, 12288))),
            (64, 0, None),
            (usize::MAX, 1, None),
            (usize::MAX - 4096, 4097, None),
            (2, usize::MAX, None),
        ] {
            let span = Span::of_pages(addr, len, 4096);
            assert_eq!(span.map(|span| (span.start(), span.end())), expected);
        }
    }
}
