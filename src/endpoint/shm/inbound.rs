//! What peers have sent: taken out of queues, and matched with receives.

use crate::Rank;
use crate::endpoint::{Arrival, Event, Posted as Taken, Slot, Tag, View, WireError};
use crate::error::{Blame, Fault};

use super::descriptor::{Coming, Descriptor, INLINE_BYTES, Kind, Said, Via};
use super::peer::{Body, Early, Peer, Posted};
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

    /// Where the bytes in a peer's staging slot are.
    fn staged(&self, peer: usize, slot: u32, len: usize) -> *const u8 {
        self.segment.at(self.layout.slot(self.port, peer, slot as usize), len)
    }

    /// Takes everything that a peer has sent.
    pub(super) fn drain(&mut self, peer: usize) -> Result<(), WireError> {
        while let Some(next) = self.peers[peer].inbox.next() {
            let (said, payload) = next.map_err(|garbled| self.garbled(peer, garbled))?;
            match said {
                Said::Message(coming) => self.arrived(peer, &coming, payload)?,
                Said::Done(id) => self.read_by_peer(peer, id)?,
                Said::Pull { id, landing } => self.pulled(peer, id, landing)?,
                Said::Piece(piece) => {
                    let from = match piece.slot {
                        Some(slot) => self.staged(peer, slot, piece.len),
                        None => payload,
                    };
                    self.piece(peer, &piece, from)?;
                    if let Some(slot) = piece.slot {
                        self.release(peer, slot);
                    }
                }
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
        coming: &Coming,
        payload: *const u8,
    ) -> Result<(), WireError> {
        let &Coming { call, message, operation, len, via } = coming;
        let tag = coming.tag();
        if self.calls.misses(tag) {
            return Err(self.differs(self.peers[peer].rank));
        }
        let Some(posted) = self.peers[peer].take_posted(operation, message) else {
            let body = match via {
                // SAFETY: the whole of a line's payload can be read.
                Via::Line => Body::Inline(unsafe { payload.cast::<[u8; INLINE_BYTES]>().read() }),
                Via::Ring => {
                    // SAFETY: the payload has this length, which `Raw::check` has bounded.
                    Body::Copied(unsafe { std::slice::from_raw_parts(payload, len) }.to_vec())
                }
                Via::Slot(slot) => Body::Staged(slot),
                Via::Loan(loan) => Body::Lent(loan),
            };
            self.calls.hear(tag);
            self.keep(peer, Early { tag, len, body });
            return Ok(());
        };
        if (posted.call, posted.region.len) != (call, len) {
            self.refuse(peer, via, posted.slot)?;
            return Ok(());
        }
        match via {
            Via::Slot(slot) => self.show_staged(peer, slot, &posted),
            Via::Loan(loan) => {
                let Posted { slot, region, .. } = posted;
                self.land(Landing::new(peer, slot, region, loan), loan.among)?;
            }
            Via::Line | Via::Ring => {
                // SAFETY: the receive is posted, so its region is valid and nobody else's; the
                // payload has the same length.
                unsafe { copy(payload, posted.region.ptr, len) };
                self.events.push(Event::Received(posted.slot));
            }
        }
        Ok(())
    }

    /// Keeps a message until its receive is posted.
    #[inline]
    fn keep(&mut self, peer: usize, early: Early) {
        self.n_early += 1;
        let bytes = early.bytes();
        let Peer { early: kept, inbox, is_held, .. } = &mut self.peers[peer];
        kept.push_back(early);
        if bytes > 0 && !self.unexpected.keep(bytes) && !std::mem::replace(is_held, true) {
            inbox.hold(true);
            self.n_held += 1;
        }
    }

    /// A receive is posted whose message has been kept.
    ///
    /// # Safety
    /// As [`post_recv`](crate::endpoint::Endpoint::post_recv).
    #[inline]
    pub(super) unsafe fn received_early(
        &mut self,
        peer: usize,
        early: Early,
        posted: &Posted,
    ) -> Result<Taken, WireError> {
        self.let_go(early.bytes());
        let &Posted { call, slot, region, .. } = posted;
        if (early.tag.call, early.len) != (call, region.len) {
            self.refuse(peer, early.body.via(), slot)?;
            return Ok(Taken::Accepted);
        }
        match early.body {
            Body::Staged(id) => self.show_staged(peer, id, posted),
            Body::Lent(loan) => {
                self.land(Landing::new(peer, slot, region, loan), loan.among)?;
            }
            Body::Inline(bytes) => {
                // SAFETY: the region is valid for writes by the caller's promise, and has the
                // message's length, which a line has room for.
                unsafe { copy(bytes.as_ptr(), region.ptr, region.len) };
                return Ok(Taken::Done);
            }
            Body::Copied(bytes) => {
                // SAFETY: as above.
                unsafe { copy(bytes.as_ptr(), region.ptr, region.len) };
                return Ok(Taken::Done);
            }
        }
        Ok(Taken::Accepted)
    }

    /// A message is not kept any more that took so much memory.
    #[inline]
    fn let_go(&mut self, bytes: usize) {
        self.n_early -= 1;
        self.unexpected.release(bytes);
        if self.n_held > 0 && self.unexpected.has_room() {
            self.hold_nobody();
        }
    }

    /// Lets all peers send short messages again.
    #[cold]
    fn hold_nobody(&mut self) {
        for Peer { inbox, is_held, .. } in &mut self.peers {
            if std::mem::take(is_held) {
                inbox.hold(false);
            }
        }
        self.n_held = 0;
    }

    /// Gives back a message of a peer that is not what its receive expects.
    pub(super) fn refuse(&mut self, peer: usize, via: Via, slot: Slot) -> Result<(), WireError> {
        match via {
            Via::Slot(id) => self.release(peer, id),
            Via::Loan(loan) => self.answer(peer, Descriptor::answer(Kind::Done, loan.id))?,
            Via::Line | Via::Ring => {}
        }
        self.events.push(Event::Differs(slot, self.peers[peer].rank));
        Ok(())
    }

    /// Releases the slots that the last poll has shown: their readers are done.
    #[inline]
    pub(super) fn end_views(&mut self) {
        while let Some((peer, slot)) = self.views.pop() {
            self.release(peer, slot);
        }
    }

    /// Shows a staged message to its receive, or copies it to where it belongs.
    pub(super) fn show_staged(&mut self, peer: usize, id: u32, posted: &Posted) {
        let &Posted { slot, region, arrival, .. } = posted;
        let ptr = self.staged(peer, id, region.len);
        if arrival == Arrival::Anywhere {
            self.events.push(Event::Viewed(slot, View { ptr, len: region.len }));
            self.due_views.push((peer, id));
            return;
        }
        // SAFETY: the receive is posted, so its region is valid and nobody else's; the slot is
        // this port's to read until it is released.
        let copy = || unsafe { copy(ptr, region.ptr, region.len) };
        self.peers[peer].ways.copying(region.len, copy);
        self.release(peer, id);
        self.events.push(Event::Received(slot));
    }
}
