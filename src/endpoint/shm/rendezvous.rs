//! Rendezvous of long messages. The sender announces a message; the receiver, when it is ready, reads it from the
//! sender's memory (cross-memory attach), or requests it in pieces through staging slots (copy-in copy-out),
//! whichever is cheaper ([`copy_costs`](super::copy_costs)). If ranks may not read each other's memory, all go in
//! pieces.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::endpoint::{Event, RecvPost, SendPost, WireError};

use super::descriptor::{CicoPiece, LineKind, Rendezvous, ShmDescriptor, StagingPlace};
use super::layout::SLOT_BYTES;
use super::peer::ShmPeer;
use super::staging::readers;
use super::state::{CicoRecv, CicoSend, EarlyDestination, ShmRendezvousRecv, ShmRendezvousSend};
use super::{EAGER_BYTES, ShmEndpoint};

/// Bytes of one read. The limit keeps other messages from waiting longer than a few milliseconds. (2 MiB in one call
/// take 3 to 5 % less time than in four.) Messages to be folded are shorter.
const READ_BYTES: usize = 8 * 1024 * 1024;

impl ShmEndpoint {
    /// Processes an announced message whose receive is posted: reads it, or requests pieces.
    pub(super) fn begin_rendezvous(
        &mut self,
        peer: usize,
        recv: RecvPost,
        message: Rendezvous,
    ) -> Result<(), WireError> {
        let Rendezvous { id, n_announced, early, .. } = message;
        let len = recv.region.len;
        if len == 0 {
            self.events.push(Event::Received(recv.slot));
            return self.answer(peer, ShmDescriptor::answer(LineKind::Done, id));
        }
        let rendezvous = ShmRendezvousRecv { of: (peer, message), recv, done: 0 };
        let waiting = self.matcher.n_posted() + self.matcher.n_unexpected();
        let incoming = 1 + waiting + self.cma_due.len() + self.cico_recvs.len();
        // A short message, announced because this port had no room for it, is read: its first piece would arrive
        // later.
        let is_short = len <= EAGER_BYTES;
        let may_be_read = !early.is_all && self.can_read;
        if may_be_read && (is_short || !self.prefers_pieces((peer, len), n_announced, incoming)) {
            if early.len > 0 {
                return self.set_early_destination(
                    peer,
                    &message,
                    EarlyDestination::Cma(rendezvous),
                );
            }
            self.cma_due.push(rendezvous);
            return Ok(());
        }
        let number =
            self.cico_recvs.insert(CicoRecv { rendezvous, since: Instant::now(), incoming });
        if !early.is_all {
            let word = u64::from(number);
            self.answer(
                peer,
                ShmDescriptor { word, ..ShmDescriptor::answer(LineKind::ClearToSend, id) },
            )?;
        }
        self.set_early_destination(peer, &message, EarlyDestination::Cico(number))
    }

    /// Whether a message of `len` bytes should be sent in pieces. `n_announced` is the number of messages that its
    /// sender has announced, `incoming` the number that this rank receives. If each rank has its own core, both ranks
    /// copy at the same time after the first piece. Then the rank that copies more, including this rank's own sends,
    /// determines the time.
    fn prefers_pieces(
        &mut self,
        (peer, len): (usize, usize),
        n_announced: u64,
        incoming: usize,
    ) -> bool {
        if self.is_same_process(peer) {
            return false;
        }
        let per_incoming = |n: usize| n as f32 / incoming as f32;
        let theirs = per_incoming(n_announced as usize);
        let copies = if self.own_cores {
            let first = SLOT_BYTES as f32 / len as f32;
            (1.0 + per_incoming(self.rendezvous_sends.len())).max(theirs) + first.min(1.0)
        } else {
            1.0 + theirs
        };
        self.peers[peer].costs.prefer_pieces(copies, len)
    }

    /// The longest message that is staged for this peer, as far as it matters for one of `len` bytes.
    #[inline]
    pub(super) fn longest_staged(&mut self, peer: usize, len: usize) -> usize {
        let is_open = len > self.staged && len <= SLOT_BYTES;
        if is_open && (!self.can_read || self.prefers_slots(peer, len)) {
            SLOT_BYTES
        } else {
            self.staged
        }
    }

    /// Whether copies by both sides are faster than a read for a message to a peer. The costs of messages from this
    /// peer serve as the estimate.
    fn prefers_slots(&mut self, peer: usize, len: usize) -> bool {
        !self.is_same_process(peer) && self.peers[peer].costs.prefer_slots(2.0, len)
    }

    /// Whether the peer is a thread of this process, so that a read of its memory is an ordinary copy.
    pub(super) fn is_same_process(&self, peer: usize) -> bool {
        self.peers[peer].process.process() == self.peers[self.me].process.process()
    }

    /// Reads the next part of the first message in the order of tasks.
    pub(super) fn advance_cma(&mut self) -> Result<(), WireError> {
        // The order in which the program uses the messages: messages that are folded together are read one after the
        // other, and are then in the cache.
        let first = (0..self.cma_due.len()).min_by_key(|&at| self.cma_due[at].recv.slot.task);
        let Some(first) = first else { return Ok(()) };
        let ShmRendezvousRecv { of: (peer, message), recv, done } = self.cma_due[first];
        let region = recv.region;
        let len = (region.len - done).min(READ_BYTES);
        let ShmPeer { process, costs, .. } = &mut self.peers[peer];
        let (cma, owner) = (&self.cma, (peer, &**process));
        // SAFETY: within the region of a posted receive; the sender does not change the message before `Done`.
        let read = costs.reading(len, || unsafe {
            cma.read(owner, message.from + done as u64, region.ptr.add(done), len)
        });
        let read = read
            .map_err(|error| WireError::new("process_vm_readv", error).at(self.peers[peer].rank))?;
        self.n_parts += 1;
        if done + read < region.len {
            self.cma_due[first].done += read;
            return Ok(());
        }
        self.cma_due.swap_remove(first);
        self.events.push(Event::Received(recv.slot));
        self.answer(peer, ShmDescriptor::answer(LineKind::Done, message.id))
    }

    /// The announced message that this peer identifies by `id`.
    fn rendezvous_with(
        &mut self,
        peer: usize,
        id: u32,
    ) -> Result<&mut ShmRendezvousSend, WireError> {
        let rank = self.peers[peer].rank;
        let found =
            self.rendezvous_sends.get_mut(id).filter(|send| send.peer == peer && !send.is_cico);
        found.ok_or_else(|| {
            WireError::new(
                "shared memory",
                format!("rank {rank} answers about message {id}, which it has not been offered"),
            )
        })
    }

    /// Completes the send of an announced message that the peer has read.
    pub(super) fn read_by_peer(&mut self, peer: usize, id: u32) -> Result<(), WireError> {
        let slot = self.rendezvous_with(peer, id)?.send.slot;
        self.peers[peer].rendezvous_mode.chose_cico = false;
        self.rendezvous_sends.remove(id);
        self.events.push(Event::Sent(slot));
        Ok(())
    }

    /// Starts to send an announced message in pieces, as the peer has requested.
    pub(super) fn begin_cico(&mut self, peer: usize, id: u32, recv: u32) -> Result<(), WireError> {
        let send = self.rendezvous_with(peer, id)?;
        send.is_cico = true;
        let done = send.early;
        self.peers[peer].rendezvous_mode.chose_cico = true;
        self.cico_sends.push_back(CicoSend { id, to: (peer, recv), done });
        Ok(())
    }

    /// Sends all pieces for which there is room.
    pub(super) fn advance_cico(&mut self) -> Result<(), WireError> {
        for _ in 0..self.cico_sends.len() {
            let Some(send) = self.cico_sends.pop_front() else { break };
            let rest = self.advance_cico_send(send)?;
            self.cico_sends.extend(rest);
        }
        Ok(())
    }

    /// Sends all pieces of a message for which there is room, and returns the remaining send.
    fn advance_cico_send(&mut self, send: CicoSend) -> Result<Option<CicoSend>, WireError> {
        let CicoSend { id, to: (peer, recv), mut done } = send;
        let Some(rendezvous) = self.rendezvous_sends.get_mut(id) else { return Ok(None) };
        let SendPost { slot, region, .. } = rendezvous.send;
        while done < region.len {
            let (rest, word) = (region.len - done, done as u64);
            let from = region.ptr.wrapping_add(done).cast_const();
            let piece =
                ShmDescriptor { message: recv, word, ..ShmDescriptor::answer(LineKind::Piece, 0) };
            let len = rest.min(SLOT_BYTES);
            // SAFETY: the region of a send whose event has not been reported.
            let staged = unsafe { self.staging.put_piece(Some(peer), from, (len, region.len)) };
            if let Some(at) = staged {
                done += len;
                self.answer(peer, ShmDescriptor { len: len as u64, id: at.in_line(), ..piece })?;
                continue;
            }
            let len = rest.min(EAGER_BYTES);
            let fragment = ShmDescriptor { kind: LineKind::Fragment, len: len as u64, ..piece };
            // SAFETY: as above.
            let bytes = unsafe { std::slice::from_raw_parts(from, len) };
            if self.staging.serves(peer) || !self.push(peer, &fragment, bytes)? {
                self.n_parts += u64::from(done > send.done);
                return Ok(Some(CicoSend { done, ..send }));
            }
            done += len;
        }
        self.rendezvous_sends.remove(id);
        self.events.push(Event::Sent(slot));
        Ok(None)
    }

    /// Copies a piece from its slot or the ring to the receive's region.
    pub(super) fn piece(
        &mut self,
        peer: usize,
        piece: &CicoPiece,
        from: *const u8,
    ) -> Result<(), WireError> {
        let &CicoPiece { recv: number, at, len, .. } = piece;
        let rank = self.peers[peer].rank;
        let asked = self.cico_recvs.get_mut(number).filter(|CicoRecv { rendezvous, .. }| {
            let (end, most) = (at.saturating_add(len as u64), rendezvous.recv.region.len);
            // Pieces may arrive in any order, but their lengths together must not exceed the message.
            rendezvous.of.0 == peer && end <= most as u64 && len <= most - rendezvous.done
        });
        let Some(CicoRecv { rendezvous, since, incoming }) = asked else {
            return Err(WireError::new(
                "shared memory",
                format!(
                    "rank {rank} sent {len} bytes at {at} of message {number}, of which this rank has \
                     not asked for them"
                ),
            ));
        };
        // SAFETY: within the region, as checked; the receive is posted.
        let into = unsafe { rendezvous.recv.region.ptr.add(at as usize) };
        rendezvous.done += len;
        self.n_parts += 1;
        let RecvPost { slot, region, arrival, .. } = rendezvous.recv;
        let is_whole = rendezvous.done == region.len;
        let (all, since) = (region.len.saturating_mul(*incoming), *since);
        // SAFETY: as above; the source stays valid until this port gives it back.
        unsafe { self.copy_out(peer, from, into, len, arrival) };
        if is_whole {
            self.cico_recvs.remove(number);
            self.peers[peer].costs.waited(all, since.elapsed());
            self.events.push(Event::Received(slot));
        }
        Ok(())
    }

    /// Releases a peer's staging slot after its piece was taken. This port was the only reader: a store loses no
    /// other decrement, and does not wait for the line.
    pub(super) fn release_piece(&self, peer: usize, at: StagingPlace) {
        // Release: pairs with the Acquire in `StagingSlots::is_free`.
        self.give_back(peer, at, |readers| readers.store(0, Ordering::Release));
    }

    /// Releases a peer's staging slot after its message was read.
    pub(super) fn release(&self, peer: usize, at: StagingPlace) {
        // Release: pairs with the Acquire in `StagingSlots::is_free`.
        self.give_back(peer, at, |readers| _ = readers.fetch_sub(1, Ordering::Release));
    }

    fn give_back(&self, peer: usize, at: StagingPlace, end: impl FnOnce(&AtomicU64)) {
        end(readers(&self.segment, self.layout, self.port, peer, at.slot()));
        // The peer may wait for a slot.
        self.peers[peer].outbox.ring();
    }
}
