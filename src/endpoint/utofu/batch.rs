//! Posts to the TOQ: puts to channels in batches, other posts one by one.
//!
//! The library prepares descriptors in memory and then notifies the device, which takes longer than the preparation.
//! A batch needs one notification for several descriptors.

use utofu::handles::{MAX_BATCH, PostError, PostFlags, PostOptions, Put, Source};
use utofu::{Cookie, Stadd, VcqId};

use crate::endpoint::WireError;

use super::{UtofuEndpoint, failed};

/// Mark of a put without a local completion: only the target gets a notice, and the data go to its cache.
const SILENT: PostOptions = PostOptions {
    edata: 0,
    flags: PostFlags::REMOTE.and(PostFlags::CACHE_INJECTION),
    cookie: Cookie(0),
};

impl UtofuEndpoint {
    #[cfg(feature = "internals")]
    /// Puts to channels and mailboxes so far, and the calls of the library that have posted them.
    pub fn posted(&self) -> (u64, u64) {
        self.n_posted
    }

    /// Whether the batch has room for another put; posts a full batch first.
    pub(super) fn has_room(&mut self) -> Result<bool, WireError> {
        Ok(self.batch.len() < MAX_BATCH || self.post_batch()?)
    }

    /// Adds a put of `length` bytes of `source` to `remote` to the batch. Returns false if the batch and the TOQ are
    /// full.
    ///
    /// # Safety
    /// Until the put has arrived, this rank must have the right to write `remote`, and registered memory must not
    /// change.
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
        self.batch.push(Put { to, source, remote, length, options: SILENT });
        Ok(true)
    }

    /// Posts the batch; false if the TOQ is full.
    pub(super) fn post_batch(&mut self) -> Result<bool, WireError> {
        if self.batch.is_empty() {
            return Ok(true);
        }
        // SAFETY: the callers of `post_soon` have promised this for each put.
        let posted = unsafe { self.vcq.put_batch(&self.batch) };
        if !self.accepted(posted)? {
            return Ok(false);
        }
        self.n_posted.0 += self.batch.len() as u64;
        self.n_posted.1 += 1;
        self.batch.clear();
        Ok(true)
    }

    /// Whether a post was accepted; a full TOQ is not an error. Errors of posts are not attributed to the peer.
    pub(super) fn accepted(&mut self, posted: Result<(), PostError>) -> Result<bool, WireError> {
        // A refused post, too, requires polls of the TCQ: they free its entries.
        self.has_posted = true;
        match posted {
            Ok(()) => Ok(true),
            Err(PostError::Busy) => Ok(false),
            Err(PostError::Refused(error)) => Err(failed(error, None)),
            Err(error @ PostError::TooLong { .. }) => Err(WireError::new("utofu_put", error)),
        }
    }
}
