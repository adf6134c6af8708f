//! The fence: waits until everything that was written to peers has arrived.
//!
//! A completion in the TCQ says that a put has left, not that it has arrived. A local notice of a strongly ordered
//! put says that the put has arrived, and with it all earlier puts from this VCQ to that target: a strongly ordered
//! operation keeps its order relative to all others, also to those that are not. Programs on Fugaku rely on this when
//! they put a strongly ordered flag behind other data. So the fence sends each peer one more put: its hello once again.

use utofu::Cookie;
use utofu::handles::{PostFlags, PostOptions};

use crate::endpoint::{Endpoint, WireError};

use super::UtofuEndpoint;
use super::state::Fence;

impl UtofuEndpoint {
    /// The rank whose hello is missing, so that its last put cannot be posted yet. `None` if the fence waits only for
    /// this rank's device.
    pub(super) fn first_unfenced(&self) -> Option<u32> {
        let next = self.peers.get(self.fence.posted)?;
        next.remote_channel.is_none().then_some(next.rank)
    }

    /// Posts a last put to each peer that no other write is queued for; true once the notices of all last puts have
    /// arrived.
    pub(super) fn all_arrived(&mut self) -> Result<bool, WireError> {
        // Without a notice at the peer.
        let flags = PostFlags::STRONG_ORDER | PostFlags::LOCAL;
        let last = PostOptions { edata: 0, flags, cookie: Cookie(0) };
        // The last puts must follow all other posts.
        if !self.post_batch()? {
            return Ok(false);
        }
        while let Some(peer) = self.peers.get(self.fence.posted) {
            // Every peer that this rank has communicated with sends its hello. When this rank takes a hello from the
            // MRQ, it may return credits, which are puts, too.
            if peer.remote_channel.is_none() || !peer.is_quiet() {
                return Ok(false);
            }
            let (vcq, at) = (peer.vcq, peer.hello_at());
            // SAFETY: the target is the peer's mailbox, which the peer frees only after a barrier that this rank has
            // not entered yet. The content of hellos is never read.
            let posted = unsafe { self.vcq.put_piggyback(vcq, &[0], at, last) };
            if !self.accepted(posted)? {
                return Ok(false);
            }
            self.fence.posted += 1;
            self.fence.open += 1;
        }
        let arrived = self.fence.open == 0 && self.is_flushed();
        if arrived {
            self.fence = Fence::default();
        }
        Ok(arrived)
    }
}
