//! What peers have written: to channels, to announced receives, to the mailbox.

use utofu::handles::{Notice, NoticeError};
use utofu::{Stadd, VcqId};

use crate::endpoint::garbled::Garbled;
use crate::endpoint::{Arrival, Event, Rank, Status, Tag, WireError};

use super::channel::{
    DESCRIPTOR_BYTES, EAGER_BYTES, EAGER_HEADER_BYTES, Lane, MOST_PEERS, Written,
};
use super::channels::channel_of;
use super::peer::{Announced, Unexpected, take};
use super::state::{HELLOS_AT, Landing};
use super::wire::{self, Descriptor};
use super::{UtofuEndpoint, deliver, failed};

impl UtofuEndpoint {
    /// Takes a notice from the MRQ, if there is one, and handles it.
    pub(super) fn take_notice(&mut self) -> Result<bool, WireError> {
        match self.vcq.poll_mrq() {
            Ok(Some(Notice::RemotePut { peer, remote_end, .. })) => {
                self.noticed(peer, remote_end)?
            }
            Ok(Some(Notice::LocalPut { .. })) => self.fence.passed(),
            Ok(Some(Notice::LocalGet { .. })) => self.answered()?,
            // No other notices are ever asked for.
            Ok(Some(_)) => {}
            Ok(None) => return Ok(false),
            Err(error) => {
                let error = self.notice_error(&error);
                // Whatever it was that failed, a rank that was asked is not reached.
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
    /// A write of the VCQ `by` has ended at `end`.
    pub(super) fn noticed(&mut self, by: u64, end: Stadd) -> Result<(), WireError> {
        // The data of an announced receive?
        let behind = self.landings.partition_point(|landing| landing.at < end);
        let index = behind.checked_sub(1).filter(|&index| {
            let Landing { at, len, .. } = self.landings[index];
            end.offset_from(at).is_some_and(|offset| (1..=len).contains(&offset))
        });
        if let Some(index) = index {
            let landing = &mut self.landings[index];
            landing.puts_left -= 1;
            self.n_announced -= 1;
            if landing.puts_left == 0 {
                self.events.push(Event::Received(landing.slot));
                self.landings.remove(index);
            }
            return Ok(());
        }
        // Something in a channel?
        let after = self.channels.partition_point(|(stadd, _)| *stadd < end);
        if let Some(&(start, index)) = after.checked_sub(1).and_then(|at| self.channels.get(at))
            && let Some(offset) = end.offset_from(start)
            && let window = self.peers[index as usize].window
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
        // A hello? Its place says the number of the channel, its sender whose that is.
        let base = self.mailbox_registration.at(HELLOS_AT + 1);
        match end.offset_from(base) {
            Some(number) if number < u64::from(MOST_PEERS) => {
                let (rank, number) = (self.rank_of(by)?, number as u32);
                let index = self.peer(rank)?;
                let peer = &mut self.peers[index as usize];
                if peer.channel.is_some() {
                    return Err(WireError {
                        call: "first contact",
                        reason: format!("rank {rank} sent a second hello"),
                        peer: None,
                    });
                }
                let channel = channel_of(self.addresses.api(), peer.vcq, number)
                    .map_err(|error| failed(error, Some(rank)))?;
                peer.greeted_by(channel, number);
                self.flush_peer(index)
            }
            _ => Err(WireError {
                call: "utofu_poll_mrq",
                reason: format!("a put to {end}, which is no place that was ever given out"),
                peer: None,
            }),
        }
    }

    /// Whose VCQ that is.
    fn rank_of(&self, vcq: u64) -> Result<Rank, WireError> {
        let id = VcqId::from_raw(self.addresses.api(), vcq).map_err(|error| failed(error, None))?;
        self.addresses.rank(&id).ok_or_else(|| WireError {
            call: "first contact",
            reason: format!("a hello of {id}, which is no rank's"),
            peer: None,
        })
    }

    /// A slot of a peer's channel has been written.
    pub(super) fn arrived(&mut self, index: u32, lane: Lane, slot: u32) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        let garbled = |rank| WireError {
            call: "utofu_poll_mrq",
            reason: format!("a garbled message in the channel of rank {rank}"),
            peer: None,
        };
        // SAFETY: the slot lies within the channel, and stays as it is until it is credited.
        let ptr = unsafe { peer.memory.ptr().add(peer.window.offset(lane, slot)) };
        match lane {
            Lane::Descriptors => {
                // SAFETY: as above; any bytes are valid.
                let bytes = unsafe { ptr.cast::<[u8; DESCRIPTOR_BYTES]>().read() };
                match Descriptor::decode(&bytes).ok_or_else(|| garbled(peer.rank))? {
                    Descriptor::Ready { tag, at, len } => {
                        self.check_call(index, tag)?;
                        let peer = &mut self.peers[index as usize];
                        let (at, rank) = (Stadd(at), peer.rank);
                        match take(&mut peer.waiting, |waiting| waiting.tag == tag) {
                            Some(send) => {
                                self.check_len(rank, len, send.region.len)?;
                                self.send_to(index, send.slot, send.region, at)?;
                            }
                            None => {
                                peer.announced.push_back(Announced { tag, at, len });
                                self.calls.hear(tag);
                            }
                        }
                    }
                    Descriptor::Waiting { tag, len } => {
                        self.check_call(index, tag)?;
                        self.check_waiting(index, tag, len)?;
                    }
                    Descriptor::Tiny { tag, len, data } => {
                        self.check_call(index, tag)?;
                        self.received(index, tag, &data[..usize::from(len)], None)?;
                    }
                }
            }
            Lane::Eager => {
                // SAFETY: as above.
                let header = unsafe { ptr.cast::<[u8; EAGER_HEADER_BYTES]>().read() };
                let (tag, len) = wire::eager_message(&header).ok_or_else(|| garbled(peer.rank))?;
                self.check_call(index, tag)?;
                // SAFETY: as above; `len` is at most a slot's room, and the peer does not
                // write the slot again before it gets the credit for it.
                let data = unsafe { std::slice::from_raw_parts(ptr.add(EAGER_HEADER_BYTES), len) };
                if self.received(index, tag, data, Some(slot))? {
                    // It is being read there.
                    return Ok(());
                }
            }
        }
        self.slot_done(index, lane, slot)
    }

    /// Gives a slot back, with a credit for several when it is time.
    pub(super) fn slot_done(&mut self, index: u32, lane: Lane, slot: u32) -> Result<(), WireError> {
        let incoming = &mut self.peers[index as usize].incoming[lane as usize];
        incoming.done(slot);
        if incoming.owes() { self.flush_peer(index) } else { Ok(()) }
    }

    /// A whole message has arrived, in eager slot `place` if that is given. Returns whether it
    /// stays there for now.
    fn received(
        &mut self,
        index: u32,
        tag: Tag,
        data: &[u8],
        place: Option<u32>,
    ) -> Result<bool, WireError> {
        let peer = &mut self.peers[index as usize];
        let rank = peer.rank;
        let Some(recv) = take(&mut peer.posted, |posted| posted.tag == tag) else {
            self.check_landings(index, tag, data.len())?;
            let mut copy = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(EAGER_BYTES));
            copy.extend_from_slice(data);
            self.peers[index as usize].unexpected.push_back(Unexpected { tag, data: copy });
            self.calls.hear(tag);
            return Ok(false);
        };
        self.check_len(rank, data.len() as u64, recv.region.len)?;
        if let (Some(place), Arrival::Anywhere) = (place, recv.arrival) {
            self.lend_slot(recv.slot, index, place, data);
            return Ok(true);
        }
        // SAFETY: the receive is posted, so its region is valid and nobody else's; it has the
        // message's length.
        unsafe { deliver(data, &recv.region) };
        self.events.push(Event::Received(recv.slot));
        Ok(false)
    }

    /// Takes note of an announced receive.
    pub(super) fn add_landing(&mut self, landing: Landing) {
        self.n_announced += landing.puts_left;
        let place = self.landings.partition_point(|other| other.at < landing.at);
        self.landings.insert(place, landing);
    }

    pub(super) fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare.push(buffer);
    }
}
