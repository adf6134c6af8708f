//! Leases: the right to use a registration, returned by dropping it.

use std::ops::Deref;
use std::sync::Arc;

use super::cache::RegistrationCache;
use super::registrar::Registrar;

/// What a lease stands for.
#[derive(Debug)]
pub(super) enum Ticket<H> {
    /// One pin on the kept region of this slot.
    Kept(u32),
    /// A registration of its own; `None` once it is given back.
    Once {
        /// First registered address.
        start: usize,
        /// The registration.
        handle: Option<H>,
    },
}

impl<H: Send + Sync> Ticket<H> {
    fn handle<'c, R: Registrar<Handle = H>>(&'c self, cache: &'c RegistrationCache<R>) -> &'c H {
        match self {
            // SAFETY: the ticket is a pin, and is given back only by its drop, which
            // the borrow of the ticket excludes.
            Self::Kept(id) => unsafe { cache.slot(*id).handle() },
            Self::Once { handle, .. } => handle.as_ref().expect("given back only when dropped"),
        }
    }

    fn start<R: Registrar<Handle = H>>(&self, cache: &RegistrationCache<R>) -> usize {
        match self {
            Self::Kept(id) => cache.slot(*id).span().start(),
            Self::Once { start, .. } => *start,
        }
    }

    fn give_back<R: Registrar<Handle = H>>(&mut self, cache: &RegistrationCache<R>) {
        match self {
            Self::Kept(id) => cache.unpin(*id),
            Self::Once { handle, .. } => {
                if let Some(handle) = handle.take() {
                    cache.release_handle(handle);
                }
            }
        }
    }
}

/// The use of a registration; dereferences to its handle.
#[must_use = "dropping a lease ends the use of the registration"]
pub struct Lease<'c, R: Registrar> {
    cache: &'c RegistrationCache<R>,
    /// `None` only after [`Lease::hold`] has taken it.
    ticket: Option<Ticket<R::Handle>>,
    addr: usize,
}

impl<'c, R: Registrar> Lease<'c, R> {
    #[inline]
    pub(super) fn new(
        cache: &'c RegistrationCache<R>,
        ticket: Ticket<R::Handle>,
        addr: usize,
    ) -> Self {
        Self { cache, ticket: Some(ticket), addr }
    }

    /// Distance of the requested address from the start of the registered range, in
    /// bytes. What to add to a STADD.
    pub fn offset(&self) -> u64 {
        (self.addr - self.ticket().start(self.cache)) as u64
    }

    /// The same use of the registration, keeping `cache` alive.
    ///
    /// # Panics
    /// When `cache` is another cache than the one the lease is from.
    pub fn hold(mut self, cache: &Arc<RegistrationCache<R>>) -> HeldLease<R> {
        assert!(
            std::ptr::eq(self.cache, Arc::as_ptr(cache)),
            "a lease is held with the cache it is from"
        );
        let offset = self.offset();
        let ticket = self.ticket.take().expect("taken only here");
        HeldLease { cache: Arc::clone(cache), ticket, offset }
    }

    fn ticket(&self) -> &Ticket<R::Handle> {
        self.ticket.as_ref().expect("taken only when consumed")
    }
}

impl<R: Registrar> Deref for Lease<'_, R> {
    type Target = R::Handle;

    fn deref(&self) -> &R::Handle {
        self.ticket().handle(self.cache)
    }
}

impl<R: Registrar> Drop for Lease<'_, R> {
    #[inline]
    fn drop(&mut self) {
        if let Some(ticket) = &mut self.ticket {
            ticket.give_back(self.cache);
        }
    }
}

impl<R: Registrar> std::fmt::Debug for Lease<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease").field("addr", &self.addr).finish_non_exhaustive()
    }
}

/// A [`Lease`] that keeps its cache alive instead of borrowing it.
#[must_use = "dropping a lease ends the use of the registration"]
pub struct HeldLease<R: Registrar> {
    cache: Arc<RegistrationCache<R>>,
    ticket: Ticket<R::Handle>,
    offset: u64,
}

impl<R: Registrar> HeldLease<R> {
    /// As [`Lease::offset`].
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl<R: Registrar> Deref for HeldLease<R> {
    type Target = R::Handle;

    fn deref(&self) -> &R::Handle {
        self.ticket.handle(&self.cache)
    }
}

impl<R: Registrar> Drop for HeldLease<R> {
    fn drop(&mut self) {
        self.ticket.give_back(&self.cache);
    }
}

impl<R: Registrar> std::fmt::Debug for HeldLease<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeldLease").field("offset", &self.offset).finish_non_exhaustive()
    }
}
