//! How an endpoint registers the memory of its users.
//!
//! A seam: [`Cached`](super::Cached) does the same with less work for memory that it has seen.

use utofu::UtofuError;
use utofu::handles::{self, Registration, Vcq};

use super::channel::EAGER_BYTES;
use super::{UtofuEndpoint, failed};
use crate::endpoint::{Access, Owner, Rank, Registry, WireError};

/// Registers memory with a VCQ and remembers what is registered.
pub trait Registrar: Send {
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
        ptr: *mut u8,
        len: usize,
        access: Access,
        owner: Owner<'_>,
    ) -> Result<u64, UtofuError>;

    /// Takes back one registration that returned `stadd`. No put of a peer may reach the memory
    /// after that: either peers have no more to put there, or nothing is kept of it
    /// ([`forget`](Registrar::forget)).
    ///
    /// # Errors
    /// What the library returns; `INVALID_STADD` if nothing is registered there.
    fn release(&mut self, stadd: u64) -> Result<(), UtofuError>;

    /// Ends all kept registrations: those in use end with their release.
    fn forget(&mut self) {}
}

/// Registers each time anew.
#[derive(Debug, Default)]
pub struct Direct {
    registrations: Vec<Registration>,
}

impl Registrar for Direct {
    unsafe fn register(
        &mut self,
        vcq: &mut Vcq,
        ptr: *mut u8,
        len: usize,
        access: Access,
        _owner: Owner<'_>,
    ) -> Result<u64, UtofuError> {
        let access = match access {
            Access::Read => handles::Access::ReadOnly,
            Access::Write => handles::Access::ReadWrite,
        };
        // SAFETY: the caller's promise.
        let registration = unsafe { vcq.register(ptr, len, access) }?;
        let stadd = registration.stadd().0;
        self.registrations.push(registration);
        Ok(stadd)
    }

    fn release(&mut self, stadd: u64) -> Result<(), UtofuError> {
        let found = self.registrations.iter().rposition(|held| held.stadd().0 == stadd);
        match found {
            Some(index) => self.registrations.swap_remove(index).release(),
            None => {
                let code = utofu::abi::UTOFU_ERR_INVALID_STADD;
                Err(UtofuError::new("utofu_dereg_mem", code))
            }
        }
    }
}

impl Registry for UtofuEndpoint {
    unsafe fn register(
        &mut self,
        ptr: *mut u8,
        len: usize,
        access: Access,
        owner: Owner<'_>,
    ) -> Result<u64, WireError> {
        // SAFETY: the caller keeps the memory valid until its release. Peers learn its STADD
        // only through posts, whose contract covers their access.
        let registered = unsafe { self.registrar.register(&mut self.vcq, ptr, len, access, owner) };
        registered.map_err(|error| failed(error, None))
    }

    fn release(&mut self, key: u64) -> Result<(), WireError> {
        self.registrar.release(key).map_err(|error| failed(error, None))
    }

    fn keyless_bytes(&self) -> u64 {
        EAGER_BYTES as u64
    }

    fn fence(&mut self) -> Result<bool, WireError> {
        self.all_arrived()
    }

    fn unfenced(&self) -> Option<Rank> {
        self.first_unfenced()
    }
}
