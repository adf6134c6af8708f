//! What peers have sent: matched with receives.

use super::header::{HEADER_BYTES, Header, Kind};
use super::peer::{CREDITS, Early, Message, is_same};
use super::ring::Taken;
use super::{EAGER_BYTES, State};
use crate::Rank;
use crate::endpoint::lists::take_out;
use crate::endpoint::{Arrival, Event, View, WireError};
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

    /// Matches a message with its receive, or keeps it until that is posted. A short one is in `data`.
    fn came(&mut self, index: u32, header: &Header, data: *const u8) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        let (rank, tag) = (peer.rank, header.tag());
        if self.calls.misses(tag) {
            return Err(self.differs(rank));
        }
        let &Header { kind, len, mpi_tag, .. } = header;
        if kind == Kind::Short && len > EAGER_BYTES as u64 {
            return Err(garbled(rank));
        }
        let Some(at) = peer.posted.iter().position(|posted| is_same(posted.tag, tag)) else {
            let message = match kind {
                Kind::Long => Message::Long(mpi_tag, len),
                // SAFETY: the message has this length, as checked.
                _ => Message::Short(
                    unsafe { std::slice::from_raw_parts(data, len as usize) }.to_vec(),
                ),
            };
            peer.early.push_back(Early { tag, message });
            self.n_early += 1;
            return Ok(());
        };
        let posted = take_out(&mut peer.posted, at);
        self.n_awaited -= 1;
        let fits = (posted.tag.call, posted.region.len as u64) == (tag.call, len);
        if kind == Kind::Long {
            // SAFETY: the receive is posted, so its region is valid and nobody else's.
            return unsafe { self.receive((rank, mpi_tag, len), posted.slot, posted.region, fits) };
        }
        if !fits {
            self.events.push(Event::Differs(posted.slot, rank));
            return Ok(());
        }
        let len = posted.region.len;
        if posted.arrival == Arrival::Anywhere {
            // The ring keeps it until the next poll.
            self.events.push(Event::Viewed(posted.slot, View { ptr: data, len }));
            return Ok(());
        }
        if len > 0 {
            // SAFETY: as above; it has the message's length.
            unsafe { data.copy_to_nonoverlapping(posted.region.ptr, len) };
        }
        self.events.push(Event::Received(posted.slot));
        Ok(())
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
