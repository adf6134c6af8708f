//! The device in software: its bells, and ranks that are threads.

use std::sync::Arc;
use std::time::Duration;

use hopbine_torus::geometry::{RankMap, Shape};
use utofu_emu::{Entered, Job, Model};

use super::Tofu;
use crate::endpoint::Bell;
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

/// The bell of the rank that the calling thread acts for, where the device has one.
pub(super) fn bell() -> Option<Arc<dyn Bell>> {
    utofu_emu::Bell::of_this_rank().map(|bell| Arc::new(DeviceBell(bell)) as Arc<dyn Bell>)
}

#[derive(Debug)]
struct DeviceBell(utofu_emu::Bell);

impl Bell for DeviceBell {
    fn arm(&self) -> u32 {
        self.0.arm()
    }

    fn number(&self) -> u32 {
        self.0.number()
    }

    fn sleep(&self, number: u32, longest: Duration) {
        self.0.sleep(number, longest);
    }

    fn disarm(&self) {
        self.0.disarm();
    }

    fn n_ranks(&self) -> usize {
        self.0.n_ranks()
    }

    fn ring(&self) {
        self.0.ring();
    }
}
