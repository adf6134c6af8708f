//! Handling of notices: peers' writes to channels, to announced receives and to the mailbox.

use utofu::handles::{Notice, NoticeError};
use utofu::{Stadd, VcqId};

use crate::endpoint::validation::InvalidField;
use crate::endpoint::{Arrival, Event, Rank, RecvPost, Status, Tag, WireError};

use super::channel::{
    ChannelRing, DESCRIPTOR_BYTES, EAGER_BYTES, EAGER_HEADER_BYTES, MOST_PEERS, TINY_BYTES, Written,
};
use super::channels::channel_of;
use super::peer::{from_peer, is_long, to_peer};
use super::state::{HELLOS_AT, UtofuRendezvousRecv};
use super::unexpected::{Buffered, Bytes, Unexpected, UtofuBody};
use super::wire::{self, CreditKind, UtofuDescriptor};
use super::{POOL_BUFFERS, UtofuEndpoint, deliver, failed};

impl UtofuEndpoint {
    /// Takes a notice from the MRQ, if there is one, and handles it. Returns whether there was one.
    pub(super) fn take_notice(&mut self) -> Result<bool, WireError> {
        match self.vcq.poll_mrq() {
            Ok(Some(Notice::RemotePut { peer, remote_end, .. })) => {
                self.on_notice(peer, remote_end)?
            }
            Ok(Some(Notice::LocalPut { .. })) => self.fence.passed(),
            Ok(Some(Notice::LocalGet { .. })) => self.answered()?,
            // Posts never ask for other notices.
            Ok(Some(_)) => {}
            Ok(None) => return Ok(false),
            Err(error) => {
                let error = self.notice_error(&error);
                // Any failed access to the rank whose status was requested counts as its answer: it is not reachable.
                if error.peer.is_none() || error.peer != self.asked {
                    return Err(error);
                }
                (self.asked, self.answer) = (None, Some(Status::Silent));
            }
        }
        Ok(true)
    }

    fn notice_error(&self, error: &NoticeError) -> WireError {
        let peer = match error {
            NoticeError::Failed { peer: Some(id), .. } => self.addresses.rank(id),
            _ => None,
        };
        WireError { call: "utofu_poll_mrq", reason: error.to_string(), peer }
    }
    /// Handles the notice of a put by VCQ `by` that ended at `end`.
    pub(super) fn on_notice(&mut self, by: u64, end: Stadd) -> Result<(), WireError> {
        // A put into an announced receive?
        let behind = self.rendezvous_recvs.partition_point(|rendezvous| rendezvous.at < end);
        let index = behind.checked_sub(1).filter(|&index| {
            let UtofuRendezvousRecv { at, len, .. } = self.rendezvous_recvs[index];
            end.offset_from(at).is_some_and(|offset| (1..=len).contains(&offset))
        });
        if let Some(index) = index {
            let rendezvous = &mut self.rendezvous_recvs[index];
            rendezvous.puts_left -= 1;
            self.n_announced -= 1;
            if rendezvous.puts_left == 0 {
                let (index, tag) = self.rendezvous_recvs.remove(index).of;
                let recv = self.match_message(from_peer(index), tag)?;
                self.events.extend(recv.map(|recv| Event::Received(recv.slot)));
            }
            return Ok(());
        }
        // A write to a channel?
        let after = self.channels.partition_point(|(stadd, _)| *stadd < end);
        if let Some(&(start, index)) = after.checked_sub(1).and_then(|at| self.channels.get(at))
            && let Some(offset) = end.offset_from(start)
            && let window = self.peers[index as usize].local_channel.window
            && offset <= window.channel_bytes() as u64
        {
            let peer = &mut self.peers[index as usize];
            let invalid =
                |invalid: InvalidField| invalid.wire_error_from(peer.rank, "utofu_poll_mrq");
            return match window.written(offset as usize).map_err(invalid)? {
                Written::Credit(ring) => {
                    peer.outgoing[ring as usize].credited().map_err(invalid)?;
                    self.flush_peer(index)
                }
                Written::Slot(ring, slot) => self.arrived(index, ring, slot),
            };
        }
        // A hello? Its address encodes the number of the channel, its sender owns the channel.
        let base = self.mailbox_registration.at(HELLOS_AT + 1);
        match end.offset_from(base) {
            Some(number) if number < u64::from(MOST_PEERS) => {
                let (rank, number) = (self.rank_of(by)?, number as u32);
                let index = self.peer(rank)?;
                let peer = &mut self.peers[index as usize];
                if peer.remote_channel.is_some() {
                    return Err(WireError::new(
                        "first contact",
                        format!("rank {rank} sent a second hello"),
                    ));
                }
                let channel = channel_of(self.addresses.api(), peer.vcq, number)
                    .map_err(|error| failed(error, Some(rank)))?;
                peer.on_hello(channel, number);
                self.flush_peer(index)
            }
            _ => Err(WireError::new(
                "utofu_poll_mrq",
                format!("a put to {end}, which is no place that was ever given out"),
            )),
        }
    }

    /// The rank that owns a VCQ.
    fn rank_of(&self, vcq: u64) -> Result<Rank, WireError> {
        let id = VcqId::from_raw(self.addresses.api(), vcq).map_err(|error| failed(error, None))?;
        self.addresses.rank(&id).ok_or_else(|| {
            WireError::new("first contact", format!("a hello of {id}, which is no rank's"))
        })
    }

    /// Handles the write of a slot of a peer's channel.
    pub(super) fn arrived(
        &mut self,
        index: u32,
        ring: ChannelRing,
        slot: u32,
    ) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        let rank = peer.rank;
        let invalid = |invalid: InvalidField| invalid.wire_error_from(rank, "utofu_poll_mrq");
        let ptr = peer.local_channel.slot(ring, slot);
        match ring {
            ChannelRing::Descriptors => {
                // SAFETY: the slot lies within the channel and does not change until its credit is returned; any
                // bytes are valid.
                let bytes = unsafe { ptr.cast::<[u8; DESCRIPTOR_BYTES]>().read() };
                match UtofuDescriptor::decode(&bytes).map_err(invalid)? {
                    UtofuDescriptor::ClearToSend { tag, at, len } => {
                        self.on_clear_to_send(index, (tag, len as usize), Stadd(at))?;
                    }
                    UtofuDescriptor::RequestToSend { tag, len } => {
                        self.on_request_to_send(index, tag, len as usize)?
                    }
                    UtofuDescriptor::Refused { tag } => self.on_refused(index, tag)?,
                    UtofuDescriptor::Withdrawn { tag } => self.on_withdrawn(index, tag),
                    UtofuDescriptor::Tiny { tag, credit_kind, len, data } => {
                        self.received(index, tag, credit_kind, &data[..usize::from(len)], None)?;
                    }
                }
            }
            ChannelRing::Eager => {
                // SAFETY: as for descriptors.
                let header = unsafe { ptr.cast::<[u8; EAGER_HEADER_BYTES]>().read() };
                let (tag, credit_kind, len) = wire::eager_message(&header).map_err(invalid)?;
                // SAFETY: as above; `len` is at most a slot's room, and the peer does not write the slot again before
                // its credit is returned.
                let data = unsafe { std::slice::from_raw_parts(ptr.add(EAGER_HEADER_BYTES), len) };
                if self.received(index, tag, credit_kind, data, Some(slot))? {
                    // The engine reads the message in its slot.
                    return Ok(());
                }
            }
        }
        self.slot_done(index, ring, slot)
    }

    /// Frees a slot; sends a credit notice if one is due, or grants a credit if an announced message waits for one.
    pub(super) fn slot_done(
        &mut self,
        index: u32,
        ring: ChannelRing,
        slot: u32,
    ) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        peer.incoming[ring as usize].done(slot);
        if peer.has_ungranted() {
            peer.grant();
        } else if !peer.incoming[ring as usize].is_due() {
            return Ok(());
        }
        self.flush_peer(index)
    }

    /// Handles a complete message; `slot` is its slot if it is an eager one. Returns whether it stays there for now.
    fn received(
        &mut self,
        index: u32,
        tag: Tag,
        credit_kind: CreditKind,
        data: &[u8],
        slot: Option<u32>,
    ) -> Result<bool, WireError> {
        let Some(recv) = self.match_message(from_peer(index), tag)? else {
            self.keep(index, tag, credit_kind, data, slot.is_some());
            return Ok(false);
        };
        let peer = &mut self.peers[index as usize];
        if (credit_kind != CreditKind::Ordinary || !peer.awaiting_grant.is_empty())
            && peer.met(tag, credit_kind)
        {
            self.void_announcements.push((from_peer(index), tag));
        }
        if !recv.fits(tag, data.len()) {
            self.refuse_short(index, &recv)?;
            return Ok(false);
        }
        if let (Some(slot), Arrival::Anywhere) = (slot, recv.arrival) {
            self.view_slot(recv.slot, index, slot, data);
            return Ok(true);
        }
        // SAFETY: the receive is posted, so no other thread accesses its region, which is valid and has the message's
        // length.
        unsafe { deliver(data, &recv.region) };
        self.events.push(Event::Received(recv.slot));
        Ok(false)
    }

    /// Keeps an unexpected message.
    fn keep(&mut self, index: u32, tag: Tag, credit_kind: CreditKind, data: &[u8], is_eager: bool) {
        let queue = from_peer(index);
        // The message replaces its announcement.
        if credit_kind == CreditKind::Announced
            && self.matcher.take_unexpected(queue, tag).is_none()
        {
            self.void_announcements.push((queue, tag));
        }
        let bytes = if is_eager {
            let buffer_pool = self.buffer_pool.pop();
            let mut buffer = buffer_pool.unwrap_or_else(|| Vec::with_capacity(data.len()));
            buffer.extend_from_slice(data);
            Bytes::Eager(buffer)
        } else {
            let mut bytes = [0; TINY_BYTES];
            bytes[..data.len()].copy_from_slice(data);
            Bytes::Tiny(data.len() as u8, bytes)
        };
        let mut buffered = Buffered { bytes, holds_credit: false };
        buffered.holds_credit = !self.matcher.bytes.keep(buffered.bytes());
        if buffered.holds_credit {
            self.peers[index as usize].incoming[buffered.ring() as usize].hold();
        }
        let len = buffered.data().len();
        self.matcher
            .add_unexpected(queue, Unexpected { tag, len, body: UtofuBody::Buffered(buffered) });
    }

    /// Handles a receive whose message had been buffered; releases the message's memory and, if withheld, its credit.
    /// `fits`: whether length and call agree.
    pub(super) fn received_unexpected(
        &mut self,
        index: u32,
        buffered: Buffered,
        fits: bool,
        recv: &RecvPost,
    ) -> Result<(), WireError> {
        self.matcher.bytes.release(buffered.bytes());
        let incoming = &mut self.peers[index as usize].incoming[buffered.ring() as usize];
        if buffered.holds_credit {
            incoming.release();
        }
        if buffered.holds_credit && incoming.is_due() {
            self.flush_peer(index)?;
        }
        match buffered.bytes {
            Bytes::Eager(buffer) if fits && recv.arrival == Arrival::Anywhere => {
                self.view_buffer(recv.slot, buffer);
                return Ok(());
            }
            _ if fits => {
                // SAFETY: by the contract of the post the region is valid for writes and no other thread accesses it;
                // it has the message's length.
                unsafe { deliver(buffered.data(), &recv.region) };
                self.events.push(Event::Received(recv.slot));
            }
            _ => self.refuse_short(index, recv)?,
        }
        if let Bytes::Eager(buffer) = buffered.bytes {
            self.recycle(buffer);
        }
        Ok(())
    }

    /// Handles a peer's `ClearToSend`: of a long receive, `(tag, len)`, at `at`, or with a short length.
    fn on_clear_to_send(
        &mut self,
        index: u32,
        (tag, len): (Tag, usize),
        at: Stadd,
    ) -> Result<(), WireError> {
        if !is_long(len) {
            return self.on_short_clear_to_send(index, tag, len);
        }
        let queue = to_peer(index);
        if self.is_void(queue, tag) {
            return Ok(());
        }
        match self.match_message(queue, tag)? {
            Some(send) => self.met_clear_to_send(index, &send, (tag, len), at),
            None => {
                self.matcher.add_unexpected(
                    queue,
                    Unexpected { tag, len, body: UtofuBody::ClearToSend(at) },
                );
                Ok(())
            }
        }
    }

    /// The number of puts that a message of this length needs.
    pub(super) fn n_puts(&self, len: usize) -> u32 {
        len.div_ceil(self.longest_put) as u32
    }

    /// Records an announced receive.
    pub(super) fn add_rendezvous(&mut self, index: u32, recv: &RecvPost) {
        let &RecvPost { tag, region, .. } = recv;
        let (at, puts_left) = (Stadd(region.key), self.n_puts(region.len));
        self.n_announced += puts_left;
        let place = self.rendezvous_recvs.partition_point(|other| other.at < at);
        let rendezvous =
            UtofuRendezvousRecv { of: (index, tag), at, len: region.len as u64, puts_left };
        self.rendezvous_recvs.insert(place, rendezvous);
    }

    /// Removes an announced receive: no more puts will arrive for it. Returns whether it was announced.
    pub(super) fn remove_rendezvous(&mut self, recv: &RecvPost) -> bool {
        let at = Stadd(recv.region.key);
        let Ok(place) = self.rendezvous_recvs.binary_search_by_key(&at, |rendezvous| rendezvous.at)
        else {
            return false;
        };
        self.n_announced -= self.rendezvous_recvs.remove(place).puts_left;
        true
    }

    /// Keeps a buffer for another message, if it is as large as those allocated at start-up.
    pub(super) fn recycle(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() >= EAGER_BYTES && self.buffer_pool.len() < POOL_BUFFERS {
            buffer.clear();
            self.buffer_pool.push(buffer);
        }
    }
}
