//! The wire over uTofu: one VCQ per port.
//!
//! # Protocol
//! - *First contact.* Every rank has a mailbox with 8 bytes for each rank of the communicator;
//!   the mailboxes' STADDs and the VCQ ids are exchanged at start-up. A rank that wants
//!   anything from a peer allocates a [channel](wire) for the peer's writes and puts its
//!   STADD into the peer's mailbox; the peer answers likewise. So memory per port is 8 bytes
//!   for every rank and two times 18 KiB for every rank really talked to, of which the plans
//!   of collectives need O(log p).
//! - *Tiny* messages (up to 20 bytes) travel inside a piggybacked descriptor; *eager* ones (up
//!   to 2 KiB) are copied and put into an eager slot. Whoever receives either before having
//!   posted the receive keeps it aside and frees the slot, so no message can block another.
//!   That memory grows to the largest skew that ever occurred and is reused.
//! - *Longer* messages wait for their receive: the receiver sends a descriptor with the STADD
//!   of its region, the sender puts into it (in pieces of at most the TNI's longest put), and
//!   the notices' addresses tell which receive they belong to.
//!
//! # Queues cannot overflow
//! Writes to a channel are under credits, puts of data are announced, hellos are one per rank;
//! so the MRQ of a port holds at most 73 + 6 notices for each peer and one for each put into
//! an announced receive, of which the engine bounds the number. The TOQ is full at times: then
//! whatever was to be posted waits and `poll_tcq`, called whenever anything has been posted,
//! makes room.
//!
//! # Order
//! Nothing relies on the order of two puts; every put has a notice of its own, and its address
//! says what it was. Notices are never compared by path: what names a peer is which memory it
//! wrote to.
//!
//! # The end
//! Endpoints of all ranks must be dropped after a barrier, since a peer's last credit may
//! otherwise be written to memory that is gone.

mod cached;
mod credits;
mod peer;
mod registrar;
mod setup;
mod wire;

pub use cached::{CacheView, Cached};
pub use registrar::{Direct, Registrar};
pub use setup::connect;

use utofu_sys::handles::{CompletionError, Mark, Notice, NoticeError, PostError, PostFlags};
use utofu_sys::handles::{Registration, Transfer, Vcq};
use utofu_sys::{Cookie, Stadd, UtofuError, VcqId};

use std::collections::VecDeque;

use super::{Endpoint, Event, Owner, Pages, Posted, Rank, Slot, Tag, WireError, WireRegion};
use peer::{Announced, Outbound, Peer, PeerMemory, PostedRecv, Unexpected, WaitingSend, take};
use wire::{BOUNCE_BYTES, CHANNEL_BYTES, EAGER_BYTES, EAGER_HEADER_BYTES, TINY_BYTES};
use wire::{DESCRIPTOR_BYTES, Descriptor, Lane, Written};

/// Notices taken from the MRQ in one poll: bounds how long a poll takes.
const NOTICES_PER_POLL: u32 = 64;
/// Puts and announced receives for which room is made in advance.
const USUAL_PUTS: usize = 256;
/// Buffers for messages that come too early, made in advance.
const SPARE_BUFFERS: usize = 16;
/// No peer.
const NOBODY: u32 = u32::MAX;

/// How a rank is reached through one port.
#[derive(Clone, Copy, Debug)]
struct Address {
    vcq: VcqId,
    /// The place of this rank in that rank's mailbox.
    mailbox: Stadd,
}

/// An announced receive.
#[derive(Clone, Copy, Debug)]
struct Landing {
    at: Stadd,
    len: u64,
    puts_left: u32,
    slot: Slot,
}

/// A send whose puts have not all been executed.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    slot: Slot,
    puts_left: u32,
}

/// A put that has not been posted yet.
#[derive(Clone, Copy, Debug)]
struct Put {
    to: VcqId,
    rank: Rank,
    what: Transfer,
    leaving: usize,
}

/// See the module documentation.
pub struct UtofuEndpoint {
    // Fields are dropped in this order: registrations, then the memory, then the VCQ.
    registrar: Box<dyn Registrar>,
    mailbox_registration: Registration,
    mailbox: Pages,
    peers: Vec<Peer>,
    vcq: Vcq,
    addresses: Vec<Address>,
    peer_of_rank: Vec<u32>,
    /// STADD of each peer's channel here, with the peer: sorted by STADD.
    channels: Vec<(Stadd, u32)>,
    /// Peers that something is to be written to.
    listed: Vec<u32>,
    landings: Vec<Landing>,
    leavings: Vec<Option<Leaving>>,
    puts: VecDeque<Put>,
    events: Vec<Event>,
    spare: Vec<Vec<u8>>,
    longest_put: usize,
    /// Something has been posted since the TCQ was last found empty.
    has_posted: bool,
}

impl Endpoint for UtofuEndpoint {
    fn register(&mut self, ptr: *mut u8, len: usize, owner: Owner<'_>) -> Result<u64, WireError> {
        // SAFETY: users of an endpoint keep registered memory valid until its release, and
        // grant access to peers only through posts, whose contract covers it.
        let registered = unsafe { self.registrar.register(&mut self.vcq, ptr, len, owner) };
        registered.map_err(|error| failed(error, None))
    }

    fn release(&mut self, key: u64) -> Result<(), WireError> {
        self.registrar.release(key).map_err(|error| failed(error, None))
    }

    fn needs_key(&self, len: u64) -> bool {
        len > EAGER_BYTES as u64
    }

    unsafe fn post_recv(
        &mut self,
        slot: Slot,
        from: Rank,
        tag: Tag,
        region: WireRegion,
    ) -> Result<Posted, WireError> {
        let index = self.peer(from)?;
        let peer = &mut self.peers[index as usize];
        if region.len > EAGER_BYTES {
            let at = Stadd(region.key);
            let puts_left = region.len.div_ceil(self.longest_put) as u32;
            self.landings.push(Landing { at, len: region.len as u64, puts_left, slot });
            peer.outbound.push_back(Outbound::Ready { tag, at });
            self.flush_peer(index)?;
        } else if let Some(early) = take(&mut peer.unexpected, |early| early.tag == tag) {
            // SAFETY: the region is valid for writes, and nobody else's, by the contract.
            unsafe { deliver(&early.data, &region) };
            self.events.push(Event::Received(slot));
            self.recycle(early.data);
        } else {
            peer.posted.push_back(PostedRecv { tag, slot, region });
        }
        Ok(Posted::Accepted)
    }

    unsafe fn post_send(
        &mut self,
        slot: Slot,
        to: Rank,
        tag: Tag,
        region: WireRegion,
    ) -> Result<Posted, WireError> {
        let index = self.peer(to)?;
        let peer = &mut self.peers[index as usize];
        if region.len > EAGER_BYTES {
            match take(&mut peer.announced, |announced| announced.tag == tag) {
                Some(Announced { at, .. }) => self.send_to(index, slot, region, at)?,
                None => peer.waiting.push_back(WaitingSend { tag, slot, region }),
            }
            return Ok(Posted::Accepted);
        }
        let outbound = if region.len <= TINY_BYTES {
            let mut data = [0; TINY_BYTES];
            if region.len > 0 {
                // SAFETY: the region is valid for reads and unchanging by the contract.
                unsafe { region.ptr.copy_to_nonoverlapping(data.as_mut_ptr(), region.len) };
            }
            Outbound::Tiny { tag, slot, len: region.len as u8, data }
        } else {
            Outbound::Eager { tag, slot, region }
        };
        peer.outbound.push_back(outbound);
        self.flush_peer(index)?;
        Ok(Posted::Accepted)
    }

    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        for _ in 0..NOTICES_PER_POLL {
            match self.vcq.poll_mrq() {
                Ok(Some(Notice::RemotePut { remote_end, .. })) => self.noticed(remote_end)?,
                // Only remote notices are ever asked for.
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return Err(self.notice_error(&error)),
            }
        }
        self.poll_completions()?;
        self.flush_puts()?;
        if !self.listed.is_empty() {
            let mut listed = std::mem::take(&mut self.listed);
            for &index in &listed {
                self.peers[index as usize].is_listed = false;
            }
            let flushed = listed.iter().try_for_each(|&index| self.flush_peer(index));
            // What is still to do has been listed anew; keep the larger allocation.
            if self.listed.is_empty() {
                listed.clear();
                self.listed = listed;
            }
            flushed?;
        }
        events.append(&mut self.events);
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        self.puts.is_empty() && self.listed.is_empty()
    }
}

impl UtofuEndpoint {
    /// The peer of a rank; makes first contact if need be.
    fn peer(&mut self, rank: Rank) -> Result<u32, WireError> {
        let known = self.peer_of_rank[rank as usize];
        if known != NOBODY {
            return Ok(known);
        }
        let pages = Pages::new((CHANNEL_BYTES + BOUNCE_BYTES) as u64);
        // SAFETY: the pages live beside the registration and longer. Peers write to the
        // channel only, which is read through raw pointers, and only where a notice has said
        // that a write is complete.
        let registration = unsafe {
            self.vcq.register(pages.ptr(), pages.len(), utofu_sys::handles::Access::ReadWrite)
        };
        let registration = registration.map_err(|error| failed(error, Some(rank)))?;
        let Address { vcq, mailbox } = self.addresses[rank as usize];
        let index = self.peers.len() as u32;
        let at = registration.stadd();
        let place = self.channels.partition_point(|(stadd, _)| *stadd < at);
        self.channels.insert(place, (at, index));
        self.peers.push(Peer::new(rank, vcq, mailbox, PeerMemory { registration, pages }));
        self.peer_of_rank[rank as usize] = index;
        self.flush_peer(index)?;
        Ok(index)
    }

    /// A write of a peer has ended at `end`.
    fn noticed(&mut self, end: Stadd) -> Result<(), WireError> {
        // The data of an announced receive?
        let landing = self.landings.iter().position(|landing| {
            end.offset_from(landing.at).is_some_and(|offset| (1..=landing.len).contains(&offset))
        });
        if let Some(index) = landing {
            let landing = &mut self.landings[index];
            landing.puts_left -= 1;
            if landing.puts_left == 0 {
                self.events.push(Event::Received(landing.slot));
                // In order, so that the oldest is found first.
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
                // SAFETY: the offset lies within the mailbox, whose places are aligned to 8;
                // the peer writes its place once, and has done so.
                let channel =
                    unsafe { self.mailbox.ptr().cast::<u64>().add(rank as usize).read_volatile() };
                let index = self.peer(rank)?;
                self.peers[index as usize].channel = Some(Stadd(channel));
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
    fn arrived(&mut self, index: u32, lane: Lane, slot: u32) -> Result<(), WireError> {
        let peer = &mut self.peers[index as usize];
        let garbled = |rank| WireError {
            call: "utofu_poll_mrq",
            reason: "a garbled message in a channel".to_owned(),
            peer: Some(rank),
        };
        // SAFETY: the slot lies within the channel, and stays as it is until it is credited.
        let ptr = unsafe { peer.memory.pages.ptr().add(lane.offset(slot)) };
        match lane {
            Lane::Descriptors => {
                // SAFETY: as above; any bytes are valid.
                let bytes = unsafe { ptr.cast::<[u8; DESCRIPTOR_BYTES]>().read() };
                match Descriptor::decode(&bytes).ok_or_else(|| garbled(peer.rank))? {
                    Descriptor::Ready { tag, at } => {
                        let at = Stadd(at);
                        match take(&mut peer.waiting, |waiting| waiting.tag == tag) {
                            Some(send) => self.send_to(index, send.slot, send.region, at)?,
                            None => peer.announced.push_back(Announced { tag, at }),
                        }
                    }
                    Descriptor::Tiny { tag, len, data } => {
                        self.received(index, tag, &data[..usize::from(len)]);
                    }
                }
            }
            Lane::Eager => {
                // SAFETY: as above.
                let header = unsafe { ptr.cast::<[u8; EAGER_HEADER_BYTES]>().read() };
                let (tag, len) = wire::eager_message(&header).ok_or_else(|| garbled(peer.rank))?;
                // SAFETY: as above; `len` is at most a slot's room, and the peer does not
                // write the slot again before it gets the credit for it.
                let data = unsafe { std::slice::from_raw_parts(ptr.add(EAGER_HEADER_BYTES), len) };
                self.received(index, tag, data);
            }
        }
        self.peers[index as usize].incoming[lane as usize].done(slot);
        self.flush_peer(index)
    }

    /// A whole message has arrived.
    fn received(&mut self, index: u32, tag: Tag, data: &[u8]) {
        let peer = &mut self.peers[index as usize];
        if let Some(recv) = take(&mut peer.posted, |posted| posted.tag == tag) {
            // SAFETY: the receive is posted, so its region is valid and nobody else's.
            unsafe { deliver(data, &recv.region) };
            self.events.push(Event::Received(recv.slot));
        } else {
            let mut copy = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(EAGER_BYTES));
            copy.extend_from_slice(data);
            peer.unexpected.push_back(Unexpected { tag, data: copy });
        }
    }

    fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare.push(buffer);
    }

    /// Puts `region` to `at` in the memory of a peer.
    fn send_to(
        &mut self,
        index: u32,
        slot: Slot,
        region: WireRegion,
        at: Stadd,
    ) -> Result<(), WireError> {
        let Peer { vcq: to, rank, .. } = self.peers[index as usize];
        let puts_left = region.len.div_ceil(self.longest_put) as u32;
        let leaving = Some(Leaving { slot, puts_left });
        let free = self.leavings.iter().position(Option::is_none);
        let free = free.unwrap_or_else(|| {
            self.leavings.push(None);
            self.leavings.len() - 1
        });
        self.leavings[free] = leaving;
        let mut done = 0;
        while done < region.len {
            let length = (region.len - done).min(self.longest_put);
            let local = Stadd(region.key) + done as u64;
            let what = Transfer { local, remote: at + done as u64, length };
            self.puts.push_back(Put { to, rank, what, leaving: free });
            done += length;
        }
        self.flush_puts()
    }

    /// Posts puts until the TOQ is full.
    fn flush_puts(&mut self) -> Result<(), WireError> {
        while let Some(&Put { to, rank, what, leaving }) = self.puts.front() {
            let flags = PostFlags::TCQ | PostFlags::REMOTE;
            let mark = Mark { edata: 0, flags, cookie: Cookie(leaving) };
            // SAFETY: the local bytes are a posted send's, unchanged until it is reported as
            // sent; the remote bytes are a receive that its rank has announced for this.
            let posted = unsafe { self.vcq.put(to, what, mark) };
            if !self.accepted(posted, rank)? {
                break;
            }
            self.puts.pop_front();
        }
        Ok(())
    }

    fn poll_completions(&mut self) -> Result<(), WireError> {
        while self.has_posted {
            match self.vcq.poll_tcq() {
                Ok(Some(Cookie(index))) => {
                    let Some(leaving) = &mut self.leavings[index] else {
                        return Err(WireError {
                            call: "utofu_poll_tcq",
                            reason: format!("a completion with unknown cookie {index}"),
                            peer: None,
                        });
                    };
                    leaving.puts_left -= 1;
                    if leaving.puts_left == 0 {
                        self.events.push(Event::Sent(leaving.slot));
                        self.leavings[index] = None;
                    }
                }
                Ok(None) => {
                    // Everything executed has been taken back. What is still on its way
                    // without a notice is taken back after the next post.
                    self.has_posted = self.leavings.iter().any(Option::is_some);
                    break;
                }
                Err(CompletionError { error, .. }) => return Err(failed(error, None)),
            }
        }
        Ok(())
    }

    /// Writes to a peer what is to be written and can be; lists the peer if something is left.
    fn flush_peer(&mut self, index: u32) -> Result<(), WireError> {
        self.greet(index)?;
        self.pay(index)?;
        while self.write_next(index)? {}
        let peer = &mut self.peers[index as usize];
        if !peer.is_quiet() && !peer.is_listed {
            peer.is_listed = true;
            self.listed.push(index);
        }
        Ok(())
    }

    /// Tells a peer where its channel is.
    fn greet(&mut self, index: u32) -> Result<(), WireError> {
        let peer = &self.peers[index as usize];
        if peer.greeted {
            return Ok(());
        }
        let channel = peer.memory.registration.stadd().0;
        let (rank, vcq, mailbox) = (peer.rank, peer.vcq, peer.mailbox);
        // SAFETY: the mailbox is the peer's and its place for this rank is written only here.
        let posted = unsafe { self.vcq.put_piggyback8(vcq, channel, mailbox, SILENT) };
        self.peers[index as usize].greeted = self.accepted(posted, rank)?;
        Ok(())
    }

    /// Sends a peer the credits that it is owed.
    fn pay(&mut self, index: u32) -> Result<(), WireError> {
        let Some(channel) = self.peers[index as usize].channel else { return Ok(()) };
        for lane in [Lane::Descriptors, Lane::Eager] {
            while self.peers[index as usize].incoming[lane as usize].owes() {
                let Peer { vcq, rank, .. } = self.peers[index as usize];
                let cell = channel + wire::credit_offset(lane) as u64;
                // SAFETY: the cell belongs to this rank's channel and is never read.
                let posted = unsafe { self.vcq.put_piggyback8(vcq, 0, cell, SILENT) };
                if !self.accepted(posted, rank)? {
                    return Ok(());
                }
                self.peers[index as usize].incoming[lane as usize].paid();
            }
        }
        Ok(())
    }

    /// Writes the next thing in a peer's queue, if there is one, and room for it.
    fn write_next(&mut self, index: u32) -> Result<bool, WireError> {
        let peer = &self.peers[index as usize];
        let (Some(&outbound), Some(channel)) = (peer.outbound.front(), peer.channel) else {
            return Ok(false);
        };
        let lane = outbound.lane();
        let Some(place) = peer.outgoing[lane as usize].slot() else { return Ok(false) };
        let remote = channel + lane.offset(place) as u64;
        let (rank, vcq) = (peer.rank, peer.vcq);
        let posted = match outbound {
            Outbound::Ready { tag, at } => {
                let (bytes, len) = Descriptor::Ready { tag, at: at.0 }.encode();
                // SAFETY: the credits make the slot this rank's to write.
                unsafe { self.vcq.put_piggyback(vcq, &bytes[..len], remote, SILENT) }
            }
            Outbound::Tiny { tag, len, data, .. } => {
                let (bytes, len) = Descriptor::Tiny { tag, len, data }.encode();
                // SAFETY: as above.
                unsafe { self.vcq.put_piggyback(vcq, &bytes[..len], remote, SILENT) }
            }
            Outbound::Eager { tag, region, .. } => {
                let offset = CHANNEL_BYTES + wire::bounce_offset(place);
                let header = wire::eager_header(tag, region.len);
                // SAFETY: the copy's place has the slot's number and room, and was last read
                // for a message whose slot has been credited, so it has arrived. The region
                // is a posted send's.
                unsafe {
                    let copy = peer.memory.pages.ptr().add(offset);
                    header.as_ptr().copy_to_nonoverlapping(copy, header.len());
                    region.ptr.copy_to_nonoverlapping(copy.add(header.len()), region.len);
                }
                let local = peer.memory.registration.at(offset);
                let what = Transfer { local, remote, length: header.len() + region.len };
                // SAFETY: as above for the local bytes; the credits for the remote ones.
                unsafe { self.vcq.put(vcq, what, SILENT) }
            }
        };
        if !self.accepted(posted, rank)? {
            return Ok(false);
        }
        let peer = &mut self.peers[index as usize];
        peer.outgoing[lane as usize].used();
        peer.outbound.pop_front();
        match outbound {
            Outbound::Ready { .. } => {}
            Outbound::Tiny { slot, .. } | Outbound::Eager { slot, .. } => {
                self.events.push(Event::Sent(slot));
            }
        }
        Ok(true)
    }

    /// Whether a post went through; a full TOQ is no error.
    fn accepted(&mut self, posted: Result<(), PostError>, peer: Rank) -> Result<bool, WireError> {
        // Also a refused post asks for the TCQ to be polled: that is what makes room.
        self.has_posted = true;
        match posted {
            Ok(()) => Ok(true),
            Err(PostError::Busy) => Ok(false),
            Err(PostError::Refused(error)) => Err(failed(error, Some(peer))),
            Err(error @ PostError::TooLong { .. }) => {
                Err(WireError { call: "utofu_put", reason: error.to_string(), peer: Some(peer) })
            }
        }
    }

    fn notice_error(&self, error: &NoticeError) -> WireError {
        let peer = match error {
            NoticeError::Failed { peer: Some(id), .. } => {
                self.peers.iter().find(|peer| peer.vcq == *id).map(|peer| peer.rank)
            }
            _ => None,
        };
        WireError { call: "utofu_poll_mrq", reason: error.to_string(), peer }
    }
}

/// A post that only its target hears of.
const SILENT: Mark = Mark { edata: 0, flags: PostFlags::REMOTE, cookie: Cookie(0) };

/// Copies a message to its region.
///
/// # Safety
/// The region must be valid for writes and accessed by nobody else.
unsafe fn deliver(data: &[u8], region: &WireRegion) {
    debug_assert!(data.len() == region.len, "sender and receiver disagree about a length");
    let len = data.len().min(region.len);
    if len > 0 {
        // SAFETY: the caller's promise; `data` is in a channel or a buffer of the endpoint.
        unsafe { data.as_ptr().copy_to_nonoverlapping(region.ptr, len) };
    }
}

fn failed(error: UtofuError, peer: Option<Rank>) -> WireError {
    WireError { call: error.call, reason: error.to_string(), peer }
}
