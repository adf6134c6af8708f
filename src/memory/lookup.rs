//! The way of a lookup through the cache: without the lock, with it, by registering.
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
//! another thread was faster, its region is used; if an event of these pages came in
//! between, it tries again, since the event may have taken the watch off them.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::thread;

use super::cache::RegistrationCache;
use super::interval::Span;
use super::lease::{Lease, Ticket};
use super::registrar::{CacheError, Registrar};
use super::slots::{Chain, Slot};
use super::table::{Admission, Table};

/// Entries of the table in front of the lock; a power of two.
pub(super) const FRONT: usize = 256;
/// Registrations tried for one lookup before it is served without being kept.
const ATTEMPTS: usize = 3;

/// Who answers for memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    User,
    Library,
}

impl<R: Registrar> RegistrationCache<R> {
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
    pub(super) fn find(
        &self,
        addr: usize,
        len: usize,
        owner: Owner,
    ) -> Result<Lease<'_, R>, CacheError<R::Error>> {
        let span = Span::of_pages(addr, len, self.page)?;
        // Without a source nobody answers for what is kept of the user's memory, not
        // even where it lies inside memory of the library.
        let may_hit = owner == Owner::Library || self.source.is_some();
        let ticket = match may_hit.then(|| self.hit(span)).flatten() {
            Some(id) => Ticket::Kept(id),
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
            let heard = table.heard();
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
            if table.disturbed_since(heard, span) {
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

    pub(super) fn register_once(
        &self,
        span: Span,
    ) -> Result<Ticket<R::Handle>, CacheError<R::Error>> {
        let handle = self.register(span)?;
        Ok(self.once(span, handle))
    }

    fn once(&self, span: Span, handle: R::Handle) -> Ticket<R::Handle> {
        self.uncached.fetch_add(1, Ordering::Relaxed);
        Ticket::Once { start: span.start(), handle: Some(handle) }
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
            .map_err(|source| CacheError::Register { addr: span.start(), len: span.len(), source })
    }

    pub(super) fn release_handle(&self, handle: R::Handle) {
        self.registrar.release(handle);
    }

    /// Releases what a chain holds. Never under the lock.
    pub(super) fn release(&self, mut doomed: Chain) {
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
    pub(super) fn drained_table(&self) -> (MutexGuard<'_, Table>, Chain) {
        loop {
            if !self.queue.is_busy() {
                let mut table = self.lock();
                // Under the lock nobody drains, so busy means: about to be posted.
                if !self.queue.is_busy() {
                    let mut doomed = Chain::new();
                    if !self.queue.is_quiet() {
                        self.queue.drain(|event| table.hear(&self.slots, event, &mut doomed));
                    }
                    return (table, doomed);
                }
            }
            thread::yield_now();
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        // A panic under the lock is a defect of the table; its maps are whole between
        // any two statements, so the others may go on.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
