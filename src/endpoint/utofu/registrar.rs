//! How an endpoint registers memory: the library's own directly, the user's through the cache of its
//! rank ([`crate::memory`]), if that has one.
//!
//! What is registered with a port's VCQ is registered and released within calls for that port,
//! hence under the port's lock; the cache, which the ports share, has a lock of its own that is
//! taken within, but not held while the device registers or releases. The thread that reads memory
//! events works beside it, and only appends to a log.

use std::sync::{Arc, Weak};

use hopbine_torus::PortId;

use utofu::UtofuError;
use utofu::abi::{UTOFU_ERR_INVALID_ADDRESS, UTOFU_ERR_INVALID_STADD};
use utofu::handles::{self, Registration, Vcq};

use super::channel::EAGER_BYTES;
use super::{UtofuEndpoint, failed};
use crate::endpoint::{Access, MemoryRange, Owner, Rank, Registry, WireError};
use crate::memory::{Cache, CacheConfig, CacheError, CacheStats, Counted, Counts, Keep, Lease};

/// Registrations in use for which room is made in advance.
const USUAL_LEASES: usize = 16;

/// One port's registrations.
#[derive(Debug, Default)]
pub struct Registrar {
    cache: Option<PortCache>,
    /// Leased from the cache, with their STADDs.
    leases: Vec<(u64, Lease<Registration>)>,
    /// Made for one owner each.
    own: Vec<Counted<Registration>>,
    /// Of the rank.
    counts: Arc<Counts>,
}

/// One port's part of its rank's cache.
#[derive(Debug)]
struct PortCache {
    cache: Arc<Cache<Registration>>,
    port: PortId,
}

/// A look at the figures of a cache, as long as one of its ports lives.
#[derive(Clone, Debug)]
pub struct CacheView(Weak<Cache<Registration>>);

impl Registrar {
    /// The registrars of `n_ports` ports that share a cache, and a view of that.
    pub fn with_cache(config: CacheConfig, n_ports: usize) -> (Vec<Self>, CacheView) {
        Self::sharing(Cache::with_process_events(config, n_ports), n_ports)
    }

    /// The same with this cache, which is for as many ports.
    pub(crate) fn sharing(cache: Cache<Registration>, n_ports: usize) -> (Vec<Self>, CacheView) {
        let cache = Arc::new(cache);
        let registrar = |port| Registrar {
            cache: Some(PortCache { cache: cache.clone(), port }),
            leases: Vec::with_capacity(USUAL_LEASES),
            own: Vec::new(),
            counts: cache.counts().clone(),
        };
        (PortId::first(n_ports as u16).map(registrar).collect(), CacheView(Arc::downgrade(&cache)))
    }

    /// Registers memory and returns the STADD of its first byte.
    ///
    /// # Errors
    /// What the library returns, `FULL` for instance.
    ///
    /// # Safety
    /// As [`Vcq::register`], until a [`release`](Registrar::release) with the STADD.
    unsafe fn register(
        &mut self,
        vcq: &mut Vcq,
        range: MemoryRange,
        owner: Owner<'_>,
    ) -> Result<u64, UtofuError> {
        // SAFETY: the caller's promise.
        if let Some(lease) = unsafe { self.lease(vcq, range, owner) }? {
            let stadd = lease.handle().stadd().0 + lease.offset();
            self.leases.push((stadd, lease));
            return Ok(stadd);
        }
        let access = match range.access {
            Access::Read => handles::Access::ReadOnly,
            Access::Write => handles::Access::ReadWrite,
        };
        // SAFETY: the caller's promise.
        let registration = unsafe { vcq.register(range.ptr, range.len, access) }?;
        let stadd = registration.stadd().0;
        self.own.push(self.counts.made(registration));
        Ok(stadd)
    }

    /// A registration from the cache; `None` if the memory is to have one of its own.
    ///
    /// # Safety
    /// As [`Registrar::register`].
    unsafe fn lease(
        &mut self,
        vcq: &mut Vcq,
        range: MemoryRange,
        owner: Owner<'_>,
    ) -> Result<Option<Lease<Registration>>, UtofuError> {
        let Some(PortCache { cache, port }) = &self.cache else { return Ok(None) };
        let keep = match owner {
            Owner::Library => return Ok(None),
            Owner::User(settled) => {
                Keep::UntilEvent(*settled.get_or_insert_with(|| cache.settle()))
            }
            Owner::UserOnce => Keep::Once,
            Owner::Explicit => Keep::Explicitly,
        };
        let register = |addr: usize, len: usize| {
            let addr = std::ptr::with_exposed_provenance_mut(addr);
            // SAFETY: the memory is valid now, and the cache gives the registration to nobody after
            // it has gone: events of the memory end it. Peers act on it only while it is leased,
            // when the caller keeps it valid. It is dropped in calls for this port, hence under the
            // port's lock, or after the endpoint.
            unsafe { vcq.register(addr, len, handles::Access::ReadWrite) }
        };
        match cache.get(keep, *port, range.ptr.expose_provenance(), range.len, register) {
            Ok(lease) => Ok(Some(lease)),
            // Registrations that are kept serve sending and receiving. Memory that is only sent
            // from may be read-only: then there is one for this time.
            Err(CacheError::Register { .. }) if range.access == Access::Read => Ok(None),
            Err(CacheError::Register { source, .. }) => Err(source),
            Err(CacheError::NoRange { .. }) => {
                Err(UtofuError::new("utofu_reg_mem", UTOFU_ERR_INVALID_ADDRESS))
            }
        }
    }

    /// Takes back one registration that returned `stadd`. No put of a peer may reach the memory
    /// after that: either peers have no more to put there, or nothing is kept of it
    /// ([`forget`](Registrar::forget)).
    ///
    /// # Errors
    /// What the library returns; `INVALID_STADD` if nothing is registered there.
    fn release(&mut self, stadd: u64) -> Result<(), UtofuError> {
        // Several may have one STADD; registrations are counted, so any of them will do.
        if let Some(index) = self.leases.iter().rposition(|(leased, _)| *leased == stadd) {
            let (_, lease) = self.leases.swap_remove(index);
            self.give_back(lease);
            return Ok(());
        }
        match self.own.iter().rposition(|own| own.stadd().0 == stadd) {
            Some(index) => self.own.swap_remove(index).into_inner().release(),
            None => Err(UtofuError::new("utofu_dereg_mem", UTOFU_ERR_INVALID_STADD)),
        }
    }

    fn give_back(&self, lease: Lease<Registration>) {
        if let Some(PortCache { cache, port }) = &self.cache {
            cache.give_back(*port, lease);
        }
    }

    /// As [`Registry::stage_bytes`].
    fn stage_bytes(&self) -> Option<u64> {
        self.cache.as_ref().and_then(|PortCache { cache, .. }| cache.stage_bytes())
    }

    /// Ends all kept registrations: those in use end with their release.
    pub(super) fn forget(&mut self) {
        if let Some(PortCache { cache, port }) = &self.cache {
            cache.end_all(*port);
        }
    }
}

impl Drop for Registrar {
    fn drop(&mut self) {
        for (_, lease) in std::mem::take(&mut self.leases) {
            self.give_back(lease);
        }
        if let Some(PortCache { cache, port }) = &self.cache {
            cache.close(*port);
        }
    }
}

impl CacheView {
    /// The figures; `None` after the end of all ports.
    pub fn stats(&self) -> Option<CacheStats> {
        self.0.upgrade().map(|cache| cache.stats())
    }
}

impl Registry for UtofuEndpoint {
    unsafe fn register(&mut self, range: MemoryRange, owner: Owner<'_>) -> Result<u64, WireError> {
        // SAFETY: the caller keeps the memory valid until its release. Peers learn its STADD
        // only through posts, whose contract covers their access.
        let registered = unsafe { self.registrar.register(&mut self.vcq, range, owner) };
        registered.map_err(|error| failed(error, None))
    }

    fn release(&mut self, key: u64) -> Result<(), WireError> {
        self.registrar.release(key).map_err(|error| failed(error, None))
    }

    fn keyless_bytes(&self) -> u64 {
        EAGER_BYTES as u64
    }

    fn stage_bytes(&self) -> Option<u64> {
        self.registrar.stage_bytes()
    }

    fn fence(&mut self) -> Result<bool, WireError> {
        self.all_arrived()
    }

    fn unfenced(&self) -> Option<Rank> {
        self.first_unfenced()
    }
}
