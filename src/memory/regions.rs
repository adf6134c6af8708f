//! The regions of a cache: found by address, kept while they are in use, released at their ports.
//!
//! No region that is alive contains another. So they are sorted by start *and* by end, and if any of
//! them covers a range, the last one that starts at or before it does.

use super::span::Span;

/// Regions, each registered at some ports; `H` is a registration at one port.
#[derive(Debug)]
pub(super) struct Regions<H> {
    n_ports: usize,
    /// What can be found: range and number of the regions that are alive, sorted.
    live: Vec<(Span, u32)>,
    /// By number; one that is not alive has users left, or is free.
    regions: Vec<Region<H>>,
    free: Vec<u32>,
    /// By port: registrations that have ended, to be dropped in the port's next call.
    doomed: Vec<Vec<H>>,
    /// Counts uses: the time in `Region::used`.
    clock: u64,
    /// Bytes of all regions.
    pub(super) bytes: u64,
}

#[derive(Debug)]
struct Region<H> {
    span: Span,
    /// By port.
    handles: Vec<Option<H>>,
    uses: u32,
    /// When it was asked for last.
    used: u64,
    is_alive: bool,
}

impl<H> Regions<H> {
    pub(super) fn new(n_ports: usize) -> Self {
        Regions {
            n_ports,
            live: Vec::new(),
            regions: Vec::new(),
            free: Vec::new(),
            doomed: (0..n_ports).map(|_| Vec::new()).collect(),
            clock: 0,
            bytes: 0,
        }
    }

    /// Regions that exist, alive or not.
    pub(super) fn len(&self) -> usize {
        self.regions.len() - self.free.len()
    }

    /// Regions that have ended and wait for their last user.
    pub(super) fn n_waiting(&self) -> usize {
        self.len() - self.live.len()
    }

    /// Number and bytes of the regions that are in use.
    pub(super) fn in_use(&self) -> (usize, u64) {
        let used = self.regions.iter().filter(|region| region.uses > 0);
        used.fold((0, 0), |(n, bytes), region| (n + 1, bytes + region.span.len() as u64))
    }

    /// The region that is alive and covers all of `span`.
    pub(super) fn covering(&self, span: Span) -> Option<u32> {
        let behind = self.live.partition_point(|(live, _)| live.start() <= span.start());
        let (live, id) = self.live[..behind].last()?;
        live.covers(span).then_some(*id)
    }

    pub(super) fn span(&self, id: u32) -> Span {
        self.regions[id as usize].span
    }

    pub(super) fn handle(&self, id: u32, port: usize) -> Option<&H> {
        self.regions[id as usize].handles[port].as_ref()
    }

    /// Adds a region's registration at a port.
    pub(super) fn put(&mut self, id: u32, port: usize, handle: H) {
        self.regions[id as usize].handles[port] = Some(handle);
    }

    pub(super) fn begin_use(&mut self, id: u32) {
        self.clock += 1;
        let region = &mut self.regions[id as usize];
        region.uses += 1;
        region.used = self.clock;
    }

    /// Ends a use; a region that has ended goes with its last one.
    pub(super) fn end_use(&mut self, id: u32) {
        let region = &mut self.regions[id as usize];
        region.uses -= 1;
        if region.uses == 0 && !region.is_alive {
            self.dismiss(id);
        }
    }

    /// Adds a region that none covers, with one registration, and ends those that it contains.
    pub(super) fn admit(&mut self, span: Span, port: usize, handle: H) -> u32 {
        debug_assert!(self.covering(span).is_none(), "covered already: {span:x?}");
        self.take(span, |live, _| span.covers(live));
        let mut handles: Vec<Option<H>> = (0..self.n_ports).map(|_| None).collect();
        handles[port] = Some(handle);
        let region = Region { span, handles, uses: 0, used: self.clock, is_alive: true };
        let id = self.free.pop().unwrap_or(self.regions.len() as u32);
        match self.regions.get_mut(id as usize) {
            Some(free) => *free = region,
            None => self.regions.push(region),
        }
        self.bytes += span.len() as u64;
        let at = self.live.partition_point(|(live, _)| live.start() < span.start());
        self.live.insert(at, (span, id));
        id
    }

    /// Ends the regions that overlap a range; how many.
    pub(super) fn end(&mut self, of: Span) -> u64 {
        self.take(of, |_, _| true)
    }

    /// Ends a region, if it is still alive.
    pub(super) fn end_one(&mut self, id: u32) {
        self.take(self.span(id), |_, live| live == id);
    }

    /// Ends the idle region that was not used for longest. Returns the parts of its range that no
    /// other region has; `None` if all are in use.
    pub(super) fn evict(&mut self) -> Option<Vec<Span>> {
        let idle = self.live.iter().filter(|(_, id)| self.regions[*id as usize].uses == 0);
        let (span, id) = *idle.min_by_key(|(_, id)| self.regions[*id as usize].used)?;
        self.end_one(id);
        // The others are in the order of their starts, and so of their ends.
        let others = self.live.iter().map(|(other, _)| *other).filter(|other| other.overlaps(span));
        let mut from = span.start();
        let mut bare = Vec::new();
        for (start, end) in others.map(|o| (o.start(), o.end())).chain([(span.end(), span.end())]) {
            bare.extend((from < start).then(|| Span::raw(from, start)));
            from = from.max(end);
        }
        Some(bare)
    }

    /// Drops what has ended of a port's registrations.
    pub(super) fn drop_doomed(&mut self, port: usize) {
        self.doomed[port].clear();
    }

    /// Drops all of a port's registrations.
    pub(super) fn close(&mut self, port: usize) {
        self.doomed[port].clear();
        self.regions.iter_mut().for_each(|region| region.handles[port] = None);
    }

    /// Ends the regions that overlap a range and are wanted: each goes with its last use. How many.
    fn take(&mut self, of: Span, wanted: impl Fn(Span, u32) -> bool) -> u64 {
        // They are neighbours, since both ends are sorted.
        let from = self.live.partition_point(|(live, _)| live.end() <= of.start());
        let to = self.live.partition_point(|(live, _)| live.start() < of.end());
        let ended = self.live.extract_if(from..to, |(span, id)| wanted(*span, *id));
        let ended: smallvec::SmallVec<[u32; 8]> = ended.map(|(_, id)| id).collect();
        for id in &ended {
            let region = &mut self.regions[*id as usize];
            region.is_alive = false;
            if region.uses == 0 {
                self.dismiss(*id);
            }
        }
        ended.len() as u64
    }

    /// Hands a region's registrations to their ports, to be dropped.
    fn dismiss(&mut self, id: u32) {
        let region = &mut self.regions[id as usize];
        self.bytes -= region.span.len() as u64;
        for (handle, doomed) in region.handles.iter_mut().zip(&mut self.doomed) {
            doomed.extend(handle.take());
        }
        self.free.push(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Op {
        Admit(Span),
        End(Span),
        EndOne(usize),
    }

    fn op() -> impl Strategy<Value = Op> {
        let span =
            || (0..60usize, 1..20usize).prop_map(|(start, len)| Span::raw(start, start + len));
        prop_oneof![
            12 => span().prop_map(Op::Admit),
            3 => span().prop_map(Op::End),
            4 => any::<usize>().prop_map(Op::EndOne),
            1 => Just(Op::End(Span::EVERYTHING)),
        ]
    }

    proptest! {
        /// Regions in no order, of which those that a new one covers go, find the same.
        #[test]
        fn behaves_like_a_plain_list(ops in prop::collection::vec(op(), 1..80)) {
            let mut regions = Regions::<()>::new(1);
            let mut model: Vec<Span> = Vec::new();
            for op in ops {
                match op {
                    Op::Admit(span) => if regions.covering(span).is_none() {
                        regions.admit(span, 0, ());
                        model.retain(|old| !span.covers(*old));
                        model.push(span);
                    }
                    Op::End(span) => {
                        let n = model.len();
                        model.retain(|old| !old.overlaps(span));
                        prop_assert_eq!(regions.end(span), (n - model.len()) as u64);
                    }
                    Op::EndOne(pick) => if !model.is_empty() {
                        let span = model.remove(pick % model.len());
                        regions.end_one(regions.covering(span).expect("is alive"));
                    }
                }
                model.sort_by_key(|span| span.start());
                let live: Vec<Span> = regions.live.iter().map(|(span, _)| *span).collect();
                prop_assert_eq!(&live, &model);
                prop_assert!(regions.live.iter().all(|(span, id)| regions.span(*id) == *span));
                let bytes: usize = model.iter().map(|span| span.len()).sum();
                prop_assert_eq!((regions.len(), regions.bytes), (model.len(), bytes as u64));
                for (start, len) in (0..80).flat_map(|start| [1, 2, 7, 15].map(|len| (start, len))) {
                    let query = Span::raw(start, start + len);
                    let found = regions.covering(query).map(|id| regions.span(id));
                    prop_assert_eq!(found.is_some(), model.iter().any(|old| old.covers(query)));
                    prop_assert!(found.is_none_or(|span| span.covers(query)));
                }
            }
        }
    }
}
