//! The registration cache of a rank: regions sorted by address, each registered at the ports that have requested it.

use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex};

use hopbine_torus::PortId;

use super::cache_state::{Admission, CacheEvents, CacheState};
use super::config::{CacheConfig, KeepRule};
use super::events::EventSource;
use super::forks;
use super::lease::{CacheError, Lease, RegisterError};
use super::span::Span;
use super::stats::{CacheMode, CacheStats, Counted, RegistrationCounts};
use crate::sync::lock;

/// Registrations tried for one lookup before it is served without being kept.
const ATTEMPTS: usize = 3;

/// The result of [`Cache::settle`]: whether all memory that was unmapped before has been announced.
#[derive(Clone, Copy, Debug)]
pub struct Settled(bool);

/// The lifetime of a registration.
#[derive(Clone, Copy, Debug)]
pub enum Keep {
    /// This lease only.
    Once,
    /// Until the memory is taken away or the registration is evicted. The caller has received the memory before this
    /// [`Settled`] was made.
    UntilEvent(Settled),
    /// Until the lease is released, with or without events, and without eviction: the caller promises not to take
    /// the memory away until then.
    Explicitly,
}

/// Keeps registrations of one rank for reuse. `H` is a registration at one port; dropping it ends the registration.
///
/// A port's interface acts only within calls for that port: a registration is made and dropped in a
/// [`get`](Cache::get), [`release`](Cache::release), [`invalidate_all`](Cache::invalidate_all) or
/// [`close`](Cache::close) with its port's number, one at a time. A caller that holds the port's lock in these calls
/// needs no other lock. Calls for other ports do not wait for the interface.
#[derive(Debug)]
pub struct Cache<H> {
    events: Option<Arc<CacheEvents>>,
    stage_bytes: Option<u64>,
    page: usize,
    state: Mutex<CacheState<H>>,
    counts: Arc<RegistrationCounts>,
}

/// A new registration, its range, and the region that must end with its lease.
type NewRegistration<H> = (Arc<Counted<H>>, Span, Option<Span>);

impl<H> Cache<H> {
    /// A cache for `n_ports` ports, with memory events from `source`. Without a source, only explicit registrations
    /// are kept, and [`CacheStats::mode`] has the reason.
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
        let events = source.map(|source| Arc::new(CacheEvents { log: source.log(), source }));
        forks::watch();
        Cache {
            stage_bytes: events.is_none().then_some(config.stage_bytes),
            page: super::page_bytes(),
            state: Mutex::new(CacheState::new(config, n_ports, mode, events.clone())),
            events,
            counts: Arc::default(),
        }
    }

    /// A cache with the events of this process, or without events if the system offers none.
    pub fn with_process_events(config: CacheConfig, n_ports: usize) -> Self {
        Self::new(config, n_ports, config.keep.source())
    }

    /// Waits until every range that was taken away before this call has been announced.
    ///
    /// If the system announces an unmapping only after it, there is a gap in which another thread may already have
    /// been given the same addresses. One system call closes the gap. It is needed once after the memory was received
    /// from the caller, for any number of lookups. If the reader of events does not run for too long, on a busy
    /// machine, lookups find nothing.
    pub fn settle(&self) -> Settled {
        let Some(CacheEvents { source, log }) = self.events.as_deref() else {
            return Settled(true);
        };
        let mut began = None;
        loop {
            let is_settled = source.settled();
            // Acquire: the check of the log may not move before the answer.
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

    /// A registration of `len` bytes at `addr` at a port, kept or new. The caller guarantees that the memory stays
    /// mapped until the lease is released.
    ///
    /// `register` registers the whole pages of an address and a length, and returns the registration and its tag. The
    /// interface may give several registrations of the same pages one tag: then it has looked up the pages only for
    /// the first. If its third argument is true, it must not.
    ///
    /// # Errors
    /// [`CacheError`] if the range is invalid or the interface refuses it.
    pub fn get<E: RegisterError>(
        &self,
        keep: Keep,
        port: PortId,
        addr: usize,
        len: usize,
        register: impl FnMut(usize, usize, bool) -> Result<(H, u64), E>,
    ) -> Result<Lease<H>, CacheError<E>> {
        let span = Span::of_pages(addr, len, self.page).ok_or(CacheError::NoRange { addr, len })?;
        let is_explicit = matches!(keep, Keep::Explicitly);
        let is_settled = match keep {
            Keep::UntilEvent(Settled(is_settled)) => is_settled,
            Keep::Once | Keep::Explicitly => self.settle().0,
        };
        let is_once = matches!(keep, Keep::Once);
        let may_keep = !is_once && (is_settled || is_explicit) && !forks::is_child();
        let known = self.with(port, |state| {
            state.read_events();
            if !is_settled {
                // A kept registration of the range may lead to unmapped pages.
                state.invalidate(span);
            }
            if may_keep { state.hit(port, span) } else { None }
        });
        let (handle, registered, owned_region) = match known {
            Some((handle, registered)) => (handle, registered, None),
            None => self.register_new(may_keep, is_explicit, port, span, register)?,
        };
        Ok(Lease { handle, offset: (addr - registered.start()) as u64, owned_region })
    }

    /// Makes a registration; returns it with its range, and with the region that must end with its lease.
    fn register_new<E: RegisterError>(
        &self,
        may_keep: bool,
        is_explicit: bool,
        port: PortId,
        span: Span,
        mut register: impl FnMut(usize, usize, bool) -> Result<(H, u64), E>,
    ) -> Result<NewRegistration<H>, CacheError<E>> {
        for _ in 0..if may_keep { ATTEMPTS } else { 0 } {
            let Some(miss) = self.with(port, |state| state.begin(port, span, is_explicit)) else {
                break;
            };
            let handle = match self.register(port, miss.pages, &mut register) {
                Ok(handle) => handle,
                // The caller does not promise the rest of a larger region, which may be gone.
                Err(_) if miss.pages != span => break,
                Err(error) => return Err(error),
            };
            let is_watched = !miss.needs_watch || self.watch(miss.pages);
            match self.with(port, |state| state.put(port, span, miss, is_watched, &handle)) {
                Admission::Retry => {}
                Admission::NotKept => return Ok((handle, miss.pages, None)),
                Admission::Kept { is_first } => {
                    let ends = is_explicit && is_first;
                    return Ok((handle, miss.pages, ends.then_some(miss.pages)));
                }
            }
        }
        let handle = self.register(port, span, &mut register)?;
        self.with(port, CacheState::note_uncached);
        Ok((handle, span, None))
    }

    /// Ends the use of a registration at its port.
    pub fn release(&self, port: PortId, lease: Lease<H>) {
        let Lease { handle, owned_region, .. } = lease;
        self.with(port, |state| owned_region.into_iter().for_each(|span| state.remove(span)));
        drop(handle);
    }

    /// Ends every kept registration, of all ports; those in use exist until their last lease is released.
    /// Registrations at this port are dropped now, others in the next calls for their ports.
    pub fn invalidate_all(&self, port: PortId) {
        self.with(port, |state| state.invalidate(Span::EVERYTHING));
    }

    /// Drops all registrations of a port, at its end: none may be in use.
    pub fn close(&self, port: PortId) {
        self.with(port, |state| state.close(port));
    }

    /// Largest number of data bytes for which copies replace two registrations; `None` if registrations are kept.
    pub fn stage_bytes(&self) -> Option<u64> {
        self.stage_bytes
    }

    /// Statistics so far.
    pub fn stats(&self) -> CacheStats {
        let [registrations, deregistrations] = self.counts.so_far();
        let stage_bytes = self.stage_bytes;
        CacheStats { registrations, deregistrations, stage_bytes, ..lock(&self.state).stats() }
    }

    /// The counter of the interface's registrations, for registrations made outside the cache.
    pub(crate) fn counts(&self) -> &Arc<RegistrationCounts> {
        &self.counts
    }

    /// Calls `act` under the lock, and then drops the port's registrations that have ended: without the lock, since
    /// that takes the interface long, and at once, since the interface has a limited number of registrations.
    #[inline]
    fn with<R>(&self, port: PortId, act: impl FnOnce(&mut CacheState<H>) -> R) -> R {
        let mut state = lock(&self.state);
        let answer = act(&mut state);
        let ended = state.take_ended(port);
        drop(state);
        drop(ended);
        answer
    }

    fn register<E: RegisterError>(
        &self,
        port: PortId,
        span: Span,
        register: &mut impl FnMut(usize, usize, bool) -> Result<(H, u64), E>,
    ) -> Result<Arc<Counted<H>>, CacheError<E>> {
        let (addr, len) = (span.start(), span.len());
        let mut made = |alone| {
            let (handle, tag) = self
                .with_room(port, || register(addr, len, alone))
                .map_err(|source| CacheError::Register { addr, len, source })?;
            let handle = Arc::new(self.counts.made(handle));
            let is_current = lock(&self.state).note_made(port, span, tag, &handle);
            Ok((handle, is_current))
        };
        let (handle, is_current) = made(false)?;
        Ok(if is_current { handle } else { made(true)?.0 })
    }

    /// Registers at a port; if the interface lacks room, evicts idle regions and tries once more.
    ///
    /// # Errors
    /// The interface's.
    pub fn with_room<T, E: RegisterError>(
        &self,
        port: PortId,
        mut register: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let made = register();
        if !made.as_ref().is_err_and(RegisterError::lacks_room) {
            return made;
        }
        self.with(port, |state| state.evict_all(port));
        register()
    }

    /// Watches the pages; returns whether their events are announced from now on.
    fn watch(&self, span: Span) -> bool {
        self.events.as_ref().is_some_and(|events| events.source.watch(span).is_ok())
    }
}
