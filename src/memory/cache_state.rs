//! The state of a cache under its lock: its regions, and the registrations that its ports are making.
//!
//! A registration is made and watched without the lock. Meanwhile the lookup of any port may read events of its
//! pages. So every port's pages are noted while the port registers them, and marked when they can no longer become a
//! region.

use std::sync::{Arc, Weak};

use hopbine_torus::PortId;

use super::config::CacheConfig;
use super::events::{EventLog, EventSource, Position};
use super::forks;
use super::regions::Regions;
use super::span::Span;
use super::stats::{CacheMode, CacheStats, Counted};
use crate::planted::{self, Planted};

/// The event source of a cache. The cache is one listener, and holds one reference to the log.
#[derive(Debug)]
pub(super) struct CacheEvents {
    pub(super) source: Arc<dyn EventSource>,
    pub(super) log: Arc<EventLog>,
}

/// The regions of a cache, and its position in the event log.
#[derive(Debug)]
pub(super) struct CacheState<H> {
    events: Option<(Arc<CacheEvents>, Position)>,
    config: CacheConfig,
    regions: Regions<Counted<H>>,
    /// By port, the registration that it is making.
    pending: Box<[Option<PendingRegistration>]>,
    /// By port, the registrations that the interface has, and some that it has no more.
    made: Box<[Vec<Made<H>>]>,
    forks: usize,
    stats: CacheStats,
}

/// Pages that a port is registering, or has failed to register.
#[derive(Clone, Copy, Debug)]
struct PendingRegistration {
    pages: Span,
    /// The registration may lead to pages that the memory no longer has, or its watch may have ended.
    is_stale: bool,
}

/// A registration that a port has made.
#[derive(Debug)]
struct Made<H> {
    pages: Span,
    tag: u64,
    forks: usize,
    /// It has become that of a region: its leases do not promise all of its pages.
    is_kept: bool,
    handle: Weak<Counted<H>>,
}

/// The registration to make for a lookup that is no hit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Miss {
    /// The pages: those of a region that other ports have registered, or those of the lookup.
    pub(super) pages: Span,
    /// Events of the pages must be announced before they become a region.
    pub(super) needs_watch: bool,
    is_known: bool,
}

/// What becomes of a new registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// The registration is kept; the first one of a region makes the region.
    Kept { is_first: bool },
    /// The registration serves one lease.
    NotKept,
    /// The registration is useless; the port registers again.
    Retry,
}

impl<H> CacheState<H> {
    pub(super) fn new(
        config: CacheConfig,
        n_ports: usize,
        mode: CacheMode,
        events: Option<Arc<CacheEvents>>,
    ) -> Self {
        let listen = |events: Arc<CacheEvents>| {
            let position = events.log.position();
            (events, position)
        };
        CacheState {
            events: events.map(listen),
            config,
            regions: Regions::new(n_ports),
            pending: vec![None; n_ports].into(),
            made: (0..n_ports).map(|_| Vec::new()).collect(),
            forks: forks::generation(),
            stats: CacheStats { mode, ..CacheStats::default() },
        }
    }

    /// The registration at the port that covers these pages, and its range.
    #[inline]
    pub(super) fn hit(&mut self, port: PortId, span: Span) -> Option<(Arc<Counted<H>>, Span)> {
        let found = self.regions.find(port, span)?;
        self.stats.hits += 1;
        Some(found)
    }

    /// Notes that the port is about to register pages for a range; `None` if there is no room to keep them.
    pub(super) fn begin(&mut self, port: PortId, span: Span, is_explicit: bool) -> Option<Miss> {
        let known = self.regions.covering(span);
        let needs_watch = known.is_none() && !is_explicit;
        if needs_watch && !self.make_room(span) {
            return None;
        }
        let pages = known.unwrap_or(span);
        self.pending[port.index()] = Some(PendingRegistration { pages, is_stale: false });
        Some(Miss { pages, needs_watch, is_known: known.is_some() })
    }

    /// Notes that the port has registered the pages. Keeps the registration if the memory still has these pages, and
    /// they still are the region of the range.
    pub(super) fn put(
        &mut self,
        port: PortId,
        span: Span,
        miss: Miss,
        is_watched: bool,
        handle: &Arc<Counted<H>>,
    ) -> Admission {
        let Miss { pages, needs_watch, is_known } = miss;
        self.read_events();
        let now = self.regions.covering(span);
        // Other ports may have made regions meanwhile, perhaps this one.
        let fits = is_watched && (now.is_some() || !needs_watch || self.make_room(pages));
        let is_sound = self.pending[port.index()].take().is_some_and(|pending| !pending.is_stale);
        if is_watched && (!is_sound || now.map_or(is_known, |now| now != pages)) {
            return Admission::Retry;
        }
        if !fits {
            self.stats.uncached += 1;
            return Admission::NotKept;
        }
        self.stats.misses += 1;
        self.regions.put(pages, port, handle.clone());
        if let Some(made) = self.made[port.index()].last_mut() {
            made.is_kept = true;
        }
        Admission::Kept { is_first: now.is_none() }
    }

    /// Notes a new registration of a port. False, and it is not noted, if others with its tag live, none of which
    /// proves that the tag leads to the pages that the memory has now.
    ///
    /// While a lease lives, so does the tag, for all pages that were registered first. The registration of a region
    /// proves all of its pages until the region ends, another one its own pages, which its lease promises; none
    /// proves anything after a fork.
    pub(super) fn note_made(
        &mut self,
        port: PortId,
        pages: Span,
        tag: u64,
        handle: &Arc<Counted<H>>,
    ) -> bool {
        let (forks, regions) = (self.forks, &self.regions);
        let made = &mut self.made[port.index()];
        made.retain(|made| made.handle.strong_count() > 0);
        let is_current = |made: &Made<H>| {
            let is_mapped = !made.is_kept || regions.has(port, made.pages, &made.handle);
            made.pages.covers(pages) && made.forks == forks && is_mapped
        };
        let mut sharing = made.iter().filter(|made| made.tag == tag).peekable();
        let is_sound = sharing.peek().is_none() || sharing.any(is_current);
        if is_sound {
            let handle = Arc::downgrade(handle);
            made.push(Made { pages, tag, forks, is_kept: false, handle });
        }
        is_sound
    }

    pub(super) fn note_uncached(&mut self) {
        self.stats.uncached += 1;
    }

    /// Ends the regions that overlap a range.
    pub(super) fn invalidate(&mut self, of: Span) {
        self.mark_stale(of);
        self.stats.invalidations += self.regions.invalidate(of);
    }

    /// Ends the region of exactly this range, if there is one.
    pub(super) fn remove(&mut self, span: Span) {
        self.regions.remove(span);
    }

    /// Ends all registrations of a port.
    pub(super) fn close(&mut self, port: PortId) {
        self.regions.close(port);
    }

    /// A port's registrations that have ended.
    #[inline]
    pub(super) fn take_ended(&mut self, port: PortId) -> Vec<Arc<Counted<H>>> {
        self.regions.take_ended(port)
    }

    /// Statistics, without those of the interface and of calls.
    pub(super) fn stats(&self) -> CacheStats {
        let (n_regions, registered_bytes) = self.regions.size();
        CacheStats { registered_regions: n_regions as u64, registered_bytes, ..self.stats.clone() }
    }

    /// Ends all idle regions, for a port whose interface lacks room. The port tries its registration again.
    pub(super) fn evict_all(&mut self, port: PortId) {
        while self.evict() {}
        if let Some(pending) = &mut self.pending[port.index()] {
            pending.is_stale = false;
        }
    }

    /// Makes room for a region within the limits, by evicting the least recently used ones. False if too much is in
    /// use, or there are no events; then nothing is evicted.
    fn make_room(&mut self, span: Span) -> bool {
        let most = self.config.max_bytes.unwrap_or(u64::MAX);
        let n_most = self.config.max_regions.get() as usize;
        let fits = |(n, bytes): (usize, u64)| {
            n < n_most && bytes.saturating_add(span.len() as u64) <= most
        };
        if self.events.is_none() || !fits(self.regions.leased_size()) {
            return false;
        }
        while !fits(self.regions.size()) {
            if !self.evict() {
                return false;
            }
        }
        true
    }

    /// Ends the least recently used idle region, and its watch on pages that no other region covers. False if there
    /// is no idle region.
    fn evict(&mut self) -> bool {
        let Some(uncovered) = self.regions.evict() else { return false };
        self.stats.evictions += 1;
        for span in uncovered {
            self.mark_stale(span);
            if let Some((events, _)) = &self.events {
                events.source.unwatch(span);
            }
        }
        true
    }

    /// Marks registrations of these pages that are being made: they cannot become regions.
    fn mark_stale(&mut self, pages: Span) {
        for pending in self.pending.iter_mut().flatten() {
            pending.is_stale |= pending.pages.overlaps(pages);
        }
    }

    /// Applies all events that happened before the call.
    #[inline]
    pub(super) fn read_events(&mut self) {
        let forks = forks::generation();
        if forks != self.forks {
            // The parent's next write gives it new pages; the registered pages stay with the child.
            self.forks = forks;
            self.invalidate(Span::EVERYTHING);
        }
        let Some((events, position)) = &self.events else { return };
        if !events.log.has_news(*position) {
            return;
        }
        let (events, mut position) = (events.clone(), *position);
        events.log.read(&mut position, |of| {
            if planted::is(Planted::EventMissed) {
                return;
            }
            self.stats.overflows += u64::from(of == Span::EVERYTHING);
            self.invalidate(of);
        });
        self.events = Some((events, position));
    }
}
