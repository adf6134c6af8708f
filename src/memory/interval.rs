//! Address ranges, and the sorted map of the live ones. Pure: knows nothing of
//! registrations, locks, threads or events.
//!
//! Invariant of [`IntervalMap`]: no range contains another. Hence the ranges are
//! strictly sorted by start *and* by end, and if any range covers a query, the
//! last one that starts at or before it does. Search is O(log n), insertion and
//! removal move at most n entries of 24 bytes. No operation allocates after
//! construction.

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

#[derive(Clone, Copy, Debug)]
struct Entry {
    span: Span,
    id: u32,
}

/// The live ranges, each with the number of its region.
#[derive(Debug)]
pub(super) struct IntervalMap {
    entries: Vec<Entry>,
    capacity: usize,
}

impl IntervalMap {
    /// A map that can hold `capacity` ranges.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { entries: Vec::with_capacity(capacity), capacity }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Span, u32)> + '_ {
        self.entries.iter().map(|entry| (entry.span, entry.id))
    }

    /// The region that covers all of `span`, if one does.
    pub(super) fn covering(&self, span: Span) -> Option<u32> {
        let behind = self.entries.partition_point(|entry| entry.span.start <= span.start);
        let entry = self.entries[..behind].last()?;
        entry.span.covers(span).then_some(entry.id)
    }

    /// Adds a region. Those it contains leave, each shown to `replaced`.
    ///
    /// # Panics
    /// When a region covers `span` already or the map is full after the contained
    /// ones have left: the caller has to ask first.
    pub(super) fn insert(&mut self, span: Span, id: u32, replaced: impl FnMut(Span, u32)) {
        assert!(self.covering(span).is_none(), "covered already: {span:x?}");
        self.remove_where(span, |entry| span.covers(entry), replaced);
        assert!(self.entries.len() < self.capacity, "the map is full");
        let at = self.entries.partition_point(|entry| entry.span.start < span.start);
        self.entries.insert(at, Entry { span, id });
    }

    /// Removes all regions that share a byte with `span`, each shown to `removed`.
    pub(super) fn remove_overlapping(&mut self, span: Span, removed: impl FnMut(Span, u32)) {
        self.remove_where(span, |_| true, removed);
    }

    /// Removes all regions, each shown to `removed`.
    pub(super) fn remove_all(&mut self, mut removed: impl FnMut(Span, u32)) {
        for entry in self.entries.drain(..) {
            removed(entry.span, entry.id);
        }
    }

    /// Removes exactly the region with this range, if there is one.
    pub(super) fn remove_exact(&mut self, span: Span) -> Option<u32> {
        let at = self.entries.binary_search_by_key(&span.start, |entry| entry.span.start).ok()?;
        (self.entries[at].span == span).then(|| self.entries.remove(at).id)
    }

    /// Those that overlap `span` are neighbours, since both ends are sorted.
    fn remove_where(
        &mut self,
        span: Span,
        wanted: impl Fn(Span) -> bool,
        mut removed: impl FnMut(Span, u32),
    ) {
        let from = self.entries.partition_point(|entry| entry.span.end <= span.start);
        let to = self.entries.partition_point(|entry| entry.span.start < span.end);
        let mut keep = from;
        for at in from..to {
            let entry = self.entries[at];
            if wanted(entry.span) {
                removed(entry.span, entry.id);
            } else {
                self.entries[keep] = entry;
                keep += 1;
            }
        }
        self.entries.drain(keep..to.max(keep));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    #[derive(Clone, Debug)]
    enum Op {
        Insert(Span),
        Overlapping(Span),
        Exact(Span),
        Exactly(usize),
    }

    fn span() -> impl Strategy<Value = Span> {
        (0..60usize, 1..20usize).prop_map(|(start, len)| Span::raw(start, start + len))
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            6 => span().prop_map(Op::Insert),
            1 => span().prop_map(Op::Overlapping),
            1 => span().prop_map(Op::Exact),
            2 => any::<usize>().prop_map(Op::Exactly),
        ]
    }

    fn sorted(mut list: Vec<(Span, u32)>) -> Vec<(Span, u32)> {
        list.sort_by_key(|(span, id)| (span.start(), *id));
        list
    }

    proptest! {
        #[test]
        fn behaves_like_a_plain_list(ops in prop::collection::vec(op(), 1..80)) {
            let mut map = IntervalMap::with_capacity(100);
            let mut model: Vec<(Span, u32)> = Vec::new();
            for (id, op) in ops.into_iter().enumerate() {
                let id = id as u32;
                let mut gone = Vec::new();
                match op {
                    Op::Insert(span) => {
                        if map.covering(span).is_some() {
                            continue;
                        }
                        map.insert(span, id, |span, id| gone.push((span, id)));
                        let (out, kept) = model.into_iter().partition(|(old, _)| span.covers(*old));
                        model = kept;
                        model.push((span, id));
                        prop_assert_eq!(sorted(gone), sorted(out));
                    }
                    Op::Overlapping(span) => {
                        map.remove_overlapping(span, |span, id| gone.push((span, id)));
                        let (out, kept) = model.into_iter().partition(|(old, _)| span.overlaps(*old));
                        model = kept;
                        prop_assert_eq!(sorted(gone), sorted(out));
                    }
                    Op::Exact(span) => {
                        let at = model.iter().position(|(old, _)| *old == span);
                        prop_assert_eq!(map.remove_exact(span), at.map(|at| model.remove(at).1));
                    }
                    Op::Exactly(pick) => if !model.is_empty() {
                        let (span, id) = model.remove(pick % model.len());
                        prop_assert_eq!(map.remove_exact(span), Some(id));
                    }
                }
                prop_assert_eq!(map.iter().collect::<Vec<_>>(), sorted(model.clone()));
                for start in 0..80 {
                    for len in [1, 2, 7, 15] {
                        let query = Span::raw(start, start + len);
                        let found = map.covering(query);
                        let covered = model.iter().any(|(old, _)| old.covers(query));
                        prop_assert_eq!(found.is_some(), covered);
                        if let Some(id) = found {
                            let hit = model.iter().find(|(_, old)| *old == id).unwrap();
                            prop_assert!(hit.0.covers(query));
                        }
                    }
                }
            }
        }
    }
}
