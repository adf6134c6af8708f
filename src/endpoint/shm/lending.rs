//! Long messages: lent by the sender, and then read by the receiver when it is ready for them, or sent
//! in pieces through staging slots when it asks for them: what is cheaper ([`ways`](super::ways)), and
//! always the latter where no process may read another's memory.

use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::endpoint::{Event, WireError};

use super::descriptor::{Descriptor, Kind, Piece};
use super::layout::SLOT_BYTES;
use super::peer::Peer;
use super::staging::readers;
use super::state::{Asked, Landing, Lent, Pulled};
use super::{EAGER_BYTES, ShmEndpoint, copy};

/// How much is read at a time: little enough for other messages not to wait longer than a
/// millisecond or a few. (2 MiB in one call take 3 to 5 % less time than in four.) What is folded
/// comes in shorter messages.
const READ_BYTES: usize = 8 * 1024 * 1024;

impl ShmEndpoint {
    /// Takes up a message whose receive is posted, and which its sender has lent as one of `among`:
    /// reads it, or asks for pieces.
    pub(super) fn land(&mut self, landing: Landing, among: u64) -> Result<(), WireError> {
        if landing.region.len == 0 {
            self.events.push(Event::Received(landing.slot));
            return self.answer(landing.peer, Descriptor::answer(Kind::Done, landing.id));
        }
        let waiting = self.matcher.n_posted() + self.matcher.n_unexpected();
        let incoming = 1 + waiting + self.reads_due.len() + self.landings.len();
        // Of a short one, which this port had no room for, the first piece would come later.
        let is_short = landing.region.len <= EAGER_BYTES;
        let ratio = among as f32 / incoming as f32;
        if self.can_read && (is_short || !self.is_to_pull(landing.peer, ratio)) {
            self.reads_due.push(landing);
            return Ok(());
        }
        let (peer, id) = (landing.peer, landing.id);
        let number = self.landings.insert(Asked { landing, since: Instant::now(), incoming });
        self.answer(
            peer,
            Descriptor { word: u64::from(number), ..Descriptor::answer(Kind::Pull, id) },
        )
    }

    /// Whether a message is to be sent in pieces, whose sender has lent `ratio` times as many as this
    /// rank receives: each side copies all of its own.
    fn is_to_pull(&mut self, peer: usize, ratio: f32) -> bool {
        !self.is_same_process(peer) && self.peers[peer].ways.prefer_pieces(1.0 + ratio)
    }

    /// Whether reading a peer's memory is an ordinary copy.
    pub(super) fn is_same_process(&self, peer: usize) -> bool {
        self.peers[peer].process.process() == self.peers[self.me].process.process()
    }

    /// Reads some of the message that is due first.
    pub(super) fn advance_reads(&mut self) -> Result<(), WireError> {
        // In the order in which the messages are wanted: what is folded together is read one
        // after the other, and is in the cache then.
        let first = (0..self.reads_due.len()).min_by_key(|&at| self.reads_due[at].slot.task);
        let Some(first) = first else { return Ok(()) };
        let landing = self.reads_due[first];
        let Landing { peer, region, done, from, .. } = landing;
        let len = (region.len - done).min(READ_BYTES);
        let Peer { process, ways, .. } = &mut self.peers[peer];
        let (reads, lender) = (&self.reads, (peer, &**process));
        // SAFETY: within the region of a posted receive; the message is lent until `Done`.
        let read = ways.reading(len, || unsafe {
            reads.read(lender, from + done as u64, region.ptr.add(done), len)
        });
        let read = read.map_err(|error| WireError {
            call: "process_vm_readv",
            reason: error.to_string(),
            peer: Some(self.peers[peer].rank),
        })?;
        if done + read < region.len {
            self.reads_due[first].done += read;
            return Ok(());
        }
        self.reads_due.swap_remove(first);
        self.events.push(Event::Received(landing.slot));
        self.answer(peer, Descriptor::answer(Kind::Done, landing.id))
    }

    /// The message that this peer calls by `id`.
    fn lent_to(&mut self, peer: usize, id: u32) -> Result<&mut Lent, WireError> {
        let rank = self.peers[peer].rank;
        let found = self.lent.get_mut(id).filter(|lent| lent.peer == peer && !lent.is_pulled);
        found.ok_or_else(|| WireError {
            call: "shared memory",
            reason: format!("rank {rank} answers about message {id}, which it has not been lent"),
            peer: None,
        })
    }

    /// Ends a loan: the peer has read the message.
    pub(super) fn read_by_peer(&mut self, peer: usize, id: u32) -> Result<(), WireError> {
        let slot = self.lent_to(peer, id)?.slot;
        self.lent.remove(id);
        self.events.push(Event::Sent(slot));
        Ok(())
    }

    /// Turns a loan into pieces: the peer does not read this memory.
    pub(super) fn pulled(&mut self, peer: usize, id: u32, landing: u32) -> Result<(), WireError> {
        self.lent_to(peer, id)?.is_pulled = true;
        self.pulled.push_back(Pulled { peer, id, landing, done: 0 });
        Ok(())
    }

    /// Sends as many pieces as find room.
    pub(super) fn advance_pulls(&mut self) -> Result<(), WireError> {
        for _ in 0..self.pulled.len() {
            let Some(pulled) = self.pulled.pop_front() else { break };
            let rest = self.advance_pull(pulled)?;
            self.pulled.extend(rest);
        }
        Ok(())
    }

    /// Sends as many pieces of a message as find room, and returns what is left of it.
    fn advance_pull(&mut self, pulled: Pulled) -> Result<Option<Pulled>, WireError> {
        let Pulled { peer, id, landing, mut done } = pulled;
        let Some(&mut Lent { slot, region, .. }) = self.lent.get_mut(id) else { return Ok(None) };
        while done < region.len {
            let (rest, word) = (region.len - done, done as u64);
            let from = region.ptr.wrapping_add(done).cast_const();
            let piece = Descriptor { message: landing, word, ..Descriptor::answer(Kind::Piece, 0) };
            let len = rest.min(SLOT_BYTES);
            // SAFETY: the region of a send that has not been reported as sent.
            if let Some(slot) = unsafe { self.staging.put_piece(peer, from, len) } {
                done += len;
                self.answer(peer, Descriptor { len: len as u64, id: slot as u32, ..piece })?;
                continue;
            }
            let len = rest.min(EAGER_BYTES);
            let fragment = Descriptor { kind: Kind::Fragment, len: len as u64, ..piece };
            // SAFETY: as above.
            let bytes = unsafe { std::slice::from_raw_parts(from, len) };
            if self.staging.serves(peer) || !self.push(peer, &fragment, bytes)? {
                return Ok(Some(Pulled { done, ..pulled }));
            }
            done += len;
        }
        self.lent.remove(id);
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
        let &Piece { landing: number, at, len, .. } = piece;
        let rank = self.peers[peer].rank;
        let asked = self.landings.get_mut(number).filter(|Asked { landing, .. }| {
            let Landing { peer: of, region, done, .. } = landing;
            let end = at.saturating_add(len as u64);
            // Pieces may overtake each other, but all of them together are the message.
            *of == peer && end <= region.len as u64 && len <= region.len - done
        });
        let Some(Asked { landing, since, incoming }) = asked else {
            return Err(WireError {
                call: "shared memory",
                reason: format!(
                    "rank {rank} sent {len} bytes at {at} of message {number}, of which this rank has \
                     not asked for them"
                ),
                peer: None,
            });
        };
        // SAFETY: within the region, as checked; the receive is posted.
        let into = unsafe { landing.region.ptr.add(at as usize) };
        landing.done += len;
        let (slot, is_whole) = (landing.slot, landing.done == landing.region.len);
        let (all, since) = (landing.region.len.saturating_mul(*incoming), *since);
        // SAFETY: as above; what has arrived stays until this port gives it back.
        let copy = || unsafe { copy(from, into, len) };
        self.peers[peer].ways.copying(len, copy);
        if is_whole {
            self.landings.remove(number);
            self.peers[peer].ways.waited(all, since.elapsed());
            self.events.push(Event::Received(slot));
        }
        Ok(())
    }

    /// Gives a peer's staging slot back after reading it.
    pub(super) fn release(&self, peer: usize, slot: u32) {
        let readers = readers(&self.segment, self.layout, self.port, peer, slot as usize);
        // Release: pairs with the Acquire in `Staging::free`.
        readers.fetch_sub(1, Ordering::Release);
        // The peer may wait for a slot.
        self.peers[peer].outbox.ring();
    }
}
