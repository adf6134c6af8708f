//! Puts that are posted together: prepared one behind the other, and handed to the queue by one
//! call, so that a device is told once of all of them.

use super::post::{before_post, fits, posted};
use super::vcq::MOST_TOGETHER;
use super::{Mark, PostError, Transfer, Vcq};
use crate::{Stadd, VcqId};

/// Where the bytes of a put come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Registered memory.
    Registered(Stadd),
    /// The first bytes of these, which travel in the descriptor.
    Inline([u8; 32]),
    /// Those of a value, which travel in a descriptor of one queue entry: 8 of them.
    Word(u64),
}

/// A put that is posted with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// The target.
    pub to: VcqId,
    /// What is put.
    pub source: Source,
    /// Remote bytes.
    pub remote: Stadd,
    /// How many.
    pub length: usize,
    /// What it carries. The cookie of the first is that of all.
    pub mark: Mark,
}

impl Vcq {
    /// Posts up to [`MOST_TOGETHER`] puts with one call: all, or none. Each gives the notices that
    /// it asks for. A single put is posted without being prepared.
    ///
    /// # Errors
    /// [`PostError`]; in every case nothing was posted.
    ///
    /// # Panics
    /// If there are more.
    ///
    /// # Safety
    /// See [`Vcq`], for each of them.
    pub unsafe fn put_together(&mut self, puts: &[Put]) -> Result<(), PostError> {
        assert!(puts.len() <= MOST_TOGETHER, "{} puts together", puts.len());
        let first = match puts {
            [] => return Ok(()),
            // SAFETY: the caller's promise.
            [put] => return unsafe { self.put_alone(put) },
            [first, ..] => first,
        };
        let mut used = 0;
        for put in puts {
            // SAFETY: the caller's promise; each descriptor before this one took its room at most.
            used += unsafe { self.prepare(put, used) }?;
        }
        before_post();
        let desc = self.descriptors.as_mut_ptr().cast();
        // SAFETY: the handle is live, and `used` bytes of descriptors were prepared for it; the
        // caller vouches for the memory on both sides.
        posted(&self.core.api, "utofu_post_toq", unsafe {
            (self.core.api.utofu_post_toq)(self.core.hdl, desc, used, first.mark.cookie())
        })
    }

    /// # Safety
    /// See [`Vcq`].
    unsafe fn put_alone(&mut self, put: &Put) -> Result<(), PostError> {
        let &Put { to, remote, length, mark, .. } = put;
        // SAFETY: the caller's promise.
        unsafe {
            match put.source {
                Source::Registered(local) => self.put(to, Transfer { local, remote, length }, mark),
                Source::Inline(bytes) => {
                    fits(length, bytes.len())?;
                    self.put_piggyback(to, &bytes[..length], remote, mark)
                }
                Source::Word(value) => self.put_piggyback8(to, value, remote, mark),
            }
        }
    }

    /// Prepares a put `at` bytes behind the start of the descriptors; returns its descriptor's
    /// bytes.
    ///
    /// # Safety
    /// There is room for a descriptor at `at`.
    unsafe fn prepare(&mut self, put: &Put, at: usize) -> Result<usize, PostError> {
        let &Put { to, ref source, remote, length, mark } = put;
        let mut size = 0;
        // SAFETY: within the descriptors.
        let desc = unsafe { self.descriptors.as_mut_ptr().cast::<u8>().add(at).cast() };
        let (api, hdl, caps) = (self.core.api, self.core.hdl, &self.caps);
        let (edata, flags) = (mark.edata(), mark.flags());
        macro_rules! prepared {
            ($call:ident, $source:expr, $length:expr) => {
                // SAFETY: the handle is live; there is room for the descriptor, by the caller's
                // promise. Inline bytes are copied into it.
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
                fits(length, caps.max_putget_size)?;
                prepared!(utofu_prepare_put, local.0, length)
            }
            Source::Inline(mut bytes) => {
                fits(length, caps.max_piggyback_size.min(bytes.len()))?;
                prepared!(utofu_prepare_put_piggyback, bytes.as_mut_ptr().cast(), length)
            }
            Source::Word(value) => prepared!(utofu_prepare_put_piggyback8, value, 8),
        };
        posted(&api, call, code)?;
        // What it wrote has its place, whatever it says.
        Ok(size.min(caps.max_toq_desc_size))
    }
}
