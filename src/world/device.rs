//! A rank's part of the device: endpoints, their registration caches, and barrier gates.

use std::cell::RefCell;
use std::sync::Arc;

use hopbine_torus::geometry::{RankMap, Shape};
use utofu_emu::{Entered, Job};
use utofu_sys::Api;
use utofu_sys::bootstrap::Exchange;

use super::gates::Gates;
use crate::endpoint::Endpoint;
use crate::endpoint::utofu::{CacheView, Cached, Direct, Registrar, connect};
use crate::error::WireError;
use crate::memory::CacheConfig;

/// Where a rank is: what every communicator of it is opened with.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) api: Api,
    /// Configuration of the ports' registration caches; without one there are none.
    pub(super) cache: Option<CacheConfig>,
    /// This rank's number among those of its node.
    pub(super) place: usize,
    /// This rank's share of the cores.
    pub(super) cores: usize,
    /// For a rank that is a thread: its job on the emulated device, and its number in that.
    pub(super) identity: Option<(Arc<Job>, usize)>,
}

/// What a communicator has of its device besides the endpoints.
pub(super) struct Hardware {
    /// The barrier gates, or why there are none.
    pub(super) gates: Result<Gates, String>,
    /// The ports' registration caches, if they have any.
    pub(super) caches: Vec<CacheView>,
}

impl Site {
    /// Makes the calling thread act as this rank, as long as the value lives: whichever thread
    /// that is, the device must know for whom it opens something.
    fn enter(&self) -> Option<Entered> {
        self.identity.as_ref().map(|(job, rank)| job.enter(*rank))
    }

    /// Opens `n_ports` ports and gates on all ranks of a torus; collective over `exchange`.
    ///
    /// # Errors
    /// [`WireError`] if the exchange fails, or uTofu does on some rank; in the latter case all
    /// ranks get the same error. Missing barrier gates are no error.
    pub(super) fn open(
        &self,
        n_ports: usize,
        shape: &Shape,
        map: &RankMap,
        exchange: &mut dyn Exchange,
    ) -> Result<(Vec<Box<dyn Endpoint>>, Hardware), WireError> {
        let _entered = self.enter();
        let caches = RefCell::new(Vec::new());
        let registrar = || -> Box<dyn Registrar> {
            let Some(config) = self.cache else { return Box::new(Direct::default()) };
            let cached = Cached::new(config);
            caches.borrow_mut().push(cached.view());
            Box::new(cached)
        };
        let endpoints = connect(self.api, exchange, n_ports, registrar)?;
        let gates = Gates::open(self.api, exchange, shape, map, self.place)?;
        let endpoints = endpoints.into_iter().map(|e| Box::new(e) as Box<dyn Endpoint>).collect();
        Ok((endpoints, Hardware { gates, caches: caches.into_inner() }))
    }
}
