//! What peers have sent: matched with receives.

use super::header::{HEADER_BYTES, Header, Kind, part_len};
use super::peer::{CREDITS, Early, Message, Peer, Posted};
use super::ring::Taken;
use super::transfers::Awaited;
use super::{EAGER_BYTES, PART_BYTES, State};
use crate::Rank;
use crate::endpoint::lists::take_out;
use crate::endpoint::{Arrival, Event, Tag, View, WireError};
use crate::error::{Blame, Fault};

impl State {
    /// Handles the next message of the ring.
    pub(super) fn arrived(&mut self, taken: &Taken) -> Result<(), WireError> {
        let rank = taken.source as Rank;
        // SAFETY: a slot of the ring has room for more than a header, which has arrived: nobody else
        // sends on this communicator, and MPI loses nothing.
        let header = Header::decode(unsafe { &*taken.ptr.cast() });
        let header = header.filter(|_| rank < self.n_ranks).ok_or_else(|| garbled(rank))?;
        let index = self.peer(rank);
        let peer = &mut self.peers[index as usize];
        peer.credits += header.credits;
        match header.kind {
            Kind::Short | Kind::Long => {
                peer.owed += 1;
                // SAFETY: within the slot.
                self.came(index, &header, unsafe { taken.ptr.add(HEADER_BYTES) })?;
            }
            Kind::Credit => {}
            Kind::News => self.hear(header.operation),
            Kind::Ask => self.reply(rank, header.message)?,
            Kind::Answer => self.question.answered(rank, header.message, header.operation),
            Kind::Lane => self.lane_opened(index, &header)?,
            Kind::Unmet => self.unmet(index, &header)?,
        }
        let peer = &mut self.peers[index as usize];
        if peer.owed >= CREDITS / 2 {
            let credits = std::mem::take(&mut peer.owed);
            let header = Header { credits, ..Header::plain(Kind::Credit, 0, 0) };
            // SAFETY: no message.
            unsafe { self.outbound.send(rank, &header, None) }?;
        }
        Ok(())
    }

    /// Matches a message with its receive, or keeps it until that is posted. A short one, or its next
    /// part, is in `data`.
    fn came(&mut self, index: u32, header: &Header, data: *const u8) -> Result<(), WireError> {
        let (rank, tag) = (self.peers[index as usize].rank, header.tag());
        if self.calls.misses(tag) {
            return Err(self.differs(rank));
        }
        let &Header { kind, way, .. } = header;
        let len = header.len as usize;
        let found = self.receive_of(index, tag)?;
        let peer = &mut self.peers[index as usize];
        let fits = |posted: &Posted| (posted.tag.call, posted.region.len) == (tag.call, len);
        if kind == Kind::Long {
            let mpi_tag = way as i32;
            let Some(at) = found else {
                peer.early.push_back(Early { tag, len, message: Message::Long(mpi_tag) });
                self.calls.hear(tag);
                return Ok(());
            };
            let posted = take_out(&mut peer.posted, at);
            self.n_awaited -= 1;
            let fits = fits(&posted);
            // SAFETY: the receive is posted, so its region is valid and nobody else's.
            return unsafe { self.receive((rank, mpi_tag, len), posted.slot, posted.region, fits) };
        }
        // The parts of a message follow each other.
        let start = peer.came;
        let is_sound = (start..=EAGER_BYTES).contains(&len) && way > 0;
        let part = if is_sound { part_len(len, way as usize, start) } else { usize::MAX };
        if part > PART_BYTES {
            return Err(garbled(rank));
        }
        let is_last = start + part == len;
        peer.came = if is_last { 0 } else { start + part };
        let Some(at) = found else {
            // SAFETY: the part has this length, as checked.
            self.keep(index, tag, len, unsafe { std::slice::from_raw_parts(data, part) });
            return Ok(());
        };
        let posted = if is_last { take_out(&mut peer.posted, at) } else { peer.posted[at] };
        let fits = fits(&posted);
        let in_region = !is_last || start > 0 || posted.arrival == Arrival::InRegion;
        if fits && in_region && part > 0 {
            // SAFETY: as above; it has the message's length.
            unsafe { data.copy_to_nonoverlapping(posted.region.ptr.add(start), part) };
        }
        if is_last {
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

    /// The peer has opened a lane: receives that are posted already await their messages there.
    fn lane_opened(&mut self, index: u32, header: &Header) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        let (from, context) = (peer.rank, header.tag().context);
        if header.way != peer.lanes_from.next() || !peer.lanes_from.has_room(self.tags) {
            return Err(garbled(from));
        }
        peer.lanes_from.open(context, header.len as usize);
        let Peer { posted, lanes_from, .. } = peer;
        let carrying = |posted: &mut Posted| lanes_from.carrying(posted.tag, posted.region.len);
        for posted in posted.extract_if(.., |posted| carrying(posted).is_some()) {
            let Posted { tag, slot, region, .. } = posted;
            let mpi_tag = self.tags.of(header.way, tag, region.len);
            self.n_awaited -= 1;
            // SAFETY: the receive is posted, so its region is valid and nobody else's.
            unsafe { self.transfers.expect(Awaited { slot, from, tag, region, mpi_tag }) };
        }
        Ok(())
    }

    /// A message without a header has not been met for long. Mostly this rank is late, or about to receive
    /// it; otherwise it makes another call, or expects another length.
    fn unmet(&mut self, index: u32, header: &Header) -> Result<(), WireError> {
        let (rank, tag) = (self.peers[index as usize].rank, header.tag());
        let mpi_tag = header.way as i32;
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
        unsafe { self.receive((rank, mpi_tag, header.len as usize), slot, region, false) }
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
        let Some(awaited) = self.transfers.take_back(*rank, tag)? else { return Ok(None) };
        let Awaited { slot, tag, region, .. } = awaited;
        posted.push(Posted { tag, slot, region, arrival: Arrival::InRegion });
        self.n_awaited += 1;
        Ok(Some(posted.len() - 1))
    }

    /// Keeps a part of a message whose receive has not been posted.
    fn keep(&mut self, index: u32, tag: Tag, len: usize, part: &[u8]) {
        let early = &mut self.peers[index as usize].early;
        if let Some(Early { message: Message::Short(data), .. }) =
            early.back_mut().filter(|early| early.tag.names_same(tag))
        {
            return data.extend_from_slice(part);
        }
        let mut data = Vec::with_capacity(len);
        data.extend_from_slice(part);
        early.push_back(Early { tag, len, message: Message::Short(data) });
        self.calls.hear(tag);
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

fn garbled(rank: Rank) -> WireError {
    WireError { call: "MPI_Irecv", reason: format!("a garbled message of rank {rank}"), peer: None }
}
