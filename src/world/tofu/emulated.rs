//! The device in software with ranks that are threads.

use std::sync::Arc;

use hopbine_torus::geometry::{RankMap, Shape};
use utofu_emu::{Entered, Job, Model};

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
        // The device counts nodes with the first size running fastest, shapes with the last.
        let sizes: Vec<u32> = shape.sizes().into_iter().rev().collect();
        let job = Job::coords_for_shape(&sizes).and_then(|nodes| {
            let node_of = |rank| nodes[map.node_of(shape, rank).index()];
            Job::with_model((0..shape.n_nodes()).map(node_of).collect(), latency)
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
