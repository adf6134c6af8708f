//! A rank's part of the device: endpoints, their registration caches, and barrier gates.

use std::cell::RefCell;

use hopbine_torus::geometry::{RankMap, Shape};
use utofu_sys::Api;
use utofu_sys::bootstrap::Exchange;

use super::communicator::Hardware;
use super::gates::Gates;
use crate::endpoint::Endpoint;
use crate::endpoint::utofu::{Cached, Direct, Registrar, connect};
use crate::error::WireError;
use crate::memory::CacheConfig;

/// What to open.
pub(super) struct Wanted<'a> {
    pub(super) api: Api,
    pub(super) n_ports: usize,
    /// Configuration of the ports' registration caches; without one there are none.
    pub(super) cache: Option<CacheConfig>,
    pub(super) shape: &'a Shape,
    pub(super) map: &'a RankMap,
    /// This rank's number among those of its node.
    pub(super) place: usize,
}

/// Opens it on all ranks; collective over `exchange`.
///
/// # Errors
/// [`WireError`] if uTofu or the exchange fails. Missing barrier gates are no error.
pub(super) fn open(
    wanted: &Wanted<'_>,
    exchange: &mut dyn Exchange,
) -> Result<(Vec<Box<dyn Endpoint>>, Hardware), WireError> {
    let caches = RefCell::new(Vec::new());
    let registrar = || -> Box<dyn Registrar> {
        let Some(config) = wanted.cache else { return Box::new(Direct::default()) };
        let cached = Cached::new(config);
        caches.borrow_mut().push(cached.view());
        Box::new(cached)
    };
    let endpoints = connect(wanted.api, exchange, wanted.n_ports, registrar)?;
    let gates = Gates::open(wanted.api, exchange, wanted.shape, wanted.map, wanted.place)?;
    let endpoints = endpoints.into_iter().map(|e| Box::new(e) as Box<dyn Endpoint>).collect();
    Ok((endpoints, Hardware { gates, caches: caches.into_inner() }))
}
