//! Memory registration of an endpoint: the library's memory directly, users' memory through the rank's registration
//! cache ([`crate::memory`]), if there is one.
//!
//! Memory is registered with a port's VCQ and deregistered within calls for that port, hence under the port's lock.
//! The ports share the cache, whose own lock is taken within the port's lock, but is not held while the device
//! registers or deregisters. The thread that reads memory events runs concurrently and only appends to a log.

use std::sync::{Arc, Weak};

use hopbine_torus::PortId;

use utofu::UtofuError;
use utofu::abi::{
    UTOFU_ERR_FULL, UTOFU_ERR_INVALID_ADDRESS, UTOFU_ERR_INVALID_STADD, UTOFU_ERR_INVALID_STAG,
    UTOFU_ERR_OUT_OF_MEMORY, UTOFU_ERR_OUT_OF_RESOURCE,
};
use utofu::handles::{self, Registration, Vcq};

use super::channel::EAGER_BYTES;
use super::channels::FREE_STAG;
use super::{UtofuEndpoint, failed};
use crate::endpoint::{Access, MemoryRange, Owner, Rank, Registry, WireError};
use crate::memory::{
    Cache, CacheConfig, CacheError, CacheStats, Counted, Keep, Lease, RegisterError,
    RegistrationCounts,
};

/// Initial capacity for registrations in use.
const USUAL_LEASES: usize = 16;

/// The registrations of one port.
#[derive(Debug, Default)]
pub struct Registrar {
    cache: Option<PortCache>,
    /// Registrations leased from the cache, with the STADD that was returned for each.
    leases: Vec<(u64, Lease<Registration>)>,
    /// Registrations that are not in the cache, each for one owner.
    own: Vec<Counted<Registration>>,
    /// Counters of the rank, shared by its ports.
    counts: Arc<RegistrationCounts>,
}

/// The rank's cache, and the port that uses it.
#[derive(Debug)]
struct PortCache {
    cache: Arc<Cache<Registration>>,
    port: PortId,
}

/// Access to a cache's statistics, as long as one of its ports lives.
#[derive(Clone, Debug)]
pub struct CacheView(Weak<Cache<Registration>>);

impl RegisterError for UtofuError {
    fn lacks_room(&self) -> bool {
        [UTOFU_ERR_FULL, UTOFU_ERR_OUT_OF_RESOURCE, UTOFU_ERR_OUT_OF_MEMORY].contains(&self.code)
    }
}

impl Registrar {
    /// Returns the registrars of `n_ports` ports that share a new cache, and a view of the cache.
    pub fn with_cache(config: CacheConfig, n_ports: usize) -> (Vec<Self>, CacheView) {
        Self::sharing(Cache::with_process_events(config, n_ports), n_ports)
    }

    /// Returns the registrars of `n_ports` ports that share `cache`, which was made for that many ports, and a view
    /// of it.
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
    /// The library's error, for instance `FULL`.
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
        let mut register = || unsafe { vcq.register(range.ptr, range.len, access) };
        let registration = match &self.cache {
            Some(PortCache { cache, port }) => cache.with_room(*port, register),
            None => register(),
        }?;
        let stadd = registration.stadd().0;
        self.own.push(self.counts.made(registration));
        Ok(stadd)
    }

    /// Leases a registration from the cache; `None` if the memory needs a registration outside the cache.
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
        let register = |addr: usize, len: usize, alone: bool| {
            let ptr = std::ptr::with_exposed_provenance_mut(addr);
            // SAFETY: the memory is valid now. Memory events end the registration when the memory is unmapped, so the
            // cache does not lease it after that. Peers use it only while it is leased, when the caller keeps the
            // memory valid. It is dropped in calls for this port, hence under the port's lock, or after the endpoint.
            let made = unsafe {
                match alone {
                    true => register_alone(vcq, ptr, len),
                    false => vcq.register(ptr, len, handles::Access::ReadWrite),
                }
            }?;
            // Registrations share a steering tag if and only if their STADDs are as far apart as their addresses.
            let tag = made.stadd().0.wrapping_sub(addr as u64);
            Ok((made, tag))
        };
        match cache.get(keep, *port, range.ptr.expose_provenance(), range.len, register) {
            Ok(lease) => Ok(Some(lease)),
            // Cached registrations allow remote reads and writes. Memory that is only sent from may be read-only:
            // then it gets a read-only registration for this use.
            Err(CacheError::Register { .. }) if range.access == Access::Read => Ok(None),
            Err(CacheError::Register { source, .. }) => Err(source),
            Err(CacheError::NoRange { .. }) => {
                Err(UtofuError::new("utofu_reg_mem", UTOFU_ERR_INVALID_ADDRESS))
            }
        }
    }

    /// Releases one registration for which `stadd` was returned. Peers have no more puts to the memory: the cache may
    /// keep it registered.
    ///
    /// # Errors
    /// The library's error; `INVALID_STADD` if nothing is registered there.
    fn release(&mut self, stadd: u64) -> Result<(), UtofuError> {
        // Several registrations may have the same STADD; they are counted, so any of them can be released.
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
            cache.release(*port, lease);
        }
    }

    /// As [`Registry::stage_bytes`].
    fn stage_bytes(&self) -> Option<u64> {
        self.cache.as_ref().and_then(|PortCache { cache, .. }| cache.stage_bytes())
    }

    /// Ends all registrations of this port, also those whose users have not released them. Peers may still have puts
    /// to any of the memory, and a registration in use would let them write to all its pages, whoever uses these now.
    pub(super) fn revoke(&mut self) {
        self.own.clear();
        self.give_all_back();
        if let Some(PortCache { cache, port }) = &self.cache {
            cache.invalidate_all(*port);
        }
    }

    fn give_all_back(&mut self) {
        for (_, lease) in std::mem::take(&mut self.leases) {
            self.give_back(lease);
        }
    }
}

impl Drop for Registrar {
    fn drop(&mut self) {
        self.give_all_back();
        if let Some(PortCache { cache, port }) = &self.cache {
            cache.close(*port);
        }
    }
}

/// Registers whole pages under a steering tag of this VCQ. uTofu shares a tag that it has chosen itself with every
/// registration within the pages, and looks up the pages only for the first.
///
/// # Errors
/// `FULL` if none of the VCQ's tags is free; the library's error.
///
/// # Safety
/// As [`Vcq::register`].
unsafe fn register_alone(
    vcq: &mut Vcq,
    addr: *mut u8,
    len: usize,
) -> Result<Registration, UtofuError> {
    for stag in FREE_STAG..vcq.caps().num_reserved_stags {
        // SAFETY: the caller's promise.
        match unsafe { vcq.register_with_stag(addr, len, stag, handles::Access::ReadWrite) } {
            Err(error) if error.code == UTOFU_ERR_INVALID_STAG => {}
            result => return result,
        }
    }
    Err(UtofuError::new("utofu_reg_mem_with_stag", UTOFU_ERR_FULL))
}

impl CacheView {
    /// The statistics; `None` once all ports have ended.
    pub fn stats(&self) -> Option<CacheStats> {
        self.0.upgrade().map(|cache| cache.stats())
    }
}

impl Registry for UtofuEndpoint {
    unsafe fn register(&mut self, range: MemoryRange, owner: Owner<'_>) -> Result<u64, WireError> {
        // A new registration could have the STADD of a revoked one, to which a peer may still have puts.
        self.check_usable()?;
        // SAFETY: the caller keeps the memory valid until its release. Peers learn its STADD only from posts, whose
        // contract covers the peers' access.
        let registered = unsafe { self.registrar.register(&mut self.vcq, range, owner) };
        registered.map_err(|error| failed(error, None))
    }

    fn release(&mut self, key: u64) -> Result<(), WireError> {
        // `abandon` has revoked all registrations.
        if self.is_abandoned {
            return Ok(());
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::page_bytes;
    use utofu::Api;
    use utofu::handles::VcqFlags;
    use utofu_emu::{Job, Model};

    fn vcq() -> Vcq {
        let job = Job::with_model(Job::coords_for_shape(&[1]).unwrap(), Model::default()).unwrap();
        let _entered = job.enter(0);
        Vcq::create(Api::emulated(), 0, VcqFlags::NONE).unwrap()
    }

    /// The memory of a registration ends, except for a page that has one of its own, with the same tag.
    #[test]
    fn a_tag_that_lives_in_a_part_does_not_serve_the_rest() {
        let (mut vcq, page) = (vcq(), page_bytes());
        let memory = crate::memory::Pages::new(10 * page as u64).unwrap();
        let cache = Cache::new(CacheConfig::default(), 1, Err("there is no source".to_owned()));
        let mut registrar = Registrar::sharing(cache, 1).0.remove(0);
        let mut register = |owner, at: usize, len| {
            let range =
                MemoryRange { ptr: memory.ptr().wrapping_add(at), len, access: Access::Write };
            // SAFETY: the pages outlive the registrar.
            unsafe { registrar.register(&mut vcq, range, owner) }.unwrap()
        };
        let whole = register(Owner::Explicit, 0, 10 * page);
        let part = register(Owner::UserOnce, page, page);
        assert_eq!(part, whole + page as u64);
        registrar.release(whole).unwrap();
        let mut once = |at| {
            let range =
                MemoryRange { ptr: memory.ptr().wrapping_add(at), len: 8, access: Access::Write };
            // SAFETY: as above.
            unsafe { registrar.register(&mut vcq, range, Owner::UserOnce) }.unwrap()
        };
        assert_eq!(once(page + 8), part + 8, "the page is mapped while it is registered");
        let at = 5 * page + 8;
        assert_ne!(once(at), whole + at as u64);
    }

    #[test]
    fn tags_for_registrations_alone_are_limited_and_come_back() {
        let (mut vcq, mut memory) = (vcq(), vec![0_u8; 64]);
        let n_free = (vcq.caps().num_reserved_stags - FREE_STAG) as usize;
        // SAFETY: the memory outlives the registrations, and no peer knows them.
        let mut register = || unsafe { register_alone(&mut vcq, memory.as_mut_ptr(), 64) };
        let mut held: Vec<_> = (0..n_free).map(|_| register().unwrap()).collect();
        assert!(n_free > 200 && register().unwrap_err().lacks_room());
        let last = held.pop().unwrap().stadd();
        assert_eq!(register().unwrap().stadd(), last);
    }
}
