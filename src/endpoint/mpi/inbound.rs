//! What peers have sent: matched with receives.

use super::State;
use super::header::{CREDITS, Checked, HEADER_BYTES, Header, Kind, Limits, Part, Said, Short};
use super::peer::{Early, Message, Peer, Posted};
use super::ring::Taken;
use super::transfers::Awaited;
use crate::Rank;
use crate::endpoint::garbled::{Garbled, within};
use crate::endpoint::lists::take_out;
use crate::endpoint::{Arrival, Event, Tag, View, WireError};
use crate::error::{Blame, Fault};

impl State {
    /// Handles the next message of the ring.
    pub(super) fn arrived(&mut self, taken: &Taken) -> Result<(), WireError> {
        let rank = taken.source as Rank;
        let garbled = |garbled: Garbled| garbled.by(rank, "MPI_Irecv");
        within("the sender's rank", rank.into(), (0, u64::from(self.n_ranks) - 1))
            .map_err(garbled)?;
        let index = self.peer(rank);
        let limits = Limits {
            n_ranks: self.n_ranks,
            credits: CREDITS - self.peers[index as usize].credits,
            last_numbered: self.tags.last_numbered(),
            last_tag: self.tags.last(),
        };
        // SAFETY: a slot of the ring has room for more than a header, which has arrived: nobody else
        // sends on this communicator, and MPI loses nothing. (What was shorter would show what has been
        // there before.)
        let header = unsafe { &*taken.ptr.cast() };
        let Checked { credits, said } = Checked::of(header, &limits).map_err(garbled)?;
        let peer = &mut self.peers[index as usize];
        peer.credits += credits;
        match said {
            Said::Short(of) => {
                peer.owed += 1;
                let part = peer.parts.next(of).map_err(garbled)?;
                // SAFETY: within the slot.
                self.short(index, of, part, unsafe { taken.ptr.add(HEADER_BYTES) })?;
            }
            Said::Long { tag, len, mpi_tag } => {
                peer.owed += 1;
                peer.parts.none().map_err(garbled)?;
                self.long(index, tag, len, mpi_tag)?;
            }
            Said::Credit => {}
            Said::News(blame) => blame.into_iter().for_each(|blame| self.note(blame)),
            Said::Ask(question) => self.reply(rank, question)?,
            Said::Answer(question, status) => self.question.answered(rank, question, status),
            Said::Lane { context, lane, least_bytes } => {
                self.lane_opened(index, context, lane, least_bytes)?;
            }
            Said::Unmet { tag, len, mpi_tag } => self.unmet(index, tag, len, mpi_tag)?,
            Said::Close { lane, n_messages } => self.lane_closing(index, lane, n_messages)?,
            Said::Closed { lane } => self.lane_closed(index, lane)?,
        }
        self.pay(index)
    }

    /// Gives a peer's credits back, if it is time.
    #[inline]
    pub(super) fn pay(&mut self, index: u32) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        let Some(credits) = peer.due() else { return Ok(()) };
        let header = Header { credits, ..Header::plain(Kind::Credit, 0, 0) };
        // SAFETY: no message.
        unsafe { self.outbound.send(peer.rank, &header, None) }
    }

    /// The receive that a message is for, if that is posted.
    #[inline]
    fn receive_for(&mut self, index: u32, tag: Tag) -> Result<Option<usize>, WireError> {
        if self.calls.misses(tag) {
            return Err(self.differs(self.peers[index as usize].rank));
        }
        self.receive_of(index, tag)
    }

    /// A long message is on its way with that tag of MPI's: matches it with its receive, or keeps it
    /// until that is posted.
    fn long(&mut self, index: u32, tag: Tag, len: usize, mpi_tag: i32) -> Result<(), WireError> {
        let found = self.receive_for(index, tag)?;
        let peer = &mut self.peers[index as usize];
        let Some(at) = found else {
            let message = Message::Long(mpi_tag);
            peer.early.push_back(Early { tag, len, message, held: 0 });
            self.calls.hear(tag);
            return Ok(());
        };
        let (rank, posted) = (peer.rank, take_out(&mut peer.posted, at));
        self.n_awaited -= 1;
        let fits = posted.fits(tag, len);
        // SAFETY: the receive is posted, so its region is valid and nobody else's.
        unsafe { self.receive((rank, mpi_tag, len), posted.slot, posted.region, fits) }
    }

    /// Matches a part of a short message, which is in `data`, with its receive, or keeps it until that is
    /// posted.
    fn short(
        &mut self,
        index: u32,
        of: Short,
        part: Part,
        data: *const u8,
    ) -> Result<(), WireError> {
        let Short { tag, len, .. } = of;
        let found = self.receive_for(index, tag)?;
        let Part { start, len: part, is_last } = part;
        let peer = &mut self.peers[index as usize];
        let Some(at) = found else {
            // SAFETY: the slot has room for the longest part.
            self.keep(index, tag, len, unsafe { std::slice::from_raw_parts(data, part) });
            return Ok(());
        };
        let posted = if is_last { take_out(&mut peer.posted, at) } else { peer.posted[at] };
        let fits = posted.fits(tag, len);
        let in_region = !is_last || start > 0 || posted.arrival == Arrival::InRegion;
        if fits && in_region && part > 0 {
            // SAFETY: as above; the region has the message's length, within which the part lies.
            unsafe { data.copy_to_nonoverlapping(posted.region.ptr.add(start), part) };
        }
        if is_last {
            let rank = peer.rank;
            self.n_awaited -= 1;
            self.events.push(match (fits, in_region) {
                (false, _) => Event::Differs(posted.slot, rank),
                (true, true) => Event::Received(posted.slot),
                // The ring keeps it until the next poll.
                (true, false) => Event::Viewed(posted.slot, View { ptr: data, len }),
            });
        }
        Ok(())
    }

    /// A message without a header has not been met for long. Mostly this rank is late, or about to receive
    /// it; otherwise it makes another call, or expects another length.
    fn unmet(&mut self, index: u32, tag: Tag, len: usize, mpi_tag: i32) -> Result<(), WireError> {
        let rank = self.peers[index as usize].rank;
        if self.calls.misses(tag) {
            return Err(self.differs(rank));
        }
        if self.transfers.expects(rank, mpi_tag) {
            return Ok(());
        }
        let Some(at) = self.receive_of(index, tag)? else { return Ok(()) };
        let Posted { slot, region, .. } = take_out(&mut self.peers[index as usize].posted, at);
        self.n_awaited -= 1;
        // SAFETY: the receive is posted; nothing comes into its region, as it does not fit.
        unsafe { self.receive((rank, mpi_tag, len), slot, region, false) }?;
        // No other message meets the receive that drops it.
        self.landed(rank, mpi_tag)
    }

    /// The receive that a message with this name is for, if there is one, among those that are posted for
    /// messages with a header: one that awaits it without a header is taken back, and is one of them from
    /// now on.
    #[inline]
    fn receive_of(&mut self, index: u32, tag: Tag) -> Result<Option<usize>, WireError> {
        let Peer { posted, rank, .. } = &mut self.peers[index as usize];
        let found = posted.iter().position(|posted| posted.tag.names_same(tag));
        if found.is_some() || !self.transfers.is_awaiting() {
            return Ok(found);
        }
        let is_it = |awaited: &Awaited| awaited.from == *rank && awaited.tag.names_same(tag);
        let Some(awaited) = self.transfers.take_back(is_it)? else { return Ok(None) };
        let Awaited { slot, tag, region, .. } = awaited;
        posted.push(Posted { tag, slot, region, arrival: Arrival::InRegion });
        self.n_awaited += 1;
        Ok(Some(posted.len() - 1))
    }

    /// Keeps a part of a message whose receive has not been posted.
    fn keep(&mut self, index: u32, tag: Tag, len: usize, part: &[u8]) {
        let peer = &mut self.peers[index as usize];
        let mut bytes = 0;
        if !peer.early.back().is_some_and(|early| early.tag.names_same(tag)) {
            let message = Message::Short(Vec::with_capacity(len));
            let early = Early { tag, len, message, held: 0 };
            bytes = early.bytes();
            peer.early.push_back(early);
            self.calls.hear(tag);
        }
        let Some(early) = peer.early.back_mut() else { return };
        if let Message::Short(data) = &mut early.message {
            data.extend_from_slice(part);
        }
        if !self.unexpected.keep(bytes) {
            (peer.owed, peer.held) = (peer.owed - 1, peer.held + 1);
            early.held += 1;
        }
    }

    /// A message is not kept any more: gives the credits back that it holds.
    pub(super) fn let_go(&mut self, index: u32, early: &Early) -> Result<(), WireError> {
        self.unexpected.release(early.bytes());
        if early.held == 0 {
            return Ok(());
        }
        let peer = &mut self.peers[index as usize];
        (peer.owed, peer.held) = (peer.owed + early.held, peer.held - early.held);
        self.pay(index)
    }

    pub(super) fn differs(&mut self, rank: Rank) -> WireError {
        self.note(Blame { rank, fault: Fault::Elsewhere, by: self.rank });
        WireError {
            call: "matching of messages",
            reason: "a message of another call".to_owned(),
            peer: Some(rank),
        }
    }
}
