//! Handling of notices: peers' writes to channels, to announced receives and to the mailbox.

use utofu::handles::{Notice, NoticeError};
use utofu::{Stadd, VcqId};

use crate::endpoint::garbled::Garbled;
use crate::endpoint::{Arrival, Event, Rank, RecvPost, Status, Tag, WireError};

use super::channel::{
    DESCRIPTOR_BYTES, EAGER_BYTES, EAGER_HEADER_BYTES, Lane, MOST_PEERS, TINY_BYTES, Written,
};
use super::channels::channel_of;
use super::peer::{from_peer, is_long, to_peer};
use super::state::{HELLOS_AT, RendezvousRecv};
use super::unexpected::{Body, Bytes, Kept, Unexpected};
use super::wire::{self, Descriptor, Leave};
use super::{SPARE_BUFFERS, UtofuEndpoint, deliver, failed};

impl UtofuEndpoint {
    /// Takes a notice from the MRQ, if there is one, and handles it. Returns whether there was one.
    pub(super) fn take_notice(&mut self) -> Result<bool, WireError> {
        match self.vcq.poll_mrq() {
            Ok(Some(Notice::RemotePut { peer, remote_end, .. })) => {
                self.noticed(peer, remote_end)?
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
    pub(super) fn noticed(&mut self, by: u64, end: Stadd) -> Result<(), WireError> {
        // A put into an announced receive?
        let behind = self.rendezvous_recvs.partition_point(|rendezvous| rendezvous.at < end);
        let index = behind.checked_sub(1).filter(|&index| {
            let RendezvousRecv { at, len, .. } = self.rendezvous_recvs[index];
            end.offset_from(at).is_some_and(|offset| (1..=len).contains(&offset))
        });
        if let Some(index) = index {
            let rendezvous = &mut self.rendezvous_recvs[index];
            rendezvous.puts_left -= 1;
            self.n_announced -= 1;
            if rendezvous.puts_left == 0 {
                let (index, tag) = self.rendezvous_recvs.remove(index).of;
                let recv = self.meet(from_peer(index), tag)?;
                self.events.extend(recv.map(|recv| Event::Received(recv.slot)));
            }
            return Ok(());
        }
        // A write to a channel?
        let after = self.channels.partition_point(|(stadd, _)| *stadd < end);
        if let Some(&(start, index)) = after.checked_sub(1).and_then(|at| self.channels.get(at))
            && let Some(offset) = end.offset_from(start)
            && let window = self.peers[index as usize].here.window
            && offset <= window.channel_bytes() as u64
        {
            let peer = &mut self.peers[index as usize];
            let garbled = |garbled: Garbled| garbled.by(peer.rank, "utofu_poll_mrq");
            return match window.written(offset as usize).map_err(garbled)? {
                Written::Credit(lane) => {
                    peer.outgoing[lane as usize].credited().map_err(garbled)?;
                    self.flush_peer(index)
                }
                Written::Slot(lane, slot) => self.arrived(index, lane, slot),
            };
        }
        // A hello? Its address encodes the number of the channel, its sender owns the channel.
        let base = self.mailbox_registration.at(HELLOS_AT + 1);
        match end.offset_from(base) {
            Some(number) if number < u64::from(MOST_PEERS) => {
                let (rank, number) = (self.rank_of(by)?, number as u32);
                let index = self.peer(rank)?;
                let peer = &mut self.peers[index as usize];
                if peer.channel.is_some() {
                    return Err(WireError::new(
                        "first contact",
                        format!("rank {rank} sent a second hello"),
                    ));
                }
                let channel = channel_of(self.addresses.api(), peer.vcq, number)
                    .map_err(|error| failed(error, Some(rank)))?;
                peer.greeted_by(channel, number);
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
    pub(super) fn arrived(&mut self, index: u32, lane: Lane, slot: u32) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        let rank = peer.rank;
        let garbled = |garbled: Garbled| garbled.by(rank, "utofu_poll_mrq");
        let ptr = peer.here.slot(lane, slot);
        match lane {
            Lane::Descriptors => {
                // SAFETY: the slot lies within the channel and does not change until its credit is returned; any
                // bytes are valid.
                let bytes = unsafe { ptr.cast::<[u8; DESCRIPTOR_BYTES]>().read() };
                match Descriptor::decode(&bytes).map_err(garbled)? {
                    Descriptor::ClearToSend { tag, at, len } => {
                        self.clear_to_send(index, (tag, len as usize), Stadd(at))?;
                    }
                    Descriptor::RequestToSend { tag, len } => {
                        self.waits(index, tag, len as usize)?
                    }
                    Descriptor::Refused { tag } => self.refused(index, tag)?,
                    Descriptor::Withdrawn { tag } => self.withdrawn(index, tag),
                    Descriptor::Tiny { tag, leave, len, data } => {
                        self.received(index, tag, leave, Arrived::Tiny(len, data))?;
                    }
                }
            }
            Lane::Eager => {
                // SAFETY: as for descriptors.
                let header = unsafe { ptr.cast::<[u8; EAGER_HEADER_BYTES]>().read() };
                let (tag, leave, len) = wire::eager_message(&header).map_err(garbled)?;
                // SAFETY: as above; `len` is at most a slot's room, and the peer does not write the slot again before
                // its credit is returned.
                let data = unsafe { std::slice::from_raw_parts(ptr.add(EAGER_HEADER_BYTES), len) };
                if self.received(index, tag, leave, Arrived::Eager(slot, data))? {
                    // The engine reads the message in its slot.
                    return Ok(());
                }
            }
        }
        self.slot_done(index, lane, slot)
    }

    /// Frees a slot; sends a credit notice if one is due, or grants a credit if an announced message waits for one.
    pub(super) fn slot_done(&mut self, index: u32, lane: Lane, slot: u32) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        peer.incoming[lane as usize].done(slot);
        if peer.wants() {
            peer.grant();
        } else if !peer.incoming[lane as usize].owes() {
            return Ok(());
        }
        self.flush_peer(index)
    }

    /// Handles a complete message. Returns whether it stays in its slot for now.
    fn received(
        &mut self,
        index: u32,
        tag: Tag,
        leave: Leave,
        message: Arrived<'_>,
    ) -> Result<bool, WireError> {
        let data = message.data();
        let Some(recv) = self.meet(from_peer(index), tag)? else {
            self.keep(index, tag, leave, &message);
            return Ok(false);
        };
        let peer = &mut self.peers[index as usize];
        if (leave != Leave::Credit || !peer.wanted.is_empty()) && peer.met(tag, leave) {
            self.overtaken.push((from_peer(index), tag));
        }
        if !recv.fits(tag, data.len()) {
            self.refuse_short(index, &recv)?;
            return Ok(false);
        }
        if let (Arrived::Eager(place, _), Arrival::Anywhere) = (message, recv.arrival) {
            self.view_slot(recv.slot, index, place, data);
            return Ok(true);
        }
        // SAFETY: the receive is posted, so no other thread accesses its region, which is valid and has the message's
        // length.
        unsafe { deliver(data, &recv.region) };
        self.events.push(Event::Received(recv.slot));
        Ok(false)
    }

    /// Keeps an unexpected message.
    fn keep(&mut self, index: u32, tag: Tag, leave: Leave, message: &Arrived<'_>) {
        let queue = from_peer(index);
        // The message replaces its announcement.
        if leave == Leave::Announced && self.matcher.take_unexpected(queue, tag).is_none() {
            self.overtaken.push((queue, tag));
        }
        let bytes = match *message {
            Arrived::Tiny(len, data) => Bytes::Tiny(len, data),
            Arrived::Eager(_, data) => {
                let spare = self.spare.pop();
                let mut buffer = spare.unwrap_or_else(|| Vec::with_capacity(data.len()));
                buffer.extend_from_slice(data);
                Bytes::Eager(buffer)
            }
        };
        let mut kept = Kept { bytes, holds: false };
        kept.holds = !self.unexpected.keep(kept.bytes());
        if kept.holds {
            self.peers[index as usize].incoming[kept.lane() as usize].hold();
        }
        let len = kept.data().len();
        self.matcher.keep(queue, Unexpected { tag, len, body: Body::Kept(kept) });
    }

    /// Handles a receive whose message had been kept; releases the message's memory and, if withheld, its credit.
    /// `fits`: whether length and call agree.
    pub(super) fn received_unexpected(
        &mut self,
        index: u32,
        kept: Kept,
        fits: bool,
        recv: &RecvPost,
    ) -> Result<(), WireError> {
        self.unexpected.release(kept.bytes());
        let incoming = &mut self.peers[index as usize].incoming[kept.lane() as usize];
        if kept.holds {
            incoming.let_go();
        }
        if kept.holds && incoming.owes() {
            self.flush_peer(index)?;
        }
        match kept.bytes {
            Bytes::Eager(buffer) if fits && recv.arrival == Arrival::Anywhere => {
                self.view_buffer(recv.slot, buffer);
                return Ok(());
            }
            _ if fits => {
                // SAFETY: by the contract of the post the region is valid for writes and no other thread accesses it;
                // it has the message's length.
                unsafe { deliver(kept.data(), &recv.region) };
                self.events.push(Event::Received(recv.slot));
            }
            _ => self.refuse_short(index, recv)?,
        }
        if let Bytes::Eager(buffer) = kept.bytes {
            self.recycle(buffer);
        }
        Ok(())
    }

    /// Handles a peer's `ClearToSend`: of a long receive, `(tag, len)`, at `at`, or with a short length.
    fn clear_to_send(
        &mut self,
        index: u32,
        (tag, len): (Tag, usize),
        at: Stadd,
    ) -> Result<(), WireError> {
        if !is_long(len) {
            return self.met_short_clear_to_send(index, tag, len);
        }
        let queue = to_peer(index);
        if self.is_overtaken(queue, tag) {
            return Ok(());
        }
        match self.meet(queue, tag)? {
            Some(send) => self.met_clear_to_send(index, &send, (tag, len), at),
            None => {
                self.matcher.keep(queue, Unexpected { tag, len, body: Body::ClearToSend(at) });
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
        let rendezvous = RendezvousRecv { of: (index, tag), at, len: region.len as u64, puts_left };
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
        if buffer.capacity() >= EAGER_BYTES && self.spare.len() < SPARE_BUFFERS {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}

/// A short message that has arrived.
#[derive(Clone, Copy)]
enum Arrived<'a> {
    /// The length, and the bytes in its first part.
    Tiny(u8, [u8; TINY_BYTES]),
    /// The eager slot, and the message's bytes in it.
    Eager(u32, &'a [u8]),
}

impl Arrived<'_> {
    fn data(&self) -> &[u8] {
        match self {
            Arrived::Tiny(len, data) => &data[..usize::from(*len)],
            Arrived::Eager(_, data) => data,
        }
    }
}
