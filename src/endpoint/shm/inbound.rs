//! Messages from peers: taken out of the queues, and matched with receives.

use crate::endpoint::matcher::{OtherCall, of_another_call};
use crate::endpoint::{Arrival, Event, Posted as Taken, RecvPost, Slot, Tag, View, WireError};
use crate::error::{Blame, Fault};
use crate::memory::stores::copy;

use super::ShmEndpoint;
use super::descriptor::{Coming, Descriptor, INLINE_BYTES, Kind, Rendezvous, Said, Staged, Via};
use super::peer::{Body, Peer, Unexpected, kept_bytes};
use super::state::Goal;

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
    pub(super) fn staged(&self, peer: usize, at: Staged, len: usize) -> *const u8 {
        self.segment.at(self.layout.slot(self.port, peer, at.slot()) + at.start(), len)
    }

    /// Takes all lines that a peer has sent.
    pub(super) fn drain(&mut self, peer: usize) -> Result<(), WireError> {
        while let Some(next) = self.peers[peer].inbox.next() {
            let (said, payload) = next.map_err(|garbled| self.garbled(peer, garbled))?;
            match said {
                Said::Message(coming) => self.arrived(peer, &coming, payload)?,
                Said::Done(id) => self.read_by_peer(peer, id)?,
                Said::ClearToSend { id, recv } => self.begin_cico(peer, id, recv)?,
                Said::Early(piece) => self.early_piece(peer, &piece)?,
                Said::Piece(piece) => {
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

    /// Matches a message with its receive, or stores it until the receive is posted.
    #[inline]
    fn arrived(
        &mut self,
        peer: usize,
        coming: &Coming,
        payload: *const u8,
    ) -> Result<(), WireError> {
        let &Coming { tag, len, via } = coming;
        if let Via::Rendezvous(Rendezvous { early, .. }) = via {
            self.expect_early(peer, early);
        }
        let Some(posted) = self.matcher.meet(peer, tag).map_err(|other| self.differs(other))?
        else {
            let body = match via {
                // SAFETY: all inline bytes of a line can be read.
                Via::Line => Body::Inline(unsafe { payload.cast::<[u8; INLINE_BYTES]>().read() }),
                Via::Ring => {
                    // SAFETY: the payload has this length, which `Raw::check` has bounded.
                    Body::Copied(unsafe { std::slice::from_raw_parts(payload, len) }.to_vec())
                }
                Via::Slot(at) => Body::Staged(at),
                Via::Rendezvous(rendezvous) => Body::Rendezvous(rendezvous),
            };
            self.keep(peer, Unexpected { tag, len, body });
            return Ok(());
        };
        if !posted.fits(tag, len) {
            self.refuse(peer, via, posted.slot)?;
            return Ok(());
        }
        match via {
            Via::Slot(at) => self.show_staged(peer, at, &posted),
            Via::Rendezvous(rendezvous) => {
                self.begin_rendezvous(peer, posted, rendezvous)?;
            }
            Via::Line | Via::Ring => {
                // SAFETY: the receive is posted, so its region is valid and used by no other code; the payload has
                // the same length.
                unsafe { copy(payload, posted.region.ptr, len, false) };
                self.events.push(Event::Received(posted.slot));
            }
        }
        Ok(())
    }

    /// Stores a message until its receive is posted.
    #[inline]
    fn keep(&mut self, peer: usize, unexpected: Unexpected) {
        let bytes = kept_bytes(&unexpected);
        self.matcher.keep(peer, unexpected);
        let Peer { inbox, is_held, .. } = &mut self.peers[peer];
        if bytes > 0 && !self.unexpected.keep(bytes) && !std::mem::replace(is_held, true) {
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
    ) -> Result<Taken, WireError> {
        self.let_go(kept_bytes(&unexpected));
        let &RecvPost { slot, region, .. } = posted;
        if !posted.fits(unexpected.tag, unexpected.len) {
            self.refuse(peer, unexpected.body.via(), slot)?;
            return Ok(Taken::Accepted);
        }
        match unexpected.body {
            Body::Staged(at) => self.show_staged(peer, at, posted),
            Body::Rendezvous(rendezvous) => {
                self.begin_rendezvous(peer, *posted, rendezvous)?;
            }
            Body::Inline(bytes) => {
                // SAFETY: the region is valid for writes by the caller's promise. It has the message's length, which
                // fits into a line.
                unsafe { copy(bytes.as_ptr(), region.ptr, region.len, false) };
                return Ok(Taken::Done);
            }
            Body::Copied(bytes) => {
                // SAFETY: as above.
                unsafe { copy(bytes.as_ptr(), region.ptr, region.len, false) };
                return Ok(Taken::Done);
            }
        }
        Ok(Taken::Accepted)
    }

    /// Uncounts an unexpected message that took `bytes`, and resumes held peers if there is room.
    #[inline]
    fn let_go(&mut self, bytes: usize) {
        self.unexpected.release(bytes);
        if self.n_held > 0 && self.unexpected.has_room() {
            self.hold_nobody();
        }
    }

    /// Lets all held peers send short messages again.
    #[cold]
    fn hold_nobody(&mut self) {
        for Peer { inbox, is_held, .. } in &mut self.peers {
            if std::mem::take(is_held) {
                inbox.hold(false);
            }
        }
        self.n_held = 0;
    }

    /// Drops a message that does not fit its receive, reports the difference, and completes the peer's send.
    pub(super) fn refuse(&mut self, peer: usize, via: Via, slot: Slot) -> Result<(), WireError> {
        match via {
            Via::Slot(at) => self.release(peer, at),
            Via::Rendezvous(rendezvous) => {
                self.aim_early(peer, &rendezvous, Goal::Nowhere)?;
                if !rendezvous.early.is_all {
                    self.answer(peer, Descriptor::answer(Kind::Done, rendezvous.id))?;
                }
            }
            Via::Line | Via::Ring => {}
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
    pub(super) fn show_staged(&mut self, peer: usize, at: Staged, posted: &RecvPost) {
        let &RecvPost { slot, region, arrival, .. } = posted;
        let ptr = self.staged(peer, at, region.len);
        if arrival == Arrival::Anywhere {
            self.events.push(Event::Viewed(slot, View { ptr, len: region.len }));
            self.due_views.push((peer, at));
            return;
        }
        let past_caches = arrival == Arrival::PastCaches;
        // SAFETY: the receive is posted, so its region is valid and used by no other code; this port may read the
        // slot until it releases it.
        let copy = || unsafe { copy(ptr, region.ptr, region.len, past_caches) };
        self.peers[peer].costs.copying(region.len, copy);
        self.release(peer, at);
        self.events.push(Event::Received(slot));
    }
}
