//! The registration cache: intervals, an injected [`Registrar`], and an injected
//! [`EventSource`], put together.
//!
//! The way of a lookup through it is in `lookup`.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex};
use std::thread;

use super::config::CacheConfig;
use super::events::{EventQueue, EventSource};
use super::interval::Span;
use super::lease::Lease;
use super::lookup::{FRONT, Owner};
use super::monitor::ProcessEvents;
use super::registrar::{CacheError, Registrar};
use super::slots::{Chain, Slot};
use super::stats::{CacheMode, CacheStats};
use super::table::{Table, slot_count};

/// Proof that all memory taken away before its making has been announced; see
/// [`RegistrationCache::settle`].
#[derive(Clone, Copy, Debug)]
pub struct Settled(());

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
    pub(super) registrar: R,
    pub(super) source: Option<Arc<dyn EventSource>>,
    pub(super) queue: Arc<EventQueue>,
    pub(super) slots: Box<[Slot<R::Handle>]>,
    pub(super) front: Box<[AtomicU32]>,
    pub(super) table: Mutex<Table>,
    pub(super) clock: AtomicU64,
    pub(super) enabled: bool,
    pub(super) page: usize,
    pub(super) misses: AtomicU64,
    pub(super) uncached: AtomicU64,
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

    /// Ends every kept registration; those in use are released by their last lease.
    pub fn invalidate_all(&self) {
        let (mut table, mut doomed) = self.drained_table();
        table.invalidate_all(&self.slots, &mut doomed);
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
            Some(source) => CacheMode::Events { source: source.name() },
            None => CacheMode::OwnedOnly,
        }
    }

    /// The registrar given at the start.
    pub fn registrar(&self) -> &R {
        &self.registrar
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
        f.debug_struct("RegistrationCache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
