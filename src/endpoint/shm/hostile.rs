//! A port whose only peer writes arbitrary bytes to the memory that both share: for fuzzing, and for regression tests
//! of what fuzzing has found.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hopbine_torus::PortId;

use super::bell::Doorbell;
use super::layout::{APART, LINE, LINES_AT, QUEUE_LINES, SLOTS, ShmLayout};
use super::process::{Process, Watch};
use super::segment::Segment;
use super::{ShmEndpoint, staging};
use crate::endpoint::{
    Arrival, Bell, Endpoint, Event, Observer, RecvPost, SendPost, Slot, Tag, WireError, WireRegion,
};

const LAYOUT: ShmLayout = ShmLayout { n_ranks: 2, n_ports: 1, flats_per_rank: 0 };
/// Ranks of the port and of its peer.
const ME: usize = 0;
const PEER: usize = 1;
/// Bytes of a line after its stamp.
const LINE_BYTES: usize = LINE - 4;

/// See the module documentation.
pub(crate) struct Hostile {
    port: ShmEndpoint,
    segment: Arc<Segment>,
    /// Number of lines that the peer has written.
    lines_at: u32,
    /// Regions that the port sends from and receives into, each as long as its message.
    regions: Vec<Vec<u8>>,
    events: Vec<Event>,
}

impl Hostile {
    /// `can_read` says whether the port may read its peer's memory. The peer's process does not exist.
    pub(crate) fn new(can_read: bool) -> Self {
        let (segment, _file) = Segment::create(LAYOUT.len(), 1).expect("memory");
        let nobody = Process { pid: i32::MAX as u32, proc_pid: i32::MAX as u32, started: 1 };
        let locals = [(0, Process::own()), (1, nobody)];
        let locals = locals.map(|(rank, process)| (rank, Arc::new(Watch::new(process))));
        let bell: Arc<dyn Bell> = Arc::new(Doorbell::new(&segment, LAYOUT, ME));
        let port =
            ShmEndpoint::new(&segment, LAYOUT, (PortId(0), ME), (&locals, 2), can_read, &bell);
        Hostile { port, segment, lines_at: 0, regions: Vec::new(), events: Vec::new() }
    }

    /// The peer writes the next line of its queue to the port.
    pub(crate) fn line(&mut self, bytes: &[u8; LINE_BYTES]) {
        let lines = LAYOUT.queue(PortId(0), PEER, ME) + LINES_AT;
        let line = self.segment.at(lines + self.lines_at as usize % QUEUE_LINES * LINE, LINE);
        self.lines_at = self.lines_at.wrapping_add(1);
        // SAFETY: within the segment, which only this thread accesses; a line begins with its stamp.
        unsafe {
            line.add(4).copy_from_nonoverlapping(bytes.as_ptr(), LINE_BYTES);
            AtomicU32::from_ptr(line.cast()).store(self.lines_at, Ordering::Release);
        }
    }

    /// The peer writes how many lines and bytes it has taken.
    pub(crate) fn taken(&mut self, word: u64) {
        self.segment.word(LAYOUT.queue(PortId(0), ME, PEER)).store(word, Ordering::Release);
    }

    /// The peer overwrites the number of readers of a slot of the port.
    pub(crate) fn readers(&mut self, slot: usize, count: u64) {
        staging::readers(&self.segment, LAYOUT, PortId(0), ME, slot % SLOTS)
            .store(count, Ordering::Release);
    }

    /// The peer writes this word as its status, or as news for the port.
    pub(crate) fn word(&mut self, is_news: bool, word: u64) -> Result<(), WireError> {
        let at = if is_news { LAYOUT.rank(ME) + APART } else { LAYOUT.rank(PEER) };
        self.segment.word(at).store(word, Ordering::Relaxed);
        self.port.request_status(PEER as u32)?;
        Observer::answer(&mut self.port);
        self.port.received_news();
        Ok(())
    }

    fn region(&mut self, len: usize) -> WireRegion {
        let mut region = vec![7; len];
        let ptr = region.as_mut_ptr();
        self.regions.push(region);
        WireRegion { ptr, len, key: 0 }
    }

    fn slot(&self) -> Slot {
        Slot { run: 0, task: self.regions.len() as u32 }
    }

    /// The port sends a message to its peer.
    pub(crate) fn send(&mut self, tag: Tag, len: usize) -> Result<(), WireError> {
        let (slot, region) = (self.slot(), self.region(len));
        // SAFETY: the region lives longer than the port, and no other code uses it.
        unsafe { self.port.post_send(PEER as u32, SendPost { slot, tag, region }) }.map(drop)
    }

    /// The port awaits a message of its peer.
    pub(crate) fn receive(&mut self, tag: Tag, len: usize) -> Result<(), WireError> {
        let (slot, region) = (self.slot(), self.region(len));
        let arrival = if len.is_multiple_of(2) { Arrival::Anywhere } else { Arrival::InRegion };
        // SAFETY: as above.
        unsafe { self.port.post_recv(PEER as u32, RecvPost { slot, tag, region, arrival }) }
            .map(drop)
    }

    /// The port polls, and reads the views that it gets.
    pub(crate) fn poll(&mut self) -> Result<(), WireError> {
        self.port.poll(&mut self.events)?;
        for event in self.events.drain(..) {
            if let Event::Viewed(_, view) = event {
                // SAFETY: a view can be read until the next poll.
                let bytes = unsafe { std::slice::from_raw_parts(view.ptr, view.len) };
                std::hint::black_box(bytes.iter().fold(0u8, |sum, byte| sum ^ byte));
            }
        }
        Ok(())
    }
}

/// Interprets the bytes as actions, until the port reports a failure.
///
/// # Errors
/// The failure.
pub(crate) fn play(bytes: &[u8]) -> Result<(), WireError> {
    let Some((&first, mut rest)) = bytes.split_first() else { return Ok(()) };
    let mut hostile = Hostile::new(first & 1 != 0);
    while let Some((&action, after)) = rest.split_first() {
        rest = after;
        match action % 8 {
            0 | 1 => hostile.line(&take(&mut rest)),
            2 | 3 => {
                let [message, call, len @ ..] = take::<5>(&mut rest);
                let tag =
                    Tag { context: 1, operation: 1, message: message.into(), call: call.into() };
                let len = u32::from_le_bytes([len[0], len[1], len[2], 0]) as usize % (160 * 1024);
                if action % 8 == 2 { hostile.send(tag, len) } else { hostile.receive(tag, len) }?;
            }
            4 => hostile.taken(u64::from_le_bytes(take(&mut rest))),
            5 => hostile.readers(take::<1>(&mut rest)[0].into(), take::<1>(&mut rest)[0].into()),
            6 => {
                let [is_news] = take(&mut rest);
                hostile.word(is_news & 1 != 0, u64::from_le_bytes(take(&mut rest)))?;
            }
            _ => hostile.poll()?,
        }
    }
    hostile.poll()
}

/// The next `N` bytes, zero-extended at the end of the input.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (bytes, after) = rest.split_at(rest.len().min(N));
    *rest = after;
    let mut taken = [0; N];
    taken[..bytes.len()].copy_from_slice(bytes);
    taken
}

#[cfg(test)]
mod tests {
    use super::super::descriptor::LineKind;
    use super::*;

    const TAG: Tag = Tag { context: 1, operation: 1, message: 5, call: 0x100 };

    /// A line as a peer would write it.
    fn line(kind: LineKind, len: u64, id: u32, words: [u64; 2]) -> [u8; LINE_BYTES] {
        let mut bytes = [0; LINE_BYTES];
        bytes[0] = kind as u8;
        bytes[2..4].copy_from_slice(&TAG.call.to_ne_bytes());
        bytes[4..12].copy_from_slice(&TAG.operation_id().to_ne_bytes());
        bytes[12..20].copy_from_slice(&len.to_ne_bytes());
        bytes[20..24].copy_from_slice(&TAG.message.to_ne_bytes());
        bytes[24..28].copy_from_slice(&id.to_ne_bytes());
        bytes[28..44].copy_from_slice(bytemuck::bytes_of(&words));
        bytes
    }

    /// The result of polling one line, after a receive of `posted` bytes if that is given.
    fn one(line: [u8; LINE_BYTES], posted: Option<usize>) -> String {
        let mut hostile = Hostile::new(true);
        if let Some(len) = posted {
            hostile.receive(TAG, len).unwrap();
        }
        hostile.line(&line);
        hostile.poll().map_or_else(|error| error.to_string(), |()| "taken".to_owned())
    }

    #[test]
    fn answers_about_messages_that_were_not_offered_are_refused() {
        for kind in [LineKind::Done, LineKind::ClearToSend, LineKind::Piece] {
            let found = one(line(kind, 1, 9, [0; 2]), None);
            assert!(found.contains("rank 1"), "{kind:?}: {found}");
        }
        // A message sent in pieces must not be acknowledged as read, or requested twice.
        for then in [LineKind::Done, LineKind::ClearToSend] {
            let mut hostile = Hostile::new(true);
            hostile.send(TAG, 1 << 20).unwrap();
            hostile.line(&line(LineKind::ClearToSend, 0, 0, [0; 2]));
            hostile.line(&line(then, 0, 0, [0; 2]));
            let error = hostile.poll().unwrap_err().to_string();
            assert!(error.contains("rank 1") && error.contains("not been offered"), "{error}");
        }
    }

    #[test]
    fn more_bytes_than_a_message_has_are_refused() {
        let mut hostile = Hostile::new(false);
        hostile.receive(TAG, 3000).unwrap();
        hostile.line(&line(LineKind::Rendezvous, 3000, 0, [4096, 1]));
        for _ in 0..2 {
            let mut piece = line(LineKind::Fragment, 2000, 0, [0; 2]);
            piece[20..24].fill(0);
            hostile.line(&piece);
        }
        let error = hostile.poll().unwrap_err().to_string();
        assert!(error.contains("2000 bytes at 0"), "{error}");
    }

    #[test]
    fn early_bytes_that_were_not_announced_are_refused() {
        let found = one(line(LineKind::Early, 8, 0, [0; 2]), Some(8));
        assert!(found.contains("early bytes 5 that it has not announced"), "{found}");
        for is_posted in [false, true] {
            let mut hostile = Hostile::new(true);
            if is_posted {
                hostile.receive(TAG, 3000).unwrap();
            }
            let mut announced = line(LineKind::Rendezvous, 3000, 0, [4096, 1]);
            announced[44..52].copy_from_slice(&(5u64 << 32 | 3000).to_ne_bytes());
            hostile.line(&announced);
            hostile.line(&line(LineKind::Early, 2000, 0, [0; 2]));
            hostile.poll().unwrap();
            hostile.line(&line(LineKind::Early, 2000, 1, [1000, 0]));
            let error = hostile.poll().unwrap_err().to_string();
            assert!(error.contains("early bytes 5 that it has not announced"), "{error}");
        }
    }

    #[test]
    fn a_peer_that_takes_what_was_not_sent_is_refused() {
        let mut hostile = Hostile::new(false);
        let error = loop {
            hostile.taken(u64::from(u32::MAX / 2));
            if let Err(error) = hostile.send(TAG, 8) {
                break error.to_string();
            }
        };
        assert!(error.contains("rank 1 sent") && error.contains("not taken"), "{error}");
    }
}
