//! Posting one-sided operations. [`Vcq`] states the contract common to all of them.

use core::ffi::{c_int, c_ulong, c_void};
use core::sync::atomic::{Ordering, fence};

use utofu_sys::*;

use super::{ArmwOp, PostFlags, Vcq};
use crate::{Api, Cookie, Stadd, UtofuError, VcqId};

/// Why an operation was not posted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The transmit queue has no room: poll the TCQ, then try again. Nothing was posted.
    #[error("the transmit queue is full; poll the TCQ, then post again")]
    Busy,
    /// The operation is longer than the TNI supports in one descriptor. Nothing was posted.
    #[error(
        "{length} bytes in one operation, but the TNI can do at most {max}; cut it into pieces"
    )]
    TooLong {
        /// Length asked for, in bytes.
        length: usize,
        /// Largest length possible, in bytes.
        max: usize,
    },
    /// The library refused the operation.
    #[error(transparent)]
    Refused(#[from] UtofuError),
}

/// The bytes that a put or get moves between local and remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// STADD of the local bytes.
    pub local: Stadd,
    /// STADD of the remote bytes.
    pub remote: Stadd,
    /// Length in bytes.
    pub length: usize,
}

/// The byte, flags and cookie of an operation. Its notices return the byte, its completion the cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostOptions {
    /// The byte in the MRQ notices of both sides.
    pub edata: u8,
    /// Notices of the operation, and options of its transfer.
    pub flags: PostFlags,
    /// Returned by [`Vcq::poll_tcq`] if [`PostFlags::TCQ`] is set.
    pub cookie: Cookie,
}

impl PostOptions {
    pub(super) fn edata(&self) -> u64 {
        u64::from(self.edata)
    }

    pub(super) fn flags(&self) -> c_ulong {
        self.flags.0
    }

    pub(super) fn cookie(&self) -> *mut c_void {
        // The library returns the cookie and never dereferences it.
        core::ptr::without_provenance_mut(self.cookie.0)
    }
}

pub(super) fn post_result(api: &Api, call: &'static str, code: c_int) -> Result<(), PostError> {
    match code {
        UTOFU_SUCCESS => Ok(()),
        UTOFU_ERR_BUSY => Err(PostError::Busy),
        code => Err(PostError::Refused(api.error(call, code))),
    }
}

/// Checks a length: the library lets a length that is too large overflow into neighbouring descriptor fields.
pub(super) fn check_length(length: usize, max: usize) -> Result<(), PostError> {
    if length <= max { Ok(()) } else { Err(PostError::TooLong { length, max }) }
}

/// Orders everything that this thread has read or written before a post: as soon as the operation is posted, the
/// device reads memory and peers react. One instruction on processors that reorder (A64FX), none on x86.
pub(super) fn release_fence() {
    fence(Ordering::Release);
}

/// Posts by a function of the table. All these functions take the queue first and the options last.
macro_rules! post {
    ($vcq:ident, $call:ident($($arg:expr),*), $options:ident) => {{
        release_fence();
        let core = &$vcq.core;
        let (edata, flags, cookie) = ($options.edata(), $options.flags(), $options.cookie());
        let code = (core.api.$call)(core.hdl, $($arg,)* edata, flags, cookie);
        post_result(&core.api, stringify!($call), code)
    }};
}

impl Vcq {
    /// Writes local memory to the target's memory.
    ///
    /// # Errors
    /// [`PostError`]; in every case nothing was posted.
    ///
    /// # Safety
    /// See [`Vcq`].
    pub unsafe fn put(
        &mut self,
        to: VcqId,
        what: Transfer,
        options: PostOptions,
    ) -> Result<(), PostError> {
        check_length(what.length, self.caps().max_putget_size)?;
        // SAFETY: the handle is live; the caller vouches for the memory on both sides.
        unsafe {
            post!(self, utofu_put(to.raw(), what.local.0, what.remote.0, what.length), options)
        }
    }

    /// Reads the target's memory into local memory.
    ///
    /// # Errors
    /// [`PostError`]; in every case nothing was posted.
    ///
    /// # Safety
    /// See [`Vcq`].
    pub unsafe fn get(
        &mut self,
        from: VcqId,
        what: Transfer,
        options: PostOptions,
    ) -> Result<(), PostError> {
        check_length(what.length, self.caps().max_putget_size)?;
        // SAFETY: the handle is live; the caller vouches for the memory on both sides.
        unsafe {
            post!(self, utofu_get(from.raw(), what.local.0, what.remote.0, what.length), options)
        }
    }

    /// Writes a few bytes that the descriptor carries. `data` may be reused at once and needs no registration.
    ///
    /// # Errors
    /// [`PostError`]; in every case nothing was posted.
    ///
    /// # Safety
    /// See [`Vcq`], for the remote bytes.
    pub unsafe fn put_piggyback(
        &mut self,
        to: VcqId,
        data: &[u8],
        remote: Stadd,
        options: PostOptions,
    ) -> Result<(), PostError> {
        check_length(data.len(), self.caps().max_piggyback_size)?;
        // SAFETY: the handle is live; data is only read, during the call (the C prototype lacks the const); the
        // caller vouches for the remote memory.
        unsafe {
            post!(
                self,
                utofu_put_piggyback(
                    to.raw(),
                    data.as_ptr().cast_mut().cast(),
                    remote.0,
                    data.len()
                ),
                options
            )
        }
    }

    /// Writes the eight bytes of a value; takes one queue entry.
    ///
    /// # Errors
    /// [`PostError`]; in every case nothing was posted.
    ///
    /// # Safety
    /// See [`Vcq`], for the remote bytes.
    pub unsafe fn put_piggyback8(
        &mut self,
        to: VcqId,
        value: u64,
        remote: Stadd,
        options: PostOptions,
    ) -> Result<(), PostError> {
        // SAFETY: the handle is live; the caller vouches for the remote memory.
        unsafe { post!(self, utofu_put_piggyback8(to.raw(), value, remote.0, 8), options) }
    }

    /// Occupies a queue entry and moves no data. MRQ flags have no effect.
    ///
    /// # Errors
    /// [`PostError::Busy`].
    pub fn nop(&mut self, flags: PostFlags, cookie: Cookie) -> Result<(), PostError> {
        let options = PostOptions { edata: 0, flags, cookie };
        // SAFETY: the handle is live, and the operation accesses no memory.
        post_result(&self.core.api, "utofu_nop", unsafe {
            (self.core.api.utofu_nop)(self.core.hdl, options.flags(), options.cookie())
        })
    }
}

/// Makes the atomic operations, which differ in the operation on the target's word.
macro_rules! atomics {
    ($($(#[doc = $doc:literal])+ $name:ident = $call:ident($($arg:ident: $ty:ty => $value:expr),+);)+) => {
        impl Vcq {$(
            $(#[doc = $doc])+
            ///
            /// # Errors
            /// [`PostError`]; in every case nothing was posted.
            ///
            /// # Safety
            /// See [`Vcq`], for the remote bytes. Atomic operations of several VCQs on the same bytes do not
            /// conflict.
            pub unsafe fn $name(
                &mut self,
                to: VcqId,
                $($arg: $ty,)+
                remote: Stadd,
                options: PostOptions,
            ) -> Result<(), PostError> {
                // SAFETY: the handle is live; the caller vouches for the remote memory.
                unsafe { post!(self, $call(to.raw(), $($value,)+ remote.0), options) }
            }
        )+}
    };
}

atomics! {
    /// Atomic operation on eight bytes of the target, aligned to eight bytes.
    armw8 = utofu_armw8(op: ArmwOp => op.code(), value: u64 => value);
    /// Atomic operation on four bytes of the target, aligned to four bytes.
    armw4 = utofu_armw4(op: ArmwOp => op.code(), value: u32 => value);
    /// Stores `new` in eight bytes of the target if they hold `old`; the local notice returns their previous value.
    cswap8 = utofu_cswap8(old: u64 => old, new: u64 => new);
    /// As [`Vcq::cswap8`], on four bytes, aligned to four bytes.
    cswap4 = utofu_cswap4(old: u32 => old, new: u32 => new);
}
