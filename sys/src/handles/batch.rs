//! Batched puts: their descriptors are prepared one after the other and posted by one call, so that the device is
//! notified once for all of them.

use super::post::{check_length, post_result, release_fence};
use super::vcq::MAX_BATCH;
use super::{PostError, PostOptions, Transfer, Vcq};
use crate::{Stadd, VcqId};

/// Source of a put's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Registered memory.
    Registered(Stadd),
    /// The first bytes of this array, which the descriptor carries.
    Inline([u8; 32]),
    /// The 8 bytes of this value, in a descriptor that takes one queue entry.
    Word(u64),
}

/// A put of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// The target.
    pub to: VcqId,
    /// Source of the bytes.
    pub source: Source,
    /// STADD of the remote bytes.
    pub remote: Stadd,
    /// Length in bytes.
    pub length: usize,
    /// Its byte, flags and cookie. The whole batch has the cookie of its first put.
    pub options: PostOptions,
}

impl Vcq {
    /// Posts up to [`MAX_BATCH`] puts with one call: all or none. Each put gives the notices that it requests. A
    /// single put is posted directly, without a prepared descriptor.
    ///
    /// # Errors
    /// [`PostError`]; in every case nothing was posted.
    ///
    /// # Panics
    /// If there are more than [`MAX_BATCH`] puts.
    ///
    /// # Safety
    /// See [`Vcq`], for each put.
    pub unsafe fn put_batch(&mut self, puts: &[Put]) -> Result<(), PostError> {
        assert!(puts.len() <= MAX_BATCH, "{} puts together", puts.len());
        let first = match puts {
            [] => return Ok(()),
            // SAFETY: the caller's promise, passed on.
            [put] => return unsafe { self.put_single(put) },
            [first, ..] => first,
        };
        let mut used = 0;
        for put in puts {
            // SAFETY: the caller's promise; each earlier descriptor took at most its share of the room.
            used += unsafe { self.prepare(put, used) }?;
        }
        release_fence();
        let desc = self.descriptors.as_mut_ptr().cast();
        // SAFETY: the handle is live, and `used` bytes of descriptors were prepared for it; the caller vouches for
        // the memory on both sides.
        post_result(&self.core.api, "utofu_post_toq", unsafe {
            (self.core.api.utofu_post_toq)(self.core.hdl, desc, used, first.options.cookie())
        })
    }

    /// # Safety
    /// See [`Vcq`].
    unsafe fn put_single(&mut self, put: &Put) -> Result<(), PostError> {
        let &Put { to, remote, length, options, .. } = put;
        // SAFETY: the caller's promise, passed on.
        unsafe {
            match put.source {
                Source::Registered(local) => {
                    self.put(to, Transfer { local, remote, length }, options)
                }
                Source::Inline(bytes) => {
                    check_length(length, bytes.len())?;
                    self.put_piggyback(to, &bytes[..length], remote, options)
                }
                Source::Word(value) => self.put_piggyback8(to, value, remote, options),
            }
        }
    }

    /// Prepares the descriptor of a put, `at` bytes behind the start of the descriptors; returns its size in bytes.
    ///
    /// # Safety
    /// There is room for a descriptor at `at`.
    unsafe fn prepare(&mut self, put: &Put, at: usize) -> Result<usize, PostError> {
        let &Put { to, ref source, remote, length, options } = put;
        let mut size = 0;
        // SAFETY: `at` lies within the descriptors, by the caller's promise.
        let desc = unsafe { self.descriptors.as_mut_ptr().cast::<u8>().add(at).cast() };
        let (api, hdl, caps) = (self.core.api, self.core.hdl, &self.caps);
        let (edata, flags) = (options.edata(), options.flags());
        macro_rules! prepared {
            ($call:ident, $source:expr, $length:expr) => {
                // SAFETY: the handle is live; there is room for the descriptor, by the caller's promise. Inline bytes
                // are copied into the descriptor.
                (stringify!($call), unsafe {
                    (api.$call)(
                        hdl,
                        to.raw(),
                        $source,
                        remote.0,
                        $length,
                        edata,
                        flags,
                        desc,
                        &mut size,
                    )
                })
            };
        }
        let (call, code) = match *source {
            Source::Registered(local) => {
                check_length(length, caps.max_putget_size)?;
                prepared!(utofu_prepare_put, local.0, length)
            }
            Source::Inline(mut bytes) => {
                check_length(length, caps.max_piggyback_size.min(bytes.len()))?;
                prepared!(utofu_prepare_put_piggyback, bytes.as_mut_ptr().cast(), length)
            }
            Source::Word(value) => prepared!(utofu_prepare_put_piggyback8, value, 8),
        };
        post_result(&api, call, code)?;
        // A descriptor takes at most `max_toq_desc_size` bytes, even if the library reports more.
        Ok(size.min(caps.max_toq_desc_size))
    }
}
