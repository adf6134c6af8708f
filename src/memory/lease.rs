//! The use of a registration, and why there is none.

use thiserror::Error;

/// A range that cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CacheError<E> {
    /// It is no range of addresses.
    #[error(
        "{len} bytes at {addr:#x} are no range of addresses: it is empty or leaves the address space"
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
#[must_use = "a region that is not given back is never released"]
#[derive(Debug)]
pub struct Lease<H> {
    pub(super) held: Held<H>,
    pub(super) offset: u64,
}

#[derive(Debug)]
pub(super) enum Held<H> {
    /// One use of a region.
    Region {
        id: u32,
        /// The region ends with this lease.
        is_explicit: bool,
    },
    /// A registration of its own.
    Own(H),
}

impl<H> Lease<H> {
    /// Distance of the requested address from the start of the registered range, in bytes: what to
    /// add to a STADD.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}
