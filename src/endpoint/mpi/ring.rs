//! A port's ring: receives that stay posted, for all messages with a header.
//!
//! MPI fills them in the order in which they were posted, so only the next one is looked at.

use std::ptr::NonNull;
use std::time::Instant;

use mpi::ffi;

use super::header::HEADER_BYTES;
use super::library::{Comm, check};
use super::{EAGER_BYTES, HEADERS};
use crate::endpoint::WireError;

/// Receives posted at a time.
const SLOTS: usize = 64;
/// Bytes of each.
const SLOT_BYTES: usize = HEADER_BYTES + EAGER_BYTES;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Ring {
    comm: Comm,
    /// `SLOTS` times `SLOT_BYTES`, which MPI writes to.
    memory: NonNull<u8>,
    requests: Vec<ffi::MPI_Request>,
    /// The receive that is filled next.
    head: usize,
    /// How many before it are filled and not posted again.
    n_taken: usize,
}

/// A message in the ring; it stays there until the next [`Ring::repost`].
pub(super) struct Taken {
    pub(super) source: i32,
    pub(super) ptr: *const u8,
    pub(super) len: usize,
}

impl Ring {
    /// Posts all of them.
    pub(super) fn new(comm: Comm) -> Result<Self, WireError> {
        let memory = Box::leak(vec![0u8; SLOTS * SLOT_BYTES].into_boxed_slice());
        let memory = NonNull::from(memory).cast();
        // SAFETY: a constant of MPI's.
        let none = unsafe { ffi::RSMPI_REQUEST_NULL };
        let mut ring = Ring { comm, memory, requests: vec![none; SLOTS], head: 0, n_taken: SLOTS };
        ring.repost()?;
        Ok(ring)
    }

    fn slot(&self, index: usize) -> *mut u8 {
        debug_assert!(index < SLOTS);
        // SAFETY: within the memory.
        unsafe { self.memory.as_ptr().add(index * SLOT_BYTES) }
    }

    /// Posts the receives again whose message has been taken: nobody reads it any more.
    #[inline]
    pub(super) fn repost(&mut self) -> Result<(), WireError> {
        while self.n_taken > 0 {
            let index = (self.head + SLOTS - self.n_taken) % SLOTS;
            let into = self.slot(index);
            // SAFETY: the slot is this receive's alone until it is taken; it is freed only when
            // nothing is posted.
            let code = unsafe {
                ffi::PMPI_Irecv(
                    into.cast(),
                    SLOT_BYTES as i32,
                    ffi::RSMPI_UINT8_T,
                    ffi::RSMPI_ANY_SOURCE,
                    HEADERS,
                    self.comm.0,
                    &mut self.requests[index],
                )
            };
            check("MPI_Irecv", code)?;
            self.n_taken -= 1;
        }
        Ok(())
    }

    /// The next message, if it has come.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Taken>, WireError> {
        if self.n_taken == SLOTS {
            return Ok(None);
        }
        let (mut is_there, mut status) = (0, std::mem::MaybeUninit::<ffi::MPI_Status>::uninit());
        // SAFETY: an active request; MPI writes the status when it says that it is complete.
        let code = unsafe {
            ffi::PMPI_Test(&mut self.requests[self.head], &mut is_there, status.as_mut_ptr())
        };
        check("MPI_Test", code)?;
        if is_there == 0 {
            return Ok(None);
        }
        let mut len = 0;
        // SAFETY: complete, so the status has been written.
        let (status, code) = unsafe {
            let code = ffi::PMPI_Get_count(status.as_ptr(), ffi::RSMPI_UINT8_T, &mut len);
            (status.assume_init(), code)
        };
        check("MPI_Get_count", code)?;
        let ptr = self.slot(self.head);
        self.head = (self.head + 1) % SLOTS;
        self.n_taken += 1;
        let len = usize::try_from(len).unwrap_or(0).min(SLOT_BYTES);
        Ok(Some(Taken { source: status.MPI_SOURCE, ptr, len }))
    }

    /// Cancels all receives, waiting at most until `end`; returns whether MPI has let go of them.
    pub(super) fn cancel(&mut self, end: Instant) -> bool {
        super::transfers::cancel(&mut self.requests, end)
    }

    /// Frees the memory.
    ///
    /// # Safety
    /// Nothing may be posted: [`cancel`](Ring::cancel) has said so. The ring must not be used
    /// again.
    pub(super) unsafe fn free(&mut self) {
        let memory = std::ptr::slice_from_raw_parts_mut(self.memory.as_ptr(), SLOTS * SLOT_BYTES);
        // SAFETY: from `new`, and nobody else's by the caller's promise.
        drop(unsafe { Box::from_raw(memory) });
    }
}
