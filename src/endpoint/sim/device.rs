//! What the simulated device does by itself, whatever the ranks do meanwhile: it reads messages that
//! are posted, and writes those whose receive is known.

use hopbine_torus::PortId;

use crate::Rank;
use crate::endpoint::{Event, SendPost, WireRegion};

use super::memory::copy;
use super::net::{Life, NetState, SimAction, SimBody, SimPacket, SimPut};
use super::trace::TraceStep;

impl NetState {
    /// The wire touches memory of a message of this rank, in the way that the verb says: none may belong to a
    /// user's buffer that is in no call.
    pub(super) fn touches(&mut self, rank: Rank, verb: &str, ptr: *const u8, len: usize) {
        if self.forbidden.meets(ptr, len) {
            self.violated(format!(
                "rank {rank}: the wire {verb} {len} bytes of a user's buffer that is in no call"
            ));
        }
    }

    /// A copy of a region that was posted.
    ///
    /// # Safety
    /// The region is valid for reads.
    pub(super) unsafe fn copied(&mut self, rank: Rank, region: &WireRegion) -> Box<[u8]> {
        self.touches(rank, "reads", region.ptr, region.len);
        let mut bytes = vec![0; region.len].into_boxed_slice();
        // SAFETY: the caller's promise; the box has as many bytes.
        unsafe { copy(region.ptr, bytes.as_mut_ptr(), region.len) };
        bytes
    }

    /// Writes to a region that was posted, at this offset.
    ///
    /// # Safety
    /// The region is valid for writes, and `from` for reads of `len` bytes.
    pub(super) unsafe fn write(
        &mut self,
        rank: Rank,
        region: &WireRegion,
        offset: usize,
        from: *const u8,
        len: usize,
    ) {
        assert!(offset + len <= region.len, "within the region");
        // SAFETY: within the region.
        let into = unsafe { region.ptr.add(offset) };
        self.touches(rank, "writes", into, len);
        // SAFETY: the caller's promise.
        unsafe { copy(from, into, len) };
    }

    /// Reads an eager message out of its region, and sends it.
    pub(super) fn read(&mut self, from: Rank, to: Rank, port: PortId, send: SendPost) {
        let SendPost { slot, tag, region } = send;
        if self.port(from, port).is_abandoned || self.life(from) == Life::Dead {
            return;
        }
        self.note(to, TraceStep::Moves { from, bytes: region.len });
        // SAFETY: the send is posted, its event has not been reported, and its port has not given up:
        // the region is valid, as the contract of posts says.
        let bytes = unsafe { self.copied(from, &region) };
        let message =
            SimPacket::Message { tag, len: region.len as u64, body: SimBody::Eager(bytes) };
        self.send(from, port, to, message);
        self.report(from, port, Event::Sent(slot));
    }

    /// Writes the next piece of a rendezvous message to the region of its receive.
    pub(super) fn put(&mut self, put: SimPut) {
        let SimPut { id, to: (to, port), slot, region, done } = put;
        if self.port(to, port).is_abandoned || self.life(to) == Life::Dead {
            return;
        }
        // The sender has given up, or is dead: others learn of that in other ways.
        let Some(source) = self.rendezvous_send(id) else { return };
        let (rank, senders_port) = source.of;
        self.touches(rank, "reads", source.region.ptr, source.region.len);
        let len = self.params.piece(region.len).min(region.len - done);
        // SAFETY: both regions are posted, as their ports have not given up, and have this length.
        unsafe {
            let from = source.region.ptr.add(done);
            self.write(to, &region, done, from, len);
        }
        self.note(to, TraceStep::Moves { from: rank, bytes: len });
        let done = done + len;
        if done < region.len {
            return self.later(SimAction::Put(SimPut { done, ..put }));
        }
        self.end_rendezvous(id);
        let (sent, received) = (Event::Sent(source.slot), Event::Received(slot));
        self.later(SimAction::Report { rank, port: senders_port, event: sent });
        self.later(SimAction::Report { rank: to, port, event: received });
    }
}
