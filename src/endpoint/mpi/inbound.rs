//! What peers have sent: matched with receives and sends.

use super::header::{HEADER_BYTES, Header, Kind};
use super::peer::{Announced, CREDITS, Early, is_same};
use super::ring::Taken;
use super::{EAGER_BYTES, State};
use crate::Rank;
use crate::endpoint::lists::take_out;
use crate::endpoint::{Arrival, Event, Tag, View, WireError};
use crate::error::{Blame, Fault};

/// How many of a peer's waiting long messages are remembered.
const MOST_SAID: usize = 64;

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
            Kind::Eager => {
                if header.len > EAGER_BYTES as u64 {
                    return Err(garbled(rank));
                }
                peer.owed += 1;
                // SAFETY: within the slot.
                self.came(index, &header, unsafe { taken.ptr.add(HEADER_BYTES) })?;
            }
            Kind::Ready => {
                peer.owed += 1;
                self.announced(index, &header)?;
            }
            Kind::Waits => {
                peer.owed += 1;
                self.waits(index, &header)?;
            }
            Kind::Withheld => {
                peer.owed += 1;
                if let Some(slot) = self.transfers.take_back(rank, header.tag()) {
                    self.events.push(Event::Differs(slot, rank));
                }
            }
            Kind::Refused => {
                peer.owed += 1;
                self.refused(index, header.tag());
            }
            Kind::Credit => {}
            Kind::News => self.hear(header.operation),
            Kind::Ask => self.reply(rank, header.message)?,
            Kind::Answer => self.question.answered(rank, header.message, header.operation),
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

    /// Matches a short message with its receive, or keeps it until that is posted.
    fn came(&mut self, index: u32, header: &Header, data: *const u8) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        let (rank, tag) = (peer.rank, header.tag());
        if self.calls.misses(tag) {
            return Err(self.differs(rank));
        }
        let len = header.len as usize;
        let Some(at) = peer.posted.iter().position(|posted| is_same(posted.tag, tag)) else {
            // The receive expects a long message here.
            if let Some(slot) = self.transfers.take_back(rank, tag) {
                return self.refuse(index, tag, slot);
            }
            // SAFETY: the message has this length, as checked.
            let data = unsafe { std::slice::from_raw_parts(data, len) }.to_vec();
            peer.early.push_back(Early { tag, data });
            self.n_early += 1;
            return Ok(());
        };
        let posted = take_out(&mut peer.posted, at);
        self.n_awaited -= 1;
        if (posted.tag.call, posted.region.len) != (tag.call, len) {
            self.events.push(Event::Differs(posted.slot, rank));
            return Ok(());
        }
        if posted.arrival == Arrival::Anywhere {
            // The ring keeps it until the next poll.
            self.events.push(Event::Viewed(posted.slot, View { ptr: data, len }));
            return Ok(());
        }
        if len > 0 {
            // SAFETY: the receive is posted, so its region is valid and nobody else's; it has the
            // message's length.
            unsafe { data.copy_to_nonoverlapping(posted.region.ptr, len) };
        }
        self.events.push(Event::Received(posted.slot));
        Ok(())
    }

    /// Sends a long message that a peer is ready for, or remembers that it is.
    fn announced(&mut self, index: u32, header: &Header) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        let (rank, tag) = (peer.rank, header.tag());
        if self.calls.misses(tag) {
            return Err(self.differs(rank));
        }
        let &Header { len, mpi_tag, .. } = header;
        let Some(at) = peer.waiting.iter().position(|waiting| is_same(waiting.tag, tag)) else {
            peer.announced.push_back(Announced { tag, len, mpi_tag });
            self.n_early += 1;
            return Ok(());
        };
        let waiting = take_out(&mut peer.waiting, at);
        self.n_waiting -= 1;
        if (waiting.tag.call, waiting.region.len as u64) != (tag.call, len) {
            return self.withhold(index, tag, waiting.slot);
        }
        // SAFETY: a send that has been posted and not reported.
        unsafe { self.transfers.send(rank, mpi_tag, waiting.slot, waiting.region) }
    }

    /// Remembers that a peer waits for the receive of a long message.
    fn waits(&mut self, index: u32, header: &Header) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        let (rank, tag) = (peer.rank, header.tag());
        if self.calls.misses(tag) {
            return Err(self.differs(rank));
        }
        if let Some(at) = peer.posted.iter().position(|posted| is_same(posted.tag, tag)) {
            let posted = take_out(&mut peer.posted, at);
            self.n_awaited -= 1;
            return self.refuse(index, tag, posted.slot);
        }
        let landings = &self.transfers.landings;
        if landings.find(|long| long.from == rank && is_same(long.tag, tag)).is_none() {
            // The latest are enough: the oldest may concern messages that have come since.
            if peer.said.len() == MOST_SAID {
                peer.said.pop_front();
            }
            peer.said.push_back((tag, header.len));
        }
        Ok(())
    }

    /// Drops a send that its receiver does not want, or no longer.
    fn refused(&mut self, index: u32, tag: Tag) {
        let peer = &mut self.peers[index as usize];
        if let Some(at) = peer.waiting.iter().position(|waiting| is_same(waiting.tag, tag)) {
            let waiting = take_out(&mut peer.waiting, at);
            self.events.push(Event::Differs(waiting.slot, peer.rank));
            self.n_waiting -= 1;
        } else if let Some(at) = peer.announced.iter().position(|long| is_same(long.tag, tag)) {
            peer.announced.remove(at);
            self.n_early -= 1;
        }
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
