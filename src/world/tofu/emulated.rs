//! The emulated device, with ranks that are threads.

use std::sync::Arc;

#[cfg(feature = "sim")]
use hopbine_meet::Exchange;
use hopbine_torus::geometry::{RankMap, Shape};
use utofu::Api;
use utofu_emu::{Job, JobError, RankGuard};

use super::Tofu;
#[cfg(feature = "sim")]
use super::chains::{self, OpenedGates};
use crate::error::{Error, WireError};
use crate::memory::CacheConfig;
use crate::world::EmulationConfig;
#[cfg(feature = "sim")]
use crate::world::backend::Layout;

/// A torus of emulated nodes with a rank on each.
pub(in crate::world) struct Emulation(Arc<Job>);

impl Emulation {
    /// Sets the nodes up.
    ///
    /// # Errors
    /// [`Error::Startup`].
    pub(in crate::world) fn new(config: &EmulationConfig) -> Result<Self, Error> {
        Self::with(&config.shape, &config.map, |nodes| Job::with_model(nodes, config.latency))
    }

    /// Sets the nodes up under a simulated wire, for ranks that take turns in one thread. The device acts only when
    /// the owner of the job steps it.
    ///
    /// # Errors
    /// [`Error::Startup`].
    #[cfg(feature = "sim")]
    pub(in crate::world) fn under(
        wire: &crate::endpoint::sim::SimWire,
        shape: &Shape,
        map: &RankMap,
    ) -> Result<(), Error> {
        let Emulation(job) = Self::with(shape, map, |nodes| Job::stepped(nodes, wire.model()))?;
        wire.attach(job);
        Ok(())
    }

    fn with(
        shape: &Shape,
        map: &RankMap,
        make: impl FnOnce(Vec<[u8; 6]>) -> Result<Arc<Job>, JobError>,
    ) -> Result<Self, Error> {
        // The device counts nodes with the first size running fastest, shapes with the last.
        let sizes: Vec<u32> = shape.sizes().into_iter().rev().collect();
        let job = Job::coords_for_shape(&sizes).and_then(|nodes| {
            let node_of = |rank| nodes[map.vertex_of(shape, rank).index()];
            make(hopbine_torus::Rank::first(shape.n_ranks()).map(node_of).collect())
        });
        let job = job.map_err(|error| Error::Startup {
            rank: 0,
            source: WireError::new("setting up the emulated device", error),
        })?;
        Ok(Emulation(job))
    }

    /// Makes the calling thread act as this rank, as long as the value lives.
    pub(in crate::world) fn enter(&self, rank: u32) -> RankGuard {
        self.0.enter(rank as usize)
    }

    /// The device, for a thread that acts as a rank ([`enter`](Emulation::enter)).
    pub(in crate::world) fn device(&self, cache: Option<CacheConfig>) -> Tofu {
        Tofu { api: Api::emulated(), is_physical: false, cache }
    }
}

/// The device of the job that the environment describes, with this process as its rank.
///
/// # Errors
/// If hopbine was built without it.
pub(in crate::world) fn of_environment(cache: CacheConfig) -> Result<Tofu, String> {
    Ok(Tofu { api: Api::emulated(), is_physical: false, cache: Some(cache) })
}

/// The gates of a rank of the device under a simulated wire.
///
/// # Errors
/// [`WireError`] if the exchange fails.
#[cfg(feature = "sim")]
pub(in crate::world) fn gates_under(
    exchange: &mut dyn Exchange,
    layout: &Layout<'_>,
) -> Result<OpenedGates, WireError> {
    chains::open(Api::emulated(), exchange, layout)
}
