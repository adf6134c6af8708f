//! In place of uTofu under the simulation, where hopbine is built without the emulated device: nothing happens
//! on a device that is not there.

use hopbine_meet::Exchange;

use super::net::NetState;
use super::simulation::{SimWire, Simulated};
use crate::Rank;
use crate::endpoint::utofu::CacheView;
use crate::endpoint::{Endpoint, WireError};

impl SimWire {
    pub(super) fn enter(&self, _: Rank) {}
}

impl NetState {
    pub(super) fn step_device(&mut self, _: u64) -> bool {
        false
    }

    pub(super) fn preempted(&mut self) -> Option<u64> {
        None
    }

    pub(super) fn lose_on_device(&mut self, _: Rank) {}

    pub(super) fn unreachable_on_device(&mut self, _: Rank) {}

    pub(super) fn end_device(&mut self, _: bool) {}

    pub(super) fn left_on_device(&mut self, _: bool) {}

    pub(super) fn refuse_on_device(&self, _: Rank, _: u32) {}

    pub(super) fn has_refused_on_device(&self, _: Rank) -> bool {
        false
    }

    pub(super) fn unmapped(&mut self, _: Rank, _: std::ops::Range<usize>) {}

    pub(super) fn announce(&mut self, _: Rank, _: std::ops::Range<usize>) {}
}

/// A rank's ports, and the figures of their registration cache.
type Ports = (Vec<Box<dyn Endpoint>>, Option<CacheView>);

impl Simulated {
    pub(crate) fn has_gates(&self) -> bool {
        false
    }

    /// # Errors
    /// Always.
    pub(crate) fn utofu_ports(&self, _: &mut dyn Exchange, _: usize) -> Result<Ports, WireError> {
        let reason = "hopbine was built without the emulated device".to_owned();
        Err(WireError::new("simulating uTofu", reason))
    }
}
