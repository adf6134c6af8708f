//! Long messages, which MPI moves from region to region.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::time::Instant;

use mpi::ffi;

use super::FIRST_DATA;
use super::library::{Comm, check};
use crate::Rank;
use crate::endpoint::numbered::Numbered;
use crate::endpoint::{Event, Slot, WireError, WireRegion};

/// The longest piece: MPI counts bytes in an `int`.
const MOST_BYTES: usize = 1 << 30;

/// A message under way.
#[derive(Debug)]
struct Move {
    /// What is reported when it is complete; nothing of one that is dropped,
    event: Option<Event>,
    /// which goes here.
    #[expect(dead_code, reason = "held for MPI")]
    waste: Vec<u8>,
    /// Pieces that are not complete.
    left: u32,
}

/// A receive that is to be posted.
#[derive(Debug)]
struct Due {
    from: Rank,
    mpi_tag: i32,
    slot: Slot,
    region: WireRegion,
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Transfers {
    comm: Comm,
    /// The last tag that MPI allows.
    last_tag: i32,
    /// A message that is sent travels by the tag of MPI's that its number tells. It has the number until
    /// its receiver has met it, so no two on their way from this port have the same.
    moves: Numbered<Move>,
    /// How many of them are dropped.
    n_dropped: usize,
    due: VecDeque<Due>,
    requests: Vec<ffi::MPI_Request>,
    /// The message of each request.
    numbers: Vec<u32>,
    done: Vec<c_int>,
}

impl Transfers {
    pub(super) fn new(comm: Comm, last_tag: i32) -> Self {
        Transfers {
            comm,
            last_tag,
            moves: Numbered::default(),
            n_dropped: 0,
            due: VecDeque::with_capacity(64),
            requests: Vec::with_capacity(64),
            numbers: Vec::with_capacity(64),
            done: Vec::with_capacity(64),
        }
    }

    /// The tag of MPI's that the next message to be sent gets.
    pub(super) fn tag(&self) -> i32 {
        FIRST_DATA + self.moves.next() as i32
    }

    /// Whether MPI allows that. If not, it will when other messages have gone.
    pub(super) fn has_tag(&self) -> bool {
        self.tag() <= self.last_tag
    }

    /// Whether [`begin`](Transfers::begin) has anything to do.
    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Whether a peer may wait until messages that are dropped have come.
    pub(super) fn is_dropping(&self) -> bool {
        self.n_dropped > 0
    }

    /// Sends a message to a peer by [`tag`](Transfers::tag).
    ///
    /// # Safety
    /// As [`Endpoint::post_send`](crate::endpoint::Endpoint::post_send).
    pub(super) unsafe fn send(
        &mut self,
        to: Rank,
        slot: Slot,
        region: WireRegion,
    ) -> Result<(), WireError> {
        let (mpi_tag, event) = (self.tag(), Some(Event::Sent(slot)));
        let left = region.len.div_ceil(MOST_BYTES) as u32;
        let number = self.moves.insert(Move { event, waste: Vec::new(), left });
        for (at, len) in pieces(region.len) {
            // SAFETY: a constant of MPI's.
            let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
            // SAFETY: the caller's promise.
            let code = unsafe {
                ffi::PMPI_Issend(
                    region.ptr.add(at).cast(),
                    len as c_int,
                    ffi::RSMPI_UINT8_T,
                    to as c_int,
                    mpi_tag,
                    self.comm.0,
                    &mut request,
                )
            };
            check("MPI_Issend", code).map_err(|error| WireError { peer: Some(to), ..error })?;
            self.requests.push(request);
            self.numbers.push(number);
        }
        Ok(())
    }

    /// Receives a message of a peer that is under way, from the next [`begin`](Transfers::begin) on.
    ///
    /// # Safety
    /// As [`Endpoint::post_recv`](crate::endpoint::Endpoint::post_recv).
    pub(super) unsafe fn receive(
        &mut self,
        from: Rank,
        mpi_tag: i32,
        slot: Slot,
        region: WireRegion,
    ) {
        self.due.push_back(Due { from, mpi_tag, slot, region });
    }

    /// Posts the receives that are due.
    ///
    /// MPI may move a message in one go while its receive is posted. So the sends of this rank are to
    /// begin before: then two ranks that exchange messages move both at once.
    #[inline]
    pub(super) fn begin(&mut self) -> Result<(), WireError> {
        while let Some(Due { from, mpi_tag, slot, region }) = self.due.pop_front() {
            let event = Some(Event::Received(slot));
            // SAFETY: the promise of `receive`: it has not been reported.
            unsafe { self.post(from, mpi_tag, region.ptr, region.len, event, Vec::new()) }?;
        }
        Ok(())
    }

    /// Receives a message that no receive of this rank expects, so that its sender is done with it.
    pub(super) fn drop(&mut self, from: Rank, mpi_tag: i32, len: usize) -> Result<(), WireError> {
        let mut waste = Vec::new();
        waste.try_reserve_exact(len).map_err(|error| WireError {
            call: "dropping a message",
            reason: error.to_string(),
            peer: Some(from),
        })?;
        let ptr = waste.as_mut_ptr();
        self.n_dropped += 1;
        // SAFETY: as long as the message lives in `moves`, so does this memory, which nobody else uses.
        unsafe { self.post(from, mpi_tag, ptr, len, None, waste) }
    }

    /// Posts the receives of a message's pieces.
    ///
    /// # Safety
    /// As [`receive`](Transfers::receive).
    unsafe fn post(
        &mut self,
        from: Rank,
        mpi_tag: i32,
        ptr: *mut u8,
        len: usize,
        event: Option<Event>,
        waste: Vec<u8>,
    ) -> Result<(), WireError> {
        let number =
            self.moves.insert(Move { event, waste, left: len.div_ceil(MOST_BYTES) as u32 });
        for (at, len) in pieces(len) {
            // SAFETY: a constant of MPI's.
            let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
            // SAFETY: the caller's promise. Pieces with one tag arrive in the order of their posts.
            let code = unsafe {
                ffi::PMPI_Irecv(
                    ptr.add(at).cast(),
                    len as c_int,
                    ffi::RSMPI_UINT8_T,
                    from as c_int,
                    mpi_tag,
                    self.comm.0,
                    &mut request,
                )
            };
            check("MPI_Irecv", code).map_err(|error| WireError { peer: Some(from), ..error })?;
            self.requests.push(request);
            self.numbers.push(number);
        }
        Ok(())
    }

    /// Reports the messages that are complete.
    #[inline]
    pub(super) fn advance(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        if self.requests.is_empty() {
            return Ok(());
        }
        self.done.resize(self.requests.len(), 0);
        let mut n_done = 0;
        // SAFETY: active requests, and room for as many indices.
        let code = unsafe {
            ffi::PMPI_Testsome(
                self.requests.len() as c_int,
                self.requests.as_mut_ptr(),
                &mut n_done,
                self.done.as_mut_ptr(),
                ffi::RSMPI_STATUSES_IGNORE,
            )
        };
        check("MPI_Testsome", code)?;
        // Negative (MPI_UNDEFINED) if no request is active.
        let n_done = usize::try_from(n_done).unwrap_or(0).min(self.requests.len());
        let done = &mut self.done[..n_done];
        // From the back: the request that swap_remove moves to a free place is not in the list.
        done.sort_unstable_by(|a, b| b.cmp(a));
        for &index in &*done {
            self.requests.swap_remove(index as usize);
            let number = self.numbers.swap_remove(index as usize);
            let Some(of) = self.moves.get_mut(number) else { continue };
            of.left -= 1;
            if of.left == 0 {
                self.n_dropped -= usize::from(of.event.is_none());
                events.extend(of.event);
                self.moves.remove(number);
            }
        }
        Ok(())
    }

    /// Ends everything, at most until `end`: receives are taken back; sends, which MPI cannot take
    /// back, are waited for.
    pub(super) fn abandon(&mut self, end: Instant) {
        let (mut arriving, mut leaving) = (Vec::new(), Vec::new());
        for (request, number) in self.requests.drain(..).zip(self.numbers.drain(..)) {
            let event = self.moves.get_mut(number).and_then(|of| of.event);
            let leaves = matches!(event, Some(Event::Sent(_)));
            if leaves { leaving.push(request) } else { arriving.push(request) }
        }
        if !cancel(&mut arriving, end) {
            // MPI may still write to what is dropped.
            std::mem::forget(std::mem::take(&mut self.moves));
        }
        finish(&mut leaving, end);
        (self.moves, self.due, self.n_dropped) = Default::default();
    }
}

/// Where the pieces of a message begin, and their lengths.
fn pieces(len: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..len).step_by(MOST_BYTES).map(move |at| (at, (len - at).min(MOST_BYTES)))
}

/// Takes receives back, at most until `end`; returns whether MPI has let go of all of them.
pub(super) fn cancel(requests: &mut [ffi::MPI_Request], end: Instant) -> bool {
    for request in requests.iter_mut() {
        // SAFETY: a constant of MPI's; the request is active if it is not that.
        unsafe {
            if *request != ffi::RSMPI_REQUEST_NULL {
                ffi::PMPI_Cancel(request);
            }
        }
    }
    finish(requests, end)
}

/// Waits for requests, at most until `end`; returns whether all are done.
pub(super) fn finish(requests: &mut [ffi::MPI_Request], end: Instant) -> bool {
    loop {
        let mut are_done = 0;
        // SAFETY: requests, some of them null.
        let code = unsafe {
            ffi::PMPI_Testall(
                requests.len() as c_int,
                requests.as_mut_ptr(),
                &mut are_done,
                ffi::RSMPI_STATUSES_IGNORE,
            )
        };
        if code == 0 && are_done != 0 {
            return true;
        }
        if code != 0 || Instant::now() >= end {
            return false;
        }
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_go_in_pieces() {
        assert_eq!(pieces(5).collect::<Vec<_>>(), [(0, 5)]);
        let len = 2 * MOST_BYTES + 3;
        let want = [(0, MOST_BYTES), (MOST_BYTES, MOST_BYTES), (2 * MOST_BYTES, 3)];
        assert_eq!(pieces(len).collect::<Vec<_>>(), want);
        assert_eq!(pieces(MOST_BYTES).count(), 1);
    }
}
