//! Posts to the queue: those that go to channels together, others by themselves.
//!
//! A library prepares descriptors in memory and then tells the device that they are there, which
//! takes longer than to prepare them; with one call for several it does so once.

use utofu::handles::{MOST_TOGETHER, Mark, PostError, PostFlags, Put, Source};
use utofu::{Cookie, Stadd, VcqId};

use crate::endpoint::WireError;

use super::{UtofuEndpoint, failed};

/// A post that only its target hears of, which will look at it at once.
const SILENT: Mark =
    Mark { edata: 0, flags: PostFlags::REMOTE.and(PostFlags::CACHE_INJECTION), cookie: Cookie(0) };

impl UtofuEndpoint {
    #[cfg(feature = "internals")]
    /// Puts to channels and mailboxes so far, and the calls of the library that have posted them.
    pub fn posted(&self) -> (u64, u64) {
        self.n_posted
    }

    /// Whether another put can be kept for the next batch, perhaps after posting this one.
    pub(super) fn has_room(&mut self) -> Result<bool, WireError> {
        Ok(self.batch.len() < MOST_TOGETHER || self.post_batch()?)
    }

    /// Posts `length` bytes of `source` to `remote` with the next batch; false if there is no room
    /// in that, nor in the queue.
    ///
    /// # Safety
    /// Until the put has arrived, `remote` must be this rank's to write and registered memory must
    /// stay as it is.
    pub(super) unsafe fn post_soon(
        &mut self,
        to: VcqId,
        source: Source,
        remote: Stadd,
        length: usize,
    ) -> Result<bool, WireError> {
        if !self.has_room()? {
            return Ok(false);
        }
        self.batch.push(Put { to, source, remote, length, mark: SILENT });
        Ok(true)
    }

    /// Posts what has been kept; false if the queue is full.
    pub(super) fn post_batch(&mut self) -> Result<bool, WireError> {
        if self.batch.is_empty() {
            return Ok(true);
        }
        // SAFETY: as `post_soon` was promised for each.
        let posted = unsafe { self.vcq.put_together(&self.batch) };
        if !self.accepted(posted)? {
            return Ok(false);
        }
        self.n_posted.0 += self.batch.len() as u64;
        self.n_posted.1 += 1;
        self.batch.clear();
        Ok(true)
    }

    /// Whether a post went through; a full TOQ is no error. Others are not the peer's fault.
    pub(super) fn accepted(&mut self, posted: Result<(), PostError>) -> Result<bool, WireError> {
        // Also a refused post asks for the TCQ to be polled: that is what makes room.
        self.has_posted = true;
        match posted {
            Ok(()) => Ok(true),
            Err(PostError::Busy) => Ok(false),
            Err(PostError::Refused(error)) => Err(failed(error, None)),
            Err(error @ PostError::TooLong { .. }) => Err(WireError::new("utofu_put", error)),
        }
    }
}
