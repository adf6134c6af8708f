//! What a simulated port sends.

use crate::Rank;
use crate::endpoint::{Event, Posted, SendPost, WireRegion};

use crate::planted::{self, Planted};

use super::SimEndpoint;
use super::net::{Body, Core, Lent, Packet, What};
use super::trace::TraceStep;

/// A message without a credit is put off so often, and then lent.
const MOST_PUT_OFF: u32 = 16;
/// A post that is put off is worth another try after up to so many ns.
const PUT_OFF: u64 = 5_000;

/// A message that its receiver has asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct CicoSend {
    to: Rank,
    recv: u32,
    id: u64,
    /// Bytes that have been sent.
    done: usize,
}

impl SimEndpoint {
    /// Sends a message, if it is not put off.
    ///
    /// # Safety
    /// As [`Endpoint::post_send`](crate::endpoint::Endpoint::post_send).
    pub(super) unsafe fn send(&mut self, core: &mut Core, to: Rank, send: SendPost) -> Posted {
        let SendPost { slot, tag, region } = send;
        let peer = self.peer(core, to);
        let (rank, port, len) = (self.rank, self.port, region.len);
        let note = |core: &mut Core, how| {
            core.note(rank, TraceStep::Sends { to, port, tag, len, how });
        };
        let puts_off = core.habits.puts_off;
        if core.chance(puts_off) {
            self.try_again(core);
            return Posted::Later;
        }
        if region.len <= core.habits.eager_bytes {
            if self.credits[peer] > 0 {
                self.credits[peer] -= 1;
                let at_once = core.habits.copies_at_once;
                if !core.chance(at_once) {
                    note(core, "eagerly, later");
                    core.later(What::Read { from: rank, to, port, send });
                    return Posted::Accepted;
                }
                note(core, "eagerly");
                // SAFETY: the caller's promise.
                let bytes = unsafe { core.copied(rank, &region) };
                let body = Body::Eager(bytes);
                core.send(rank, port, to, Packet::Message { tag, len: len as u64, body });
                let tells = core.habits.tells_at_once;
                if core.chance(tells) {
                    return Posted::Done;
                }
                core.later(What::Report { rank, port, event: Event::Sent(slot) });
                return Posted::Accepted;
            }
            // Credits may not come before the peer has got this message: it may keep them for others that came
            // too early.
            if !core.habits.lends_without_credit && self.n_put_off < MOST_PUT_OFF {
                self.n_put_off += 1;
                self.try_again(core);
                return Posted::Later;
            }
            self.n_put_off = 0;
        }
        note(core, "lent");
        core.touches(rank, "lends", region.ptr, region.len);
        let id = core.lend(Lent { of: (rank, port), slot, region });
        let body = Body::Lent(id);
        core.send(rank, port, to, Packet::Message { tag, len: len as u64, body });
        Posted::Accepted
    }

    /// This rank has something left to do, although nothing may come for it.
    pub(super) fn try_again(&self, core: &mut Core) {
        use rand::Rng;
        let after = core.rng.random_range(0..PUT_OFF);
        // Whatever number the next pause has, the wait of this one looks again.
        core.after(after, What::GoOn(self.rank));
    }

    /// A receiver asks for a message in pieces.
    pub(super) fn begin_cico(&mut self, to: Rank, recv: u32, id: u64) {
        self.cico_sends.push(CicoSend { to, recv, id, done: 0 });
    }

    /// Sends the next piece of each message that was asked for.
    pub(super) fn advance_pulled(&mut self, core: &mut Core) {
        let (rank, port) = (self.rank, self.port);
        let habits = core.habits;
        let mut sends = std::mem::take(&mut self.cico_sends);
        sends.retain_mut(|CicoSend { to, recv, id, done }| {
            let Some(lent) = core.lent(*id) else { return false };
            let len = habits.piece(lent.region.len).min(lent.region.len - *done);
            // SAFETY: within the region.
            let ptr = unsafe { lent.region.ptr.add(*done) };
            // SAFETY: the send is posted, and its event has not been reported.
            let bytes = unsafe { core.copied(rank, &WireRegion { ptr, len, key: 0 }) };
            core.send(rank, port, *to, Packet::Piece { recv: *recv, offset: *done, bytes });
            *done += len;
            let is_done = *done == lent.region.len;
            if is_done {
                core.take_back(*id);
                core.report(rank, port, Event::Sent(lent.slot));
            }
            !is_done
        });
        self.cico_sends = sends;
        if !self.cico_sends.is_empty() {
            self.try_again(core);
        }
    }

    /// Gives credits back to peers, now or later.
    pub(super) fn give_credits(&mut self, core: &mut Core) {
        let mut is_left = false;
        for peer in 0..self.owed.len() {
            if self.owed[peer] == 0 {
                continue;
            }
            let keeps = core.habits.keeps_credits;
            if core.chance(keeps) {
                is_left = true;
                continue;
            }
            let n = std::mem::take(&mut self.owed[peer]);
            let n = if planted::is(Planted::CreditsTwice) { 2 * n } else { n };
            core.send(self.rank, self.port, self.ranks[peer], Packet::Credits(n));
        }
        if is_left {
            self.try_again(core);
        }
    }
}
