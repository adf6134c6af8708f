//! Shared memory as a backend: for ranks that are all on one host.

mod alltoall;
#[cfg(test)]
mod counts;
mod flat_buffer;
mod grouped;
mod pool;
mod regular;
mod started;
mod started_calls;
mod vectors;

use hopbine_meet::Exchange;

use hopbine_torus::choose::Wire;

use super::backend::{Backend, Layout, Opened};
use super::cores::available_cores;
use super::domains::{self, Domains};
use super::info::DeviceInfo;
use super::launcher::meeting_error;
use crate::comm::state::small::{SmallCollectives, SmallCollectivesPool};
use crate::endpoint::{Endpoint, exchange_error};
use hopbine_meet::host;

use crate::endpoint::shm::{ShmConfig, connect};
use crate::error::{Error, WireError};
use flat_buffer::SharedFlatBuffer;
use hopbine_meet::variables::{SHM_GROUP, SHM_READ, from_environment};
use pool::FlatBufferPool;

/// See the module documentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shm {
    /// Whether long messages may be read from the memory of their senders.
    pub(super) may_read: bool,
    /// Ranks of each group of the flat buffer, if set; 0: no groups.
    group: Option<u32>,
}

impl Shm {
    /// The settings of `HOPBINE_SHM_READ` and `HOPBINE_SHM_GROUP`.
    ///
    /// # Errors
    /// [`Error::Setting`].
    pub(super) fn from_env() -> Result<Self, Error> {
        Ok(Shm {
            may_read: SHM_READ.switch(&from_environment, true)?,
            group: SHM_GROUP.number(&from_environment)?,
        })
    }

    /// The group of each rank for calls in groups, if there are any; collective.
    fn groups(self, exchange: &mut dyn Exchange) -> Result<Option<Vec<u32>>, WireError> {
        if let Some(each) = self.group {
            return Ok(domains::said_groups(exchange.size(), each));
        }
        let own = Domains::of_cores(&available_cores()).encode();
        let all = exchange.allgather(&own).map_err(|error| exchange_error(&error))?;
        let decode = |(rank, bytes)| {
            Domains::decode(bytes).ok_or_else(|| {
                let reason = format!("rank {rank} does not say which cores it has");
                WireError::new("shared memory", reason)
            })
        };
        let domains: Vec<_> = (0..).zip(all.iter()).map(decode).collect::<Result<_, _>>()?;
        Ok(domains::groups(&domains))
    }
}

/// Whether all ranks are on one host; collective.
///
/// # Errors
/// [`Error::Meeting`].
pub(super) fn is_one_host(exchange: &mut dyn Exchange) -> Result<bool, Error> {
    let rank = exchange.rank() as u32;
    let all =
        exchange.allgather(&host().to_le_bytes()).map_err(|error| meeting_error(rank, &error))?;
    Ok(all.iter().all(|other| *other == all[0]))
}

impl Backend for Shm {
    fn name(&self) -> &'static str {
        "shm"
    }

    fn wire(&self) -> Wire {
        Wire::Memory
    }

    fn open(&self, exchange: &mut dyn Exchange, layout: &Layout<'_>) -> Result<Opened, WireError> {
        let Layout { n_ports, own_cores, limits, .. } = *layout;
        let config = ShmConfig { n_ports, node: 0, may_read: self.may_read, own_cores, limits };
        let opened = connect(exchange, config)?;
        let Some(flat) = opened.flat else {
            // All ranks get this error.
            return Err(WireError::new("shared memory", "the ranks are on several hosts"));
        };
        let n_ranks = exchange.size();
        let groups = self.groups(exchange)?;
        let flat = match groups {
            Some(groups) => flat.in_groups(&groups),
            None => flat,
        };
        let endpoints = opened.endpoints.into_iter();
        let small_pool = opened.flats.map(|flats| FlatBufferPool::new(flats, n_ranks, limits));
        Ok(Opened {
            endpoints: endpoints.map(|endpoint| Box::new(endpoint) as Box<dyn Endpoint>).collect(),
            small: SharedFlatBuffer::of_world(flat, limits)
                .map(|flat| Box::new(flat) as Box<dyn SmallCollectives>),
            small_pool: small_pool
                .map(|small_pool| Box::new(small_pool) as Box<dyn SmallCollectivesPool>),
            cache: None,
            reading: opened.reading,
        })
    }

    fn describe(&self) -> DeviceInfo {
        DeviceInfo::without_tofu("shared memory")
    }
}
