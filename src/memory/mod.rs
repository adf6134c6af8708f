//! Memory that a network interface may access: the registration cache, the memory events that end its registrations,
//! and the library's own pages (`Pages`).
//!
//! A registration pins pages and is expensive, so it is kept after use ([`Cache`]). It must never outlive its memory:
//! a range that is unmapped and mapped again has other pages at the same address, and a kept registration still leads
//! to the old ones. An [`EventSource`] therefore announces every range that loses its pages;
//! [`ProcessEvents`](monitor::ProcessEvents) is the source for a real process. If no source works (neither userfaultfd
//! nor changed functions of the C library: see `ProcessEvents`) and the program is not trusted either
//! ([`KeepRule::Trust`]), calls on few data keep the user's memory off the wire ([`CacheConfig::stage_bytes`]), and
//! longer ones register it for each call. Persistent collectives avoid this, since they register once. [`CacheStats`]
//! reports which case applies.
//!
//! Prior art: the registration caches of UCX
//! (`src/ucs/memory/rcache.c`) and libfabric (`prov/util/src/util_mr_cache.c`).
//!
//! # Overlap
//! A lookup is a hit if **one** live region covers the whole range. On a miss exactly the pages of the requested
//! range are registered, never the union with a neighbour: a caller guarantees the memory that it names, for the time
//! of its call, and nothing else. The rest of a union may have been freed, or another thread may unmap it now. If
//! another port has registered a live region that covers the range, the port registers this region; if it cannot,
//! the pages of the range, which are then not kept. A new region replaces the older ones that it contains, so growing
//! buffers leave none behind, and no live region ever contains another: one binary search answers a lookup although
//! regions may overlap.
//!
//! # Shared registrations
//! uTofu gives a range within registered pages the steering tag of these pages, and looks up no page again. So what
//! is still leased after the end of its region, or after a fork, would serve memory that has got the addresses since.
//! The cache compares the tags of what a port registers, and requests a registration with a tag of its own where
//! nothing proves that the tag leads to the memory's pages.
//!
//! # Locks
//! The ports of a rank share a [`Cache`]. Its lock is held neither while an interface registers or releases memory,
//! nor while the system is asked to watch a range, so lookups of other ports do not wait for that. Code under the
//! lock may unmap and allocate memory, although the unmapping thread waits for the announcement: the reader of events
//! takes no lock, it only appends to a ring ([`EventLog`]).
//!
//! # Scope
//! The cache does not know what a registration is (the endpoint does), which buffers are registered when (the engine
//! does), or anything of plans and ranks. A child process made by `fork` inherits no events and keeps nothing.
//! A lease that outlasts calls is made anew by its holder after a fork ([`forks`]).

mod cache;
mod cache_state;
mod config;
mod events;
pub(crate) mod forks;
mod hooks;
mod lease;
mod monitor;
mod pages;
mod regions;
mod span;
mod stats;
pub(crate) mod stores;
mod trust;
mod uffd;

pub use cache::{Cache, Keep, Settled};
pub use config::{CacheConfig, KeepRule};
#[cfg(all(feature = "sim", feature = "emu"))]
pub(crate) use events::PATIENCE;
#[cfg(any(feature = "internals", all(feature = "sim", feature = "emu")))]
pub use events::{EventLog, EventSource};
pub use lease::{CacheError, Lease, RegisterError};
#[cfg(feature = "internals")]
pub use monitor::ProcessEvents;
pub(crate) use pages::Pages;
#[cfg(any(feature = "internals", all(feature = "sim", feature = "emu")))]
pub use span::Span;
pub use stats::{CacheMode, CacheStats};
pub(crate) use stats::{Counted, RegistrationCounts};

/// Size of a page of this machine, in bytes.
pub fn page_bytes() -> usize {
    rustix::param::page_size()
}
