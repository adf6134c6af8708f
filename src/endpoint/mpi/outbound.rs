//! Sends of messages with a header. Each message is copied to a buffer, which belongs to MPI until the send is
//! complete.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::time::Instant;

use super::ffi;

use super::HEADERS;
use super::header::{HEADER_BYTES, Header, PART_BYTES};
use super::lengths::{LEAST_BYTES, Lengths};
use super::library::{Comm, check, is_complete};
use crate::Rank;
use crate::endpoint::{WireError, WireRegion};

/// Lengths of buffers, in bytes: for most messages, and for the longest.
const LENGTHS: [usize; 2] = [HEADER_BYTES + LEAST_BYTES, HEADER_BYTES + PART_BYTES];
/// Completed sends whose requests are freed in one call.
const FREED_AT_A_TIME: usize = 32;
/// Most unused buffers of each length that are kept.
const MOST_FREE: [usize; 2] = [1024, 32];

type Buffer = Box<[u8]>;

/// The sends with headers of a port.
#[derive(Debug)]
pub(super) struct HeaderSends {
    comm: Comm,
    /// Unused buffers, by length.
    free: [Vec<Buffer>; 2],
    /// Incomplete sends, in the order of their start.
    in_flight: VecDeque<(ffi::MPI_Request, Buffer)>,
    /// Requests of completed sends, to be freed.
    completed: Vec<ffi::MPI_Request>,
    pub(super) lengths: Lengths,
}

impl HeaderSends {
    pub(super) fn new(comm: Comm) -> Self {
        HeaderSends {
            comm,
            free: Default::default(),
            in_flight: VecDeque::with_capacity(64),
            completed: Vec::with_capacity(FREED_AT_A_TIME),
            lengths: Lengths::default(),
        }
    }

    /// Sends a header, and a short message behind it if there is one.
    ///
    /// # Safety
    /// The region must be valid for reads; it may be empty.
    #[inline]
    pub(super) unsafe fn send(
        &mut self,
        to: Rank,
        header: &Header,
        message: Option<WireRegion>,
    ) -> Result<(), WireError> {
        let len = message.map_or(0, |region| region.len);
        let kind = usize::from(HEADER_BYTES + len > LENGTHS[0]);
        let new = || vec![0; LENGTHS[kind]].into();
        let mut buffer: Buffer = self.free[kind].pop().unwrap_or_else(new);
        buffer[..HEADER_BYTES].copy_from_slice(&header.encode());
        if let Some(region) = message.filter(|region| region.len > 0) {
            let into = &mut buffer[HEADER_BYTES..HEADER_BYTES + len];
            // SAFETY: the caller's promise; the buffer is this port's own memory, hence outside the region.
            unsafe { region.ptr.copy_to_nonoverlapping(into.as_mut_ptr(), len) };
        }
        let is_long = kind == 1;
        let start = (!is_long && self.lengths.is_timing()).then(Instant::now);
        let mut request = ffi::request_null();
        // SAFETY: the buffer stays valid and unchanged until the request is complete.
        let code = unsafe {
            ffi::PMPI_Isend(
                buffer.as_ptr().cast(),
                (HEADER_BYTES + len) as i32,
                ffi::uint8_t(),
                to as i32,
                HEADERS,
                self.comm.0,
                &mut request,
            )
        };
        if let Some(start) = start {
            self.lengths.note_short_send(start.elapsed());
        }
        if code != 0 {
            // MPI may still use the buffer.
            std::mem::forget(buffer);
            return check("MPI_Isend", code).map_err(|error| WireError { peer: Some(to), ..error });
        }
        // A short send is mostly complete at once. If the query fails, `collect` repeats it.
        let is_done = is_sent(request).unwrap_or(false);
        // Only if no other send is in flight, behind which this one may have had to wait.
        if is_long && self.in_flight.is_empty() {
            self.lengths.note_long_send(is_done);
        }
        if is_done {
            self.keep(buffer);
            self.free(request)
        } else {
            self.in_flight.push_back((request, buffer));
            Ok(())
        }
    }

    /// Frees the request of a completed send, perhaps later, together with others.
    #[inline]
    fn free(&mut self, request: ffi::MPI_Request) -> Result<(), WireError> {
        self.completed.push(request);
        if self.completed.len() < FREED_AT_A_TIME { Ok(()) } else { self.free_all() }
    }

    /// Frees the requests of all completed sends.
    #[cold]
    fn free_all(&mut self) -> Result<(), WireError> {
        let (n, requests) = (self.completed.len() as c_int, self.completed.as_mut_ptr());
        // SAFETY: the length is that of the array, and all requests are complete.
        let code = unsafe { ffi::PMPI_Waitall(n, requests) };
        self.completed.clear();
        check("MPI_Waitall", code)
    }

    /// Keeps a buffer for another message, unless there are enough.
    #[inline]
    fn keep(&mut self, buffer: Buffer) {
        let kind = usize::from(buffer.len() > LENGTHS[0]);
        if self.free[kind].len() < MOST_FREE[kind] {
            self.free[kind].push(buffer);
        }
    }

    /// Reclaims the buffers of completed sends.
    #[inline]
    pub(super) fn collect(&mut self) -> Result<(), WireError> {
        while let Some(&(request, _)) = self.in_flight.front() {
            if !is_sent(request)? {
                break;
            }
            if let Some((_, buffer)) = self.in_flight.pop_front() {
                self.keep(buffer);
            }
            self.free(request)?;
        }
        Ok(())
    }

    /// Whether all sends are complete.
    pub(super) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Waits for all sends, at most until `end`; the buffers of incomplete sends then stay with MPI for good.
    pub(super) fn finish(&mut self, end: Instant) {
        while self.collect().is_ok() && !self.is_empty() && Instant::now() < end {
            std::thread::yield_now();
        }
        // Errors no longer matter: the port ends.
        let _ = self.free_all();
        self.leak_all();
    }

    /// Leaves the buffers of all incomplete sends to MPI.
    pub(super) fn leak_all(&mut self) {
        self.in_flight.drain(..).for_each(|(_, buffer)| std::mem::forget(buffer));
    }
}

/// Whether a send is complete, so that MPI no longer needs its buffer.
#[inline]
fn is_sent(request: ffi::MPI_Request) -> Result<bool, WireError> {
    // SAFETY: an active request, and a constant.
    unsafe { is_complete(request, std::ptr::null_mut()) }
}
