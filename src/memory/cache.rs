//! The registration cache of a rank: regions sorted by address, each registered at the ports that
//! have asked for it.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use super::events::{EventLog, EventSource, Position};
use super::forks;
use super::lease::{CacheError, Lease};
use super::monitor::ProcessEvents;
use super::regions::Regions;
use super::span::Span;
use super::stats::{CacheMode, CacheStats, Counted, Counts};
use super::trust;
use crate::planted::{self, Planted};

/// Registrations tried for one lookup before it is served without being kept.
const ATTEMPTS: usize = 3;

/// Which registrations a cache keeps by itself, beside those that the user has asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepRule {
    /// None: every call registers and releases its memory.
    Off,
    /// All, where memory that goes is announced.
    #[default]
    Events,
    /// All: where nothing is announced, memory is trusted to stay.
    Trust,
}

/// How a registration cache behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// What is kept.
    pub keep: KeepRule,
    /// Most bytes to keep registered; `None`: as many as the regions have.
    pub max_bytes: Option<u64>,
    /// Most regions to keep registered.
    pub max_regions: NonZeroU32,
    /// Where nothing is kept: calls whose data have up to this many bytes for each two registrations that they would
    /// need are copied through memory that stays registered.
    pub stage_bytes: u64,
}

/// Two registrations and their ends cost what a core copies in their time: 30 us each, at 12 bytes a ns. Of an allreduce
/// one and a half times the data are copied (`benches/registration.sh`).
const STAGE_BYTES: u64 = 512 << 10;

impl KeepRule {
    /// Where a cache of this process hears of memory events.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn source(self) -> Result<Arc<dyn EventSource>, String> {
        match self {
            KeepRule::Off => Err("nothing is kept".to_owned()),
            KeepRule::Events => ProcessEvents::shared(),
            KeepRule::Trust => ProcessEvents::shared().or_else(trust::source),
        }
    }
}

impl Default for CacheConfig {
    /// At most 1024 regions: well below the 6144 registrations that one command queue of Tofu hands
    /// out, as several caches may share a queue.
    fn default() -> Self {
        let max_regions = NonZeroU32::new(1024).expect("not zero");
        Self { keep: KeepRule::default(), max_bytes: None, max_regions, stage_bytes: STAGE_BYTES }
    }
}

/// The answer of [`Cache::settle`]: whether all memory that was unmapped before has been announced.
#[derive(Clone, Copy, Debug)]
pub struct Settled(bool);

/// How long a registration is to serve.
#[derive(Clone, Copy, Debug)]
pub enum Keep {
    /// For this lease.
    Once,
    /// Until its memory goes or the room is needed. The caller has received the memory before this
    /// answer.
    UntilEvent(Settled),
    /// Until the lease is given back, with or without events, and without being evicted: so long the
    /// caller promises not to take the memory away.
    Explicitly,
}

/// Keeps registrations of one rank for reuse. `H` stands for a registration at one port, and is
/// dropped to take it back.
///
/// Everything a port's interface does happens within calls for that port: a registration is made
/// and dropped in a [`get`](Cache::get), [`give_back`](Cache::give_back) or
/// [`end_all`](Cache::end_all) with its port's number. A caller that holds the port's lock in these
/// calls needs no other.
#[derive(Debug)]
pub struct Cache<H> {
    events: Option<Events>,
    config: CacheConfig,
    page: usize,
    regions: Regions<Counted<H>>,
    forks: usize,
    stats: CacheStats,
    counts: Arc<Counts>,
}

/// A new registration, what it covers, and the region that is to end with its lease.
type Made<H> = (Arc<Counted<H>>, Span, Option<Span>);

/// Where a cache hears of memory events.
#[derive(Debug)]
struct Events {
    source: Arc<dyn EventSource>,
    log: Arc<EventLog>,
    position: Position,
}

impl<H> Cache<H> {
    /// A cache for `n_ports` ports that hears of memory events from `source`. Where there is none,
    /// for a reason that [`CacheStats::mode`] repeats, only explicit registrations are kept.
    pub fn new(
        config: CacheConfig,
        n_ports: usize,
        source: Result<Arc<dyn EventSource>, String>,
    ) -> Self {
        let (mode, source) = match source {
            _ if config.keep == KeepRule::Off => (CacheMode::Off, None),
            Ok(source) => (source.mode(), Some(source)),
            Err(reason) => (CacheMode::NoEvents { reason }, None),
        };
        let listen = |source: Arc<dyn EventSource>| {
            let log = source.log();
            Events { source, position: log.position(), log }
        };
        forks::watch();
        Cache {
            events: source.map(listen),
            config,
            page: super::page_bytes(),
            regions: Regions::new(n_ports),
            forks: forks::state(),
            stats: CacheStats { mode, ..CacheStats::default() },
            counts: Arc::default(),
        }
    }

    /// A cache on the events of this process, or without events where the system offers none.
    pub fn with_process_events(config: CacheConfig, n_ports: usize) -> Self {
        Self::new(config, n_ports, config.keep.source())
    }

    /// Waits until every range that was taken away before this call is announced.
    ///
    /// A system that announces an unmapping only once it is done leaves a gap in which another
    /// thread may already have been given the same addresses. One system call closes it. It is
    /// needed once after the memory was received from the caller, for any number of lookups. If
    /// the reader of events does not run for too long, on a busy machine, lookups find nothing.
    pub fn settle(&self) -> Settled {
        let Some(Events { source, log, .. }) = &self.events else { return Settled(true) };
        let mut began = None;
        loop {
            let is_settled = source.settled();
            // Acquire: the look at the log may not move before the answer.
            fence(Ordering::Acquire);
            // While the log is busy, the reader is about to post a range.
            if is_settled && !log.is_busy() {
                return Settled(true);
            }
            if !source.wait(&mut began) {
                return Settled(false);
            }
        }
    }

    /// A registration of `len` bytes at `addr` at a port, kept or new; `register` makes one of whole
    /// pages. The caller vouches that the memory stays mapped until the lease is given back.
    ///
    /// # Errors
    /// [`CacheError`] when the range is none or the interface refuses it.
    pub fn get<E>(
        &mut self,
        keep: Keep,
        port: usize,
        addr: usize,
        len: usize,
        register: impl FnMut(usize, usize) -> Result<H, E>,
    ) -> Result<Lease<H>, CacheError<E>> {
        let span = Span::of_pages(addr, len, self.page).ok_or(CacheError::NoRange { addr, len })?;
        let is_explicit = matches!(keep, Keep::Explicitly);
        let is_settled = match keep {
            Keep::Once => false,
            Keep::UntilEvent(Settled(is_settled)) => is_settled,
            Keep::Explicitly => self.settle().0,
        };
        self.hear(span);
        if !is_settled {
            // A kept registration there may lead to unmapped pages, and an interface that shares registrations of
            // the same pages would not make a new one beside it.
            self.stats.invalidations += match is_explicit {
                true => self.regions.end(span),
                false => self.regions.end_idle(span),
            };
        }
        // The device has room for a limited number of registrations: ended ones go first.
        self.regions.drop_ended(port);
        let may_keep = (is_settled || is_explicit) && !forks::is_child();
        let known = if may_keep { self.hit(port, span) } else { None };
        let (handle, registered, explicit) = match known {
            Some((handle, registered)) => (handle, registered, None),
            None => {
                let made = self.make(may_keep, is_explicit, port, span, register);
                self.regions.drop_ended(port);
                made?
            }
        };
        Ok(Lease { handle, offset: (addr - registered.start()) as u64, explicit })
    }

    /// The registration at the port that has these pages, and what it covers.
    #[inline]
    fn hit(&mut self, port: usize, span: Span) -> Option<(Arc<Counted<H>>, Span)> {
        let found = self.regions.find(port, span)?;
        self.stats.hits += 1;
        Some(found)
    }

    /// A new registration, what it covers, and the region that is to end with its lease.
    fn make<E>(
        &mut self,
        may_keep: bool,
        is_explicit: bool,
        port: usize,
        span: Span,
        mut register: impl FnMut(usize, usize) -> Result<H, E>,
    ) -> Result<Made<H>, CacheError<E>> {
        for _ in 0..if may_keep { ATTEMPTS } else { 0 } {
            let known = self.regions.covering(span);
            let needs_events = known.is_none() && !is_explicit;
            if needs_events && !self.make_room(span) {
                break;
            }
            let whole = known.unwrap_or(span);
            let handle = self.register(port, whole, &mut register)?;
            if needs_events && !self.watch(span) {
                self.stats.uncached += 1;
                return Ok((handle, whole, None));
            }
            // An event of these pages since the registration may concern the very pages that are
            // registered, and may have ended their watch; making room may have ended the region.
            if self.hear(whole) || self.regions.covering(span) != known {
                drop(handle);
                continue;
            }
            self.stats.misses += 1;
            self.regions.put(whole, port, handle.clone());
            let ends = is_explicit && known.is_none();
            return Ok((handle, whole, ends.then_some(whole)));
        }
        let handle = self.register(port, span, &mut register)?;
        self.stats.uncached += 1;
        Ok((handle, span, None))
    }

    /// Ends the use of a registration at its port.
    pub fn give_back(&mut self, port: usize, lease: Lease<H>) {
        if let Some(span) = lease.explicit {
            self.regions.end_one(span);
        }
        self.regions.drop_ended(port);
    }

    /// Ends every kept registration, of all ports; those in use wait for their last lease. Those of
    /// this port are dropped now, those of others in the others' next calls.
    pub fn end_all(&mut self, port: usize) {
        self.stats.invalidations += self.regions.end(Span::EVERYTHING);
        self.regions.drop_ended(port);
    }

    /// Forgets what the port has registered, at its end: nothing of it may be in use.
    pub fn close(&mut self, port: usize) {
        self.regions.close(port);
    }

    /// The longest data that are copied rather than registered twice; `None` where registrations are kept.
    pub fn stage_bytes(&self) -> Option<u64> {
        self.events.is_none().then_some(self.config.stage_bytes)
    }

    /// What has happened so far.
    pub fn stats(&self) -> CacheStats {
        let (n_regions, registered_bytes) = self.regions.size();
        let [registrations, deregistrations] = self.counts.so_far();
        CacheStats {
            registered_regions: n_regions as u64,
            registered_bytes,
            registrations,
            deregistrations,
            ..self.stats.clone()
        }
    }

    /// What counts the interface's registrations, for those that are made beside the cache.
    pub(crate) fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// Registers; when the interface refuses, makes room and tries once more.
    fn register<E>(
        &mut self,
        port: usize,
        span: Span,
        register: &mut impl FnMut(usize, usize) -> Result<H, E>,
    ) -> Result<Arc<Counted<H>>, CacheError<E>> {
        let (addr, len) = (span.start(), span.len());
        let mut made = register(addr, len);
        if made.is_err() {
            while self.evict() {}
            self.regions.drop_ended(port);
            made = register(addr, len);
        }
        made.map(|handle| Arc::new(self.counts.made(handle)))
            .map_err(|source| CacheError::Register { addr, len, source })
    }

    /// Whether events of the pages are announced from now on.
    fn watch(&self, span: Span) -> bool {
        self.events.as_ref().is_some_and(|events| events.source.watch(span).is_ok())
    }

    /// Makes room for a region within the limits, evicting what was not used for longest. False if
    /// too much is in use, or there are no events; then nothing is evicted.
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

    /// Ends the idle region that was not used for longest, and its watch where no other region has
    /// the pages. False if there is none.
    fn evict(&mut self) -> bool {
        let Some(bare) = self.regions.evict() else { return false };
        self.stats.evictions += 1;
        if let Some(events) = &self.events {
            bare.into_iter().for_each(|span| events.source.unwatch(span));
        }
        true
    }

    /// Applies all events that happened before the call; true if one of them may concern a range.
    fn hear(&mut self, span: Span) -> bool {
        let mut concerned = false;
        let forks = forks::state();
        if forks != self.forks {
            // The parent's next write gives it new pages, and leaves the registered ones to the
            // child.
            self.forks = forks;
            concerned = true;
            self.stats.invalidations += self.regions.end(Span::EVERYTHING);
        }
        if let Some(Events { log, position, .. }) = &mut self.events
            && log.has_news(*position)
        {
            log.read(position, |of| {
                if planted::is(Planted::EventMissed) {
                    return;
                }
                concerned |= span.overlaps(of);
                self.stats.overflows += u64::from(of == Span::EVERYTHING);
                self.stats.invalidations += self.regions.end(of);
            });
        }
        concerned
    }
}
