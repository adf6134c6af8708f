//! The emulated device, as what ranks share.

use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use utofu_emu::Job;

use crate::endpoint::sim::params::DeviceParams;
use crate::memory::EventLog;

/// The emulated device of all ranks.
#[derive(Clone)]
pub(in crate::endpoint::sim) struct Device {
    pub(in crate::endpoint::sim) job: Arc<Job>,
    pub(in crate::endpoint::sim) params: DeviceParams,
    /// By rank: where its registration cache hears of memory that goes, if it does.
    pub(in crate::endpoint::sim) listeners: Arc<[OnceLock<Listener>]>,
}

/// A registration cache that hears of memory that goes.
pub(in crate::endpoint::sim) struct Listener {
    pub(in crate::endpoint::sim) log: Arc<EventLog>,
    /// What has gone and is not announced yet: so long the log is busy.
    pub(in crate::endpoint::sim) n_pending: AtomicUsize,
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
