//! The emulated device, as what ranks share.

use std::fmt;
use std::sync::Arc;

use utofu_emu::Job;

/// The emulated device of all ranks.
#[derive(Clone)]
pub(in crate::endpoint::sim) struct Device {
    pub(in crate::endpoint::sim) job: Arc<Job>,
    /// A rank loses its processor at the start of an operation, of 256: others run while it holds views,
    /// or is in the midst of a poll's events.
    pub(in crate::endpoint::sim) preempts: u8,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Device")
    }
}

impl Device {
    /// When it has something to do.
    pub(in crate::endpoint::sim) fn due(&self) -> Option<u64> {
        self.job.due()
    }
}
