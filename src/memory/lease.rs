//! The use of a registration, and the reasons why there is none.

use std::convert::Infallible;
use std::sync::Arc;

use thiserror::Error;

use super::span::Span;
use super::stats::Counted;

/// The reason why a range cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CacheError<E> {
    /// It is not a valid range of addresses.
    #[error(
        "{len} bytes at {addr:#x} are not a valid range of addresses: it is empty or leaves the address space"
    )]
    NoRange {
        /// Its address.
        addr: usize,
        /// Its length in bytes.
        len: usize,
    },
    /// The interface refuses the range; if it lacked room, even after idle registrations have been evicted.
    #[error("{len} bytes at {addr:#x} cannot be registered: {source}")]
    Register {
        /// First address, of a page.
        addr: usize,
        /// Length in bytes, of whole pages.
        len: usize,
        /// The interface's error.
        source: E,
    },
}

/// The error of an interface that refuses to register memory.
pub trait RegisterError {
    /// Whether the interface lacks room, so that it may accept the memory once other registrations have ended.
    fn lacks_room(&self) -> bool;
}

impl RegisterError for Infallible {
    fn lacks_room(&self) -> bool {
        match *self {}
    }
}

/// The use of a registration; [`Cache::release`](super::Cache::release) ends it.
#[must_use = "memory whose lease is not given back stays registered"]
#[derive(Debug)]
pub struct Lease<H> {
    pub(super) handle: Arc<Counted<H>>,
    pub(super) offset: u64,
    /// The region that ends with this lease.
    pub(super) owned_region: Option<Span>,
}

impl<H> Lease<H> {
    /// The registration at the port that requested it.
    pub fn handle(&self) -> &H {
        &self.handle
    }

    /// Distance of the requested address from the start of the registered range, in bytes, to be added to a STADD.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}
