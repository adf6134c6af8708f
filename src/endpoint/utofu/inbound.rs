//! What peers have written: to channels, to announced receives, to the mailbox.

use std::sync::atomic::Ordering;

use utofu::Stadd;

use crate::endpoint::{Arrival, Event, Tag, WireError};

use super::peer::{Announced, Unexpected, take};
use super::state::Landing;
use super::wire::{self, CHANNEL_BYTES, DESCRIPTOR_BYTES, Descriptor, EAGER_BYTES};
use super::wire::{EAGER_HEADER_BYTES, Lane, Written};
use super::{UtofuEndpoint, deliver};

impl UtofuEndpoint {
    /// A write of a peer has ended at `end`.
    pub(super) fn noticed(&mut self, end: Stadd) -> Result<(), WireError> {
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
            && offset <= CHANNEL_BYTES as u64
        {
            return match wire::written(offset as usize) {
                Written::Credit(lane) => {
                    self.peers[index as usize].outgoing[lane as usize].credited();
                    self.flush_peer(index)
                }
                Written::Slot(lane, slot) => self.arrived(index, lane, slot),
            };
        }
        // A hello?
        let base = self.mailbox_registration.stadd();
        match end.offset_from(base) {
            Some(offset) if offset >= 8 && offset <= 8 * self.addresses.len() as u64 => {
                let rank = (offset / 8 - 1) as u32;
                // Relaxed: the notice says that it is there. Its writer may write the same again.
                let hello = self.mailbox_word(rank as usize).load(Ordering::Relaxed);
                let index = self.peer(rank)?;
                self.peers[index as usize].greeted_by(hello);
                self.flush_peer(index)
            }
            _ => Err(WireError {
                call: "utofu_poll_mrq",
                reason: format!("a put to {end}, which is no place that was ever given out"),
                peer: None,
            }),
        }
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
        let ptr = unsafe { peer.memory.ptr().add(lane.offset(slot)) };
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
                                self.n_early += 1;
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
        self.peers[index as usize].incoming[lane as usize].done(slot);
        self.flush_peer(index)
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
            self.n_early += 1;
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
