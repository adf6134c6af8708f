//! What peers have sent: taken out of queues, and matched with receives.

use crate::Rank;
use crate::endpoint::{Arrival, Event, Slot, Tag, View, WireError};
use crate::error::{Blame, Fault};

use super::layout::{self, SLOT_BYTES};
use super::peer::{Body, Early, Posted};
use super::queue::{Descriptor, INLINE_BYTES, Kind};
use super::state::Landing;
use super::{ShmEndpoint, copy};

impl ShmEndpoint {
    /// Notes that this rank takes part in a call.
    ///
    /// # Errors
    /// [`WireError`] if a message of another call has come in its place.
    #[inline]
    pub(super) fn enter_call(&mut self, tag: Tag) -> Result<(), WireError> {
        if self.calls.enter(tag) { self.check_early(tag) } else { Ok(()) }
    }

    /// Looks through the messages that came before this rank entered a call.
    #[cold]
    fn check_early(&self, tag: Tag) -> Result<(), WireError> {
        let operation = tag.operation_id();
        let other = |early: &Early| {
            early.tag.operation_id() == operation && !Tag::do_meet(early.tag.call, tag.call)
        };
        match self.peers.iter().find(|peer| peer.early.iter().any(other)) {
            Some(peer) => Err(self.differs(peer.rank)),
            None => Ok(()),
        }
    }

    fn differs(&self, rank: Rank) -> WireError {
        // This rank tells itself as well: its engine learns of failures by news.
        self.note(Blame { rank, fault: Fault::Elsewhere, by: self.rank });
        WireError {
            call: "matching of messages",
            reason: "a message of another call".to_owned(),
            peer: Some(rank),
        }
    }

    /// Where a message in a peer's staging slot is.
    pub(super) fn staged(
        &self,
        peer: usize,
        slot: u32,
        len: usize,
    ) -> Result<*const u8, WireError> {
        if slot as usize >= layout::SLOTS || len > SLOT_BYTES {
            return Err(self.garbled(peer));
        }
        Ok(self.segment.at(self.layout.slot(self.port, peer, slot as usize), len))
    }

    /// Takes everything that a peer has sent.
    pub(super) fn drain(&mut self, peer: usize) -> Result<(), WireError> {
        while let Some(next) = self.peers[peer].inbox.next() {
            let Ok((descriptor, payload)) = next else { return Err(self.garbled(peer)) };
            match descriptor.kind {
                Kind::Inline | Kind::Eager | Kind::Staged | Kind::Lent => {
                    self.arrived(peer, &descriptor, payload)?;
                }
                Kind::Done => self.read_by_peer(descriptor.id),
                Kind::Pull => self.pulled(peer, descriptor.id, descriptor.word as u32),
                Kind::Piece => {
                    let from = self.staged(peer, descriptor.id, descriptor.len as usize)?;
                    self.piece(peer, &descriptor, from)?;
                    self.release(peer, descriptor.id);
                }
                Kind::Fragment => self.piece(peer, &descriptor, payload)?,
            }
        }
        self.peers[peer].inbox.give_back();
        Ok(())
    }

    /// Matches a message with its receive, or keeps it until that is posted.
    #[inline]
    fn arrived(
        &mut self,
        peer: usize,
        descriptor: &Descriptor,
        payload: *const u8,
    ) -> Result<(), WireError> {
        let &Descriptor { kind, call, message, operation, len, id, word } = descriptor;
        let tag = Tag::of_operation(operation, message, call);
        if self.calls.misses(tag) {
            return Err(self.differs(self.peers[peer].rank));
        }
        let Some(posted) = self.peers[peer].take_posted(operation, message) else {
            let body = match kind {
                Kind::Staged => Body::Staged(id),
                Kind::Lent => Body::Lent { from: word, id, among: lent_among(payload) },
                Kind::Eager => {
                    // SAFETY: the payload has this length, which `Inbox::next` has bounded.
                    let bytes = unsafe { std::slice::from_raw_parts(payload, len as usize) };
                    Body::Copied(bytes.to_vec())
                }
                _ => {
                    // SAFETY: the whole of a descriptor's payload can be read.
                    Body::Inline(unsafe { payload.cast::<[u8; INLINE_BYTES]>().read() })
                }
            };
            self.n_early += 1;
            self.calls.hear(tag);
            self.peers[peer].early.push_back(Early { tag, len, body });
            return Ok(());
        };
        if (posted.call, posted.region.len as u64) != (call, len) {
            self.refuse(peer, kind, id, posted.slot);
            return Ok(());
        }
        match kind {
            Kind::Staged => self.show_staged(peer, id, &posted),
            Kind::Lent => {
                let Posted { slot, region, .. } = posted;
                let landing = Landing { peer, slot, region, from: word, id, done: 0 };
                self.land(landing, lent_among(payload));
                Ok(())
            }
            _ => {
                // SAFETY: the receive is posted, so its region is valid and nobody else's; the
                // payload has the same length.
                unsafe { copy(payload, posted.region.ptr, len as usize) };
                self.events.push(Event::Received(posted.slot));
                Ok(())
            }
        }
    }

    /// Gives back a message of a peer that is not what its receive expects.
    pub(super) fn refuse(&mut self, peer: usize, kind: Kind, id: u32, slot: Slot) {
        match kind {
            Kind::Staged => self.release(peer, id),
            Kind::Lent => self.answer(peer, Descriptor::answer(Kind::Done, id)),
            _ => {}
        }
        self.events.push(Event::Differs(slot, self.peers[peer].rank));
    }

    /// Releases the slots that the last poll has shown: their readers are done.
    #[inline]
    pub(super) fn end_views(&mut self) {
        while let Some((peer, slot)) = self.views.pop() {
            self.release(peer, slot);
        }
    }

    /// Shows a staged message to its receive, or copies it to where it belongs.
    pub(super) fn show_staged(
        &mut self,
        peer: usize,
        id: u32,
        posted: &Posted,
    ) -> Result<(), WireError> {
        let &Posted { slot, region, arrival, .. } = posted;
        let ptr = self.staged(peer, id, region.len)?;
        if arrival == Arrival::Anywhere {
            self.events.push(Event::Viewed(slot, View { ptr, len: region.len }));
            self.due_views.push((peer, id));
            return Ok(());
        }
        // SAFETY: the receive is posted, so its region is valid and nobody else's; the slot is
        // this port's to read until it is released.
        let copy = || unsafe { copy(ptr, region.ptr, region.len) };
        self.peers[peer].ways.copying(region.len, copy);
        self.release(peer, id);
        self.events.push(Event::Received(slot));
        Ok(())
    }
}

/// How many messages a peer had lent when it sent this payload.
fn lent_among(payload: *const u8) -> u64 {
    // SAFETY: the whole of a descriptor's payload can be read; it need not be aligned.
    unsafe { payload.cast::<[u64; 2]>().read_unaligned()[1] }
}
