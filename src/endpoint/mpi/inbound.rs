//! Messages that have arrived, and their matching with receives.

use super::State;
use super::header::{
    CREDITS, Checked, HEADER_BYTES, Header, HeaderContent, HeaderKind, HeaderLimits, MessagePart,
    ShortMessage,
};
use super::long_message::{Envelope, HeaderlessRecv};
use super::peer::{MpiBody, Unexpected, buffered_bytes};
use super::ring::RingMessage;
use crate::Rank;
use crate::endpoint::matcher::{OtherCall, of_another_call};
use crate::endpoint::validation::{InvalidField, check_range};
use crate::endpoint::{Arrival, Event, RecvPost, Tag, View, WireError};
use crate::error::{Blame, Fault};

impl State {
    /// Handles the next message of the ring.
    pub(super) fn arrived(&mut self, taken: &RingMessage) -> Result<(), WireError> {
        let rank = taken.source as Rank;
        let invalid = |invalid: InvalidField| invalid.wire_error_from(rank, "MPI_Irecv");
        check_range("the sender's rank", rank.into(), (0, u64::from(self.n_ranks) - 1))
            .map_err(invalid)?;
        let index = self.peer(rank);
        let limits = HeaderLimits {
            n_ranks: self.n_ranks,
            credits: CREDITS - self.peers[index as usize].credits.available,
            last_tags: [self.tags.last_numbered(), self.tags.last()],
        };
        // SAFETY: a slot of the ring has room for more than a header. The header has arrived, since only ports send
        // on this communicator and MPI loses nothing. (After a shorter message the slot would still have older
        // bytes.)
        let header = unsafe { &*taken.ptr.cast() };
        let Checked { credits, content } = Checked::of(header, &limits).map_err(invalid)?;
        let peer = &mut self.peers[index as usize];
        peer.credits.available += credits;
        match content {
            HeaderContent::Short(of) => {
                peer.credits.to_return += 1;
                let part = peer.parts.next(of).map_err(invalid)?;
                // SAFETY: within the slot.
                self.short(index, of, part, unsafe { taken.ptr.add(HEADER_BYTES) })?;
            }
            HeaderContent::Long { tag, len, mpi_tag } => {
                peer.credits.to_return += 1;
                peer.parts.none().map_err(invalid)?;
                self.long(index, tag, len, mpi_tag)?;
            }
            HeaderContent::Credit => {}
            HeaderContent::News(blame) => blame.into_iter().for_each(|blame| self.note(blame)),
            HeaderContent::StatusRequest(number) => self.reply_status(rank, number)?,
            HeaderContent::StatusReply(number, status) => {
                self.status_request.answered(rank, number, status)
            }
            HeaderContent::Stream { context, stream, least_bytes } => {
                self.stream_opened(index, context, stream, least_bytes)?;
            }
            HeaderContent::Unmatched { tag, len, mpi_tag } => {
                self.unmatched(index, tag, len, mpi_tag)?
            }
            HeaderContent::Close { stream, n_messages } => {
                self.stream_closing(index, stream, n_messages)?
            }
            HeaderContent::Closed { stream } => self.stream_closed(index, stream)?,
        }
        self.return_credits(index)
    }

    /// Returns credits to a peer if enough are due.
    #[inline]
    pub(super) fn return_credits(&mut self, index: u32) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        let Some(credits) = peer.credits.due() else { return Ok(()) };
        let header = Header { credits, ..Header::control(HeaderKind::Credit, 0, 0) };
        // SAFETY: there is no payload.
        unsafe { self.outbound.send(peer.rank, &header, None) }
    }

    /// Takes out the posted receive that a message matches. A receive on a stream is cancelled first.
    #[inline]
    fn receive_for(&mut self, index: u32, tag: Tag) -> Result<Option<RecvPost>, WireError> {
        let found = self.matcher.match_message(index as usize, tag);
        let found = found.map_err(|other| self.differs(other))?;
        if found.is_some() || !self.transfers.is_awaiting() {
            return Ok(found);
        }
        let rank = self.peers[index as usize].rank;
        let is_it = |awaited: &HeaderlessRecv| {
            awaited.envelope.from == rank && awaited.recv.tag.same_message(tag)
        };
        self.transfers.cancel_headerless_recv(is_it)
    }

    /// Handles the header of a long message, which is sent with that MPI tag: matches it with its receive, or keeps
    /// it until the receive is posted.
    fn long(&mut self, index: u32, tag: Tag, len: usize, mpi_tag: i32) -> Result<(), WireError> {
        let Some(posted) = self.receive_for(index, tag)? else {
            self.matcher.add_unexpected(
                index as usize,
                Unexpected { tag, len, body: MpiBody::Long(mpi_tag) },
            );
            return Ok(());
        };
        let envelope = Envelope { from: self.peers[index as usize].rank, mpi_tag };
        // SAFETY: the receive is posted, so its region is valid and no other thread accesses it.
        unsafe { self.receive(envelope, len, &posted, posted.fits(tag, len)) }
    }

    /// Handles a part of a short message, which is in `data`: matches it with its receive, or keeps it until the
    /// receive is posted.
    fn short(
        &mut self,
        index: u32,
        of: ShortMessage,
        part: MessagePart,
        data: *const u8,
    ) -> Result<(), WireError> {
        let ShortMessage { tag, len, .. } = of;
        let MessagePart { range, is_last } = part;
        let (start, part) = (range.start, range.len());
        let met = match start {
            0 => self.receive_for(index, tag)?.map(|posted| (posted, posted.fits(tag, len))),
            _ => self.peers[index as usize].partial.take().inspect(|_| self.n_partial -= 1),
        };
        let Some((posted, fits)) = met else {
            // SAFETY: the slot has room for the longest part.
            self.keep(index, of, start, unsafe { std::slice::from_raw_parts(data, part) });
            return Ok(());
        };
        let in_region = !is_last || start > 0 || posted.arrival != Arrival::Anywhere;
        if fits && in_region && part > 0 {
            // SAFETY: as above; the region has the message's length, within which the part lies.
            unsafe { data.copy_to_nonoverlapping(posted.region.ptr.add(start), part) };
        }
        if !is_last {
            self.await_rest(index, posted, fits);
            return Ok(());
        }
        self.events.push(match (fits, in_region) {
            (false, _) => Event::Differs(posted.slot, self.peers[index as usize].rank),
            (true, true) => Event::Received(posted.slot),
            // The ring keeps the message until the next poll.
            (true, false) => Event::Viewed(posted.slot, View { ptr: data, len }),
        });
        Ok(())
    }

    /// Records that a receive has met a short message whose last parts have not arrived.
    pub(super) fn await_rest(&mut self, index: u32, posted: RecvPost, fits: bool) {
        self.peers[index as usize].partial = Some((posted, fits));
        self.n_partial += 1;
    }

    /// Handles the announcement of a message without a header whose receive has been missing for long. Mostly this
    /// rank is late, or about to receive the message; otherwise it makes another call, or expects another length.
    fn unmatched(
        &mut self,
        index: u32,
        tag: Tag,
        len: usize,
        mpi_tag: i32,
    ) -> Result<(), WireError> {
        let checked = self.matcher.check(index as usize, tag);
        checked.map_err(|other| self.differs(other))?;
        let envelope = Envelope { from: self.peers[index as usize].rank, mpi_tag };
        if self.transfers.has_headerless_recv(envelope) {
            return Ok(());
        }
        let Some(posted) = self.receive_for(index, tag)? else { return Ok(()) };
        // SAFETY: the receive is posted; nothing is written to its region, as the message does not fit.
        unsafe { self.receive(envelope, len, &posted, false) }?;
        // Count the message on its stream now: no other message can match the receive that drops it.
        self.headerless_arrived(envelope)
    }

    /// Keeps a part of an unexpected message.
    fn keep(&mut self, index: u32, of: ShortMessage, start: usize, part: &[u8]) {
        let ShortMessage { tag, len, .. } = of;
        let mut bytes = 0;
        if start == 0 {
            let body = MpiBody::Short { data: Vec::with_capacity(len), held: 0 };
            let unexpected = Unexpected { tag, len, body };
            bytes = buffered_bytes(&unexpected);
            self.matcher.add_unexpected(index as usize, unexpected);
        }
        let has_room = self.matcher.bytes.keep(bytes);
        let Some(Unexpected { body: MpiBody::Short { data, held }, .. }) =
            self.matcher.last_unexpected(index as usize)
        else {
            return;
        };
        data.extend_from_slice(part);
        if !has_room {
            self.peers[index as usize].credits.hold();
            *held += 1;
        }
    }

    /// Releases the memory of an unexpected message, and the credits that it holds.
    pub(super) fn release_unexpected(
        &mut self,
        index: u32,
        unexpected: &Unexpected,
    ) -> Result<(), WireError> {
        self.matcher.bytes.release(buffered_bytes(unexpected));
        let MpiBody::Short { held: held @ 1.., .. } = unexpected.body else { return Ok(()) };
        self.peers[index as usize].credits.release(held);
        self.return_credits(index)
    }

    #[cold]
    pub(super) fn differs(&mut self, OtherCall { peer }: OtherCall) -> WireError {
        let rank = self.peers[peer].rank;
        self.note(Blame { rank, fault: Fault::Elsewhere, by: self.rank });
        of_another_call(rank)
    }
}
