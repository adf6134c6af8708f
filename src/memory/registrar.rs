//! What a cache asks of an interface, and how it reports a refusal. The only file of
//! this room an endpoint has to implement anything from.

use std::error::Error;
use std::sync::Arc;

use thiserror::Error;

use super::interval::SpanError;

/// Registers memory with an interface. For uTofu: one registrar for each VCQ, and
/// the handle is the STADD.
pub trait Registrar: Send + Sync {
    /// What a registration yields.
    type Handle: Send + Sync;
    /// Why one fails.
    type Error: Error + 'static;

    /// Registers `len` bytes at `addr`, whole pages.
    ///
    /// # Errors
    /// Whatever the interface says; the cache then releases what nobody uses and
    /// tries once more.
    fn register(&self, addr: usize, len: usize) -> Result<Self::Handle, Self::Error>;

    /// Ends a registration. Its memory may be gone already.
    fn release(&self, handle: Self::Handle);
}

/// Caches may share a registrar.
impl<T: Registrar> Registrar for Arc<T> {
    type Handle = T::Handle;
    type Error = T::Error;

    fn register(&self, addr: usize, len: usize) -> Result<T::Handle, T::Error> {
        T::register(self, addr, len)
    }

    fn release(&self, handle: T::Handle) {
        T::release(self, handle);
    }
}

/// Why there is no registration.
#[derive(Debug, Error)]
pub enum CacheError<E: Error + 'static> {
    /// The range is none.
    #[error(transparent)]
    Span(#[from] SpanError),
    /// The interface refused it.
    #[error(
        "registering {len} bytes at {addr:#x} failed, also after unused registrations were released"
    )]
    Register {
        /// First address, of a whole page.
        addr: usize,
        /// Length in bytes, whole pages.
        len: usize,
        /// What the interface said.
        source: E,
    },
}
