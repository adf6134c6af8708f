//! Making sure that everything written has arrived.
//!
//! A completion in the TCQ says that a put has left, not that it has arrived. A local notice of
//! a strongly ordered put says that it has arrived, and with it all that this VCQ has put to
//! that target before. So each peer gets one more put: its hello once again.

use utofu::Cookie;
use utofu::handles::{Mark, PostFlags};

use crate::endpoint::{Endpoint, WireError};

use super::UtofuEndpoint;
use super::state::Fence;

impl UtofuEndpoint {
    /// The peer to which the next put is due, if it has not answered. Otherwise only this rank's device keeps
    /// the put back.
    pub(super) fn first_unfenced(&self) -> Option<u32> {
        let next = self.peers.get(self.fence.posted)?;
        next.channel.is_none().then_some(next.rank)
    }

    /// Puts once more to every peer that nothing else will be put to; true if all have answered.
    pub(super) fn all_arrived(&mut self) -> Result<bool, WireError> {
        // The peer does not hear of it.
        let flags = PostFlags::STRONG_ORDER | PostFlags::LOCAL;
        let last = Mark { edata: 0, flags, cookie: Cookie(0) };
        // Behind all else.
        if !self.post_batch()? {
            return Ok(false);
        }
        while let Some(peer) = self.peers.get(self.fence.posted) {
            // Every peer that this rank has communicated with has sent its hello. Reading one
            // that is still unread may send credits.
            if peer.channel.is_none() || !peer.is_quiet() {
                return Ok(false);
            }
            let (vcq, at) = (peer.vcq, peer.hello_at());
            // SAFETY: the mailbox is the peer's, which frees it only after a barrier that this
            // rank has yet to enter. What is written there means nothing.
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
