//! Writes to peers: puts of data, channel slots, credits, hellos.

use utofu::handles::{CompletionError, MAX_BATCH, PostFlags, PostOptions, Source, Transfer};
use utofu::{Cookie, Stadd};

use crate::endpoint::{Event, Slot, WireError, WireRegion};

use super::channel::{
    ChannelRing, ChannelWindow, EAGER_HEADER_BYTES, bounce_offset, credit_offset,
};
use super::peer::{OutboundEntry, OutboundShort, ShortBytes, UtofuPeer, ring_of};
use super::state::{DataPut, NEWS_COOKIE, UtofuRendezvousSend};
use super::wire::{self, UtofuDescriptor};
use super::{UtofuEndpoint, failed};

/// Checks after which messages that wait for credits are announced. Credits mostly arrive between two checks.
const ANNOUNCE_AT_CHECK: u32 = 2;

impl UtofuEndpoint {
    /// Puts `region` to `at` in the memory of a peer; `slot` names the send in its event.
    pub(super) fn send_to(
        &mut self,
        index: u32,
        slot: Slot,
        region: WireRegion,
        at: Stadd,
    ) -> Result<(), WireError> {
        let UtofuPeer { vcq: to, .. } = self.peers[index as usize];
        let puts_left = region.len.div_ceil(self.longest_put) as u32;
        let rendezvous = self.rendezvous_sends.insert(UtofuRendezvousSend { slot, puts_left });
        let mut done = 0;
        while done < region.len {
            let length = (region.len - done).min(self.longest_put);
            let local = Stadd(region.key) + done as u64;
            let what = Transfer { local, remote: at + done as u64, length };
            self.puts.push_back(DataPut { to, what, rendezvous });
            done += length;
        }
        self.flush_puts()
    }

    /// Posts puts of data until the TOQ is full. The batch goes first: its puts are short, the TNI sends in the order
    /// of posts, and a clear to send behind the data would delay the data that the peer sends in return. After news
    /// of a failure, which the poll reports, nothing is posted: the peer's clear to send may be void.
    pub(super) fn flush_puts(&mut self) -> Result<(), WireError> {
        if self.puts.is_empty() || self.news()?.is_some() || !self.post_batch()? {
            return Ok(());
        }
        while let Some(&DataPut { to, what, rendezvous }) = self.puts.front() {
            let flags = PostFlags::TCQ | PostFlags::REMOTE;
            let options = PostOptions { edata: 0, flags, cookie: Cookie(rendezvous as usize) };
            // SAFETY: the local bytes belong to a posted send and do not change until it is reported as sent; the
            // remote bytes belong to a receive that its rank has announced for this message.
            let posted = unsafe { self.vcq.put(to, what, options) };
            if !self.accepted(posted)? {
                break;
            }
            self.n_open += 1;
            self.puts.pop_front();
        }
        Ok(())
    }

    pub(super) fn poll_completions(&mut self) -> Result<(), WireError> {
        while self.has_posted {
            match self.vcq.poll_tcq() {
                Ok(Some(cookie)) => {
                    self.n_open = self.n_open.saturating_sub(1);
                    if self.is_abandoned || cookie == NEWS_COOKIE {
                        continue;
                    }
                    let Cookie(index) = cookie;
                    // The largest number is no send's.
                    let number = u32::try_from(index).unwrap_or(u32::MAX);
                    let Some(rendezvous) = self.rendezvous_sends.get_mut(number) else {
                        return Err(WireError::new(
                            "utofu_poll_tcq",
                            format!("a completion with unknown cookie {index}"),
                        ));
                    };
                    rendezvous.puts_left -= 1;
                    if rendezvous.puts_left == 0 {
                        self.events.push(Event::Sent(rendezvous.slot));
                        self.rendezvous_sends.remove(number);
                    }
                }
                Ok(None) => {
                    // All executed TOQ entries are reclaimed. Entries in flight that report no completion are
                    // reclaimed by polls after the next post.
                    self.has_posted = self.n_open > 0;
                    break;
                }
                Err(CompletionError { error, .. }) => {
                    self.n_open = self.n_open.saturating_sub(1);
                    return Err(failed(error, None));
                }
            }
        }
        Ok(())
    }

    /// Writes to a peer all that credits and the TOQ allow; puts the peer on the list if anything is left.
    pub(super) fn flush_peer(&mut self, index: u32) -> Result<(), WireError> {
        self.send_hello(index)?;
        let had_room = self.return_credits(index)? && self.write(index)?;
        let peer = &mut self.peers[index as usize];
        let is_done = had_room && peer.hello_sent;
        if !is_done && !peer.is_pending {
            peer.is_pending = true;
            self.pending.push(index);
        }
        if peer.has_messages() && !peer.is_waiting {
            peer.is_waiting = true;
            self.waiting.push(index);
        }
        Ok(())
    }

    /// Sends a peer the hello that identifies its channel.
    pub(super) fn send_hello(&mut self, index: u32) -> Result<(), WireError> {
        let peer = &self.peers[index as usize];
        if peer.hello_sent {
            return Ok(());
        }
        let (vcq, at) = (peer.vcq, peer.hello_at());
        // SAFETY: the target is the peer's mailbox, where the content of hellos is never read.
        let hello_sent = unsafe { self.post_soon(vcq, Source::Inline([0; 32]), at, 1) }?;
        self.peers[index as usize].hello_sent = hello_sent;
        Ok(())
    }

    /// Returns to a peer the credits that are due; false if the batch and the TOQ were full.
    fn return_credits(&mut self, index: u32) -> Result<bool, WireError> {
        let Some((channel, _)) = self.peers[index as usize].remote_channel else { return Ok(true) };
        for ring in [ChannelRing::Descriptors, ChannelRing::Eager] {
            while self.peers[index as usize].incoming[ring as usize].is_due() {
                let UtofuPeer { vcq, .. } = self.peers[index as usize];
                let cell = channel + credit_offset(ring) as u64;
                // SAFETY: the cell belongs to this rank's channel and is never read.
                if !unsafe { self.post_soon(vcq, Source::Word(0), cell, 8) }? {
                    return Ok(false);
                }
                self.peers[index as usize].incoming[ring as usize].credits_returned();
            }
        }
        Ok(true)
    }

    /// Writes a peer's queues as far as credits allow; false if the batch and the TOQ were full.
    fn write(&mut self, index: u32) -> Result<bool, WireError> {
        while let Some((ring, channel, window, place)) = self.peers[index as usize].next() {
            if !self.has_room()? {
                return Ok(false);
            }
            let Some(outbound) = self.peers[index as usize].take_next(ring) else { break };
            let remote = channel + window.offset(ring, place) as u64;
            match outbound {
                OutboundEntry::Control(what) => self.write_to(index, inline(what), remote)?,
                OutboundEntry::Short(short) => self.write_short(index, &short, place, remote)?,
            }
        }
        Ok(true)
    }

    /// Writes a message at once if the queues are empty and there are a credit and room in the batch; otherwise
    /// queues it.
    #[inline]
    pub(super) fn send_short(
        &mut self,
        index: u32,
        short: &OutboundShort,
    ) -> Result<(), WireError> {
        let (ring, is_full) = (ring_of(short.len()), self.batch.len() == MAX_BATCH);
        let peer = &mut self.peers[index as usize];
        if !is_full && let Some((remote, place)) = peer.take_slot(ring) {
            return self.write_short(index, short, place, remote);
        }
        peer.messages[ring as usize].push_back(*short);
        self.flush_peer(index)
    }

    /// Writes a message to slot `place` of a peer's channel, whose STADD is `remote`. The batch must have room.
    #[inline]
    fn write_short(
        &mut self,
        index: u32,
        short: &OutboundShort,
        place: u32,
        remote: Stadd,
    ) -> Result<(), WireError> {
        let &OutboundShort { tag, slot, credit_kind, payload } = short;
        let source = match payload {
            ShortBytes::Tiny(len, data) => {
                inline(UtofuDescriptor::Tiny { tag, credit_kind, len, data })
            }
            ShortBytes::Eager(region) => self.copy_eager(
                index,
                place,
                wire::eager_header(tag, credit_kind, region.len),
                region,
            )?,
        };
        self.write_to(index, source, remote)?;
        self.events.push(Event::Sent(slot));
        Ok(())
    }

    /// Writes to a slot of a peer's channel. The batch must have room.
    #[inline]
    fn write_to(
        &mut self,
        index: u32,
        from: (Source, usize),
        remote: Stadd,
    ) -> Result<(), WireError> {
        let (source, length) = from;
        let vcq = self.peers[index as usize].vcq;
        // SAFETY: by its credit this rank may write the slot; the copy of an eager message stays until the put has
        // arrived.
        let taken = unsafe { self.post_soon(vcq, source, remote, length) }?;
        debug_assert!(taken, "there was room");
        Ok(())
    }

    /// Announces messages to peers that have returned no credits for a while.
    #[cold]
    pub(super) fn announce(&mut self) -> Result<(), WireError> {
        for index in std::mem::take(&mut self.waiting) {
            let peer = &mut self.peers[index as usize];
            peer.is_waiting = false;
            if peer.has_messages() {
                peer.n_checks += 1;
                if peer.n_checks >= ANNOUNCE_AT_CHECK {
                    peer.announce();
                }
                self.flush_peer(index)?;
            }
        }
        Ok(())
    }

    /// Copies an eager message with its header to registered memory, for slot `place` of a peer's channel. Returns
    /// the copy and its length.
    fn copy_eager(
        &mut self,
        index: u32,
        place: u32,
        header: [u8; EAGER_HEADER_BYTES],
        region: WireRegion,
    ) -> Result<(Source, usize), WireError> {
        let UtofuPeer { bounce, remote_channel, .. } = &mut self.peers[index as usize];
        let bounce = match (bounce, remote_channel) {
            (Some(bounce), _) => bounce,
            (none, channel) => {
                let window = channel.map_or(ChannelWindow::Narrow, |(_, window)| window);
                let bounce = self.memory.add_bounce(&mut self.vcq, window);
                none.insert(bounce.map_err(|error| failed(error, None))?)
            }
        };
        let offset = bounce_offset(place);
        // SAFETY: `offset` is the place of this slot's copy and has room for a full slot. The slot was credited, so
        // the last put from this place has arrived. The region is a posted send's.
        unsafe {
            let copy = bounce.ptr().add(offset);
            header.as_ptr().copy_to_nonoverlapping(copy, header.len());
            region.ptr.copy_to_nonoverlapping(copy.add(header.len()), region.len);
        }
        Ok((Source::Registered(bounce.stadd() + offset as u64), header.len() + region.len))
    }
}

fn inline(descriptor: UtofuDescriptor) -> (Source, usize) {
    let (bytes, length) = descriptor.encode();
    (Source::Inline(bytes), length)
}
