//! The registration cache: intervals, an injected [`Registrar`], and an injected
//! [`EventSource`], put together.
//!
//! # A hit without the lock
//! A small table maps a hash of the first page to the slot that last served it.
//! A hit reads the event word, that entry and the slot's bounds (lines that stay
//! shared between cores), then adds one user with a single compare-and-swap on
//! the slot; dropping the lease takes it away with a single subtraction. Hits are
//! counted in the same word. Threads that use different regions write no common
//! line; threads that use one region share its counter's line only.
//!
//! The event word is read **before** the pin. An event that happened before the
//! lookup makes the word non-zero until its range is applied; so either the word
//! is seen non-zero and the lookup takes the lock and drains, or the regions it hit
//! are dead by then and the pin fails.
//!
//! # A miss
//! Registers outside the lock, then offers the registration to the table. If
//! another thread was faster, its region is used; if an event came in between, it
//! tries again, since the event may have taken the watch off these pages.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::config::CacheConfig;
use super::events::{Event, EventQueue, EventSource};
use super::interval::Span;
use super::lease::{HeldLease, Lease, Ticket};
use super::monitor::ProcessEvents;
use super::registrar::{CacheError, Registrar};
use super::slots::{Chain, Slot};
use super::stats::{CacheMode, CacheStats};
use super::table::{Admission, Table, slot_count};

/// Entries of the table in front of the lock; a power of two.
const FRONT: usize = 256;
/// Registrations tried for one lookup before it is served without being kept.
const ATTEMPTS: usize = 3;

/// Proof that all memory taken away before its making has been announced; see
/// [`RegistrationCache::settle`].
#[derive(Clone, Copy, Debug)]
pub struct Settled(());

/// Who answers for memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    User,
    Library,
}

/// Keeps registrations of one [`Registrar`] for reuse.
///
/// ```
/// use std::convert::Infallible;
/// use hopbine::memory::{CacheConfig, Registrar, RegistrationCache};
///
/// /// An interface that needs no registration: the handle is the address.
/// struct Direct;
///
/// impl Registrar for Direct {
///     type Handle = u64;
///     type Error = Infallible;
///
///     fn register(&self, addr: usize, _len: usize) -> Result<u64, Infallible> {
///         Ok(addr as u64)
///     }
///
///     fn release(&self, _handle: u64) {}
/// }
///
/// let cache = RegistrationCache::with_process_events(Direct, CacheConfig::default());
/// let buffer = vec![0_u8; 10_000];
/// let lease = cache.get(buffer.as_ptr() as usize, buffer.len())?;
/// assert_eq!(*lease + lease.offset(), buffer.as_ptr() as u64);
/// # Ok::<(), hopbine::memory::CacheError<Infallible>>(())
/// ```
pub struct RegistrationCache<R: Registrar> {
    registrar: R,
    source: Option<Arc<dyn EventSource>>,
    queue: Arc<EventQueue>,
    slots: Box<[Slot<R::Handle>]>,
    front: Box<[AtomicU32]>,
    table: Mutex<Table>,
    clock: AtomicU64,
    enabled: bool,
    page: usize,
    misses: AtomicU64,
    uncached: AtomicU64,
}

impl<R: Registrar> RegistrationCache<R> {
    /// A cache that hears of memory events from `source`. Without one, only memory
    /// of the library is kept.
    pub fn new(registrar: R, config: CacheConfig, source: Option<Arc<dyn EventSource>>) -> Self {
        let limits = config.limits();
        let queue = match &source {
            Some(source) if config.enabled => source.subscribe(),
            _ => Arc::new(EventQueue::new(1)),
        };
        Self {
            registrar,
            source,
            queue,
            slots: (0..slot_count(limits)).map(|_| Slot::free()).collect(),
            front: (0..FRONT).map(|_| AtomicU32::new(u32::MAX)).collect(),
            table: Mutex::new(Table::new(limits)),
            clock: AtomicU64::new(0),
            enabled: config.enabled,
            page: super::page_bytes(),
            misses: AtomicU64::new(0),
            uncached: AtomicU64::new(0),
        }
    }

    /// A cache on the events of this process, or without events where the system
    /// offers none; [`CacheStats::mode`] says which.
    pub fn with_process_events(registrar: R, config: CacheConfig) -> Self {
        let source = config
            .enabled
            .then(ProcessEvents::shared)
            .and_then(Result::ok)
            .map(|events| events as Arc<dyn EventSource>);
        Self::new(registrar, config, source)
    }

    /// A registration of `len` bytes at `addr`, kept or new. The caller vouches that
    /// the memory stays mapped until the lease is dropped.
    ///
    /// # Errors
    /// [`CacheError`] when the range is none or the interface refuses it.
    pub fn get(&self, addr: usize, len: usize) -> Result<Lease<'_, R>, CacheError<R::Error>> {
        let settled = self.settle();
        self.get_settled(settled, addr, len)
    }

    /// Waits until every range that was taken away before this call is announced.
    ///
    /// A system that announces an unmapping only once it is done leaves a gap in which
    /// another thread may already have been given the same addresses. One system
    /// call closes it. It is needed once after the memory was received from the
    /// caller, for any number of lookups in any number of caches of one source: an
    /// engine settles at the start of a collective and then calls
    /// [`RegistrationCache::get_settled`] for each port.
    pub fn settle(&self) -> Settled {
        if let (true, Some(source)) = (self.enabled, &self.source) {
            while !source.settled() {
                thread::yield_now();
            }
            // Acquire: reads of the event word may not move before the answer.
            fence(Ordering::Acquire);
        }
        Settled(())
    }

    /// [`RegistrationCache::get`] of memory that was received before `settled` was
    /// made.
    ///
    /// # Errors
    /// As [`RegistrationCache::get`].
    #[inline]
    pub fn get_settled(
        &self,
        _settled: Settled,
        addr: usize,
        len: usize,
    ) -> Result<Lease<'_, R>, CacheError<R::Error>> {
        self.find(addr, len, Owner::User)
    }

    /// A registration of memory that belongs to this library. It is kept even where
    /// no event source works: the owner calls [`RegistrationCache::invalidate`] before
    /// the memory goes.
    ///
    /// # Errors
    /// As [`RegistrationCache::get`].
    pub fn get_owned(&self, addr: usize, len: usize) -> Result<Lease<'_, R>, CacheError<R::Error>> {
        self.find(addr, len, Owner::Library)
    }

    /// A registration of its own for this call, released when the lease is dropped.
    ///
    /// # Errors
    /// As [`RegistrationCache::get`].
    pub fn get_uncached(
        &self,
        addr: usize,
        len: usize,
    ) -> Result<Lease<'_, R>, CacheError<R::Error>> {
        let span = Span::of_pages(addr, len, self.page)?;
        let ticket = self.register_once(span)?;
        Ok(Lease::new(self, ticket, addr))
    }

    /// [`RegistrationCache::get`], with a lease that keeps the cache alive instead of
    /// borrowing it: for persistent requests.
    ///
    /// # Errors
    /// As [`RegistrationCache::get`].
    pub fn hold(
        self: &Arc<Self>,
        addr: usize,
        len: usize,
    ) -> Result<HeldLease<R>, CacheError<R::Error>> {
        Ok(self.get(addr, len)?.hold(self))
    }

    /// [`RegistrationCache::get_owned`], with a lease that keeps the cache alive.
    ///
    /// # Errors
    /// As [`RegistrationCache::get`].
    pub fn hold_owned(
        self: &Arc<Self>,
        addr: usize,
        len: usize,
    ) -> Result<HeldLease<R>, CacheError<R::Error>> {
        Ok(self.get_owned(addr, len)?.hold(self))
    }

    /// Ends every kept registration that shares a page with `len` bytes at `addr`;
    /// those in use are released by their last lease. Not to be called from where
    /// memory is being taken away: such places post to the [`EventQueue`].
    pub fn invalidate(&self, addr: usize, len: usize) {
        let Ok(span) = Span::of_pages(addr, len, self.page) else {
            return;
        };
        let (mut table, mut doomed) = self.drained_table();
        table.invalidate(&self.slots, span, &mut doomed);
        drop(table);
        self.release(doomed);
    }

    /// What has happened so far.
    pub fn stats(&self) -> CacheStats {
        let counts = self.lock().counts(&self.slots);
        CacheStats {
            mode: self.mode(),
            hits: counts.hits,
            // Relaxed: statistics.
            misses: self.misses.load(Ordering::Relaxed),
            uncached: self.uncached.load(Ordering::Relaxed),
            evictions: counts.evictions,
            invalidations: counts.invalidations,
            overflows: self.queue.overflows(),
            registered_regions: counts.regions,
            registered_bytes: counts.bytes,
            waiting_regions: counts.waiting_regions,
        }
    }

    /// Whose memory is kept.
    pub fn mode(&self) -> CacheMode {
        match &self.source {
            _ if !self.enabled => CacheMode::Off,
            Some(source) => CacheMode::Events {
                source: source.name(),
            },
            None => CacheMode::OwnedOnly,
        }
    }

    /// The registrar given at the start.
    pub fn registrar(&self) -> &R {
        &self.registrar
    }

    pub(super) fn slot(&self, id: u32) -> &Slot<R::Handle> {
        &self.slots[id as usize]
    }

    /// Ends one use of a region and releases it if that was the last of a dead one.
    pub(super) fn unpin(&self, id: u32) {
        if self.slot(id).unpin() {
            let mut doomed = Chain::new();
            doomed.push(&self.slots, id);
            self.release(doomed);
        }
    }

    #[inline]
    fn find(
        &self,
        addr: usize,
        len: usize,
        owner: Owner,
    ) -> Result<Lease<'_, R>, CacheError<R::Error>> {
        let span = Span::of_pages(addr, len, self.page)?;
        let ticket = match self.hit(span) {
            Some(id) if owner == Owner::Library || self.source.is_some() => Ticket::Kept(id),
            Some(id) => {
                self.unpin(id);
                self.register_once(span)?
            }
            None => self.find_slowly(span, owner)?,
        };
        Ok(Lease::new(self, ticket, addr))
    }

    /// The hit without the lock; see the head of this file.
    #[inline]
    fn hit(&self, span: Span) -> Option<u32> {
        if !self.queue.is_quiet() {
            return None;
        }
        // Relaxed: only a hint where to look; the pin decides.
        let id = self.front[self.front_index(span)].load(Ordering::Relaxed);
        let slot = self.slots.get(id as usize)?;
        if !slot.covers(span) || !slot.try_pin() {
            return None;
        }
        if !slot.covers(span) {
            // The slot became another region between the look and the pin.
            self.unpin(id);
            return None;
        }
        slot.touch(self.clock.load(Ordering::Relaxed));
        Some(id)
    }

    #[inline]
    fn front_index(&self, span: Span) -> usize {
        let page = (span.start() >> self.page.trailing_zeros()) as u64;
        // Fibonacci hashing: the high bits of a product with 2^64 / golden ratio.
        (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FRONT.trailing_zeros())) as usize
    }

    #[cold]
    fn find_slowly(
        &self,
        span: Span,
        owner: Owner,
    ) -> Result<Ticket<R::Handle>, CacheError<R::Error>> {
        let kept = self.enabled && (owner == Owner::Library || self.source.is_some());
        if !kept {
            return self.register_once(span);
        }
        for _ in 0..ATTEMPTS {
            let (table, doomed) = self.drained_table();
            let found = table.lookup(&self.slots, span);
            let posted = self.queue.posted();
            drop(table);
            self.release(doomed);
            if let Some(id) = found {
                return Ok(self.remember(span, id));
            }

            let handle = self.register(span)?;
            if let (Owner::User, Some(source)) = (owner, &self.source)
                && source.watch(span).is_err()
            {
                return Ok(self.once(span, handle));
            }

            let (mut table, mut doomed) = self.drained_table();
            if self.queue.posted() != posted {
                drop(table);
                self.release(doomed);
                self.registrar.release(handle);
                continue;
            }
            let admission = table.admit(&self.slots, span, handle, &mut doomed);
            // Relaxed: only the order of evictions depends on it.
            self.clock.store(table.clock(), Ordering::Relaxed);
            drop(table);
            self.release(doomed);
            return Ok(match admission {
                Admission::Admitted(id) => {
                    self.misses.fetch_add(1, Ordering::Relaxed);
                    self.remember(span, id)
                }
                Admission::Covered(id, handle) => {
                    self.registrar.release(handle);
                    self.remember(span, id)
                }
                Admission::NoRoom(handle) => self.once(span, handle),
            });
        }
        self.register_once(span)
    }

    fn remember(&self, span: Span, id: u32) -> Ticket<R::Handle> {
        // Relaxed: a hint, as in `hit`.
        self.front[self.front_index(span)].store(id, Ordering::Relaxed);
        Ticket::Kept(id)
    }

    fn register_once(&self, span: Span) -> Result<Ticket<R::Handle>, CacheError<R::Error>> {
        let handle = self.register(span)?;
        Ok(self.once(span, handle))
    }

    fn once(&self, span: Span, handle: R::Handle) -> Ticket<R::Handle> {
        self.uncached.fetch_add(1, Ordering::Relaxed);
        Ticket::Once {
            start: span.start(),
            handle: Some(handle),
        }
    }

    /// Registers; when the interface refuses, makes room and tries once more.
    fn register(&self, span: Span) -> Result<R::Handle, CacheError<R::Error>> {
        let attempt = || self.registrar.register(span.start(), span.len());
        attempt()
            .or_else(|_| {
                let mut doomed = Chain::new();
                self.lock().evict_idle(&self.slots, &mut doomed);
                self.release(doomed);
                attempt()
            })
            .map_err(|source| CacheError::Register {
                addr: span.start(),
                len: span.len(),
                source,
            })
    }

    pub(super) fn release_handle(&self, handle: R::Handle) {
        self.registrar.release(handle);
    }

    /// Releases what a chain holds. Never under the lock.
    fn release(&self, mut doomed: Chain) {
        while let Some(id) = doomed.pop(&self.slots) {
            let slot = self.slot(id);
            let bytes = slot.span().len();
            // SAFETY: chains hold regions whose releaser their pusher was, and each
            // is popped once.
            let (handle, hits) = unsafe { slot.take() };
            self.registrar.release(handle);
            self.lock().recycle(id, bytes, hits);
        }
    }

    /// The table with every event applied that happened before the call, and the
    /// regions that ended by it, to be released once the lock is gone.
    fn drained_table(&self) -> (MutexGuard<'_, Table>, Chain) {
        loop {
            if !self.queue.is_busy() {
                let mut table = self.lock();
                // Under the lock nobody drains, so busy means: about to be posted.
                if !self.queue.is_busy() {
                    let mut doomed = Chain::new();
                    if !self.queue.is_quiet() {
                        self.queue.drain(|event| match event {
                            Event::Range(span) => {
                                table.invalidate(&self.slots, span, &mut doomed);
                            }
                            Event::Everything => table.invalidate_all(&self.slots, &mut doomed),
                        });
                    }
                    return (table, doomed);
                }
            }
            thread::yield_now();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // A panic under the lock is a defect of the table; its maps are whole between
        // any two statements, so the others may go on.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Registrar> Drop for RegistrationCache<R> {
    fn drop(&mut self) {
        // No lease is left: leases borrow the cache or keep it alive.
        let mut doomed = Chain::new();
        self.lock().invalidate_all(&self.slots, &mut doomed);
        self.release(doomed);
    }
}

impl<R: Registrar> std::fmt::Debug for RegistrationCache<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegistrationCache")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
