//! Long messages, which MPI moves from region to region.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::time::Instant;

use mpi::ffi;

use super::library::{Comm, check};
use super::peer::is_same;
use super::{FIRST_DATA, LAST_WAIT};
use crate::Rank;
use crate::endpoint::numbered::Numbered;
use crate::endpoint::{Event, Slot, Tag, WireError, WireRegion};

/// The longest piece: MPI counts bytes in an `int`.
const MOST_BYTES: usize = 1 << 30;
/// Messages that one poll probes for.
const PROBES_PER_POLL: usize = 4;

/// A message that is received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Landing {
    pub(super) from: Rank,
    pub(super) tag: Tag,
    pub(super) slot: Slot,
    region: WireRegion,
    /// Pieces that have not come.
    left: u32,
    /// Whether a probe has found the first of them.
    is_there: bool,
}

/// A message that is sent.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    slot: Slot,
    left: u32,
}

/// The message whose piece a request moves.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Of(u32),
    Leaving(u32),
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Transfers {
    comm: Comm,
    /// A message's number tells the tag of MPI's by which it travels: so no two that are under way
    /// to this port have the same.
    pub(super) landings: Numbered<Landing>,
    leavings: Numbered<Leaving>,
    /// Messages that are announced, and whose receives are not posted.
    due: VecDeque<u32>,
    requests: Vec<ffi::MPI_Request>,
    /// The message of each request.
    pieces: Vec<Piece>,
    done: Vec<c_int>,
}

impl Transfers {
    pub(super) fn new(comm: Comm) -> Self {
        Transfers {
            comm,
            landings: Numbered::default(),
            leavings: Numbered::default(),
            due: VecDeque::with_capacity(64),
            requests: Vec::with_capacity(64),
            pieces: Vec::with_capacity(64),
            done: Vec::with_capacity(64),
        }
    }

    /// Receives a message from a peer, who is to be told the tag of MPI's that this returns, from
    /// some [`post_due`](Transfers::post_due) on.
    ///
    /// # Safety
    /// As [`Endpoint::post_recv`](crate::endpoint::Endpoint::post_recv).
    pub(super) unsafe fn receive(
        &mut self,
        from: Rank,
        tag: Tag,
        slot: Slot,
        region: WireRegion,
    ) -> i32 {
        let left = region.len.div_ceil(MOST_BYTES) as u32;
        let landing = Landing { from, tag, slot, region, left, is_there: false };
        let number = self.landings.insert(landing);
        self.due.push_back(number);
        FIRST_DATA + number as i32
    }

    /// Posts the receives that are due.
    ///
    /// MPI moves a long message in one go, within whatever call finds that it has come for a posted
    /// receive. If this rank still has a message to send, for which its receiver may just have
    /// asked, that one would wait: two ranks that exchange messages would move one after the other.
    /// So while it `is_sending` a receive is posted only once its message is there and who asks
    /// has been looked for once more.
    pub(super) fn post_due(&mut self, is_sending: bool) -> Result<(), WireError> {
        let most = if is_sending { PROBES_PER_POLL } else { usize::MAX };
        for _ in 0..self.due.len().min(most) {
            let Some(number) = self.due.pop_front() else { break };
            let Some(landing) = self.landings.get_mut(number) else { continue };
            let &mut Landing { from, is_there, .. } = landing;
            if !is_sending || is_there {
                let landing = *landing;
                // SAFETY: the promise of `receive`: it has not been reported.
                unsafe { self.post(number, landing) }?;
                continue;
            }
            let mut is_there = 0;
            // SAFETY: a flag that lives until the call returns.
            let code = unsafe {
                let (tag, status) = (FIRST_DATA + number as i32, ffi::RSMPI_STATUS_IGNORE);
                ffi::PMPI_Iprobe(from as c_int, tag, self.comm.0, &mut is_there, status)
            };
            check("MPI_Iprobe", code).map_err(|error| WireError { peer: Some(from), ..error })?;
            landing.is_there = is_there != 0;
            self.due.push_back(number);
        }
        Ok(())
    }

    /// Posts the receives of a message's pieces.
    ///
    /// # Safety
    /// As [`receive`](Transfers::receive).
    unsafe fn post(&mut self, number: u32, landing: Landing) -> Result<(), WireError> {
        let Landing { from, region, .. } = landing;
        let mpi_tag = FIRST_DATA + number as i32;
        for (at, len) in pieces(region.len) {
            // SAFETY: a constant of MPI's.
            let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
            // SAFETY: the caller's promise. Pieces with one tag arrive in the order of their posts.
            let code = unsafe {
                ffi::PMPI_Irecv(
                    region.ptr.add(at).cast(),
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
            self.pieces.push(Piece::Of(number));
        }
        Ok(())
    }

    /// Sends a message to a peer, whose receive is posted, with a tag of MPI's.
    ///
    /// # Safety
    /// As [`Endpoint::post_send`](crate::endpoint::Endpoint::post_send).
    pub(super) unsafe fn send(
        &mut self,
        to: Rank,
        mpi_tag: i32,
        slot: Slot,
        region: WireRegion,
    ) -> Result<(), WireError> {
        let left = region.len.div_ceil(MOST_BYTES) as u32;
        let number = self.leavings.insert(Leaving { slot, left });
        for (at, len) in pieces(region.len) {
            // SAFETY: a constant of MPI's.
            let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
            // SAFETY: the caller's promise.
            let code = unsafe {
                ffi::PMPI_Isend(
                    region.ptr.add(at).cast(),
                    len as c_int,
                    ffi::RSMPI_UINT8_T,
                    to as c_int,
                    mpi_tag,
                    self.comm.0,
                    &mut request,
                )
            };
            check("MPI_Isend", code).map_err(|error| WireError { peer: Some(to), ..error })?;
            self.requests.push(request);
            self.pieces.push(Piece::Leaving(number));
        }
        Ok(())
    }

    /// Takes a receive back, for which nothing is sent; gives its slot.
    pub(super) fn take_back(&mut self, from: Rank, tag: Tag) -> Option<Slot> {
        let found = |landing: &Landing| landing.from == from && is_same(landing.tag, tag);
        let (number, slot) = self.landings.find(found).map(|(at, landing)| (at, landing.slot))?;
        let mut requests = Vec::new();
        for at in (0..self.pieces.len()).rev() {
            if matches!(self.pieces[at], Piece::Of(of) if of == number) {
                self.pieces.swap_remove(at);
                requests.push(self.requests.swap_remove(at));
            }
        }
        // Nothing is sent for them, so they end at once.
        cancel(&mut requests, Instant::now() + LAST_WAIT);
        self.due.retain(|&due| due != number);
        self.landings.remove(number);
        Some(slot)
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
            match self.pieces.swap_remove(index as usize) {
                Piece::Of(number) => {
                    let Some(landing) = self.landings.get_mut(number) else { continue };
                    landing.left -= 1;
                    if landing.left == 0 {
                        events.push(Event::Received(landing.slot));
                        self.landings.remove(number);
                    }
                }
                Piece::Leaving(number) => {
                    let Some(leaving) = self.leavings.get_mut(number) else { continue };
                    leaving.left -= 1;
                    if leaving.left == 0 {
                        events.push(Event::Sent(leaving.slot));
                        self.leavings.remove(number);
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends everything, at most until `end`: receives are taken back; sends, which MPI cannot take
    /// back, are waited for.
    pub(super) fn abandon(&mut self, end: Instant) {
        let is_landing = |piece: &Piece| matches!(piece, Piece::Of(_));
        let all = self.requests.drain(..).zip(self.pieces.drain(..));
        let (mut landing, mut leaving) = (Vec::new(), Vec::new());
        for (request, piece) in all {
            if is_landing(&piece) { landing.push(request) } else { leaving.push(request) }
        }
        cancel(&mut landing, end);
        finish(&mut leaving, end);
        (self.landings, self.leavings, self.due) = Default::default();
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
