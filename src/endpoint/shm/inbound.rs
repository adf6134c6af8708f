//! Messages from peers: taken out of the queues, and matched with receives.

use crate::endpoint::matcher::{OtherCall, of_another_call};
use crate::endpoint::{Arrival, Event, Posted, RecvPost, Slot, Tag, View, WireError};
use crate::error::{Blame, Fault};
use crate::memory::stores;

use super::ShmEndpoint;
use super::descriptor::{
    Decoded, INLINE_BYTES, LineKind, Location, MessageHeader, Rendezvous, ShmDescriptor,
    StagingPlace,
};
use super::peer::{ShmBody, ShmPeer, Unexpected, buffered_bytes};
use super::state::EarlyDestination;

impl ShmEndpoint {
    /// Records that this rank takes part in a call.
    ///
    /// # Errors
    /// [`WireError`] if a message of another call has arrived for the same operation.
    #[inline]
    pub(super) fn enter_call(&mut self, tag: Tag) -> Result<(), WireError> {
        self.matcher.enter(tag).map_err(|other| self.differs(other))
    }

    #[cold]
    fn differs(&self, OtherCall { peer }: OtherCall) -> WireError {
        let rank = self.peers[peer].rank;
        // The news is also written for this rank: its engine learns of failures from news.
        self.note(Blame { rank, fault: Fault::Elsewhere, by: self.rank });
        of_another_call(rank)
    }

    /// Address of `len` bytes in a peer's staging slot.
    pub(super) fn staged(&self, peer: usize, at: StagingPlace, len: usize) -> *const u8 {
        self.segment.at(self.layout.slot(self.port, peer, at.slot()) + at.start(), len)
    }

    /// Takes all lines that a peer has sent.
    pub(super) fn drain(&mut self, peer: usize) -> Result<(), WireError> {
        while let Some(next) = self.peers[peer].inbox.next() {
            let (decoded, payload) = next.map_err(|invalid| self.invalid_from(peer, invalid))?;
            match decoded {
                Decoded::Message(header) => self.arrived(peer, &header, payload)?,
                Decoded::Done(id) => self.read_by_peer(peer, id)?,
                Decoded::ClearToSend { id, recv } => self.begin_cico(peer, id, recv)?,
                Decoded::Early(piece) => self.early_piece(peer, &piece)?,
                Decoded::Piece(piece) => {
                    let from = match piece.staged {
                        Some(at) => self.staged(peer, at, piece.len),
                        None => payload,
                    };
                    self.piece(peer, &piece, from)?;
                    if let Some(at) = piece.staged {
                        self.release_piece(peer, at);
                    }
                }
            }
        }
        self.peers[peer].inbox.give_back();
        Ok(())
    }

    /// Whether a peer may send an answer or a piece without a posted receive.
    pub(super) fn awaits_answers(&self) -> bool {
        self.rendezvous_sends.len() + self.cico_recvs.len() + self.early_recvs.len() > 0
    }

    /// Matches a message with its receive, or stores it until the receive is posted.
    #[inline]
    fn arrived(
        &mut self,
        peer: usize,
        header: &MessageHeader,
        payload: *const u8,
    ) -> Result<(), WireError> {
        let &MessageHeader { tag, len, location } = header;
        if let Location::Rendezvous(Rendezvous { early, .. }) = location {
            self.expect_early(peer, early);
        }
        let Some(posted) =
            self.matcher.match_message(peer, tag).map_err(|other| self.differs(other))?
        else {
            let body = match location {
                Location::Line => {
                    // SAFETY: all inline bytes of a line can be read.
                    ShmBody::Inline(unsafe { payload.cast::<[u8; INLINE_BYTES]>().read() })
                }
                Location::Ring => {
                    // SAFETY: the payload has this length, which `Raw::decode` has bounded.
                    ShmBody::Copied(unsafe { std::slice::from_raw_parts(payload, len) }.to_vec())
                }
                Location::Slot(at) => ShmBody::Staged(at),
                Location::Rendezvous(rendezvous) => ShmBody::Rendezvous(rendezvous),
            };
            self.keep(peer, Unexpected { tag, len, body });
            return Ok(());
        };
        // SAFETY: the receive is posted, so its region is valid and used by no other code; the payload has the
        // message's length.
        if unsafe { self.deliver(peer, (tag, len, location), payload, &posted) }? == Posted::Done {
            self.events.push(Event::Received(posted.slot));
        }
        Ok(())
    }

    /// Completes, or starts to transfer, a message whose receive is posted.
    ///
    /// # Safety
    /// The receive's region is valid for writes and used by no other code. If the message is in a line or a ring, its
    /// `len` bytes are at `payload`.
    #[inline]
    unsafe fn deliver(
        &mut self,
        peer: usize,
        (tag, len, location): (Tag, usize, Location),
        payload: *const u8,
        posted: &RecvPost,
    ) -> Result<Posted, WireError> {
        if !posted.fits(tag, len) {
            self.refuse(peer, location, posted.slot)?;
            return Ok(Posted::Accepted);
        }
        match location {
            Location::Slot(at) => self.show_staged(peer, at, posted),
            Location::Rendezvous(rendezvous) => self.begin_rendezvous(peer, *posted, rendezvous)?,
            Location::Line | Location::Ring => {
                // SAFETY: the caller's promise; the region has the message's length.
                unsafe { std::ptr::copy_nonoverlapping(payload, posted.region.ptr, len) };
                return Ok(Posted::Done);
            }
        }
        Ok(Posted::Accepted)
    }

    /// Stores a message until its receive is posted.
    #[inline]
    fn keep(&mut self, peer: usize, unexpected: Unexpected) {
        let bytes = buffered_bytes(&unexpected);
        self.matcher.add_unexpected(peer, unexpected);
        let ShmPeer { inbox, is_held, .. } = &mut self.peers[peer];
        if bytes > 0 && !self.matcher.bytes.keep(bytes) && !std::mem::replace(is_held, true) {
            inbox.hold(true);
            self.n_held += 1;
        }
    }

    /// Completes, or starts to transfer, an unexpected message whose receive is posted now.
    ///
    /// # Safety
    /// As for [`post_recv`](crate::endpoint::Endpoint::post_recv).
    #[inline]
    pub(super) unsafe fn received_unexpected(
        &mut self,
        peer: usize,
        unexpected: Unexpected,
        posted: &RecvPost,
    ) -> Result<Posted, WireError> {
        self.release_unexpected(buffered_bytes(&unexpected));
        let Unexpected { tag, len, body } = unexpected;
        let payload = match &body {
            ShmBody::Inline(bytes) => bytes.as_ptr(),
            ShmBody::Copied(bytes) => bytes.as_ptr(),
            ShmBody::Staged(_) | ShmBody::Rendezvous(_) => std::ptr::null(),
        };
        // SAFETY: the caller's promise; `body` has the message's bytes.
        unsafe { self.deliver(peer, (tag, len, body.location()), payload, posted) }
    }

    /// Uncounts an unexpected message that took `bytes`, and resumes held peers if there is room.
    #[inline]
    fn release_unexpected(&mut self, bytes: usize) {
        self.matcher.bytes.release(bytes);
        if self.n_held > 0 && self.matcher.bytes.has_room() {
            self.release_held();
        }
    }

    /// Lets all held peers send short messages again.
    #[cold]
    fn release_held(&mut self) {
        for ShmPeer { inbox, is_held, .. } in &mut self.peers {
            if std::mem::take(is_held) {
                inbox.hold(false);
            }
        }
        self.n_held = 0;
    }

    /// Drops a message that does not fit its receive, reports the difference, and completes the peer's send.
    pub(super) fn refuse(
        &mut self,
        peer: usize,
        location: Location,
        slot: Slot,
    ) -> Result<(), WireError> {
        match location {
            Location::Slot(at) => self.release(peer, at),
            Location::Rendezvous(rendezvous) => {
                self.set_early_destination(peer, &rendezvous, EarlyDestination::Discard)?;
                if !rendezvous.early.is_all {
                    self.answer(peer, ShmDescriptor::answer(LineKind::Done, rendezvous.id))?;
                }
            }
            Location::Line | Location::Ring => {}
        }
        self.events.push(Event::Differs(slot, self.peers[peer].rank));
        Ok(())
    }

    /// Releases the slots of the views that the last poll reported.
    #[inline]
    pub(super) fn end_views(&mut self) {
        while let Some((peer, at)) = self.views.pop() {
            self.release(peer, at);
        }
    }

    /// Reports a staged message as a view, or copies it to the receive's region.
    pub(super) fn show_staged(&mut self, peer: usize, at: StagingPlace, posted: &RecvPost) {
        let &RecvPost { slot, region, arrival, .. } = posted;
        let ptr = self.staged(peer, at, region.len);
        if arrival == Arrival::Anywhere {
            self.events.push(Event::Viewed(slot, View { ptr, len: region.len }));
            self.next_views.push((peer, at));
            return;
        }
        // SAFETY: the receive is posted, so its region is valid and used by no other code; this port may read the
        // slot until it releases it.
        unsafe { self.copy_out(peer, ptr, region.ptr, region.len, arrival) };
        self.release(peer, at);
        self.events.push(Event::Received(slot));
    }

    /// Copies bytes of a message from a slot or the ring to the receive's region, and notes the cost.
    ///
    /// # Safety
    /// As for [`std::ptr::copy_nonoverlapping`].
    pub(super) unsafe fn copy_out(
        &mut self,
        peer: usize,
        from: *const u8,
        into: *mut u8,
        len: usize,
        arrival: Arrival,
    ) {
        let past_caches = arrival == Arrival::PastCaches;
        // SAFETY: the caller's promise.
        let copy = || unsafe { stores::copy_shared(from, into, len, past_caches) };
        self.peers[peer].costs.copying(len, copy);
    }
}
