//! What a simulated port sends.

use crate::Rank;
use crate::endpoint::{Event, Posted, SendPost, WireRegion};

use crate::planted::{self, Planted};

use super::SimEndpoint;
use super::net::{NetState, SimAction, SimBody, SimPacket, SimRendezvousSend};
use super::trace::TraceStep;

/// Posts that are deferred for want of a credit before one is sent by rendezvous.
const MOST_DEFERRED: u32 = 16;
/// The longest time, in ns, after which a deferred post is tried again.
const LONGEST_DEFERRAL: u64 = 5_000;

/// A message that its receiver has asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimCicoSend {
    to: Rank,
    recv: u32,
    id: u64,
    /// Bytes that have been sent.
    done: usize,
}

impl SimEndpoint {
    /// Sends a message, if its post is not deferred.
    ///
    /// # Safety
    /// As [`Endpoint::post_send`](crate::endpoint::Endpoint::post_send).
    pub(super) unsafe fn send(&mut self, core: &mut NetState, to: Rank, send: SendPost) -> Posted {
        let SendPost { slot, tag, region } = send;
        let peer = self.peer(core, to);
        let (rank, port, len) = (self.rank, self.port, region.len);
        let note = |core: &mut NetState, how| {
            core.note(rank, TraceStep::Sends { to, port, tag, len, how });
        };
        let defers_posts = core.params.defers_posts;
        if core.chance(defers_posts) {
            self.try_again(core);
            return Posted::Later;
        }
        if region.len <= core.params.eager_bytes {
            if self.credits[peer] > 0 {
                self.credits[peer] -= 1;
                let at_once = core.params.copies_at_once;
                if !core.chance(at_once) {
                    note(core, "eagerly, later");
                    core.later(SimAction::Read { from: rank, to, port, send });
                    return Posted::Accepted;
                }
                note(core, "eagerly");
                // SAFETY: the caller's promise.
                let bytes = unsafe { core.copied(rank, &region) };
                let body = SimBody::Eager(bytes);
                core.send(rank, port, to, SimPacket::Message { tag, len: len as u64, body });
                let tells = core.params.completes_at_once;
                if core.chance(tells) {
                    return Posted::Done;
                }
                core.later(SimAction::Report { rank, port, event: Event::Sent(slot) });
                return Posted::Accepted;
            }
            // Credits may not come before the peer has got this message: it may keep them for others that came
            // too early.
            if !core.params.rendezvous_without_credit && self.n_deferred < MOST_DEFERRED {
                self.n_deferred += 1;
                self.try_again(core);
                return Posted::Later;
            }
            self.n_deferred = 0;
        }
        note(core, "by rendezvous");
        core.touches(rank, "announces", region.ptr, region.len);
        let id = core.add_rendezvous(SimRendezvousSend { of: (rank, port), slot, region });
        let body = SimBody::Rendezvous(id);
        core.send(rank, port, to, SimPacket::Message { tag, len: len as u64, body });
        Posted::Accepted
    }

    /// This rank has something left to do, although nothing may come for it.
    pub(super) fn try_again(&self, core: &mut NetState) {
        use rand::Rng;
        let after = core.rng.random_range(0..LONGEST_DEFERRAL);
        // Whatever number the next pause has, the wait of this one looks again.
        core.after(after, SimAction::GoOn(self.rank));
    }

    /// A receiver asks for a message in pieces.
    pub(super) fn begin_cico(&mut self, to: Rank, recv: u32, id: u64) {
        self.cico_sends.push(SimCicoSend { to, recv, id, done: 0 });
    }

    /// Sends the next piece of each message that was asked for.
    pub(super) fn advance_cico(&mut self, core: &mut NetState) {
        let (rank, port) = (self.rank, self.port);
        let params = core.params;
        let mut sends = std::mem::take(&mut self.cico_sends);
        sends.retain_mut(|SimCicoSend { to, recv, id, done }| {
            let Some(source) = core.rendezvous_send(*id) else { return false };
            let len = params.piece(source.region.len).min(source.region.len - *done);
            // SAFETY: within the region.
            let ptr = unsafe { source.region.ptr.add(*done) };
            // SAFETY: the send is posted, and its event has not been reported.
            let bytes = unsafe { core.copied(rank, &WireRegion { ptr, len, key: 0 }) };
            core.send(rank, port, *to, SimPacket::Piece { recv: *recv, offset: *done, bytes });
            *done += len;
            let is_done = *done == source.region.len;
            if is_done {
                core.end_rendezvous(*id);
                core.report(rank, port, Event::Sent(source.slot));
            }
            !is_done
        });
        self.cico_sends = sends;
        if !self.cico_sends.is_empty() {
            self.try_again(core);
        }
    }

    /// Gives credits back to peers, now or later.
    pub(super) fn return_credits(&mut self, core: &mut NetState) {
        let mut is_left = false;
        for peer in 0..self.credits_to_return.len() {
            if self.credits_to_return[peer] == 0 {
                continue;
            }
            let delays_credits = core.params.delays_credits;
            if core.chance(delays_credits) {
                is_left = true;
                continue;
            }
            let n = std::mem::take(&mut self.credits_to_return[peer]);
            let n = if planted::is(Planted::CreditsTwice) { 2 * n } else { n };
            core.send(self.rank, self.port, self.ranks[peer], SimPacket::Credits(n));
        }
        if is_left {
            self.try_again(core);
        }
    }
}
