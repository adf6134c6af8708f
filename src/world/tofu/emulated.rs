//! The device in software with ranks that are threads.

use std::sync::Arc;

use hopbine_torus::geometry::{RankMap, Shape};
use utofu_emu::{Entered, Job, JobError, Model};

use super::Tofu;
use crate::error::{Error, WireError};
use crate::memory::CacheConfig;

/// A torus of emulated nodes with a rank on each.
pub(in crate::world) struct Emulation(Arc<Job>);

impl Emulation {
    /// Sets the nodes up.
    ///
    /// # Errors
    /// [`Error::Startup`].
    pub(in crate::world) fn new(
        shape: &Shape,
        map: &RankMap,
        latency: Model,
    ) -> Result<Self, Error> {
        Self::with(shape, map, |nodes| Job::with_model(nodes, latency))
    }

    /// Sets the nodes up for ranks that are one thread in turn: nothing happens on the device but what
    /// the owner of the job steps.
    ///
    /// # Errors
    /// [`Error::Startup`].
    #[cfg(feature = "sim")]
    pub(in crate::world) fn stepped(
        shape: &Shape,
        map: &RankMap,
        latency: Model,
    ) -> Result<Arc<Job>, Error> {
        Self::with(shape, map, |nodes| Job::stepped(nodes, latency)).map(|Emulation(job)| job)
    }

    fn with(
        shape: &Shape,
        map: &RankMap,
        make: impl FnOnce(Vec<[u8; 6]>) -> Result<Arc<Job>, JobError>,
    ) -> Result<Self, Error> {
        // The device counts nodes with the first size running fastest, shapes with the last.
        let sizes: Vec<u32> = shape.sizes().into_iter().rev().collect();
        let job = Job::coords_for_shape(&sizes).and_then(|nodes| {
            let node_of = |rank| nodes[map.node_of(shape, rank).index()];
            make((0..shape.n_nodes()).map(node_of).collect())
        });
        let job = job.map_err(|error| Error::Startup {
            rank: 0,
            source: WireError {
                call: "setting up the emulated device",
                reason: error.to_string(),
                peer: None,
            },
        })?;
        Ok(Emulation(job))
    }

    /// Makes the calling thread act as this rank, as long as the value lives.
    pub(in crate::world) fn enter(&self, rank: u32) -> Entered {
        self.0.enter(rank as usize)
    }

    /// The device, for whoever has entered.
    pub(in crate::world) fn device(&self, cache: Option<CacheConfig>) -> Tofu {
        Tofu::emulated(cache)
    }
}
