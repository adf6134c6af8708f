//! Long messages: announced by the sender, and then read by the receiver when it is ready for them
//! (cross-memory attach), or sent in pieces through staging slots (copy-in copy-out) when it asks for
//! them: what is cheaper ([`copy_costs`](super::copy_costs)), and always the latter where no process may read another's memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::endpoint::{Event, RecvPost, SendPost, WireError};

use super::descriptor::{Descriptor, Kind, Piece, Rendezvous, Staged};
use super::layout::SLOT_BYTES;
use super::peer::Peer;
use super::staging::readers;
use super::state::{CicoRecv, CicoSend, Goal, RendezvousRecv, RendezvousSend};
use super::{EAGER_BYTES, ShmEndpoint, copy};

/// How much is read at a time: little enough for other messages not to wait longer than a
/// millisecond or a few. (2 MiB in one call take 3 to 5 % less time than in four.) What is folded
/// comes in shorter messages.
const READ_BYTES: usize = 8 * 1024 * 1024;

impl ShmEndpoint {
    /// Takes up an announced message whose receive is posted: reads it, or asks for pieces.
    pub(super) fn begin_rendezvous(
        &mut self,
        peer: usize,
        recv: RecvPost,
        message: Rendezvous,
    ) -> Result<(), WireError> {
        let Rendezvous { id, among, early, .. } = message;
        let len = recv.region.len;
        if len == 0 {
            self.events.push(Event::Received(recv.slot));
            return self.answer(peer, Descriptor::answer(Kind::Done, id));
        }
        let rendezvous = RendezvousRecv { of: (peer, message), recv, done: 0 };
        let waiting = self.matcher.n_posted() + self.matcher.n_unexpected();
        let incoming = 1 + waiting + self.cma_due.len() + self.cico_recvs.len();
        // Of a short one, which this port had no room for, the first piece would come later.
        let is_short = len <= EAGER_BYTES;
        let may_be_read = !early.is_all && self.can_read;
        if may_be_read && (is_short || !self.prefers_pieces((peer, len), among, incoming)) {
            if early.len > 0 {
                return self.aim_early(peer, &message, Goal::Read(rendezvous));
            }
            self.cma_due.push(rendezvous);
            return Ok(());
        }
        let number =
            self.cico_recvs.insert(CicoRecv { rendezvous, since: Instant::now(), incoming });
        if !early.is_all {
            let word = u64::from(number);
            self.answer(peer, Descriptor { word, ..Descriptor::answer(Kind::ClearToSend, id) })?;
        }
        self.aim_early(peer, &message, Goal::Pieces(number))
    }

    /// Whether a message of `len` bytes is to be sent in pieces, one of `among` that its sender has announced and of
    /// `incoming` that this rank receives. Where each rank has a core, both copy at the same time, after the
    /// first piece: then the rank that copies more, with what this one sends itself, decides how long it takes.
    fn prefers_pieces(&mut self, (peer, len): (usize, usize), among: u64, incoming: usize) -> bool {
        if self.is_same_process(peer) {
            return false;
        }
        let per_incoming = |n: usize| n as f32 / incoming as f32;
        let theirs = per_incoming(among as usize);
        let copies = if self.own_cores {
            let first = SLOT_BYTES as f32 / len as f32;
            (1.0 + per_incoming(self.rendezvous_sends.len())).max(theirs) + first.min(1.0)
        } else {
            1.0 + theirs
        };
        self.peers[peer].costs.prefer_pieces(copies, len)
    }

    /// Whether messages to a peer are copied by both sides sooner than read: what those from it have
    /// cost, these will.
    pub(super) fn prefers_slots(&mut self, peer: usize, len: usize) -> bool {
        !self.is_same_process(peer) && self.peers[peer].costs.prefer_slots(2.0, len)
    }

    /// Whether reading a peer's memory is an ordinary copy.
    pub(super) fn is_same_process(&self, peer: usize) -> bool {
        self.peers[peer].process.process() == self.peers[self.me].process.process()
    }

    /// Reads some of the message that is due first.
    pub(super) fn advance_cma(&mut self) -> Result<(), WireError> {
        // In the order in which the messages are wanted: what is folded together is read one
        // after the other, and is in the cache then.
        let first = (0..self.cma_due.len()).min_by_key(|&at| self.cma_due[at].recv.slot.task);
        let Some(first) = first else { return Ok(()) };
        let RendezvousRecv { of: (peer, message), recv, done } = self.cma_due[first];
        let region = recv.region;
        let len = (region.len - done).min(READ_BYTES);
        let Peer { process, costs, .. } = &mut self.peers[peer];
        let (reads, lender) = (&self.reads, (peer, &**process));
        // SAFETY: within the region of a posted receive; the message stays as it is until `Done`.
        let read = costs.reading(len, || unsafe {
            reads.read(lender, message.from + done as u64, region.ptr.add(done), len)
        });
        let read = read
            .map_err(|error| WireError::new("process_vm_readv", error).at(self.peers[peer].rank))?;
        if done + read < region.len {
            self.cma_due[first].done += read;
            return Ok(());
        }
        self.cma_due.swap_remove(first);
        self.events.push(Event::Received(recv.slot));
        self.answer(peer, Descriptor::answer(Kind::Done, message.id))
    }

    /// The message that this peer calls by `id`.
    fn rendezvous_with(&mut self, peer: usize, id: u32) -> Result<&mut RendezvousSend, WireError> {
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

    /// Ends a rendezvous: the peer has read the message.
    pub(super) fn read_by_peer(&mut self, peer: usize, id: u32) -> Result<(), WireError> {
        let slot = self.rendezvous_with(peer, id)?.send.slot;
        self.peers[peer].habit.takes_pieces = false;
        self.rendezvous_sends.remove(id);
        self.events.push(Event::Sent(slot));
        Ok(())
    }

    /// Turns a rendezvous into pieces: the peer does not read this memory.
    pub(super) fn begin_cico(&mut self, peer: usize, id: u32, recv: u32) -> Result<(), WireError> {
        let send = self.rendezvous_with(peer, id)?;
        send.is_cico = true;
        let done = send.early;
        self.peers[peer].habit.takes_pieces = true;
        self.cico_sends.push_back(CicoSend { id, to: (peer, recv), done });
        Ok(())
    }

    /// Sends as many pieces as find room.
    pub(super) fn advance_cico(&mut self) -> Result<(), WireError> {
        for _ in 0..self.cico_sends.len() {
            let Some(send) = self.cico_sends.pop_front() else { break };
            let rest = self.advance_cico_send(send)?;
            self.cico_sends.extend(rest);
        }
        Ok(())
    }

    /// Sends as many pieces of a message as find room, and returns what is left of it.
    fn advance_cico_send(&mut self, send: CicoSend) -> Result<Option<CicoSend>, WireError> {
        let CicoSend { id, to: (peer, recv), mut done } = send;
        let Some(rendezvous) = self.rendezvous_sends.get_mut(id) else { return Ok(None) };
        let SendPost { slot, region, .. } = rendezvous.send;
        while done < region.len {
            let (rest, word) = (region.len - done, done as u64);
            let from = region.ptr.wrapping_add(done).cast_const();
            let piece = Descriptor { message: recv, word, ..Descriptor::answer(Kind::Piece, 0) };
            let len = rest.min(SLOT_BYTES);
            // SAFETY: the region of a send that has not been reported as sent.
            if let Some(at) = unsafe { self.staging.put_piece(peer, from, (len, region.len)) } {
                done += len;
                self.answer(peer, Descriptor { len: len as u64, id: at.in_line(), ..piece })?;
                continue;
            }
            let len = rest.min(EAGER_BYTES);
            let fragment = Descriptor { kind: Kind::Fragment, len: len as u64, ..piece };
            // SAFETY: as above.
            let bytes = unsafe { std::slice::from_raw_parts(from, len) };
            if self.staging.serves(peer) || !self.push(peer, &fragment, bytes)? {
                return Ok(Some(CicoSend { done, ..send }));
            }
            done += len;
        }
        self.rendezvous_sends.remove(id);
        self.events.push(Event::Sent(slot));
        Ok(None)
    }

    /// Copies a piece from where it has arrived to where it belongs.
    pub(super) fn piece(
        &mut self,
        peer: usize,
        piece: &Piece,
        from: *const u8,
    ) -> Result<(), WireError> {
        let &Piece { recv: number, at, len, .. } = piece;
        let rank = self.peers[peer].rank;
        let asked = self.cico_recvs.get_mut(number).filter(|CicoRecv { rendezvous, .. }| {
            let (end, most) = (at.saturating_add(len as u64), rendezvous.recv.region.len);
            // Pieces may overtake each other, but all of them together are the message.
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
        let RecvPost { slot, region, .. } = rendezvous.recv;
        let is_whole = rendezvous.done == region.len;
        let (all, since) = (region.len.saturating_mul(*incoming), *since);
        // SAFETY: as above; what has arrived stays until this port gives it back.
        let copy = || unsafe { copy(from, into, len) };
        self.peers[peer].costs.copying(len, copy);
        if is_whole {
            self.cico_recvs.remove(number);
            self.peers[peer].costs.waited(all, since.elapsed());
            self.events.push(Event::Received(slot));
        }
        Ok(())
    }

    /// Gives a peer's staging slot back after taking the piece in it. This port was the only reader: no other
    /// count is lost, and a store does not wait for the line.
    pub(super) fn release_piece(&self, peer: usize, at: Staged) {
        // Release: pairs with the Acquire in `StagingSlots::is_free`.
        self.give_back(peer, at, |readers| readers.store(0, Ordering::Release));
    }

    /// Gives a peer's staging slot back after reading it.
    pub(super) fn release(&self, peer: usize, at: Staged) {
        // Release: pairs with the Acquire in `StagingSlots::is_free`.
        self.give_back(peer, at, |readers| _ = readers.fetch_sub(1, Ordering::Release));
    }

    fn give_back(&self, peer: usize, at: Staged, end: impl FnOnce(&AtomicU64)) {
        end(readers(&self.segment, self.layout, self.port, peer, at.slot()));
        // The peer may wait for a slot.
        self.peers[peer].outbox.ring();
    }
}
