//! Posts of this rank, and the sends that wait for credits.

use super::header::{Header, HeaderKind, RESERVED_CREDITS, n_parts, part_len};
use super::long_message::{Envelope, HeaderlessRecv};
use super::peer::{MpiBody, MpiPeer, QueuedSend};
use super::{NOBODY, State};
use crate::Rank;
use crate::endpoint::RecvPost;
use crate::endpoint::{Event, Posted, SendPost, Slot, Tag, WireError, WireRegion, given_up};

/// Polls after which a short message that waits for credits is announced. Credits mostly arrive earlier.
const LONGEST_WAIT: u32 = 256;

impl State {
    /// As [`post_send`](crate::endpoint::Endpoint::post_send).
    ///
    /// # Safety
    /// As [`post_send`](crate::endpoint::Endpoint::post_send).
    #[inline]
    pub(super) unsafe fn post_send(
        &mut self,
        to: Rank,
        send: SendPost,
    ) -> Result<Posted, WireError> {
        let SendPost { slot, tag, region } = send;
        let index = self.enter_call(to, tag)?;
        let is_short = region.len <= self.outbound.lengths.eager_bytes();
        let header = if is_short {
            let n_parts = n_parts(region.len, self.outbound.lengths.part_bytes());
            Header::of(HeaderKind::Short, tag, region.len, n_parts as u32)
        } else {
            if let Some(stream) = self.stream_to(index, tag, region.len)? {
                let arg = self.tags.of(stream, tag, region.len) as u32;
                let header = Header::of(HeaderKind::Unmatched, tag, region.len, arg);
                // SAFETY: the caller's promise.
                unsafe { self.transfers.send_headerless(to, slot, header, region) }?;
                return Ok(Posted::Accepted);
            }
            Header::of(HeaderKind::Long, tag, region.len, 0)
        };
        if self.peers[index as usize].outbox.is_empty() && self.can_go(index, &header) {
            self.put(index, header, slot, region)?;
            return Ok(if is_short { Posted::Done } else { Posted::Accepted });
        }
        self.peers[index as usize].outbox.push_back(QueuedSend { header, slot, region });
        self.add_pending(index);
        Ok(Posted::Accepted)
    }

    /// As [`post_recv`](crate::endpoint::Endpoint::post_recv).
    ///
    /// # Safety
    /// As [`post_recv`](crate::endpoint::Endpoint::post_recv).
    #[inline]
    pub(super) unsafe fn post_recv(
        &mut self,
        from: Rank,
        recv: RecvPost,
    ) -> Result<Posted, WireError> {
        let RecvPost { slot, tag, region, .. } = recv;
        let index = self.enter_call(from, tag)?;
        let Some(unexpected) = self.matcher.take_unexpected(index as usize, tag) else {
            if let Some(stream) = self.peers[index as usize].streams_from.carrying(tag, region.len)
            {
                let mpi_tag = self.tags.of(stream, tag, region.len);
                // SAFETY: the caller's promise.
                unsafe {
                    self.transfers
                        .recv_headerless(HeaderlessRecv::new(Envelope { from, mpi_tag }, recv))
                };
            } else {
                self.matcher.await_message(index as usize, recv);
            }
            return Ok(Posted::Accepted);
        };
        self.release_unexpected(index, &unexpected)?;
        let fits = recv.fits(unexpected.tag, unexpected.len);
        let data = match unexpected.body {
            MpiBody::Long(mpi_tag) => {
                // SAFETY: the caller's promise.
                unsafe { self.receive(Envelope { from, mpi_tag }, unexpected.len, &recv, fits) }?;
                return Ok(Posted::Accepted);
            }
            MpiBody::Short { data, .. } => data,
        };
        if fits && !data.is_empty() {
            // SAFETY: the region is valid for writes by the caller's promise, and has the message's length.
            unsafe { data.as_ptr().copy_to_nonoverlapping(region.ptr, data.len()) };
        }
        if data.len() < unexpected.len {
            self.await_rest(index, recv, fits);
        } else if fits {
            return Ok(Posted::Done);
        } else {
            self.events.push(Event::Differs(slot, from));
        }
        Ok(Posted::Accepted)
    }

    /// Receives a long message of `len` bytes into the region of the receive that it has met. If it does not fit,
    /// receives it elsewhere and drops it, so that its sender completes.
    ///
    /// # Safety
    /// As [`post_recv`](crate::endpoint::Endpoint::post_recv).
    pub(super) unsafe fn receive(
        &mut self,
        envelope: Envelope,
        len: usize,
        posted: &RecvPost,
        fits: bool,
    ) -> Result<(), WireError> {
        if !fits {
            self.events.push(Event::Differs(posted.slot, envelope.from));
            return self.transfers.drop(envelope, len);
        }
        // SAFETY: the caller's promise.
        unsafe { self.transfers.receive(envelope, posted.slot, posted.region) };
        Ok(())
    }

    /// Notes that this rank takes part in the tag's call with `rank`, and returns the index of that peer.
    ///
    /// # Errors
    /// [`WireError`] if a message of another call has arrived for the same operation.
    #[inline]
    pub(super) fn enter_call(&mut self, rank: Rank, tag: Tag) -> Result<u32, WireError> {
        if self.is_abandoned {
            return Err(given_up());
        }
        self.matcher.enter(tag).map_err(|other| self.differs(other))?;
        Ok(self.peer(rank))
    }

    #[inline]
    pub(super) fn peer(&mut self, rank: Rank) -> u32 {
        let known = self.peer_of_rank[rank as usize];
        if known != NOBODY { known } else { self.first_contact(rank) }
    }

    #[cold]
    fn first_contact(&mut self, rank: Rank) -> u32 {
        let index = self.peers.len() as u32;
        self.peers.push(MpiPeer::new(rank));
        self.matcher.add_peer(0);
        self.matcher.bytes.add_window(MpiPeer::WINDOW_BYTES);
        self.peer_of_rank[rank as usize] = index;
        index
    }

    fn add_pending(&mut self, index: u32) {
        let peer = &mut self.peers[index as usize];
        if !std::mem::replace(&mut peer.is_pending, true) {
            self.pending.push(index);
        }
    }

    /// Sends as much of a peer's outbox as can go. A short message that has waited for credits for long is announced
    /// like a long one: the peer may have no memory left for short messages.
    pub(super) fn flush(&mut self, index: u32) -> Result<(), WireError> {
        while let Some(&QueuedSend { header, slot, region }) =
            self.peers[index as usize].outbox.front()
        {
            let is_short = header.kind == HeaderKind::Short;
            if self.can_go(index, &header) {
                let peer = &mut self.peers[index as usize];
                peer.outbox.pop_front();
                if is_short {
                    peer.n_waits = 0;
                    self.events.push(Event::Sent(slot));
                }
                self.put(index, header, slot, region)?;
                continue;
            }
            let peer = &mut self.peers[index as usize];
            if is_short && peer.n_waits >= LONGEST_WAIT {
                let header = Header { kind: HeaderKind::Long, arg: 0, ..header };
                peer.outbox[0] = QueuedSend { header, slot, region };
                continue;
            }
            peer.n_waits += 1;
            self.add_pending(index);
            break;
        }
        Ok(())
    }

    /// Whether there are credits for a message, and an MPI tag if it needs one.
    #[inline]
    fn can_go(&self, index: u32, header: &Header) -> bool {
        let credits = self.peers[index as usize].credits.available;
        match header.kind {
            HeaderKind::Short => credits >= header.arg + RESERVED_CREDITS,
            _ => credits > 0 && self.transfers.has_tag(),
        }
    }

    /// Sends a message for which [`can_go`](State::can_go) holds.
    #[inline]
    fn put(
        &mut self,
        index: u32,
        mut header: Header,
        slot: Slot,
        region: WireRegion,
    ) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        let to = peer.rank;
        header.credits = std::mem::take(&mut peer.credits.to_return);
        if header.kind != HeaderKind::Short {
            peer.credits.available -= 1;
            header.arg = self.transfers.tag() as u32;
            // SAFETY: there is no payload.
            unsafe { self.outbound.send(to, &header, None) }?;
            // SAFETY: the region of a send that has not been reported is valid for reads.
            return unsafe { self.transfers.send(to, slot, region) };
        }
        let mut at = 0;
        loop {
            let len = part_len(region.len, header.arg as usize, at);
            let part = WireRegion { ptr: region.ptr.wrapping_add(at), len, ..region };
            peer.credits.available -= 1;
            // SAFETY: as above; the part lies within the region.
            unsafe { self.outbound.send(to, &header, Some(part)) }?;
            header.credits = 0;
            at += len;
            if at == region.len {
                return Ok(());
            }
        }
    }
}
