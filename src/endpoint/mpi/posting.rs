//! Sends and receives of this rank, and what goes out for them under credits.

use super::header::{Header, Kind};
use super::peer::{Announced, Outgoing, Peer, Posted, Waiting, is_same};
use super::{EAGER_BYTES, FIRST_DATA, NOBODY, State};
use crate::Rank;
use crate::endpoint::{
    Arrival, Event, Posted as Taken, Slot, Tag, WireError, WireRegion, given_up,
};

impl State {
    /// As [`post_send`](crate::endpoint::Endpoint::post_send).
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub(super) unsafe fn post_send(
        &mut self,
        slot: Slot,
        to: Rank,
        tag: Tag,
        region: WireRegion,
    ) -> Result<Taken, WireError> {
        let index = self.enter_call(to, tag)?;
        let peer = &mut self.peers[index as usize];
        if region.len <= EAGER_BYTES {
            let header = Header::about(Kind::Eager, tag, region.len);
            let went = self.say(index, Outgoing { header, message: Some((slot, region)) })?;
            return Ok(if went { Taken::Done } else { Taken::Accepted });
        }
        let found = peer.announced.iter().position(|announced| is_same(announced.tag, tag));
        match found.and_then(|at| peer.announced.remove(at)) {
            Some(Announced { tag: Tag { call, .. }, len, mpi_tag }) => {
                self.n_early -= 1;
                if (call, len) != (tag.call, region.len as u64) {
                    self.withhold(index, tag, slot)?;
                    return Ok(Taken::Accepted);
                }
                // SAFETY: the caller's promise.
                unsafe { self.transfers.send(to, mpi_tag, slot, region) }?;
            }
            None => {
                peer.waiting.push(Waiting { tag, slot, region });
                self.n_waiting += 1;
            }
        }
        Ok(Taken::Accepted)
    }

    /// As [`post_recv`](crate::endpoint::Endpoint::post_recv).
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub(super) unsafe fn post_recv(
        &mut self,
        slot: Slot,
        from: Rank,
        tag: Tag,
        region: WireRegion,
        arrival: Arrival,
    ) -> Result<Taken, WireError> {
        let index = self.enter_call(from, tag)?;
        let peer = &mut self.peers[index as usize];
        let found = peer.early.iter().position(|early| is_same(early.tag, tag));
        if let Some(early) = found.and_then(|at| peer.early.remove(at)) {
            self.n_early -= 1;
            if (early.tag.call, early.data.len()) != (tag.call, region.len) {
                self.events.push(Event::Differs(slot, from));
                return Ok(Taken::Accepted);
            }
            if region.len > 0 {
                // SAFETY: the region is valid for writes by the caller's promise, and has the
                // message's length.
                unsafe { early.data.as_ptr().copy_to_nonoverlapping(region.ptr, region.len) };
            }
            return Ok(Taken::Done);
        } else if region.len <= EAGER_BYTES {
            // The peer sends a long message here.
            if let Some(at) = peer.said.iter().position(|(said, _)| is_same(*said, tag)) {
                peer.said.remove(at);
                self.refuse(index, tag, slot)?;
                return Ok(Taken::Accepted);
            }
            peer.posted.push(Posted { tag, slot, region, arrival });
            self.n_awaited += 1;
        } else {
            if self.transfers.landings.next() as i64 + i64::from(FIRST_DATA)
                > i64::from(self.last_tag)
            {
                // Receives that are posted free their tags when they end.
                return Ok(Taken::Later);
            }
            // SAFETY: the caller's promise.
            let mpi_tag = unsafe { self.transfers.receive(from, tag, slot, region) };
            let header = Header { mpi_tag, ..Header::about(Kind::Ready, tag, region.len) };
            self.say(index, Outgoing { header, message: None })?;
        }
        Ok(Taken::Accepted)
    }

    /// A message that this rank was to send is not what its receiver, who is ready for it, expects.
    pub(super) fn withhold(&mut self, index: u32, tag: Tag, slot: Slot) -> Result<(), WireError> {
        self.events.push(Event::Differs(slot, self.peers[index as usize].rank));
        let header = Header::about(Kind::Withheld, tag, 0);
        self.say(index, Outgoing { header, message: None }).map(drop)
    }

    /// A message that this rank was to receive, and for which its sender waits to be asked, is not
    /// what it expects.
    pub(super) fn refuse(&mut self, index: u32, tag: Tag, slot: Slot) -> Result<(), WireError> {
        self.events.push(Event::Differs(slot, self.peers[index as usize].rank));
        let header = Header::about(Kind::Refused, tag, 0);
        self.say(index, Outgoing { header, message: None }).map(drop)
    }

    /// Notes that this rank takes part in a call, with a message to or from a peer.
    ///
    /// # Errors
    /// [`WireError`] if a message of another call has come in its place.
    #[inline]
    pub(super) fn enter_call(&mut self, rank: Rank, tag: Tag) -> Result<u32, WireError> {
        if self.is_abandoned {
            return Err(given_up());
        }
        if self.calls.enter(tag) && self.n_early > 0 {
            self.check_early(tag)?;
        }
        Ok(self.peer(rank))
    }

    /// Looks through the messages that came before this rank entered a call.
    fn check_early(&mut self, tag: Tag) -> Result<(), WireError> {
        let found = self.peers.iter().find(|peer| peer.misses(tag)).map(|peer| peer.rank);
        found.map_or(Ok(()), |rank| Err(self.differs(rank)))
    }

    #[inline]
    pub(super) fn peer(&mut self, rank: Rank) -> u32 {
        let known = self.peer_of_rank[rank as usize];
        if known != NOBODY { known } else { self.meet(rank) }
    }

    #[cold]
    fn meet(&mut self, rank: Rank) -> u32 {
        let index = self.peers.len() as u32;
        self.peers.push(Peer::new(rank));
        self.peer_of_rank[rank as usize] = index;
        index
    }

    /// Sends something that needs a credit, now or as soon as there is one. Returns whether it has
    /// gone; otherwise an event will tell.
    #[inline]
    pub(super) fn say(&mut self, index: u32, outgoing: Outgoing) -> Result<bool, WireError> {
        let peer = &mut self.peers[index as usize];
        if peer.credits > 0 && peer.outbox.is_empty() {
            self.put(index, outgoing)?;
            return Ok(true);
        }
        peer.outbox.push_back(outgoing);
        self.list(index);
        Ok(false)
    }

    pub(super) fn list(&mut self, index: u32) {
        let peer = &mut self.peers[index as usize];
        if !std::mem::replace(&mut peer.is_listed, true) {
            self.listed.push(index);
        }
    }

    /// Sends as much of a peer's outbox as there are credits for. What no longer waits is not said any
    /// more: a peer that is done with all messages gives no credits.
    pub(super) fn flush(&mut self, index: u32) -> Result<(), WireError> {
        while let Some(&outgoing) = self.peers[index as usize].outbox.front() {
            let peer = &mut self.peers[index as usize];
            let is_void = peer.is_void(&outgoing);
            if !is_void && peer.credits == 0 {
                self.list(index);
                break;
            }
            peer.outbox.pop_front();
            if !is_void {
                self.put(index, outgoing)?;
                self.events.extend(outgoing.message.map(|(slot, _)| Event::Sent(slot)));
            }
        }
        Ok(())
    }

    /// Sends one message; the caller has a credit for it.
    #[inline]
    fn put(&mut self, index: u32, mut outgoing: Outgoing) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        peer.credits -= 1;
        outgoing.header.credits = std::mem::take(&mut peer.owed);
        let region = outgoing.message.map(|(_, region)| region);
        // SAFETY: the region of a send that has not been reported is valid for reads.
        unsafe { self.outbound.send(peer.rank, &outgoing.header, region) }
    }
}
