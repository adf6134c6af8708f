//! What a world needs of the device that it is on.

use hopbine_meet::Exchange;
use hopbine_torus::choose::Wire;
use hopbine_torus::geometry::{RankMap, Shape};

use super::config::Drive;
use super::info::{DeviceInfo, FreeQueues};

use crate::comm::choice::tuning::Tuning;
use crate::comm::state::small::{CacheFigures, SmallCollectives, SmallPlaces};
use crate::endpoint::Endpoint;
use crate::endpoint::shm::Reading;
use crate::error::WireError;

/// A device, as one rank sees it.
pub(super) trait Backend: Send + Sync {
    /// Its name, as `HOPBINE_BACKEND` gives it.
    fn name(&self) -> &'static str;

    /// Coordinates x, y, z, a, b, c of this rank's node; zeros where there are none.
    ///
    /// # Errors
    /// [`WireError`] if the device does not say.
    fn coordinates(&self) -> Result<[u8; 6], WireError> {
        Ok([0; 6])
    }

    /// Whether the coordinates are those of a machine, so that they say which ranks are near.
    fn is_physical(&self) -> bool {
        false
    }

    /// What its messages travel through.
    fn wire(&self) -> Wire;

    /// The decision table that serves it if nobody wants another.
    fn tuning(&self) -> &'static Tuning {
        Tuning::built_in(self.wire())
    }

    /// Ports beyond this number share an interface with another one: 1 where whoever calls moves the data.
    ///
    /// # Errors
    /// [`WireError`] if the device does not say.
    fn n_interfaces(&self) -> Result<usize, WireError> {
        Ok(1)
    }

    /// The drive that this device allows if `wanted` was asked for.
    ///
    /// # Errors
    /// Why not.
    fn drive(&self, wanted: Drive) -> Result<Drive, String> {
        Ok(wanted)
    }

    /// Opens the ports of all ranks, and the collectives that the hardware performs; collective over
    /// `exchange`. One set of endpoints serves all communicators.
    ///
    /// # Errors
    /// [`WireError`] if the exchange fails, or the device does on some rank; in the latter case
    /// all ranks get the same error.
    fn open(&self, exchange: &mut dyn Exchange, layout: &Layout<'_>) -> Result<Opened, WireError>;

    /// What there is to tell about it.
    fn describe(&self) -> DeviceInfo;

    /// What is left of its queues; none where there are no such.
    fn free_queues(&self) -> Vec<FreeQueues> {
        Vec::new()
    }
}

/// Ranks of one node that speak with each other through its memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Near {
    /// The same for the ranks of a node, and different for those of different nodes of one host.
    pub(super) node: u64,
    /// Whether long messages may be read from the memory of their senders.
    pub(super) may_read: bool,
}

/// Where the ranks are: which share a node, and how those speak with each other.
pub(super) struct Layout<'a> {
    pub(super) n_ports: usize,
    pub(super) shape: &'a Shape,
    pub(super) map: &'a RankMap,
    /// This rank's number among those of its node.
    pub(super) place: usize,
    /// Whether each rank has a core of its own.
    pub(super) own_cores: bool,
    /// How the ranks of this node speak with each other, if not as those of different nodes do.
    pub(super) near: Option<Near>,
}

/// A rank's open endpoints on its device.
pub(super) struct Opened {
    /// One for each port.
    pub(super) endpoints: Vec<Box<dyn Endpoint>>,
    /// The collectives that the hardware performs, or why it performs none.
    pub(super) small: Result<Box<dyn SmallCollectives>, String>,
    /// Those for further communicators, if there are any.
    pub(super) places: Option<Box<dyn SmallPlaces>>,
    /// The figures of the registration cache, if there is one.
    pub(super) cache: Option<CacheFigures>,
    /// Whether ranks of this host read each other's memory.
    pub(super) reading: Reading,
}
