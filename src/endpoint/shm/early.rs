//! Early bytes: the first bytes of long messages to a peer that would request them in pieces anyway. They follow the
//! announcement at once. This saves the time of request and answer, and a message that fits into the free slots, or
//! exceeds them only a little, is under way before its receiver knows of it.

use super::descriptor::{CicoPiece, Early, EarlyPiece, LineKind, Rendezvous, ShmDescriptor};
use super::layout::SLOT_BYTES;
use super::state::{EarlyDestination, EarlyRecv, ShmRendezvousRecv};
use super::{EAGER_BYTES, ShmEndpoint};
use crate::endpoint::{WireError, WireRegion};

/// Messages with early bytes after which a peer may choose again between pieces and reading.
const EARLY_RUN: u32 = 32;
/// Maximum of pieces that follow an announcement.
const MOST_EARLY: usize = 4;
/// Slots without early bytes. A receiver takes early bytes only after their receive is posted; until then requested
/// messages have these slots, and without a free slot go through the ring.
const FOR_REQUESTED: usize = 1;
/// As `FOR_REQUESTED`, with more than one peer, each of which may be slow to take its pieces.
const FOR_REQUESTED_BY_MANY: usize = 2;

impl ShmEndpoint {
    /// Number of early bytes for a message to be announced to a peer.
    pub(super) fn early_bytes(&mut self, peer: usize, len: usize) -> usize {
        if len <= EAGER_BYTES || !self.peers[peer].rendezvous_mode.chose_cico {
            return 0;
        }
        let rendezvous_mode = &mut self.peers[peer].rendezvous_mode;
        rendezvous_mode.n_early += 1;
        if rendezvous_mode.n_early > EARLY_RUN && self.can_read {
            rendezvous_mode.n_early = 0;
            return 0;
        }
        let reserved = if self.peers.len() > 2 { FOR_REQUESTED_BY_MANY } else { FOR_REQUESTED };
        let n_free = self.staging.n_free_for_pieces(MOST_EARLY + reserved);
        len.min(n_free.saturating_sub(reserved) * SLOT_BYTES)
    }

    /// Sends the early bytes of a message that has just been announced.
    ///
    /// # Safety
    /// The region is valid for reads, and there are free slots for the bytes.
    pub(super) unsafe fn send_early(
        &mut self,
        peer: usize,
        number: u32,
        (region, early): (WireRegion, usize),
    ) -> Result<(), WireError> {
        for at in (0..early).step_by(SLOT_BYTES) {
            let len = SLOT_BYTES.min(early - at);
            // SAFETY: within the region, by the caller's promise.
            let staged =
                unsafe { self.staging.put_piece(None, region.ptr.add(at), (len, region.len)) };
            // Only this port fills its slots, and `early_bytes` has counted the free ones.
            let staged = staged.ok_or_else(|| {
                WireError::new("shared memory", "a staging slot that was free is in use")
            })?;
            let (len, word) = (len as u64, at as u64);
            let piece = ShmDescriptor::answer(LineKind::Early, staged.in_line());
            self.answer(peer, ShmDescriptor { message: number, len, word, ..piece })?;
        }
        Ok(())
    }

    /// Records the early bytes of an announced message as expected.
    pub(super) fn expect_early(&mut self, peer: usize, Early { number, len, .. }: Early) {
        if len > 0 {
            self.early_recvs.push(EarlyRecv { peer, number, left: len, destination: None });
        }
    }

    /// Sets the destination of the early bytes of an announced message, and copies the pieces that have arrived.
    pub(super) fn set_early_destination(
        &mut self,
        peer: usize,
        message: &Rendezvous,
        destination: EarlyDestination,
    ) -> Result<(), WireError> {
        let Early { number, len, .. } = message.early;
        if len == 0 {
            return Ok(());
        }
        let at = self.early_recv(peer, number)?;
        self.early_recvs[at].destination = Some(destination);
        let is_it = |(from, piece): &(usize, EarlyPiece)| (*from, piece.number) == (peer, number);
        while let Some(index) = self.early_pieces.iter().position(is_it) {
            let (_, piece) = self.early_pieces.swap_remove(index);
            self.take_early(peer, &piece, destination)?;
        }
        self.end_early(at);
        Ok(())
    }

    fn early_recv(&self, peer: usize, number: u32) -> Result<usize, WireError> {
        let is_it = |early: &EarlyRecv| (early.peer, early.number) == (peer, number);
        let found = self.early_recvs.iter().position(is_it);
        found.ok_or_else(|| self.no_early(peer, number))
    }

    /// Processes the arrival of a piece of early bytes.
    pub(super) fn early_piece(&mut self, peer: usize, piece: &EarlyPiece) -> Result<(), WireError> {
        let at = self.early_recv(peer, piece.number)?;
        let EarlyRecv { left, destination, .. } = &mut self.early_recvs[at];
        let Some(rest) = left.checked_sub(piece.len) else {
            return Err(self.no_early(peer, piece.number));
        };
        *left = rest;
        let Some(destination) = *destination else {
            self.early_pieces.push((peer, *piece));
            return Ok(());
        };
        self.take_early(peer, piece, destination)?;
        self.end_early(at);
        Ok(())
    }

    /// Copies a piece to its destination, and releases its slot.
    fn take_early(
        &mut self,
        peer: usize,
        piece: &EarlyPiece,
        destination: EarlyDestination,
    ) -> Result<(), WireError> {
        let &EarlyPiece { number, at, len, staged } = piece;
        let from = self.staged(peer, staged, len);
        match destination {
            EarlyDestination::Discard => {}
            EarlyDestination::Cico(recv) => {
                self.piece(peer, &CicoPiece { recv, at, len, staged: Some(staged) }, from)?
            }
            EarlyDestination::Cma(ShmRendezvousRecv { of: (_, message), recv, .. }) => {
                if at.saturating_add(len as u64) > message.early.len as u64 {
                    return Err(self.no_early(peer, number));
                }
                // SAFETY: the early bytes are within the region, whose receive is posted.
                let into = unsafe { recv.region.ptr.add(at as usize) };
                // SAFETY: as above; this port may read the slot until it releases it.
                unsafe { self.copy_out(peer, from, into, len, recv.arrival) };
            }
        }
        self.release_piece(peer, staged);
        Ok(())
    }

    /// Once all early bytes have reached their destination, drops their state, and starts to read the rest of the
    /// message if so chosen.
    fn end_early(&mut self, at: usize) {
        if self.early_recvs[at].left > 0 {
            return;
        }
        if let Some(EarlyDestination::Cma(rendezvous)) =
            self.early_recvs.swap_remove(at).destination
        {
            let done = rendezvous.of.1.early.len;
            self.cma_due.push(ShmRendezvousRecv { done, ..rendezvous });
        }
    }

    #[cold]
    fn no_early(&self, peer: usize, number: u32) -> WireError {
        let rank = self.peers[peer].rank;
        let reason = format!("rank {rank} sent early bytes {number} that it has not announced");
        WireError::new("shared memory", reason)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hopbine_torus::PortId;

    use super::super::bell::Doorbell;
    use super::super::descriptor::StagingPlace;
    use super::super::layout::ShmLayout;
    use super::super::process::{Process, Watch};
    use super::super::segment::Segment;
    use super::super::staging::RESERVED_SLOTS;
    use super::*;
    use crate::endpoint::{Arrival, Bell, Endpoint, Event, Posted, RecvPost, SendPost, Slot, Tag};

    /// Two ports; the first assumes that the second requests messages in pieces.
    fn ports(can_read: bool) -> [ShmEndpoint; 2] {
        let layout = ShmLayout { n_ranks: 2, n_ports: 1, flats_per_rank: 0 };
        let segment = Segment::create(layout.len(), 1).unwrap().0;
        let locals = [0, 1].map(|rank| (rank, Arc::new(Watch::new(Process::own()))));
        let mut ports = [0, 1].map(|me| {
            let bell: Arc<dyn Bell> = Arc::new(Doorbell::new(&segment, layout, me));
            ShmEndpoint::new(&segment, layout, (PortId(0), me), (&locals, 2), can_read, &bell)
        });
        ports[0].peers[1].rendezvous_mode.chose_cico = true;
        ports
    }

    fn tag(message: u32) -> Tag {
        Tag { context: 1, operation: 1, message, call: 0x100 }
    }

    const EARLY: usize = MOST_EARLY * SLOT_BYTES;

    /// Sends messages of these lengths, the first with early bytes, to receives of `posted` bytes each, which are
    /// posted first or, if `later`, after all early bytes have arrived. Returns the outcome of each receive.
    fn exchange(lens: &[usize], posted: &[usize], (later, can_read): (bool, bool)) -> Vec<String> {
        let [mut from, mut to] = ports(can_read);
        let mut sent: Vec<Vec<u8>> =
            lens.iter().map(|&len| (0..len).map(|at| (at * 7 + len) as u8).collect()).collect();
        let mut got: Vec<Vec<u8>> = posted.iter().map(|&len| vec![0; len]).collect();
        let mut events = Vec::new();
        for (task, bytes) in (0..).zip(&mut sent) {
            let region = WireRegion { ptr: bytes.as_mut_ptr(), len: bytes.len(), key: 0 };
            let send = SendPost { slot: Slot { run: 0, task }, tag: tag(task), region };
            // SAFETY: the bytes stay until the end of the test.
            unsafe { from.post_send(1, send) }.map(drop).unwrap();
        }
        if later {
            to.poll(&mut events).unwrap();
        }
        for (task, bytes) in (0..).zip(&mut got) {
            let region = WireRegion { ptr: bytes.as_mut_ptr(), len: bytes.len(), key: 0 };
            let slot = Slot { run: 0, task };
            let recv = RecvPost { slot, tag: tag(task), region, arrival: Arrival::InRegion };
            // SAFETY: as above; no other code reads the bytes before.
            unsafe { to.post_recv(0, recv) }.map(drop).unwrap();
        }
        let mut of_sender = Vec::new();
        for _ in 0..100 {
            to.poll(&mut events).unwrap();
            from.poll(&mut of_sender).unwrap();
        }
        assert_eq!(of_sender.len(), lens.len(), "{of_sender:?}");
        assert!(to.early_recvs.is_empty() && to.early_pieces.is_empty());
        assert_eq!(from.staging.n_free_for_pieces(RESERVED_SLOTS), RESERVED_SLOTS);
        let ended = |task| {
            let of = |event: &&Event| matches!(event, Event::Received(slot) | Event::Differs(slot, _) if slot.task == task);
            let found: Vec<_> = events.iter().filter(of).collect();
            match found[..] {
                [Event::Received(_)] => {
                    assert!(got[task as usize] == sent[task as usize], "message {task}");
                    "received".to_owned()
                }
                [Event::Differs(..)] => {
                    assert!(got[task as usize].iter().all(|&byte| byte == 0));
                    "differs".to_owned()
                }
                _ => format!("{found:?}"),
            }
        };
        (0..lens.len() as u32).map(ended).collect()
    }

    #[test]
    fn messages_arrive_whole_whatever_comes_early() {
        // More than the slots hold, by single messages and together.
        for lens in [
            &[SLOT_BYTES + 1][..],
            &[EARLY],
            &[EARLY + 1],
            &[3 * EARLY + 5],
            &[SLOT_BYTES + 9, EARLY, 3000, 2 * EARLY],
            &[EARLY, EARLY, SLOT_BYTES + 1],
        ] {
            for (later, can_read) in [(false, false), (false, true), (true, false), (true, true)] {
                let ended = exchange(lens, lens, (later, can_read));
                assert_eq!(ended, vec!["received"; lens.len()], "{lens:?} {later} {can_read}");
            }
        }
    }

    #[test]
    fn early_bytes_of_another_length_are_dropped() {
        for len in [SLOT_BYTES + 1, 3 * EARLY] {
            for (later, can_read) in [(false, false), (false, true), (true, false), (true, true)] {
                let ended = exchange(&[len, EARLY], &[len - 1, EARLY], (later, can_read));
                assert_eq!(ended, ["differs", "received"], "{len} {later} {can_read}");
            }
        }
    }

    #[test]
    fn early_bytes_that_nobody_takes_hold_up_no_other_message() {
        for can_read in [false, true] {
            let [mut from, mut to] = ports(can_read);
            let (first, second) = (vec![1u8; EARLY], vec![2u8; 3 * EARLY + 5]);
            let mut got = [vec![0; first.len()], vec![0; second.len()]];
            for (task, bytes) in (0..).zip([&first, &second]) {
                let region =
                    WireRegion { ptr: bytes.as_ptr().cast_mut(), len: bytes.len(), key: 0 };
                let send = SendPost { slot: Slot { run: 0, task }, tag: tag(task), region };
                // SAFETY: the bytes stay until the end of the test, and are only read.
                unsafe { from.post_send(1, send) }.map(drop).unwrap();
            }
            // The receive of the first message is posted only after the second has arrived.
            for task in [1, 0] {
                let bytes = &mut got[task as usize];
                let region = WireRegion { ptr: bytes.as_mut_ptr(), len: bytes.len(), key: 0 };
                let slot = Slot { run: 0, task };
                let recv = RecvPost { slot, tag: tag(task), region, arrival: Arrival::InRegion };
                // SAFETY: as above; no other code reads the bytes before.
                unsafe { to.post_recv(0, recv) }.map(drop).unwrap();
                let (mut events, mut of_sender) = (Vec::new(), Vec::new());
                for _ in 0..100 {
                    to.poll(&mut events).unwrap();
                    from.poll(&mut of_sender).unwrap();
                }
                let is_it = |event: &Event| matches!(event, Event::Received(of) if *of == slot);
                assert!(events.iter().any(is_it), "message {task}: {events:?}");
            }
            assert!(got == [first, second]);
        }
    }

    #[test]
    fn a_message_waits_for_a_slot_but_not_for_ever() {
        let [mut from, mut to] = ports(true);
        let mut bytes = vec![1u8; SLOT_BYTES / 8];
        let region = WireRegion { ptr: bytes.as_mut_ptr(), len: bytes.len(), key: 0 };
        let mut n = 0;
        let mut post = |port: &mut ShmEndpoint| {
            n += 1;
            let slot = Slot { run: 0, task: n };
            // SAFETY: the bytes stay until the end of the test.
            unsafe { port.post_send(1, SendPost { slot, tag: tag(n), region }) }.unwrap()
        };
        let mut events = Vec::new();
        // The end of a poll ends the sharing of a slot.
        while post(&mut from) == Posted::Accepted {
            from.poll(&mut events).unwrap();
        }
        assert_eq!(post(&mut from), Posted::Later);
        // The sender finds a slot that was released.
        assert_eq!(from.staging.n_free_for_pieces(RESERVED_SLOTS), RESERVED_SLOTS);
        to.poll(&mut events).unwrap();
        to.release(0, StagingPlace::new(0, 0));
        assert_eq!(post(&mut from), Posted::Accepted);
        let n_polls = (0..10_000).find(|_| {
            from.poll(&mut events).unwrap();
            post(&mut from) == Posted::Accepted
        });
        assert!((1..10_000).contains(&n_polls.unwrap()), "announced after {n_polls:?} polls");
        assert_eq!(post(&mut from), Posted::Accepted);
    }
}
