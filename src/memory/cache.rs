//! The registration cache of a rank: regions sorted by address, each registered at the ports that
//! have asked for it.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use super::config::CacheConfig;
use super::events::{EventQueue, EventSource};
use super::forks;
use super::lease::{CacheError, Kind, Lease};
use super::monitor::ProcessEvents;
use super::regions::Regions;
use super::span::Span;
use super::stats::{CacheMode, CacheStats};

/// Registrations tried for one lookup before it is served without being kept.
const ATTEMPTS: usize = 3;
/// How long the announcement of an unmapping may take. After that lookups find nothing.
const PATIENCE: Duration = Duration::from_millis(200);

/// The answer of [`Cache::settle`]: whether all memory that was unmapped before has been announced.
#[derive(Clone, Copy, Debug)]
pub struct Settled(bool);

/// Keeps registrations of one rank for reuse. `H` stands for a registration at one port, and is
/// dropped to take it back.
///
/// Everything a port's interface does happens within calls for that port: a registration is made
/// and dropped in a [`get`](Cache::get), [`give_back`](Cache::give_back) or
/// [`end_all`](Cache::end_all) with its port's number. A caller that holds the port's lock in these
/// calls needs no other.
#[derive(Debug)]
pub struct Cache<H> {
    source: Option<Arc<dyn EventSource>>,
    /// Why there is no source.
    reason: String,
    queue: Arc<EventQueue>,
    config: CacheConfig,
    page: usize,
    regions: Regions<H>,
    forks: usize,
    figures: Figures,
}

#[derive(Debug, Default)]
struct Figures {
    hits: u64,
    misses: u64,
    uncached: u64,
}

impl<H> Cache<H> {
    /// A cache for `n_ports` ports that hears of memory events from `source`. Without one nothing
    /// is kept.
    pub fn new(config: CacheConfig, n_ports: usize, source: Option<Arc<dyn EventSource>>) -> Self {
        let source = source.filter(|_| config.enabled);
        let queue = match &source {
            Some(source) => source.subscribe(),
            None => Arc::new(EventQueue::new(1)),
        };
        forks::watch();
        Cache {
            source,
            reason: "there is no source of memory events".to_owned(),
            queue,
            config,
            page: super::page_bytes(),
            regions: Regions::new(n_ports, config.max_regions.get() as usize),
            forks: forks::count(),
            figures: Figures::default(),
        }
    }

    /// A cache on the events of this process, or without events where the system offers none;
    /// [`CacheStats::mode`] says which.
    pub fn with_process_events(config: CacheConfig, n_ports: usize) -> Self {
        if !config.enabled {
            return Self::new(config, n_ports, None);
        }
        match ProcessEvents::shared() {
            Ok(events) => Self::new(config, n_ports, Some(events)),
            Err(error) => Cache { reason: error.to_string(), ..Self::new(config, n_ports, None) },
        }
    }

    /// Waits until every range that was taken away before this call is announced.
    ///
    /// A system that announces an unmapping only once it is done leaves a gap in which another
    /// thread may already have been given the same addresses. One system call closes it. It is
    /// needed once after the memory was received from the caller, for any number of lookups. If
    /// the reader of events does not run for too long, on a busy machine, lookups find nothing.
    pub fn settle(&self) -> Settled {
        let Some(source) = &self.source else { return Settled(true) };
        let mut started = None;
        let is_announced = || {
            let is_settled = source.settled();
            // Acquire: the look at the queue may not move before the answer.
            fence(Ordering::Acquire);
            // While the queue is busy, the reader is about to post a range.
            is_settled && !self.queue.is_busy()
        };
        while !is_announced() {
            if started.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return Settled(false);
            }
            std::thread::yield_now();
        }
        Settled(true)
    }

    /// A registration of `len` bytes at `addr` at a port, kept or new; `register` makes one of whole
    /// pages. The caller vouches that the memory stays mapped until the lease is given back, and
    /// has received it before `settled` was made.
    ///
    /// # Errors
    /// [`CacheError`] when the range is none or the interface refuses it.
    pub fn get<E>(
        &mut self,
        settled: Settled,
        port: usize,
        addr: usize,
        len: usize,
        register: impl FnMut(usize, usize) -> Result<H, E>,
    ) -> Result<Lease<H>, CacheError<E>> {
        let span = Span::of_pages(addr, len, self.page)?;
        let found = self.find(settled, port, addr, span, register);
        self.regions.drop_doomed(port);
        found
    }

    fn find<E>(
        &mut self,
        settled: Settled,
        port: usize,
        addr: usize,
        span: Span,
        mut register: impl FnMut(usize, usize) -> Result<H, E>,
    ) -> Result<Lease<H>, CacheError<E>> {
        self.hear(None);
        // The device has room for a limited number of registrations: ended ones go first.
        self.regions.drop_doomed(port);
        self.regions.tick();
        for _ in 0..ATTEMPTS {
            if !settled.0 || forks::is_child() {
                break;
            }
            let Some(id) = self.regions.covering(span) else {
                if self.source.is_none() || !self.make_room(span) {
                    break;
                }
                let handle = self.register(port, span, &mut register)?;
                if self.source.as_ref().is_some_and(|source| source.watch(span).is_err()) {
                    return Ok(self.lone(span, addr, handle));
                }
                // An event of these pages since the registration may concern the very pages that
                // are registered, and may have ended their watch.
                if self.hear(Some(span)) {
                    drop(handle);
                    continue;
                }
                self.figures.misses += 1;
                let id = self.regions.admit(span, port, handle);
                return Ok(self.lease(id, addr));
            };
            if self.regions.handle(id, port).is_some() {
                self.figures.hits += 1;
                return Ok(self.lease(id, addr));
            }
            let whole = self.regions.span(id);
            let handle = self.register(port, whole, &mut register)?;
            self.hear(None);
            if self.regions.covering(whole) != Some(id) {
                // The region has ended meanwhile: this registration may lead to unmapped pages.
                drop(handle);
                continue;
            }
            self.figures.misses += 1;
            self.regions.put(id, port, handle);
            return Ok(self.lease(id, addr));
        }
        let handle = self.register(port, span, &mut register)?;
        Ok(self.lone(span, addr, handle))
    }

    /// Registers memory that the caller promises not to take away before the lease is given back:
    /// until then lookups find it, with or without events. It is not evicted.
    ///
    /// # Errors
    /// As [`Cache::get`].
    pub fn keep<E>(
        &mut self,
        port: usize,
        addr: usize,
        len: usize,
        mut register: impl FnMut(usize, usize) -> Result<H, E>,
    ) -> Result<Lease<H>, CacheError<E>> {
        let span = Span::of_pages(addr, len, self.page)?;
        let settled = self.settle();
        self.hear(None);
        if !settled.0 {
            // A kept registration there may lead to unmapped pages.
            self.regions.end(Some(span));
        }
        self.regions.drop_doomed(port);
        self.regions.tick();
        let known = self.regions.covering(span);
        let whole = known.map_or(span, |id| self.regions.span(id));
        if known.is_none_or(|id| self.regions.handle(id, port).is_none()) {
            let handle = self.register(port, whole, &mut register)?;
            match self.regions.covering(span) {
                // Making room may have ended the region.
                Some(id) if Some(id) == known => self.regions.put(id, port, handle),
                _ if forks::is_child() => return Ok(self.lone(whole, addr, handle)),
                _ => {
                    let id = self.regions.admit(whole, port, handle);
                    let Lease { offset, .. } = self.lease(id, addr);
                    return Ok(Lease { kind: Kind::Explicit(id), offset });
                }
            }
        }
        let id = self.regions.covering(span).expect("it was found, and has been kept");
        Ok(self.lease(id, addr))
    }

    /// A registration of its own for this call.
    ///
    /// # Errors
    /// As [`Cache::get`].
    pub fn get_uncached<E>(
        &mut self,
        port: usize,
        addr: usize,
        len: usize,
        register: impl FnMut(usize, usize) -> Result<H, E>,
    ) -> Result<Lease<H>, CacheError<E>> {
        // Of memory that is not known to be settled nothing is looked up and nothing kept.
        self.get(Settled(false), port, addr, len, register)
    }

    /// The registration of a lease at the port that it is from.
    ///
    /// # Panics
    /// If it is from another port or another cache.
    pub fn handle<'a>(&'a self, port: usize, lease: &'a Lease<H>) -> &'a H {
        match &lease.kind {
            Kind::Kept(id) | Kind::Explicit(id) => self
                .regions
                .handle(*id, port)
                .expect("a region in use keeps the registrations that were leased"),
            Kind::Once(handle) => handle,
        }
    }

    /// Ends the use of a registration at its port.
    pub fn give_back(&mut self, port: usize, lease: Lease<H>) {
        match lease.kind {
            Kind::Kept(id) => self.regions.end_use(id),
            Kind::Explicit(id) => {
                self.regions.end_one(id);
                self.regions.end_use(id);
            }
            Kind::Once(_) => {}
        }
        self.regions.drop_doomed(port);
    }

    /// Ends every kept registration, of all ports; those in use wait for their last lease. Those of
    /// this port are dropped now, those of others in the others' next calls.
    pub fn end_all(&mut self, port: usize) {
        self.regions.end(None);
        self.regions.drop_doomed(port);
    }

    /// Forgets what the port has registered, at its end: nothing of it may be in use.
    pub fn close(&mut self, port: usize) {
        self.regions.close(port);
    }

    /// What has happened so far.
    pub fn stats(&self) -> CacheStats {
        CacheStats {
            mode: self.mode(),
            hits: self.figures.hits,
            misses: self.figures.misses,
            uncached: self.figures.uncached,
            evictions: self.regions.evictions,
            invalidations: self.regions.invalidations,
            overflows: self.queue.overflows(),
            registered_regions: self.regions.len() as u64,
            registered_bytes: self.regions.bytes,
            waiting_regions: self.regions.n_waiting() as u64,
        }
    }

    /// Whether registrations are kept, and if not, why.
    pub fn mode(&self) -> CacheMode {
        match &self.source {
            _ if !self.config.enabled => CacheMode::Off,
            Some(source) => CacheMode::Events { source: source.name() },
            None => CacheMode::NoEvents { reason: self.reason.clone() },
        }
    }

    /// The use of a region, for an address in it.
    fn lease(&mut self, id: u32, addr: usize) -> Lease<H> {
        self.regions.begin_use(id);
        Lease { kind: Kind::Kept(id), offset: (addr - self.regions.span(id).start()) as u64 }
    }

    /// The use of a registration that is not kept.
    fn lone(&mut self, span: Span, addr: usize, handle: H) -> Lease<H> {
        self.figures.uncached += 1;
        Lease { kind: Kind::Once(handle), offset: (addr - span.start()) as u64 }
    }

    /// Registers; when the interface refuses, makes room and tries once more.
    fn register<E>(
        &mut self,
        port: usize,
        span: Span,
        register: &mut impl FnMut(usize, usize) -> Result<H, E>,
    ) -> Result<H, CacheError<E>> {
        register(span.start(), span.len())
            .or_else(|_| {
                while self.evict() {}
                self.regions.drop_doomed(port);
                register(span.start(), span.len())
            })
            .map_err(|source| CacheError::Register { addr: span.start(), len: span.len(), source })
    }

    /// Makes room for a region within the limits, evicting what was not used for longest. False if
    /// too much is in use; then nothing is evicted.
    fn make_room(&mut self, span: Span) -> bool {
        let most = self.config.max_bytes.unwrap_or(u64::MAX);
        let n_most = self.config.max_regions.get() as usize;
        let fits =
            |n: usize, bytes: u64| n < n_most && bytes.saturating_add(span.len() as u64) <= most;
        let (n_used, bytes_used) = self.regions.in_use();
        if !fits(n_used, bytes_used) {
            return false;
        }
        while !fits(self.regions.len(), self.regions.bytes) {
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
        if let Some(source) = &self.source {
            bare.into_iter().for_each(|span| source.unwatch(span));
        }
        true
    }

    /// Applies all events that happened before the call; true if one of them may concern a range.
    fn hear(&mut self, span: Option<Span>) -> bool {
        let mut concerned = false;
        let forks = forks::count();
        if forks != self.forks {
            // The parent's next write gives it new pages, and leaves the registered ones to the
            // child.
            self.forks = forks;
            concerned = true;
            self.regions.end(None);
        }
        if !self.queue.is_quiet() {
            let regions = &mut self.regions;
            self.queue.drain(|of| {
                concerned |= of.is_none_or(|of| span.is_some_and(|span| span.overlaps(of)));
                regions.end(of);
            });
        }
        concerned
    }
}
