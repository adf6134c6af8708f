//! The registration cache of a rank: regions sorted by address, each registered at the ports that
//! have asked for it.

use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex};

use hopbine_torus::PortId;

use super::config::{CacheConfig, KeepRule};
use super::events::EventSource;
use super::forks;
use super::kept::{Events, Kept, Put};
use super::lease::{CacheError, Lease};
use super::span::Span;
use super::stats::{CacheMode, CacheStats, Counted, Counts};
use crate::sync::lock;

/// Registrations tried for one lookup before it is served without being kept.
const ATTEMPTS: usize = 3;

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
/// and dropped in a [`get`](Cache::get), [`give_back`](Cache::give_back),
/// [`end_all`](Cache::end_all) or [`close`](Cache::close) with its port's number, one at a time. A caller that holds
/// the port's lock in these calls needs no other. Calls for other ports do not wait for what the interface does.
#[derive(Debug)]
pub struct Cache<H> {
    events: Option<Arc<Events>>,
    stage_bytes: Option<u64>,
    page: usize,
    kept: Mutex<Kept<H>>,
    counts: Arc<Counts>,
}

/// A new registration, what it covers, and the region that is to end with its lease.
type Made<H> = (Arc<Counted<H>>, Span, Option<Span>);

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
        let events = source.map(|source| Arc::new(Events { log: source.log(), source }));
        forks::watch();
        Cache {
            stage_bytes: events.is_none().then_some(config.stage_bytes),
            page: super::page_bytes(),
            kept: Mutex::new(Kept::new(config, n_ports, mode, events.clone())),
            events,
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
        let Some(Events { source, log }) = self.events.as_deref() else { return Settled(true) };
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
        &self,
        keep: Keep,
        port: PortId,
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
        let may_keep = (is_settled || is_explicit) && !forks::is_child();
        let known = self.with(port, |kept| {
            kept.hear();
            if !is_settled {
                // A kept registration there may lead to unmapped pages, and an interface that shares registrations of
                // the same pages would not make a new one beside it.
                kept.end(span, is_explicit);
            }
            if may_keep { kept.hit(port, span) } else { None }
        });
        let (handle, registered, explicit) = match known {
            Some((handle, registered)) => (handle, registered, None),
            None => self.make(may_keep, is_explicit, port, span, register)?,
        };
        Ok(Lease { handle, offset: (addr - registered.start()) as u64, explicit })
    }

    /// A new registration, what it covers, and the region that is to end with its lease.
    fn make<E>(
        &self,
        may_keep: bool,
        is_explicit: bool,
        port: PortId,
        span: Span,
        mut register: impl FnMut(usize, usize) -> Result<H, E>,
    ) -> Result<Made<H>, CacheError<E>> {
        for _ in 0..if may_keep { ATTEMPTS } else { 0 } {
            let Some(plan) = self.with(port, |kept| kept.begin(port, span, is_explicit)) else {
                break;
            };
            let handle = self.register(port, plan.whole, &mut register)?;
            let is_watched = !plan.needs_watch || self.watch(plan.whole);
            match self.with(port, |kept| kept.put(port, span, plan, is_watched, &handle)) {
                Put::Again => {}
                Put::NotKept => return Ok((handle, plan.whole, None)),
                Put::Kept { is_first } => {
                    let ends = is_explicit && is_first;
                    return Ok((handle, plan.whole, ends.then_some(plan.whole)));
                }
            }
        }
        let handle = self.register(port, span, &mut register)?;
        self.with(port, Kept::note_uncached);
        Ok((handle, span, None))
    }

    /// Ends the use of a registration at its port.
    pub fn give_back(&self, port: PortId, lease: Lease<H>) {
        let Lease { handle, explicit, .. } = lease;
        self.with(port, |kept| explicit.into_iter().for_each(|span| kept.end_one(span)));
        drop(handle);
    }

    /// Ends every kept registration, of all ports; those in use wait for their last lease. Those of
    /// this port are dropped now, those of others in the others' next calls.
    pub fn end_all(&self, port: PortId) {
        self.with(port, |kept| kept.end(Span::EVERYTHING, true));
    }

    /// Forgets what the port has registered, at its end: nothing of it may be in use.
    pub fn close(&self, port: PortId) {
        self.with(port, |kept| kept.close(port));
    }

    /// The longest data that are copied rather than registered twice; `None` where registrations are kept.
    pub fn stage_bytes(&self) -> Option<u64> {
        self.stage_bytes
    }

    /// What has happened so far.
    pub fn stats(&self) -> CacheStats {
        let [registrations, deregistrations] = self.counts.so_far();
        let stage_bytes = self.stage_bytes;
        CacheStats { registrations, deregistrations, stage_bytes, ..lock(&self.kept).stats() }
    }

    /// What counts the interface's registrations, for those that are made beside the cache.
    pub(crate) fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// Does something under the lock, and then lets go of what has ended of the port's registrations: without the
    /// lock, since that takes the interface long. It has room for a limited number.
    #[inline]
    fn with<R>(&self, port: PortId, act: impl FnOnce(&mut Kept<H>) -> R) -> R {
        let mut kept = lock(&self.kept);
        let answer = act(&mut kept);
        let ended = kept.take_ended(port);
        drop(kept);
        drop(ended);
        answer
    }

    /// Registers; when the interface refuses, makes room and tries once more.
    fn register<E>(
        &self,
        port: PortId,
        span: Span,
        register: &mut impl FnMut(usize, usize) -> Result<H, E>,
    ) -> Result<Arc<Counted<H>>, CacheError<E>> {
        let (addr, len) = (span.start(), span.len());
        let mut made = register(addr, len);
        if made.is_err() {
            self.with(port, |kept| kept.evict_all(port));
            made = register(addr, len);
        }
        made.map(|handle| Arc::new(self.counts.made(handle)))
            .map_err(|source| CacheError::Register { addr, len, source })
    }

    /// Whether events of the pages are announced from now on.
    fn watch(&self, span: Span) -> bool {
        self.events.as_ref().is_some_and(|events| events.source.watch(span).is_ok())
    }
}
