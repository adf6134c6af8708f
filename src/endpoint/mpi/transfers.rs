//! Long messages, which MPI moves from region to region.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::time::Instant;

use super::ffi;

use super::drain::drain;
use super::header::{FIRST_DATA, Header};
use super::library::{Comm, check};
use super::moves::{Awaited, Bare, Envelope, Move, What, n_pieces, pieces};
use super::requests::{IsendFunction, cancel, cancel_one, n_bytes};
use crate::Rank;
use crate::endpoint::{Event, RecvPost, Slot, WireError, WireRegion};
use crate::numbered::Numbered;

/// Polls between two checks for messages without a header that wait for their receives.
const POLLS_PER_LOOK: u32 = 64;
/// Most messages announced in one check.
const ANNOUNCED_AT_A_TIME: usize = 16;

/// The long messages of a port.
#[derive(Debug)]
pub(super) struct Transfers {
    comm: Comm,
    /// The last MPI tag for messages with a header.
    last_tag: i32,
    /// The number of a message with a header determines its MPI tag. The message keeps the number until its receiver
    /// has matched it, so no two messages in flight from this port share a tag.
    moves: Numbered<Move>,
    /// Messages of `moves` that are received only to be dropped.
    n_dropped: usize,
    /// Messages of `moves` that are sent without a header.
    n_bare: usize,
    /// Receives of `moves` for messages without a header.
    n_awaited: usize,
    n_polls: u32,
    /// Messages without a header that have arrived.
    arrived_bare: Vec<Envelope>,
    /// Receives to be posted by `begin`, with the numbers of their messages.
    due: VecDeque<(u32, Envelope, WireRegion)>,
    requests: Vec<ffi::MPI_Request>,
    /// The number of each request's message.
    numbers: Vec<u32>,
    done: Vec<c_int>,
    statuses: Vec<MaybeUninit<ffi::MPI_Status>>,
}

impl Transfers {
    pub(super) fn new(comm: Comm, last_tag: i32) -> Self {
        Transfers {
            comm,
            last_tag,
            moves: Numbered::default(),
            n_dropped: 0,
            n_bare: 0,
            n_awaited: 0,
            n_polls: 0,
            arrived_bare: Vec::with_capacity(64),
            due: VecDeque::with_capacity(64),
            requests: Vec::with_capacity(64),
            numbers: Vec::with_capacity(64),
            done: Vec::with_capacity(64),
            statuses: Vec::with_capacity(64),
        }
    }

    /// The MPI tag of the next message with a header.
    pub(super) fn tag(&self) -> i32 {
        FIRST_DATA + self.moves.next() as i32
    }

    /// Whether MPI allows [`tag`](Transfers::tag). If not, it will once other messages have completed.
    pub(super) fn has_tag(&self) -> bool {
        self.tag() <= self.last_tag
    }

    /// Whether [`begin`](Transfers::begin) has receives to post.
    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Whether messages to be dropped are still arriving; their senders may wait for that.
    pub(super) fn is_dropping(&self) -> bool {
        self.n_dropped > 0
    }

    /// Whether receives are open for messages without a header.
    #[inline]
    pub(super) fn is_awaiting(&self) -> bool {
        self.n_awaited > 0
    }

    /// Sends a message with the MPI tag [`tag`](Transfers::tag). The send is synchronous: once it completes the
    /// message has been matched, and another message may use its tag.
    ///
    /// # Safety
    /// As [`Endpoint::post_send`](crate::endpoint::Endpoint::post_send).
    pub(super) unsafe fn send(
        &mut self,
        to: Rank,
        slot: Slot,
        region: WireRegion,
    ) -> Result<(), WireError> {
        let (mpi_tag, left) = (self.tag(), n_pieces(region.len));
        let number = self.moves.insert(Move { what: What::Sent(slot), left });
        for (at, len) in pieces(region.len) {
            let part = WireRegion { ptr: region.ptr.wrapping_add(at), len, ..region };
            // SAFETY: the caller's promise; the part lies within the region.
            unsafe { self.isend(ffi::PMPI_Issend, "MPI_Issend", to, mpi_tag, part, number) }?;
        }
        Ok(())
    }

    /// Sends a message by a lane's tag, `header.way`. The header announces the message if it waits for long.
    ///
    /// # Safety
    /// As [`Endpoint::post_send`](crate::endpoint::Endpoint::post_send).
    pub(super) unsafe fn send_bare(
        &mut self,
        to: Rank,
        slot: Slot,
        header: Header,
        region: WireRegion,
    ) -> Result<(), WireError> {
        let what = What::Bare(Bare::new(slot, to, header));
        let mpi_tag = header.way as i32;
        let number = self.moves.insert(Move { what, left: 1 });
        self.n_bare += 1;
        // SAFETY: the caller's promise.
        unsafe { self.isend(ffi::PMPI_Isend, "MPI_Isend", to, mpi_tag, region, number) }
    }

    /// Starts the send of a piece with `by`, one of MPI's send functions.
    ///
    /// # Safety
    /// As [`Endpoint::post_send`](crate::endpoint::Endpoint::post_send).
    #[inline]
    unsafe fn isend(
        &mut self,
        by: IsendFunction,
        name: &'static str,
        to: Rank,
        mpi_tag: i32,
        piece: WireRegion,
        number: u32,
    ) -> Result<(), WireError> {
        let (mut request, what) = (ffi::request_null(), ffi::uint8_t());
        let (ptr, len) = (piece.ptr.cast_const().cast(), piece.len as c_int);
        // SAFETY: the caller's promise.
        let code = unsafe { by(ptr, len, what, to as c_int, mpi_tag, self.comm.0, &mut request) };
        check(name, code).map_err(|error| WireError { peer: Some(to), ..error })?;
        self.requests.push(request);
        self.numbers.push(number);
        Ok(())
    }

    /// Queues the receive of a peer's message whose header has arrived; the next [`begin`](Transfers::begin) posts
    /// it.
    ///
    /// # Safety
    /// As [`Endpoint::post_recv`](crate::endpoint::Endpoint::post_recv).
    pub(super) unsafe fn receive(&mut self, envelope: Envelope, slot: Slot, region: WireRegion) {
        let left = n_pieces(region.len);
        let number = self.moves.insert(Move { what: What::Received(slot), left });
        self.due.push_back((number, envelope, region));
    }

    /// Queues the receive of a message without a header; the next [`begin`](Transfers::begin) posts it.
    ///
    /// # Safety
    /// As [`Endpoint::post_recv`](crate::endpoint::Endpoint::post_recv).
    pub(super) unsafe fn expect(&mut self, awaited: Awaited) {
        let number = self.moves.insert(Move { what: What::Awaited(awaited), left: 1 });
        self.n_awaited += 1;
        self.due.push_back((number, awaited.envelope, awaited.recv.region));
    }

    /// Whether a receive is open for a message without a header with this envelope.
    pub(super) fn expects(&self, envelope: Envelope) -> bool {
        self.awaited(|awaited| awaited.envelope == envelope).is_some()
    }

    /// Cancels the first receive for a message without a header that `is_it` accepts, and returns it.
    ///
    /// # Errors
    /// [`WireError`] if MPI has already matched another message with it.
    #[cold]
    pub(super) fn take_back(
        &mut self,
        is_it: impl Fn(&Awaited) -> bool,
    ) -> Result<Option<RecvPost>, WireError> {
        let Some((number, awaited)) = self.awaited(is_it) else { return Ok(None) };
        let from = awaited.envelope.from;
        match self.numbers.iter().position(|&of| of == number) {
            Some(at) => {
                self.numbers.swap_remove(at);
                let mut request = self.requests.swap_remove(at);
                if !cancel_one(&mut request)? {
                    let reason = format!("two messages of rank {from} for one receive");
                    return Err(WireError::new("MPI_Cancel", reason));
                }
            }
            None => self.due.retain(|&(due, ..)| due != number),
        }
        self.moves.remove(number);
        self.n_awaited -= 1;
        Ok(Some(awaited.recv))
    }

    fn awaited(&self, is_it: impl Fn(&Awaited) -> bool) -> Option<(u32, Awaited)> {
        self.moves.iter().find_map(|(number, of)| match &of.what {
            What::Awaited(awaited) if is_it(awaited) => Some((number, *awaited)),
            _ => None,
        })
    }

    /// Posts the receives that are queued.
    ///
    /// MPI may move a whole message while its receive is being posted. So this rank's sends should start earlier:
    /// then two ranks that exchange messages move both at once.
    #[inline]
    pub(super) fn begin(&mut self) -> Result<(), WireError> {
        while let Some((number, envelope, WireRegion { ptr, len, .. })) = self.due.pop_front() {
            // SAFETY: the promise of `receive` and `expect`, since the receive has not been reported.
            unsafe { self.post(envelope, ptr, len, number) }?;
        }
        Ok(())
    }

    /// Receives and drops a message that fits no receive of this rank, so that its sender completes.
    pub(super) fn drop(&mut self, envelope: Envelope, len: usize) -> Result<(), WireError> {
        let mut waste = Vec::new();
        waste
            .try_reserve_exact(len)
            .map_err(|error| WireError::new("dropping a message", error).at(envelope.from))?;
        let (ptr, left) = (waste.as_mut_ptr(), n_pieces(len));
        self.n_dropped += 1;
        let number = self.moves.insert(Move { what: What::Dropped(waste), left });
        // SAFETY: the memory is only used for this message and lives in `moves` as long as the message.
        unsafe { self.post(envelope, ptr, len, number) }
    }

    /// Posts the receives of a message's pieces.
    ///
    /// # Safety
    /// As [`receive`](Transfers::receive).
    unsafe fn post(
        &mut self,
        Envelope { from, mpi_tag }: Envelope,
        ptr: *mut u8,
        len: usize,
        number: u32,
    ) -> Result<(), WireError> {
        for (at, len) in pieces(len) {
            let mut request = ffi::request_null();
            // SAFETY: the caller's promise. Pieces with one tag arrive in the order of their sends.
            let code = unsafe {
                ffi::PMPI_Irecv(
                    ptr.add(at).cast(),
                    len as c_int,
                    ffi::uint8_t(),
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

    /// Reports the messages that have completed.
    #[inline]
    pub(super) fn advance(&mut self, events: &mut Vec<Event>) -> Result<(), WireError> {
        let n = self.requests.len();
        if n == 0 {
            return Ok(());
        }
        self.done.resize(n, 0);
        self.statuses.resize(n, MaybeUninit::uninit());
        let mut n_done = 0;
        // SAFETY: the requests are active, and there is room for as many indices and statuses.
        let code = unsafe {
            ffi::PMPI_Testsome(
                n as c_int,
                self.requests.as_mut_ptr(),
                &mut n_done,
                self.done.as_mut_ptr(),
                self.statuses.as_mut_ptr().cast(),
            )
        };
        check("MPI_Testsome", code)?;
        // Negative (MPI_UNDEFINED) if no request is active.
        let n_done = usize::try_from(n_done).unwrap_or(0).min(n);
        let mut gone = std::mem::take(&mut self.done);
        for (&index, status) in gone[..n_done].iter().zip(&self.statuses) {
            // SAFETY: MPI has written the status of a complete request.
            let status = unsafe { status.assume_init_ref() };
            let number = self.numbers[index as usize];
            let Some(of) = self.moves.get_mut(number) else { continue };
            of.left -= 1;
            if of.left > 0 {
                continue;
            }
            match &of.what {
                What::Sent(slot) => events.push(Event::Sent(*slot)),
                What::Bare(Bare { slot, .. }) => {
                    self.n_bare -= 1;
                    events.push(Event::Sent(*slot));
                }
                What::Received(slot) => events.push(Event::Received(*slot)),
                &What::Awaited(Awaited { envelope, recv }) => {
                    self.n_awaited -= 1;
                    self.arrived_bare.push(envelope);
                    let fits = n_bytes(status)? == recv.region.len;
                    let differs = Event::Differs(recv.slot, envelope.from);
                    events.push(if fits { Event::Received(recv.slot) } else { differs });
                }
                What::Dropped(_) => self.n_dropped -= 1,
            }
            self.moves.remove(number);
        }
        // From the back: then the request that swap_remove moves to the free place is not in the list.
        gone[..n_done].sort_unstable_by(|a, b| b.cmp(a));
        for &index in &gone[..n_done] {
            self.requests.swap_remove(index as usize);
            self.numbers.swap_remove(index as usize);
        }
        self.done = gone;
        Ok(())
    }

    /// Takes one of the messages without a header that have arrived.
    #[inline]
    pub(super) fn next_bare(&mut self) -> Option<Envelope> {
        self.arrived_bare.pop()
    }

    /// Counts a poll; whether it should check for messages without a header that wait for their receives.
    #[inline]
    pub(super) fn is_time_to_announce(&mut self) -> bool {
        if self.n_bare == 0 {
            return false;
        }
        self.n_polls = self.n_polls.wrapping_add(1);
        self.n_polls.is_multiple_of(POLLS_PER_LOOK)
    }

    /// Headers that announce messages whose receives have been missing for long: a receiver that makes another call
    /// would never learn of these messages. The interval doubles with each announcement of a message.
    #[cold]
    pub(super) fn unmet(&mut self) -> Vec<(Rank, Header)> {
        let now = Instant::now();
        let announced = |of: &mut Move| match &mut of.what {
            What::Bare(bare) => bare.announcement(now),
            _ => None,
        };
        self.moves.iter_mut().filter_map(announced).take(ANNOUNCED_AT_A_TIME).collect()
    }

    /// Ends all transfers, at latest at `end`. Cancels receives, and waits for sends, which MPI cannot cancel.
    /// Meanwhile receives and drops the messages of peers, from `first` on and at least until `least`.
    pub(super) fn abandon(&mut self, [first, least, end]: [Instant; 3]) {
        let (mut arriving, mut leaving) = (Vec::new(), Vec::new());
        for (request, number) in self.requests.drain(..).zip(self.numbers.drain(..)) {
            let leaves = self
                .moves
                .get_mut(number)
                .is_some_and(|of| matches!(of.what, What::Sent(_) | What::Bare(_)));
            if leaves { leaving.push(request) } else { arriving.push(request) }
        }
        if !cancel(&mut arriving, end) {
            // MPI may still write to the memory of dropped messages.
            std::mem::forget(std::mem::take(&mut self.moves));
        }
        drain(self.comm, &mut leaving, [first, least, end]);
        (self.moves, self.due) = Default::default();
        (self.n_dropped, self.n_bare, self.n_awaited) = Default::default();
    }
}
