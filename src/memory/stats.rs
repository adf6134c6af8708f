//! The figures of a registration cache.

use serde::Serialize;

/// Whether registrations are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheMode {
    /// They are: an event source announces ranges that lose their memory.
    Events {
        /// Name of the source.
        source: &'static str,
    },
    /// No event source works here: memory is registered for each call and released after it,
    /// except by persistent collectives, which register once.
    NoEvents {
        /// What was tried.
        reason: String,
    },
    /// Switched off: as without events.
    #[default]
    Off,
}

/// Figures of one cache. Counters grow from its creation on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CacheStats {
    /// Whether registrations are kept.
    pub mode: CacheMode,
    /// Lookups of a port served by a kept registration.
    pub hits: u64,
    /// Lookups of a port that led to a registration which was then kept.
    pub misses: u64,
    /// Registrations made for one call only: asked for, or not to be kept because of
    /// the mode, the limits, or memory that no event source can watch.
    pub uncached: u64,
    /// Regions released to keep the limits.
    pub evictions: u64,
    /// Regions ended because their memory went.
    pub invalidations: u64,
    /// Times that every region was ended because events were lost: too many came at once, or their
    /// source ended.
    pub overflows: u64,
    /// Regions registered at present, at one port or several, without those for one call only.
    pub registered_regions: u64,
    /// Their bytes, in whole pages; overlapping regions count twice.
    pub registered_bytes: u64,
}
