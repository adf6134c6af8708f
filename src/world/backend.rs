//! The interface of a device to its world.

use std::sync::Arc;

use hopbine_meet::Exchange;
use hopbine_torus::choose::{ShmLimits, Wire};
use hopbine_torus::geometry::{RankMap, Shape};

use super::config::Drive;
use super::info::{DeviceInfo, FreeQueues};

use crate::Rank;
use crate::comm::choice::tuning::Tuning;
use crate::comm::communicator::Communicator;
use crate::comm::state::members::Members;
use crate::comm::state::small::{CacheStatsFn, SmallCollectives, SmallCollectivesPool};
use crate::comm::state::world_state::{Settings, WorldState};
use crate::endpoint::Endpoint;
use crate::endpoint::shm::Reading;
use crate::endpoint::utofu::OnNode;
use crate::engine::{Engine, EngineConfig, Failure};
use crate::error::{Error, WireError};

/// A device, as one rank sees it.
pub(super) trait Backend: Send + Sync {
    /// Its name, as `HOPBINE_BACKEND` gives it.
    fn name(&self) -> &'static str;

    /// Coordinates x, y, z, a, b, c of this rank's node; zeros if the device has none.
    ///
    /// # Errors
    /// [`WireError`] if the device does not report them.
    fn coordinates(&self) -> Result<[u8; 6], WireError> {
        Ok([0; 6])
    }

    /// Whether the coordinates are those of a machine, so that they show which ranks are near.
    fn is_physical(&self) -> bool {
        false
    }

    /// The kind of wire that carries the messages.
    fn wire(&self) -> Wire;

    /// The decision table of the device, unless the user gives another one.
    fn tuning(&self) -> &'static Tuning {
        Tuning::built_in(self.wire())
    }

    /// Number of network interfaces: each further port shares one with another port. 1 if the caller itself moves
    /// the data.
    ///
    /// # Errors
    /// [`WireError`] if the device does not report it.
    fn n_interfaces(&self) -> Result<usize, WireError> {
        Ok(1)
    }

    /// The drive that this device uses if `wanted` is requested.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    fn drive(&self, wanted: Drive) -> Result<Drive, String> {
        Ok(wanted)
    }

    /// Opens the ports of all ranks, and the collectives that the hardware performs; collective over `exchange`. All
    /// communicators use this one set of endpoints.
    ///
    /// # Errors
    /// [`WireError`] if the exchange fails, or if the device fails on some rank: then all ranks get the same error.
    fn open(&self, exchange: &mut dyn Exchange, layout: &Layout<'_>) -> Result<Opened, WireError>;

    /// A description for reports.
    fn describe(&self) -> DeviceInfo;

    /// The free queues of the device; empty if it has no queues.
    fn free_queues(&self) -> Vec<FreeQueues> {
        Vec::new()
    }
}

/// Shared memory between the ranks of one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeMemory {
    /// The number of the node: the same on all its ranks, and different for different nodes of one host.
    pub(super) node: u64,
    /// Whether long messages may be read from the memory of their senders.
    pub(super) may_read: bool,
}

/// Places of the ranks, and how the ranks of one node communicate.
pub(super) struct Layout<'a> {
    pub(super) n_ports: usize,
    pub(super) shape: &'a Shape,
    pub(super) map: &'a RankMap,
    /// This rank among the ranks of its node.
    pub(super) on_node: OnNode,
    /// Whether each rank has a core of its own.
    pub(super) own_cores: bool,
    /// Shared memory between the ranks of this node; `None` if they communicate as ranks of different nodes do.
    pub(super) node_memory: Option<NodeMemory>,
    /// The limits of the decision table.
    pub(super) limits: ShmLimits,
}

/// A rank's open endpoints on its device.
pub(super) struct Opened {
    /// One for each port.
    pub(super) endpoints: Vec<Box<dyn Endpoint>>,
    /// The hardware for small collectives, or why there is none.
    pub(super) small: Result<Box<dyn SmallCollectives>, String>,
    /// Slots for small collectives of further communicators, if there are any.
    pub(super) small_pool: Option<Box<dyn SmallCollectivesPool>>,
    /// The statistics of the registration cache, if there is one.
    pub(super) cache: Option<CacheStatsFn>,
    /// Whether ranks of this host read each other's memory.
    pub(super) reading: Reading,
}

impl Opened {
    /// The world's communicator of a rank; `segment_bytes` applies to all its calls.
    pub(super) fn communicator(
        self,
        rank: Rank,
        (shape, map, segment_bytes): (Shape, RankMap, Option<u64>),
        (config, failure): (EngineConfig, Arc<Failure>),
        unexpected_bytes: usize,
        settings: Settings,
    ) -> Result<Communicator, Error> {
        let Opened { mut endpoints, small, small_pool, cache, .. } = self;
        for matching in endpoints.iter_mut().filter_map(|endpoint| endpoint.matching()) {
            matching.limit_unexpected(unexpected_bytes);
        }
        let engine = Engine::new(rank, shape.n_ranks(), endpoints, config, failure)?;
        let members = Members::world(rank, shape, map, segment_bytes, &settings.preferred);
        let world = WorldState::new(engine, small, small_pool, cache, settings);
        Ok(Communicator::world(world, members))
    }
}
