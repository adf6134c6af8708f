//! Registration through the cache of [`crate::memory`]: one for all ports of a rank.
//!
//! What is registered with a port's VCQ is registered and released within calls for that port,
//! hence under the port's lock; the cache, which the ports share, has a lock of its own that is
//! taken within. Only the thread that reads memory events works beside it, and that thread only
//! appends to a log.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use utofu::UtofuError;
use utofu::abi::UTOFU_ERR_INVALID_ADDRESS;
use utofu::handles::{self, Registration, Vcq};

use super::registrar::{Direct, Registrar};
use crate::endpoint::{Access, Owner};
use crate::memory::{Cache, CacheConfig, CacheError, CacheStats, Keep, Lease};

/// Registrations in use for which room is made in advance.
const USUAL_LEASES: usize = 16;

/// One port's part of the rank's cache, which keeps registrations of the user's memory; the
/// library's own is registered as it says.
pub struct Cached {
    cache: Arc<Mutex<Cache<Registration>>>,
    port: usize,
    /// What is in use, with its STADD.
    held: Vec<(u64, Lease<Registration>)>,
    direct: Direct,
}

/// A look at the figures of a cache, as long as one of its ports lives.
#[derive(Clone, Debug)]
pub struct CacheView(Weak<Mutex<Cache<Registration>>>);

impl Cached {
    /// A cache for `n_ports` ports: the part of each.
    pub fn for_ports(config: CacheConfig, n_ports: usize) -> Vec<Self> {
        let cache = Arc::new(Mutex::new(Cache::with_process_events(config, n_ports)));
        let part = |port| Cached {
            cache: cache.clone(),
            port,
            held: Vec::with_capacity(USUAL_LEASES),
            direct: Direct::default(),
        };
        (0..n_ports).map(part).collect()
    }

    /// Its figures.
    pub fn view(&self) -> CacheView {
        CacheView(Arc::downgrade(&self.cache))
    }

    fn cache(&self) -> MutexGuard<'_, Cache<Registration>> {
        lock(&self.cache)
    }
}

impl CacheView {
    /// The figures; `None` after the end of all ports.
    pub fn stats(&self) -> Option<CacheStats> {
        self.0.upgrade().map(|cache| lock(&cache).stats())
    }
}

fn lock(cache: &Mutex<Cache<Registration>>) -> MutexGuard<'_, Cache<Registration>> {
    // A panic under the lock is a defect of the cache, which is whole between any two statements.
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registrar for Cached {
    unsafe fn register(
        &mut self,
        vcq: &mut Vcq,
        ptr: *mut u8,
        len: usize,
        access: Access,
        owner: Owner<'_>,
    ) -> Result<u64, UtofuError> {
        let (addr, port) = (ptr.expose_provenance(), self.port);
        let mut cache = lock(&self.cache);
        let register = |addr: usize, len: usize| {
            let addr = std::ptr::with_exposed_provenance_mut(addr);
            // SAFETY: the memory is valid now, and the cache gives the registration to nobody after
            // it has gone: events of the memory end it. Peers act on it only while it is leased,
            // when the caller keeps it valid. It is dropped in calls for this port, hence under the
            // port's lock, or after the endpoint.
            unsafe { vcq.register(addr, len, handles::Access::ReadWrite) }
        };
        let keep = match owner {
            Owner::Library => {
                drop(cache);
                // SAFETY: the caller's promise.
                return unsafe { self.direct.register(vcq, ptr, len, access, owner) };
            }
            Owner::User(settled) => {
                Keep::UntilEvent(*settled.get_or_insert_with(|| cache.settle()))
            }
            Owner::UserOnce => Keep::Once,
            Owner::Explicit => Keep::Explicitly,
        };
        let lease = match cache.get(keep, port, addr, len, register) {
            Ok(lease) => lease,
            // Registrations that are kept serve sending and receiving. Memory that is only sent
            // from may be read-only: then there is one for this time.
            Err(CacheError::Register { .. }) if access == Access::Read => {
                drop(cache);
                // SAFETY: the caller's promise.
                return unsafe { self.direct.register(vcq, ptr, len, access, Owner::UserOnce) };
            }
            Err(CacheError::Register { source, .. }) => return Err(source),
            Err(CacheError::NoRange { .. }) => {
                return Err(UtofuError::new("utofu_reg_mem", UTOFU_ERR_INVALID_ADDRESS));
            }
        };
        let stadd = lease.handle().stadd().0 + lease.offset();
        self.held.push((stadd, lease));
        Ok(stadd)
    }

    fn forget(&mut self) {
        self.cache().end_all(self.port);
    }

    fn release(&mut self, stadd: u64) -> Result<(), UtofuError> {
        // Several may have one STADD; registrations are counted, so any of them will do.
        match self.held.iter().rposition(|(held, _)| *held == stadd) {
            Some(index) => {
                let (_, lease) = self.held.swap_remove(index);
                self.cache().give_back(self.port, lease);
                Ok(())
            }
            None => self.direct.release(stadd),
        }
    }
}

impl Drop for Cached {
    fn drop(&mut self) {
        let mut cache = lock(&self.cache);
        for (_, lease) in self.held.drain(..) {
            cache.give_back(self.port, lease);
        }
        cache.close(self.port);
    }
}
