//! Configuration of a cache: which registrations it keeps, and how many.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::events::EventSource;
use super::monitor::ProcessEvents;
use super::trust;

/// Which registrations a cache keeps, besides those that the user has requested explicitly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepRule {
    /// None: every call registers and releases its memory.
    Off,
    /// All, if an event source announces ranges that lose their memory.
    #[default]
    Events,
    /// All: without an event source, memory is trusted to stay mapped.
    Trust,
}

/// Configuration of a registration cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Which registrations are kept.
    pub keep: KeepRule,
    /// Most bytes to keep registered; `None`: limited by the number of regions only.
    pub max_bytes: Option<u64>,
    /// Most regions to keep registered.
    pub max_regions: NonZeroU32,
    /// Used if nothing is kept: a call is copied through memory that stays registered if its data have up to this
    /// many bytes for each two registrations that it would need.
    pub stage_bytes: u64,
}

/// Data bytes for which copies cost as much as two registrations and their ends: 30 us each, at 12 bytes per ns. An
/// allreduce copies one and a half times its data (`benches/registration.sh`).
const STAGE_BYTES: u64 = 512 << 10;

impl KeepRule {
    /// The source of memory events for a cache of this process.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(crate) fn source(self) -> Result<Arc<dyn EventSource>, String> {
        match self {
            KeepRule::Off => Err("nothing is kept".to_owned()),
            KeepRule::Events => ProcessEvents::shared(),
            KeepRule::Trust => ProcessEvents::shared().or_else(trust::source),
        }
    }
}

impl Default for CacheConfig {
    /// At most 1024 regions: well below the 6144 registrations that one Tofu command queue provides, as several
    /// caches may share a queue.
    fn default() -> Self {
        let max_regions = NonZeroU32::new(1024).expect("not zero");
        Self { keep: KeepRule::default(), max_bytes: None, max_regions, stage_bytes: STAGE_BYTES }
    }
}
