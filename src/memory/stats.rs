//! What a registration cache has done, for people and for reports.

use serde::Serialize;

use super::uffd::WatchMode;

/// Whose memory a cache keeps registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheMode {
    /// All memory: an event source announces what goes.
    Events {
        /// Name of the source.
        source: &'static str,
    },
    /// Memory of the library only. No event source works here, so memory of the
    /// user is registered for each call and released after it.
    OwnedOnly,
    /// None: switched off. Every call registers and releases.
    Off,
}

impl WatchMode {
    /// The name under which statistics show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::WriteProtect => "userfaultfd write-protect",
            Self::Missing => "userfaultfd missing",
        }
    }
}

/// Figures of one cache. Counters grow from its creation on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CacheStats {
    /// Whose memory is kept.
    pub mode: CacheMode,
    /// Lookups served by a kept registration. Those of a region that has ended but
    /// is still in use are added when it is released. Modulo 2^40 per region.
    pub hits: u64,
    /// Lookups that led to a registration which was then kept.
    pub misses: u64,
    /// Registrations made for one call only: asked for, or not to be kept because of
    /// the mode, the limits, or memory that no event source can watch.
    pub uncached: u64,
    /// Regions released to keep the limits.
    pub evictions: u64,
    /// Regions ended because their memory went.
    pub invalidations: u64,
    /// Times the queue of events overflowed and every region was ended.
    pub overflows: u64,
    /// Regions registered at present, without those for one call only.
    pub registered_regions: u64,
    /// Their bytes, in whole pages; overlapping regions count twice.
    pub registered_bytes: u64,
    /// Of these, regions that have ended and wait for their last user.
    pub waiting_regions: u64,
}
