//! Memory that a network interface may reach: the registration cache, the
//! memory events that keep it honest, and the library's own pages (`Pages`).
//!
//! A registration pins pages and is expensive, so it is kept after use
//! ([`RegistrationCache`]). It must never outlive its memory: a range that is
//! unmapped and mapped again has other pages under the same address, and a kept
//! registration still leads to the old ones. An [`EventSource`] therefore
//! announces every range that loses its pages; [`ProcessEvents`] is the real one.
//! Where no source works, memory of the user is registered for each call; [`CacheStats`]
//! says so.
//!
//! Prior art, read for its shape: the registration caches of UCX
//! (`src/ucs/memory/rcache.c`) and libfabric (`prov/util/src/util_mr_cache.c`).
//!
//! # Overlap
//! A lookup is a hit when **one** live region covers the whole range. On a miss
//! exactly the pages of the requested range are registered, never the union with
//! a neighbour: a caller vouches for the memory it names, for the time of its
//! call, and for nothing else. The rest of a union may long be freed, and may be
//! unmapped at this very moment. A new region that contains older ones replaces
//! them, so growing buffers leave no trail, and no live region ever contains
//! another. Sorted by start they are therefore sorted by end too, and a single
//! binary search answers a lookup although regions may overlap.
//!
//! # Locks, in the order in which they may be taken
//! 1. [`RegistrationCache`]'s table lock: held for searches and moves inside
//!    memory that was allocated before. Nothing allocates, frees, registers or
//!    releases under it, since all four may unmap memory and an event may follow.
//! 2. [`ProcessEvents`]' list of queues: held by the thread that reads events,
//!    and while a queue is added. Nothing allocates or frees under it either: that
//!    could wait for an event which nobody reads.
//!
//! Neither is ever taken while the other is held. Announcing an event takes
//! no lock of a cache: it only appends to a bounded queue ([`EventQueue`]).
//!
//! # Not here
//! What a handle means (the endpoint's [`Registrar`] knows), which buffers are
//! registered when (the engine), and anything of plans or ranks. A child made by
//! `fork` inherits no events: it must not use the parent's caches.

mod cache;
mod config;
mod events;
mod interval;
mod lease;
mod lookup;
mod monitor;
mod pages;
mod registrar;
mod slots;
mod stats;
mod table;
mod uffd;

pub use cache::{RegistrationCache, Settled};
pub use config::{CacheConfig, ConfigError};
pub use events::{EventQueue, EventSource, WatchError};
pub use interval::{Span, SpanError};
pub use lease::{HeldLease, Lease};
pub use monitor::{EventsUnavailable, ProcessEvents};
pub(crate) use pages::Pages;
pub use registrar::{CacheError, Registrar};
pub use stats::{CacheMode, CacheStats};
pub use uffd::WatchMode;

/// Size of a page of this machine, in bytes.
pub fn page_bytes() -> usize {
    // SAFETY: sysconf reads a constant of the system and touches no memory of ours.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("the C library knows the page size")
}
