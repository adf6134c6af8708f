//! The regions of a cache: found by address, kept while they are in use, released at their ports.
//! Knows nothing of events and devices.

use super::interval::{IntervalMap, Span};

/// Regions, each registered at some ports; `H` is a registration at one port.
#[derive(Debug)]
pub(super) struct Regions<H> {
    n_ports: usize,
    /// What can be found: regions that are alive, none inside another.
    map: IntervalMap,
    /// By number; those that are not alive have users left, or are free.
    regions: Vec<Region<H>>,
    free: Vec<u32>,
    /// By port: registrations that have ended, to be dropped in the port's next call.
    doomed: Vec<Vec<H>>,
    /// Grows with every lookup.
    clock: u64,
    /// Bytes of all regions.
    pub(super) bytes: u64,
    pub(super) evictions: u64,
    pub(super) invalidations: u64,
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
    /// Room for `capacity` regions at `n_ports` ports.
    pub(super) fn new(n_ports: usize, capacity: usize) -> Self {
        Regions {
            n_ports,
            map: IntervalMap::with_capacity(capacity),
            regions: Vec::new(),
            free: Vec::new(),
            doomed: (0..n_ports).map(|_| Vec::new()).collect(),
            clock: 0,
            bytes: 0,
            evictions: 0,
            invalidations: 0,
        }
    }

    /// Begins a lookup: what is used from now on is younger.
    pub(super) fn tick(&mut self) {
        self.clock += 1;
    }

    /// Regions that exist, alive or not.
    pub(super) fn len(&self) -> usize {
        self.regions.len() - self.free.len()
    }

    /// Regions that have ended and wait for their last user.
    pub(super) fn n_waiting(&self) -> usize {
        self.len() - self.map.len()
    }

    /// Number and bytes of the regions that are in use.
    pub(super) fn in_use(&self) -> (usize, u64) {
        let used = self.regions.iter().filter(|region| region.uses > 0);
        used.fold((0, 0), |(n, bytes), region| (n + 1, bytes + region.span.len() as u64))
    }

    /// The region that is alive and covers all of `span`.
    pub(super) fn covering(&self, span: Span) -> Option<u32> {
        self.map.covering(span)
    }

    /// The range of a region.
    pub(super) fn span(&self, id: u32) -> Span {
        self.regions[id as usize].span
    }

    /// A region's registration at a port.
    pub(super) fn handle(&self, id: u32, port: usize) -> Option<&H> {
        self.regions[id as usize].handles[port].as_ref()
    }

    /// Adds a region's registration at a port.
    pub(super) fn put(&mut self, id: u32, port: usize, handle: H) {
        self.regions[id as usize].handles[port] = Some(handle);
    }

    /// A region is in use once more.
    pub(super) fn begin_use(&mut self, id: u32) {
        let region = &mut self.regions[id as usize];
        region.uses += 1;
        region.used = self.clock;
    }

    /// A region is in use once less; if it has ended, it may go.
    pub(super) fn end_use(&mut self, id: u32) {
        let region = &mut self.regions[id as usize];
        region.uses -= 1;
        if region.uses == 0 && !region.is_alive {
            self.dismiss(id);
        }
    }

    /// A new region with one registration; those that it contains end.
    pub(super) fn admit(&mut self, span: Span, port: usize, handle: H) -> u32 {
        let id = self.free.pop().unwrap_or(self.regions.len() as u32);
        let mut handles: Vec<Option<H>> = (0..self.n_ports).map(|_| None).collect();
        handles[port] = Some(handle);
        let region = Region { span, handles, uses: 0, used: self.clock, is_alive: true };
        match self.regions.get_mut(id as usize) {
            Some(free) => *free = region,
            None => self.regions.push(region),
        }
        self.bytes += span.len() as u64;
        let mut replaced = Vec::new();
        self.map.insert(span, id, |_, id| replaced.push(id));
        replaced.into_iter().for_each(|id| self.leave(id));
        id
    }

    /// Ends the regions that overlap a range, or all, because their memory has gone.
    pub(super) fn end(&mut self, of: Option<Span>) {
        let mut ended = Vec::new();
        match of {
            Some(span) => self.map.remove_overlapping(span, |_, id| ended.push(id)),
            None => self.map.remove_all(|_, id| ended.push(id)),
        }
        self.invalidations += ended.len() as u64;
        ended.into_iter().for_each(|id| self.leave(id));
    }

    /// Ends a region, if it is still alive.
    pub(super) fn end_one(&mut self, id: u32) {
        let Region { span, is_alive, .. } = self.regions[id as usize];
        if is_alive {
            self.map.remove_exact(span);
            self.leave(id);
        }
    }

    /// Ends the idle region that was not used for longest. Returns the parts of its range that no
    /// other region has; `None` if all are in use.
    pub(super) fn evict(&mut self) -> Option<Vec<Span>> {
        let idle = self.map.iter().filter(|&(_, id)| self.regions[id as usize].uses == 0);
        let (span, id) = idle.min_by_key(|&(_, id)| self.regions[id as usize].used)?;
        self.map.remove_exact(span);
        self.evictions += 1;
        self.leave(id);
        let mut bare = Vec::new();
        let mut start = span.start();
        // In the order of their starts, and so of their ends.
        for (other, _) in self.map.iter().filter(|(other, _)| other.overlaps(span)) {
            if other.start() > start {
                bare.push(Span::raw(start, other.start()));
            }
            start = start.max(other.end());
        }
        if start < span.end() {
            bare.push(Span::raw(start, span.end()));
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
        for region in &mut self.regions {
            region.handles[port] = None;
        }
    }

    /// After a region has left the map: it goes with its last use.
    fn leave(&mut self, id: u32) {
        let region = &mut self.regions[id as usize];
        region.is_alive = false;
        if region.uses == 0 {
            self.dismiss(id);
        }
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
