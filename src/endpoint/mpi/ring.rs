//! A port's ring: receives that stay posted, for all messages with a header.
//!
//! MPI fills the receives in the order of their posts, so a port only tests the next one. Filled receives are
//! reposted when there is nothing else to do, or when few are left: then a message that has arrived need not wait for
//! a repost.

use std::ptr::NonNull;
use std::time::Instant;

use super::ffi;

use super::HEADERS;
use super::header::{HEADER_BYTES, PART_BYTES};
use super::library::{Comm, check, is_complete};
use super::requests::{cancel, finish};
use crate::endpoint::WireError;

/// Receives posted at a time.
const SLOTS: usize = 64;
/// If fewer receives are posted, all free ones are reposted at once.
const FEW: usize = SLOTS / 2;
/// Bytes of a receive's slot.
const SLOT_BYTES: usize = HEADER_BYTES + PART_BYTES;

/// The ring of a port.
#[derive(Debug)]
pub(super) struct RecvRing {
    comm: Comm,
    /// `SLOTS` slots of `SLOT_BYTES` bytes, to which MPI writes.
    memory: NonNull<u8>,
    requests: Vec<ffi::MPI_Request>,
    /// The receive that MPI fills next.
    head: usize,
    /// Receives before `head` that were filled and have not been reposted.
    n_taken: usize,
    /// The oldest of the `n_taken` receives, whose messages are no longer read.
    n_free: usize,
}

/// A message in the ring, header first; it stays there until the next [`RecvRing::release`].
pub(super) struct RingMessage {
    pub(super) source: i32,
    pub(super) ptr: *const u8,
}

impl RecvRing {
    /// Posts all receives.
    pub(super) fn new(comm: Comm) -> Result<Self, WireError> {
        let memory = Box::leak(vec![0u8; SLOTS * SLOT_BYTES].into_boxed_slice());
        let memory = NonNull::from(memory).cast();
        let none = ffi::request_null();
        let requests = vec![none; SLOTS];
        let mut ring = RecvRing { comm, memory, requests, head: 0, n_taken: SLOTS, n_free: SLOTS };
        ring.release()?;
        Ok(ring)
    }

    fn slot(&self, index: usize) -> *mut u8 {
        debug_assert!(index < SLOTS);
        // SAFETY: within the memory.
        unsafe { self.memory.as_ptr().add(index * SLOT_BYTES) }
    }

    /// Ends the use of all messages taken so far; reposts their receives if few are posted.
    #[inline]
    pub(super) fn release(&mut self) -> Result<(), WireError> {
        self.n_free = self.n_taken;
        if self.n_taken > SLOTS - FEW {
            while self.n_free > 0 {
                self.repost_one()?;
            }
        }
        Ok(())
    }

    /// Reposts the oldest receive whose message is no longer read, if any.
    #[inline]
    pub(super) fn repost_one(&mut self) -> Result<(), WireError> {
        if self.n_free == 0 {
            return Ok(());
        }
        let index = (self.head + SLOTS - self.n_taken) % SLOTS;
        let into = self.slot(index);
        // SAFETY: the request is null, or complete and not freed.
        check("MPI_Wait", unsafe {
            ffi::PMPI_Wait(&mut self.requests[index], std::ptr::null_mut())
        })?;
        // SAFETY: only this receive uses the slot until its message is taken; the memory is freed only when nothing
        // is posted.
        let code = unsafe {
            ffi::PMPI_Irecv(
                into.cast(),
                SLOT_BYTES as i32,
                ffi::uint8_t(),
                ffi::any_source(),
                HEADERS,
                self.comm.0,
                &mut self.requests[index],
            )
        };
        self.n_taken -= 1;
        self.n_free -= 1;
        check("MPI_Irecv", code)
    }

    /// Takes the next message, if it has arrived.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<RingMessage>, WireError> {
        if self.n_taken == SLOTS {
            return Ok(None);
        }
        let mut status = std::mem::MaybeUninit::<ffi::MPI_Status>::uninit();
        // SAFETY: an active request, and room for its status.
        if !unsafe { is_complete(self.requests[self.head], status.as_mut_ptr()) }? {
            return Ok(None);
        }
        // SAFETY: MPI has written the status of a complete request.
        let source = unsafe { ffi::source_of(status.as_ptr()) };
        let ptr = self.slot(self.head);
        self.head = (self.head + 1) % SLOTS;
        self.n_taken += 1;
        Ok(Some(RingMessage { source, ptr }))
    }

    /// Cancels all receives, waiting at most until `end`; returns whether all of them have ended.
    pub(super) fn cancel(&mut self, end: Instant) -> bool {
        cancel(&mut self.requests);
        finish(&mut self.requests, end)
    }

    /// Frees the memory.
    ///
    /// # Safety
    /// [`cancel`](RecvRing::cancel) must have returned true, so that nothing is posted. The ring must not be used
    /// again.
    pub(super) unsafe fn free(&mut self) {
        let memory = std::ptr::slice_from_raw_parts_mut(self.memory.as_ptr(), SLOTS * SLOT_BYTES);
        // SAFETY: the memory is from `new`, and by the caller's promise nothing else uses it.
        drop(unsafe { Box::from_raw(memory) });
    }
}
