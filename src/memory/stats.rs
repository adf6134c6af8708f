//! Statistics of a registration cache.

use std::fmt::{self, Display};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// Whether registrations are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CacheMode {
    /// Kept: an event source announces ranges that lose their memory.
    Events {
        /// Name of the source.
        source: &'static str,
    },
    /// Kept, although no event source works here: the program is trusted to unmap nothing.
    Trusted {
        /// Why no event source works.
        reason: String,
    },
    /// Not kept, since no event source works here: memory is registered for each call and released after it, except
    /// by persistent collectives, which register once.
    NoEvents {
        /// Why no event source works.
        reason: String,
    },
    /// Not kept, as without events: caching is switched off.
    #[default]
    Off,
}

impl Display for CacheMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CacheMode::Events { source } => write!(f, "kept; events by {source}"),
            CacheMode::Trusted { reason } => write!(
                f,
                "kept; the program is trusted to unmap nothing (HOPBINE_REG_CACHE=trust): {reason}"
            ),
            CacheMode::NoEvents { reason } => write!(
                f,
                "kept for persistent collectives and memory that the program registers: {reason}"
            ),
            CacheMode::Off => f.write_str("not kept (HOPBINE_REG_CACHE=0)"),
        }
    }
}

/// Statistics of one cache. Counters start at its creation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CacheStats {
    /// Whether registrations are kept.
    pub mode: CacheMode,
    /// Most bytes that a call copies for each two registrations that it saves (`HOPBINE_STAGE_BYTES`, else the
    /// decision table); `None` if registrations are kept.
    pub stage_bytes: Option<u64>,
    /// Registrations that the interface has made, of the user's memory and of the library's.
    pub registrations: u64,
    /// Registrations that the interface has ended.
    pub deregistrations: u64,
    /// Bytes copied in calls that use the library's memory, so that the user's needs no registration.
    pub staged_bytes: u64,
    /// Lookups of a port that found a kept registration.
    pub hits: u64,
    /// Lookups of a port that made a registration which was then kept.
    pub misses: u64,
    /// Registrations for one call only: by request, or not kept because of the mode, the limits, or memory that no
    /// event source can watch.
    pub uncached: u64,
    /// Regions released to keep the limits.
    pub evictions: u64,
    /// Regions ended because they lost their memory.
    pub invalidations: u64,
    /// Number of times that all regions were ended because an event does not say which memory it is about: too many
    /// arrived at once, their source ended, or a program has called `shmdt`.
    pub overflows: u64,
    /// Regions registered now, at one port or several, without those for one call only.
    pub registered_regions: u64,
    /// Bytes of these regions, in whole pages; overlapping regions count twice.
    pub registered_bytes: u64,
}

impl CacheStats {
    /// Whether registrations are kept, and what calls do if not.
    pub fn policy(&self) -> String {
        match self.stage_bytes {
            Some(bytes) => format!(
                "{}; calls copy up to {bytes} bytes in place of two registrations",
                self.mode
            ),
            None => self.mode.to_string(),
        }
    }
}

/// Counts an interface's registrations.
#[derive(Debug, Default)]
pub struct RegistrationCounts {
    made: AtomicU64,
    ended: AtomicU64,
}

impl RegistrationCounts {
    /// Registrations made so far, and registrations ended.
    pub(super) fn so_far(&self) -> [u64; 2] {
        // Relaxed: statistics.
        [&self.made, &self.ended].map(|count| count.load(Ordering::Relaxed))
    }

    /// Counts a registration that has been made; its end is counted when it is dropped.
    pub(crate) fn made<H>(self: &Arc<Self>, handle: H) -> Counted<H> {
        self.made.fetch_add(1, Ordering::Relaxed);
        Counted { handle, _end: End(self.clone()) }
    }
}

/// A registration that is counted.
#[derive(Debug)]
pub struct Counted<H> {
    handle: H,
    _end: End,
}

impl<H> Counted<H> {
    /// The registration, for a caller that ends it itself.
    pub(crate) fn into_inner(self) -> H {
        self.handle
    }
}

impl<H> std::ops::Deref for Counted<H> {
    type Target = H;

    fn deref(&self) -> &H {
        &self.handle
    }
}

/// Counts the end of a registration when it is dropped.
#[derive(Debug)]
struct End(Arc<RegistrationCounts>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}
