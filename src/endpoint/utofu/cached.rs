//! Registration through the cache of [`crate::memory`]: one cache per VCQ.
//!
//! Everything here happens under the lock of the port that the VCQ belongs to: the cache asks
//! for registrations and gives them back only within calls of its owner. Only the thread that
//! reads memory events works beside it, and that thread only fills the cache's queue.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Weak};

use utofu_sys::UtofuError;
use utofu_sys::abi::UTOFU_ERR_INVALID_ADDRESS;
use utofu_sys::handles::{self, Registration, Vcq};

use super::registrar::{Direct, Registrar};
use crate::endpoint::{Access, Owner};
use crate::memory::{self, CacheConfig, CacheError, CacheStats, HeldLease, RegistrationCache};

/// Registrations in use for which room is made in advance.
const USUAL_LEASES: usize = 16;

/// Keeps registrations of the user's memory; the library's own is registered as it says.
pub struct Cached {
    // Dropped first: leases refer to the cache.
    held: Vec<(u64, HeldLease<Interface>)>,
    cache: Arc<RegistrationCache<Interface>>,
    direct: Direct,
}

/// A look at the figures of a cache, as long as its endpoint lives.
#[derive(Clone, Debug)]
pub struct CacheView(Weak<RegistrationCache<Interface>>);

/// The interface that the cache registers with.
struct Interface {
    /// The VCQ, while its owner asks for something; null otherwise.
    vcq: AtomicPtr<Vcq>,
}

/// A registration, as the cache holds it.
struct Kept(Registration);

// SAFETY: a shared `Kept` gives out nothing but the STADD, a number.
unsafe impl Sync for Kept {}

impl memory::Registrar for Interface {
    type Handle = Kept;
    type Error = UtofuError;

    fn register(&self, addr: usize, len: usize) -> Result<Kept, UtofuError> {
        // Relaxed: set by this very thread, in `Cached::register`.
        let vcq = self.vcq.load(Ordering::Relaxed);
        assert!(!vcq.is_null(), "the cache registers only within `Cached::register`");
        // SAFETY: not null, so it is the address of the `&mut Vcq` of `Cached::register`, which
        // is further up on this thread's stack and does not use it meanwhile.
        let vcq = unsafe { &mut *vcq };
        let addr = std::ptr::with_exposed_provenance_mut(addr);
        // SAFETY: the memory is valid now, and the cache gives the registration to nobody after
        // it has gone: events of the memory end it. Peers act on it only while it is leased,
        // when the caller of `Cached::register` keeps it valid. It is dropped by calls of the
        // owner, hence under the port's lock, or after the endpoint.
        unsafe { vcq.register(addr, len, handles::Access::ReadWrite) }.map(Kept)
    }

    fn release(&self, handle: Kept) {
        drop(handle);
    }
}

impl Cached {
    /// A cache for one VCQ.
    pub fn new(config: CacheConfig) -> Self {
        let interface = Interface { vcq: AtomicPtr::new(null_mut()) };
        Cached {
            held: Vec::with_capacity(USUAL_LEASES),
            cache: Arc::new(RegistrationCache::with_process_events(interface, config)),
            direct: Direct::default(),
        }
    }

    /// Its figures.
    pub fn view(&self) -> CacheView {
        CacheView(Arc::downgrade(&self.cache))
    }
}

impl CacheView {
    /// The figures; `None` after the end of the endpoint.
    pub fn stats(&self) -> Option<CacheStats> {
        self.0.upgrade().map(|cache| cache.stats())
    }
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
        let addr = ptr.expose_provenance();
        let cache = &self.cache;
        // Relaxed: read by this very thread, in `Interface::register`.
        cache.registrar().vcq.store(vcq, Ordering::Relaxed);
        let leased = match owner {
            Owner::Library => {
                cache.registrar().vcq.store(null_mut(), Ordering::Relaxed);
                // SAFETY: the caller's promise.
                return unsafe { self.direct.register(vcq, ptr, len, access, owner) };
            }
            Owner::User(settled) => {
                let settled = *settled.get_or_insert_with(|| cache.settle());
                cache.get_settled(settled, addr, len)
            }
            Owner::UserOnce => cache.get_uncached(addr, len),
        };
        cache.registrar().vcq.store(null_mut(), Ordering::Relaxed);
        let lease = match leased {
            Ok(lease) => lease,
            // Registrations that are kept serve sending and receiving. Memory that is only sent
            // from may be read-only: then there is one for this time.
            Err(CacheError::Register { .. }) if access == Access::Read => {
                // SAFETY: the caller's promise.
                return unsafe { self.direct.register(vcq, ptr, len, access, Owner::UserOnce) };
            }
            Err(CacheError::Register { source, .. }) => return Err(source),
            Err(CacheError::Span(_)) => {
                return Err(UtofuError::new("utofu_reg_mem", UTOFU_ERR_INVALID_ADDRESS));
            }
        };
        let stadd = lease.0.stadd().0 + lease.offset();
        self.held.push((stadd, lease.hold(cache)));
        Ok(stadd)
    }

    fn forget(&mut self) {
        self.cache.invalidate_all();
    }

    fn release(&mut self, stadd: u64) -> Result<(), UtofuError> {
        // Several may have one STADD; registrations are counted, so any of them will do.
        match self.held.iter().rposition(|(held, _)| *held == stadd) {
            Some(index) => {
                drop(self.held.swap_remove(index));
                Ok(())
            }
            None => self.direct.release(stadd),
        }
    }
}
