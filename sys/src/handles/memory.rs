//! Registered memory: memory that one-sided operations may access.

use core::mem::ManuallyDrop;
use std::sync::Arc;

use utofu_sys::*;

use super::Vcq;
use super::vcq::Core;
use crate::{Stadd, UtofuError};

/// Access that remote VCQs have to registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Remote VCQs may read and write it.
    ReadWrite,
    /// Remote VCQs may only read it.
    ReadOnly,
}

impl Access {
    fn flags(self) -> core::ffi::c_ulong {
        match self {
            Access::ReadWrite => 0,
            Access::ReadOnly => UTOFU_REG_MEM_FLAG_READ_ONLY,
        }
    }
}

/// Memory registered with a VCQ; dropping it deregisters the memory.
///
/// uTofu registers whole pages. Ranges within the same pages share one registration, which is reference-counted, so
/// two registrations of one range are both valid until each is dropped.
#[derive(Debug)]
pub struct Registration {
    core: Arc<Core>,
    stadd: Stadd,
    len: usize,
}

impl Vcq {
    /// Registers `len` bytes at `addr`.
    ///
    /// # Errors
    /// `FULL` when the CQ has no steering tag left; `INVALID_ADDRESS`, `INVALID_SIZE`.
    ///
    /// # Safety
    /// Until the registration is dropped:
    /// * the memory stays valid (not freed, not unmapped). Every rank that knows the STADD may read it and, with
    ///   [`Access::ReadWrite`], write it at any time, so no Rust reference may promise otherwise while a peer can act;
    /// * the registration is dropped by the thread that drives the VCQ, or while no thread is in a call on the VCQ:
    ///   uTofu serialises nothing on an ordinary VCQ. One owner of both the VCQ and its registrations satisfies this.
    pub unsafe fn register(
        &mut self,
        addr: *mut u8,
        len: usize,
        access: Access,
    ) -> Result<Registration, UtofuError> {
        let Core { api, hdl } = &*self.core;
        let stadd = api.call_with_out("utofu_reg_mem", |stadd| {
            // SAFETY: the handle is live, stadd is a valid place for the result, and the caller vouches for the
            // memory.
            unsafe { (api.utofu_reg_mem)(*hdl, addr.cast(), len, access.flags(), stadd) }
        })?;
        Ok(Registration { core: Arc::clone(&self.core), stadd: Stadd(stadd), len })
    }

    /// Registers memory under a steering tag, so that other ranks can compute its STADD
    /// ([`crate::VcqId::stadd_of_stag`]).
    ///
    /// # Errors
    /// `INVALID_STAG` if the tag is in use or not below `num_reserved_stags`.
    ///
    /// # Safety
    /// As [`Vcq::register`].
    pub unsafe fn register_with_stag(
        &mut self,
        addr: *mut u8,
        len: usize,
        stag: u32,
        access: Access,
    ) -> Result<Registration, UtofuError> {
        // The library does not check this, and a larger tag belongs to another component id.
        if stag >= self.caps().num_reserved_stags {
            return Err(UtofuError::new("utofu_reg_mem_with_stag", UTOFU_ERR_INVALID_STAG));
        }
        let Core { api, hdl } = &*self.core;
        let stadd = api.call_with_out("utofu_reg_mem_with_stag", |stadd| {
            let flags = access.flags();
            // SAFETY: as in `register`.
            unsafe { (api.utofu_reg_mem_with_stag)(*hdl, addr.cast(), len, stag, flags, stadd) }
        })?;
        Ok(Registration { core: Arc::clone(&self.core), stadd: Stadd(stadd), len })
    }
}

impl Registration {
    /// STADD of the first byte.
    #[must_use]
    pub fn stadd(&self) -> Stadd {
        self.stadd
    }

    /// STADD of the byte at `offset`; `offset` may be `len()`, the end of the range.
    ///
    /// # Panics
    /// If `offset` lies behind the end: the STADD would name memory outside the range.
    #[must_use]
    pub fn at(&self, offset: usize) -> Stadd {
        assert!(offset <= self.len, "offset {offset} in a registration of {} bytes", self.len);
        self.stadd + offset as u64
    }

    /// Registered length in bytes: the requested length, not rounded to whole pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no byte is registered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Deregisters the memory and returns the outcome, which `drop` cannot.
    ///
    /// # Errors
    /// `INVALID_STADD` if the library does not know the registration any more.
    pub fn release(self) -> Result<(), UtofuError> {
        let mut this = ManuallyDrop::new(self);
        let outcome = this.dereg();
        // SAFETY: `this` is never used again, so its reference to the core is dropped exactly once.
        unsafe { core::ptr::drop_in_place(&mut this.core) };
        outcome
    }

    fn dereg(&mut self) -> Result<(), UtofuError> {
        // SAFETY: the handle is live while `core` is; the contract of [`Vcq::register`] keeps other threads out of
        // this VCQ now.
        let code = unsafe { (self.core.api.utofu_dereg_mem)(self.core.hdl, self.stadd.0, 0) };
        self.core.api.check("utofu_dereg_mem", code)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // `drop` cannot report a failure; `release` does.
        let _ = self.dereg();
    }
}
