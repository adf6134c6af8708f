//! Memory that a network interface may reach: the registration cache, the
//! memory events that end its registrations, and the library's own pages (`Pages`).
//!
//! A registration pins pages and is expensive, so it is kept after use
//! ([`Cache`]). It must never outlive its memory: a range that is
//! unmapped and mapped again has other pages under the same address, and a kept
//! registration still leads to the old ones. An [`EventSource`] therefore
//! announces every range that loses its pages; [`ProcessEvents`] is the real one.
//! Where no source works (neither userfaultfd nor changed functions of the C library: see [`ProcessEvents`]) and the
//! program is not trusted either ([`KeepRule::Trust`]), calls on little data leave the user's memory off the wire ([`CacheConfig::stage_bytes`]);
//! for longer ones it is registered for each call, and persistent collectives, which register once, are the way
//! around that; [`CacheStats`] says which kind this system is.
//!
//! Prior art: the registration caches of UCX
//! (`src/ucs/memory/rcache.c`) and libfabric (`prov/util/src/util_mr_cache.c`).
//!
//! # Overlap
//! A lookup is a hit when **one** live region covers the whole range. On a miss
//! exactly the pages of the requested range are registered, never the union with
//! a neighbour: a caller vouches for the memory it names, for the time of its
//! call, and for nothing else. The rest of a union may have been freed, and another thread may
//! unmap it now. A new region replaces the older ones that it contains, so growing buffers leave
//! none behind, and no live region ever contains another: one binary search answers a lookup although
//! regions may overlap.
//!
//! # Locks
//! The ports of a rank share a [`Cache`], whose lock is held neither while an interface registers or releases nor while
//! the system is asked to watch: lookups of other ports do not wait for that. Where it unmaps or allocates under its
//! lock, that is allowed although the unmapping thread waits for the announcement: the reader of events takes no lock,
//! it only appends to a ring ([`EventLog`]).
//!
//! # Not here
//! What a registration is (the endpoint knows), which buffers are registered when (the engine), and
//! anything of plans or ranks. A child made by `fork` inherits no events and keeps nothing.

mod cache;
mod config;
mod events;
mod forks;
mod hooks;
mod kept;
mod lease;
mod monitor;
mod pages;
mod regions;
mod span;
mod stats;
mod trust;
mod uffd;

pub use cache::{Cache, Keep, Settled};
pub use config::{CacheConfig, KeepRule};
#[cfg(all(feature = "sim", feature = "emu"))]
pub(crate) use events::PATIENCE;
#[cfg(any(feature = "internals", all(feature = "sim", feature = "emu")))]
pub use events::{EventLog, EventSource};
pub use lease::{CacheError, Lease};
#[cfg(feature = "internals")]
pub use monitor::ProcessEvents;
pub(crate) use pages::Pages;
#[cfg(any(feature = "internals", all(feature = "sim", feature = "emu")))]
pub use span::Span;
pub use stats::{CacheMode, CacheStats};
pub(crate) use stats::{Counted, Counts};

/// Size of a page of this machine, in bytes.
pub fn page_bytes() -> usize {
    rustix::param::page_size()
}
