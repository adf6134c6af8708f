//! The regions that a cache keeps, sorted by address.
//!
//! No region contains another. So regions are sorted by start *and* by end, and if any region covers a range, it is
//! the last region that starts at or before the range.

use std::sync::{Arc, Weak};

use hopbine_torus::PortId;

use super::span::Span;

/// Regions, each registered at some ports; `H` is a registration at one port.
#[derive(Debug)]
pub(super) struct Regions<H> {
    n_ports: usize,
    live: Vec<Region<H>>,
    /// By port: registrations of regions that have ended, to be dropped in the port's next call.
    ended: Vec<Vec<Arc<H>>>,
    /// Counts lookups; the unit of time in `Region::last_used`.
    clock: u64,
}

#[derive(Debug)]
struct Region<H> {
    span: Span,
    /// By port. Each lease holds another reference.
    handles: Box<[Option<Arc<H>>]>,
    /// Time of the last lookup.
    last_used: u64,
}

impl<H> Region<H> {
    fn is_leased(&self) -> bool {
        self.handles.iter().flatten().any(|handle| Arc::strong_count(handle) > 1)
    }
}

impl<H> Regions<H> {
    pub(super) fn new(n_ports: usize) -> Self {
        let ended = (0..n_ports).map(|_| Vec::new()).collect();
        Regions { n_ports, live: Vec::new(), ended, clock: 0 }
    }

    /// Number and bytes of all regions.
    pub(super) fn size(&self) -> (usize, u64) {
        Self::sum(self.live.iter())
    }

    /// Number and bytes of the regions that are leased.
    pub(super) fn leased_size(&self) -> (usize, u64) {
        Self::sum(self.live.iter().filter(|region| region.is_leased()))
    }

    fn sum<'r>(regions: impl Iterator<Item = &'r Region<H>>) -> (usize, u64)
    where
        H: 'r,
    {
        regions.fold((0, 0), |(n, bytes), region| (n + 1, bytes + region.span.len() as u64))
    }

    /// The region that covers the whole range.
    pub(super) fn covering(&self, span: Span) -> Option<Span> {
        self.index_covering(span).map(|at| self.live[at].span)
    }

    fn index_covering(&self, span: Span) -> Option<usize> {
        let behind = self.live.partition_point(|region| region.span.start() <= span.start());
        let at = behind.checked_sub(1)?;
        self.live[at].span.covers(span).then_some(at)
    }

    /// The registration at a port that covers the whole range, and its region.
    #[inline]
    pub(super) fn find(&mut self, port: PortId, span: Span) -> Option<(Arc<H>, Span)> {
        let at = self.index_covering(span)?;
        let region = &mut self.live[at];
        let handle = Arc::clone(region.handles[port.index()].as_ref()?);
        self.clock += 1;
        region.last_used = self.clock;
        Some((handle, region.span))
    }

    /// Whether this registration at a port is that of the region that covers the range.
    pub(super) fn has(&self, port: PortId, span: Span, handle: &Weak<H>) -> bool {
        let region = self.index_covering(span).map(|at| &self.live[at]);
        let kept = region.and_then(|region| region.handles[port.index()].as_ref());
        kept.is_some_and(|kept| std::ptr::eq(Arc::as_ptr(kept), handle.as_ptr()))
    }

    /// Adds a registration of a region, or of a range that no region covers: this range becomes a region, and ends
    /// the regions that it contains.
    pub(super) fn put(&mut self, span: Span, port: PortId, handle: Arc<H>) {
        self.clock += 1;
        let at = match self.index_covering(span) {
            Some(at) => at,
            None => {
                self.take(span, |live| span.covers(live.span));
                let handles = (0..self.n_ports).map(|_| None).collect();
                let at = self.live.partition_point(|live| live.span.start() < span.start());
                self.live.insert(at, Region { span, handles, last_used: self.clock });
                at
            }
        };
        debug_assert_eq!(self.live[at].span, span, "covered already");
        self.live[at].handles[port.index()] = Some(handle);
    }

    /// Ends the regions that overlap a range; returns their number.
    pub(super) fn invalidate(&mut self, of: Span) -> u64 {
        self.take(of, |_| true)
    }

    /// Ends the region of exactly this range, if there is one.
    pub(super) fn remove(&mut self, span: Span) {
        self.take(span, |live| live.span == span);
    }

    /// Ends the least recently used region that is not leased. Returns the parts of its range that no other region
    /// covers; `None` if all regions are leased.
    pub(super) fn evict(&mut self) -> Option<Vec<Span>> {
        let idle = self.live.iter().filter(|region| !region.is_leased());
        let span = idle.min_by_key(|region| region.last_used)?.span;
        self.remove(span);
        // The other regions are sorted by start, and so by end.
        let others = self.live.iter().map(|other| other.span).filter(|other| other.overlaps(span));
        let mut from = span.start();
        let mut uncovered = Vec::new();
        for (start, end) in others.map(|o| (o.start(), o.end())).chain([(span.end(), span.end())]) {
            uncovered.extend((from < start).then(|| Span::raw(from, start)));
            from = from.max(end);
        }
        Some(uncovered)
    }

    /// A port's registrations that have ended; leases may still hold references to them.
    #[inline]
    pub(super) fn take_ended(&mut self, port: PortId) -> Vec<Arc<H>> {
        std::mem::take(&mut self.ended[port.index()])
    }

    /// Ends all of a port's registrations.
    pub(super) fn close(&mut self, port: PortId) {
        let handles = self.live.iter_mut().filter_map(|region| region.handles[port.index()].take());
        self.ended[port.index()].extend(handles);
    }

    /// Ends the regions that overlap a range and are wanted; returns their number.
    fn take(&mut self, of: Span, wanted: impl Fn(&Region<H>) -> bool) -> u64 {
        // They are neighbours in the list, since both ends are sorted.
        let from = self.live.partition_point(|live| live.span.end() <= of.start());
        let to = self.live.partition_point(|live| live.span.start() < of.end());
        let mut n = 0;
        for region in self.live.extract_if(from..to, |live| wanted(live)) {
            n += 1;
            for (handle, ended) in region.handles.into_iter().zip(&mut self.ended) {
                ended.extend(handle);
            }
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Op {
        Put(Span),
        End(Span),
        EndOne(usize),
    }

    fn op() -> impl Strategy<Value = Op> {
        let span =
            || (0..60usize, 1..20usize).prop_map(|(start, len)| Span::raw(start, start + len));
        prop_oneof![
            12 => span().prop_map(Op::Put),
            3 => span().prop_map(Op::End),
            4 => any::<usize>().prop_map(Op::EndOne),
            1 => Just(Op::End(Span::EVERYTHING)),
        ]
    }

    proptest! {
        /// An unsorted list, from which a new region removes those that it covers, gives the same results.
        #[test]
        fn behaves_like_a_plain_list(ops in prop::collection::vec(op(), 1..80)) {
            let mut regions = Regions::<()>::new(1);
            let mut model: Vec<Span> = Vec::new();
            for op in ops {
                match op {
                    Op::Put(span) => if regions.covering(span).is_none() {
                        regions.put(span, PortId(0), Arc::new(()));
                        model.retain(|old| !span.covers(*old));
                        model.push(span);
                    }
                    Op::End(span) => {
                        let n = model.len();
                        model.retain(|old| !old.overlaps(span));
                        prop_assert_eq!(regions.invalidate(span), (n - model.len()) as u64);
                    }
                    Op::EndOne(pick) => if !model.is_empty() {
                        let span = model.remove(pick % model.len());
                        regions.remove(span);
                    }
                }
                model.sort_by_key(|span| span.start());
                let live: Vec<Span> = regions.live.iter().map(|region| region.span).collect();
                prop_assert_eq!(&live, &model);
                let bytes: usize = model.iter().map(|span| span.len()).sum();
                prop_assert_eq!(regions.size(), (model.len(), bytes as u64));
                for (start, len) in (0..80).flat_map(|start| [1, 2, 7, 15].map(|len| (start, len))) {
                    let query = Span::raw(start, start + len);
                    let found = regions.covering(query);
                    prop_assert_eq!(found.is_some(), model.iter().any(|old| old.covers(query)));
                    prop_assert!(found.is_none_or(|span| span.covers(query)));
                }
            }
        }
    }
}
