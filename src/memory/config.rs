//! What a cache keeps, and how much.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::events::EventSource;
use super::monitor::ProcessEvents;
use super::trust;

/// Which registrations a cache keeps by itself, beside those that the user has asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepRule {
    /// None: every call registers and releases its memory.
    Off,
    /// All, where memory that goes is announced.
    #[default]
    Events,
    /// All: where nothing is announced, memory is trusted to stay.
    Trust,
}

/// How a registration cache behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// What is kept.
    pub keep: KeepRule,
    /// Most bytes to keep registered; `None`: as many as the regions have.
    pub max_bytes: Option<u64>,
    /// Most regions to keep registered.
    pub max_regions: NonZeroU32,
    /// Where nothing is kept: calls whose data have up to this many bytes for each two registrations that they would
    /// need are copied through memory that stays registered.
    pub stage_bytes: u64,
}

/// Two registrations and their ends cost what a core copies in their time: 30 us each, at 12 bytes a ns. Of an allreduce
/// one and a half times the data are copied (`benches/registration.sh`).
const STAGE_BYTES: u64 = 512 << 10;

impl KeepRule {
    /// Where a cache of this process hears of memory events.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn source(self) -> Result<Arc<dyn EventSource>, String> {
        match self {
            KeepRule::Off => Err("nothing is kept".to_owned()),
            KeepRule::Events => ProcessEvents::shared(),
            KeepRule::Trust => ProcessEvents::shared().or_else(trust::source),
        }
    }
}

impl Default for CacheConfig {
    /// At most 1024 regions: well below the 6144 registrations that one command queue of Tofu hands
    /// out, as several caches may share a queue.
    fn default() -> Self {
        let max_regions = NonZeroU32::new(1024).expect("not zero");
        Self { keep: KeepRule::default(), max_bytes: None, max_regions, stage_bytes: STAGE_BYTES }
    }
}
