//! In place of uTofu under the simulation, where hopbine is built without the emulated device: nothing happens
//! on a device that is not there.

use hopbine_meet::Exchange;

use super::net::Core;
use super::simulation::{Simulated, Wire};
use crate::Rank;
use crate::endpoint::{Endpoint, WireError};

impl Wire {
    pub(super) fn enter(&self, _: Rank) {}
}

impl Core {
    pub(super) fn step_device(&mut self, _: u64) -> bool {
        false
    }

    pub(super) fn preempted(&mut self) -> Option<u64> {
        None
    }

    pub(super) fn lose_on_device(&mut self, _: Rank) {}

    pub(super) fn unreachable_on_device(&mut self, _: Rank) {}

    pub(super) fn end_device(&mut self, _: bool) {}
}

impl Simulated {
    /// # Errors
    /// Always.
    pub(crate) fn utofu_ports(
        &self,
        _: &mut dyn Exchange,
        _: usize,
    ) -> Result<Vec<Box<dyn Endpoint>>, WireError> {
        let reason = "hopbine was built without the emulated device".to_owned();
        Err(WireError { call: "simulating uTofu", reason, peer: None })
    }
}
