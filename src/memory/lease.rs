//! The use of a registration, and why there is none.

use std::sync::Arc;

use thiserror::Error;

use super::span::Span;
use super::stats::Counted;

/// A range that cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CacheError<E> {
    /// It is no range of addresses.
    #[error(
        "{len} bytes at {addr:#x} are not a valid range of addresses: it is empty or leaves the address space"
    )]
    NoRange {
        /// Its address.
        addr: usize,
        /// Its length in bytes.
        len: usize,
    },
    /// The interface refuses it, also after idle registrations have made room.
    #[error("{len} bytes at {addr:#x} cannot be registered: {source}")]
    Register {
        /// First address, of a page.
        addr: usize,
        /// Length in bytes, of whole pages.
        len: usize,
        /// What the interface says.
        source: E,
    },
}

/// The use of a registration, to be given back with [`Cache::give_back`](super::Cache::give_back).
#[must_use = "memory whose lease is not given back stays registered"]
#[derive(Debug)]
pub struct Lease<H> {
    pub(super) handle: Arc<Counted<H>>,
    pub(super) offset: u64,
    /// The region that ends with this lease.
    pub(super) explicit: Option<Span>,
}

impl<H> Lease<H> {
    /// The registration, at the port that asked for it.
    pub fn handle(&self) -> &H {
        &self.handle
    }

    /// Distance of the requested address from the start of the registered range, in bytes: what to
    /// add to a STADD.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}
