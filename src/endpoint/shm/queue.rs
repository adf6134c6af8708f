//! The queue of messages from one rank to another: descriptors of one cache line each, which also hold the payload of
//! short messages, and a ring of bytes for longer payloads.
//!
//! Only the sender writes descriptors and bytes; only the receiver writes the count of what it has taken. The sender
//! writes a descriptor's stamp last: it is the descriptor's index in the endless sequence of lines, plus one. So
//! neither side often reads what the other writes, and the receiver polls the line that will hold the message.

use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::bell::Doorbell;
use super::descriptor::{Decoded, INLINE_BYTES, RAW_WORDS, Raw, ShmDescriptor};
use super::layout::{APART, LINE, LINES_AT, PAYLOAD_BYTES, QUEUE_LINES};
use super::segment::Segment;
use crate::endpoint::validation::{InvalidField, check_max};

/// Descriptors reserved for answers to the receiver's own messages.
const RESERVED_LINES: u32 = 16;
/// Messages that may be under way in a queue when the receiver asks for no more short ones: those that the queue has
/// room for, and one whose sender has checked the flag before it was set.
pub(super) const WINDOW: usize = QUEUE_LINES - RESERVED_LINES as usize + 1;

/// A line, laid out as [`Raw`], with an atomic stamp and all inline bytes.
#[repr(C, align(64))]
struct Line {
    stamp: AtomicU32,
    kind: u8,
    spare: u8,
    call: u16,
    operation: u64,
    len: u64,
    message: u32,
    id: u32,
    data: [u8; INLINE_BYTES],
}

const _: () = assert!(size_of::<Line>() == LINE);
const _: () = assert!(offset_of!(Line, data) == offset_of!(Raw, words));

/// Addresses of one queue in the segment: its lines, its ring of bytes, and the count of what was taken.
#[derive(Debug)]
struct Parts {
    /// Lines (lower half) and bytes (upper half) that the receiver has taken.
    taken: *const AtomicU64,
    /// Not 0 if the receiver holds short messages back. In a line that is rarely written.
    holds: *const AtomicU64,
    lines: *mut Line,
    bytes: *mut u8,
    /// Keeps the memory mapped.
    _segment: Arc<Segment>,
    /// The other side's bell.
    bell: Doorbell,
}

impl Parts {
    fn new(segment: &Arc<Segment>, offset: usize, bell: Doorbell) -> Self {
        let lines = offset + LINES_AT;
        let bytes = lines + QUEUE_LINES * LINE;
        Parts {
            taken: segment.word(offset),
            holds: segment.word(offset + APART),
            lines: segment.at(lines, QUEUE_LINES * LINE).cast(),
            bytes: segment.at(bytes, PAYLOAD_BYTES),
            _segment: segment.clone(),
            bell,
        }
    }

    fn line(&self, at: u32) -> *mut Line {
        // SAFETY: within the queue's lines.
        unsafe { self.lines.add(at as usize % QUEUE_LINES) }
    }

    fn taken(&self) -> &AtomicU64 {
        // SAFETY: a word of the segment, which `self` keeps mapped.
        unsafe { &*self.taken }
    }

    fn holds(&self) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { &*self.holds }
    }
}

/// Start of a payload of `len` bytes after the first `at` bytes of the endless sequence of bytes, and the start of
/// the next payload. Payloads are contiguous and begin at a line.
fn place(at: u32, len: usize) -> (u32, u32) {
    let within = at as usize % PAYLOAD_BYTES;
    let start = if within + len > PAYLOAD_BYTES {
        at.wrapping_add((PAYLOAD_BYTES - within) as u32)
    } else {
        at
    };
    (start, start.wrapping_add(len.next_multiple_of(LINE) as u32))
}

/// The sender's side of a queue.
#[derive(Debug)]
pub(super) struct Outbox {
    parts: Parts,
    lines_at: u32,
    bytes_at: u32,
    /// The receiver's count, as last read.
    lines_taken: u32,
    bytes_taken: u32,
}

// SAFETY: the parts are in shared memory; one thread at a time uses this side.
unsafe impl Send for Outbox {}

impl Outbox {
    /// `bell` is the receiver's.
    pub(super) fn new(segment: &Arc<Segment>, offset: usize, bell: Doorbell) -> Self {
        let parts = Parts::new(segment, offset, bell);
        Outbox { parts, lines_at: 0, bytes_at: 0, lines_taken: 0, bytes_taken: 0 }
    }

    /// # Errors
    /// [`InvalidField`] if the receiver says that it has taken more than was sent.
    #[inline]
    fn has_room(&mut self, bytes_end: u32, reserved: u32) -> Result<bool, InvalidField> {
        let fits = |outbox: &Self| {
            outbox.lines_at.wrapping_sub(outbox.lines_taken) < QUEUE_LINES as u32 - reserved
                && bytes_end.wrapping_sub(outbox.bytes_taken) as usize <= PAYLOAD_BYTES
        };
        if fits(self) {
            return Ok(true);
        }
        // Acquire: pairs with the Release in `Inbox::give_back`: the receiver does not read again what it has taken.
        let taken = self.parts.taken().load(Ordering::Acquire);
        let (lines, bytes) = (taken as u32, (taken >> 32) as u32);
        let under_way = [self.lines_at.wrapping_sub(lines), self.bytes_at.wrapping_sub(bytes)];
        check_max("the number of lines that are not taken", under_way[0].into(), QUEUE_LINES)?;
        check_max("the number of bytes that are not taken", under_way[1].into(), PAYLOAD_BYTES)?;
        (self.lines_taken, self.bytes_taken) = (lines, bytes);
        Ok(fits(self))
    }

    /// Sends a descriptor with `payload`, which goes into the ring for the kinds that use the ring, and into the line
    /// otherwise. False if there is no room now.
    ///
    /// # Errors
    /// [`InvalidField`] if the receiver has written an invalid count.
    pub(super) fn push(
        &mut self,
        descriptor: &ShmDescriptor,
        payload: &[u8],
    ) -> Result<bool, InvalidField> {
        let in_ring = descriptor.kind.is_in_ring();
        let (start, end) = place(self.bytes_at, if in_ring { payload.len() } else { 0 });
        let end = if in_ring { end } else { self.bytes_at };
        if !self.has_room(end, RESERVED_LINES)? {
            return Ok(false);
        }
        if in_ring {
            // SAFETY: the receiver has taken this part of the ring, and `place` keeps the payload contiguous.
            let into = unsafe { self.parts.bytes.add(start as usize % PAYLOAD_BYTES) };
            // SAFETY: as above; the caller's bytes are not in the ring.
            unsafe { std::ptr::copy_nonoverlapping(payload.as_ptr(), into, payload.len()) };
        }
        self.bytes_at = end;
        self.write(
            descriptor,
            if in_ring { bytemuck::bytes_of(&descriptor.word) } else { payload },
        );
        Ok(true)
    }

    /// Whether this side may send short messages that may arrive before their receives.
    #[inline]
    pub(super) fn may_send_short(&self) -> bool {
        // Relaxed: the sender sees the flag at the latest when it has seen room for another message; see `has_room`
        // and `Inbox::hold`.
        self.parts.holds().load(Ordering::Relaxed) == 0
    }

    /// Wakes the receiver for an event other than a message.
    pub(super) fn ring(&self) {
        self.parts.bell.ring();
    }

    /// Sends an answer. False if there is no room now.
    ///
    /// # Errors
    /// As [`push`](Outbox::push).
    pub(super) fn answer(&mut self, descriptor: &ShmDescriptor) -> Result<bool, InvalidField> {
        if !self.has_room(self.bytes_at, 0)? {
            return Ok(false);
        }
        self.write(descriptor, &descriptor.word.to_ne_bytes());
        Ok(true)
    }

    fn write(&mut self, descriptor: &ShmDescriptor, inline: &[u8]) {
        assert!(inline.len() <= INLINE_BYTES);
        let line = self.parts.line(self.lines_at);
        self.lines_at = self.lines_at.wrapping_add(1);
        // SAFETY: the receiver has taken the line, and reads only its stamp now.
        unsafe {
            (&raw mut (*line).kind).write(descriptor.kind as u8);
            (&raw mut (*line).call).write(descriptor.call);
            (&raw mut (*line).operation).write(descriptor.operation);
            (&raw mut (*line).len).write(descriptor.len);
            (&raw mut (*line).message).write(descriptor.message);
            (&raw mut (*line).id).write(descriptor.id);
            let data = (&raw mut (*line).data).cast::<u8>();
            std::ptr::copy_nonoverlapping(inline.as_ptr(), data, inline.len());
            // Release: pairs with the Acquire in `Inbox::next`.
            (*line).stamp.store(self.lines_at, Ordering::Release);
        }
        self.parts.bell.ring();
    }
}

/// The receiver's side of a queue.
#[derive(Debug)]
pub(super) struct Inbox {
    parts: Parts,
    lines_at: u32,
    bytes_at: u32,
    /// Whether lines or bytes were taken that have not been given back.
    has_unreturned: bool,
}

// SAFETY: as for `Outbox`.
unsafe impl Send for Inbox {}

impl Inbox {
    /// `bell` is the sender's.
    pub(super) fn new(segment: &Arc<Segment>, offset: usize, bell: Doorbell) -> Self {
        Inbox {
            parts: Parts::new(segment, offset, bell),
            lines_at: 0,
            bytes_at: 0,
            has_unreturned: false,
        }
    }

    /// Whether there is a descriptor to take.
    #[inline]
    pub(super) fn has_next(&self) -> bool {
        // Acquire: pairs with the Release in `Outbox::write`.
        // SAFETY: a stamp is accessed as an atomic only.
        let stamp = unsafe { (*self.parts.line(self.lines_at)).stamp.load(Ordering::Acquire) };
        stamp == self.lines_at.wrapping_add(1)
    }

    /// Takes the next line, if there is one, and its payload. The payload has the length that the line says, and is
    /// valid until [`give_back`](Inbox::give_back).
    ///
    /// # Errors
    /// [`InvalidField`] if the sender has written an invalid line.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Result<(Decoded, *const u8), InvalidField>> {
        if !self.has_next() {
            return None;
        }
        let line = self.parts.line(self.lines_at);
        let words = line.cast::<u64>().cast_const();
        // SAFETY: within the line, which the sender does not write before it is given back. Each word is read once,
        // so that the values used are the values checked, whatever the sender does.
        let raw: [u64; RAW_WORDS] =
            std::array::from_fn(|at| unsafe { words.add(at).read_volatile() });
        let raw: Raw = bytemuck::cast(raw);
        let decoded = match raw.decode() {
            Ok(decoded) => decoded,
            Err(invalid) => return Some(Err(invalid)),
        };
        let payload = match decoded.ring_bytes() {
            // SAFETY: within the line.
            None => unsafe { (&raw const (*line).data).cast() },
            Some(len) => {
                let (start, end) = place(self.bytes_at, len);
                self.bytes_at = end;
                // SAFETY: `place` keeps the payload within the ring, which is longer.
                unsafe { self.parts.bytes.add(start as usize % PAYLOAD_BYTES) }
            }
        };
        self.lines_at = self.lines_at.wrapping_add(1);
        self.has_unreturned = true;
        Some(Ok((decoded, payload)))
    }

    /// Asks the sender to send no short messages, or to resume.
    pub(super) fn hold(&mut self, holds: bool) {
        // Relaxed: the Release in `give_back` comes later.
        self.parts.holds().store(u64::from(holds), Ordering::Relaxed);
    }

    /// Gives the room of taken lines and bytes back to the sender.
    #[inline]
    pub(super) fn give_back(&mut self) {
        if std::mem::take(&mut self.has_unreturned) {
            let taken = u64::from(self.lines_at) | u64::from(self.bytes_at) << 32;
            // Release: pairs with the Acquire in `Outbox::has_room`.
            self.parts.taken().store(taken, Ordering::Release);
            self.parts.bell.ring();
        }
    }
}
