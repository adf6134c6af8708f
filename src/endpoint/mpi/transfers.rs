//! Long messages, which MPI moves from region to region.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::time::Instant;

use super::ffi;

use super::drain::PostedRequests;
use super::header::{FIRST_DATA, Header};
use super::library::{Comm, check};
use super::long_message::{
    Envelope, HeaderlessRecv, HeaderlessSend, LongMessage, Role, n_pieces, pieces,
};
use super::requests::{cancel_one, n_bytes};
use crate::Rank;
use crate::endpoint::{Event, RecvPost, Slot, WireError, WireRegion};
use crate::slab::Slab;

/// Polls between two checks for messages without a header that wait for their receives.
const POLLS_PER_CHECK: u32 = 64;
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
    messages: Slab<LongMessage>,
    /// Messages of `messages` that are received only to be dropped.
    n_dropped: usize,
    /// Messages of `messages` that are sent without a header.
    n_headerless_sends: usize,
    /// Receives of `messages` for messages without a header.
    n_headerless_recvs: usize,
    n_polls: u32,
    /// Messages without a header that have arrived.
    arrived_headerless: Vec<Envelope>,
    /// Receives to be posted by `post_queued`, with the numbers of their messages.
    to_post: VecDeque<(u32, Envelope, WireRegion)>,
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
            messages: Slab::default(),
            n_dropped: 0,
            n_headerless_sends: 0,
            n_headerless_recvs: 0,
            n_polls: 0,
            arrived_headerless: Vec::with_capacity(64),
            to_post: VecDeque::with_capacity(64),
            requests: Vec::with_capacity(64),
            numbers: Vec::with_capacity(64),
            done: Vec::with_capacity(64),
            statuses: Vec::with_capacity(64),
        }
    }

    /// The MPI tag of the next message with a header.
    pub(super) fn tag(&self) -> i32 {
        FIRST_DATA + self.messages.next() as i32
    }

    /// Whether MPI allows [`tag`](Transfers::tag). If not, it will once other messages have completed.
    pub(super) fn has_tag(&self) -> bool {
        self.tag() <= self.last_tag
    }

    /// Whether [`post_queued`](Transfers::post_queued) has receives to post.
    pub(super) fn has_to_post(&self) -> bool {
        !self.to_post.is_empty()
    }

    /// Whether messages to be dropped are still arriving; their senders may wait for that.
    pub(super) fn is_dropping(&self) -> bool {
        self.n_dropped > 0
    }

    /// Whether receives are open for messages without a header.
    #[inline]
    pub(super) fn is_awaiting(&self) -> bool {
        self.n_headerless_recvs > 0
    }

    /// Sends a message with the MPI tag [`tag`](Transfers::tag).
    ///
    /// # Safety
    /// As [`Endpoint::post_send`](crate::endpoint::Endpoint::post_send).
    pub(super) unsafe fn send(
        &mut self,
        to: Rank,
        slot: Slot,
        region: WireRegion,
    ) -> Result<(), WireError> {
        let (mpi_tag, pieces_left) = (self.tag(), n_pieces(region.len));
        let number = self.messages.insert(LongMessage { role: Role::Send(slot), pieces_left });
        for (at, len) in pieces(region.len) {
            let part = WireRegion { ptr: region.ptr.wrapping_add(at), len, ..region };
            // SAFETY: the caller's promise; the part lies within the region.
            unsafe { self.issend(to, mpi_tag, part, number) }?;
        }
        Ok(())
    }

    /// Sends a message by a stream's tag, `header.arg`. The header announces the message if it waits for long.
    ///
    /// # Safety
    /// As [`Endpoint::post_send`](crate::endpoint::Endpoint::post_send).
    pub(super) unsafe fn send_headerless(
        &mut self,
        to: Rank,
        slot: Slot,
        header: Header,
        region: WireRegion,
    ) -> Result<(), WireError> {
        let role = Role::HeaderlessSend(HeaderlessSend::new(slot, to, header));
        let mpi_tag = header.arg as i32;
        let number = self.messages.insert(LongMessage { role, pieces_left: 1 });
        self.n_headerless_sends += 1;
        // SAFETY: the caller's promise.
        unsafe { self.issend(to, mpi_tag, region, number) }
    }

    /// Starts the send of a piece. The send is synchronous: it completes when the piece has been matched, even if MPI
    /// sends it eagerly.
    ///
    /// # Safety
    /// As [`Endpoint::post_send`](crate::endpoint::Endpoint::post_send).
    #[inline]
    unsafe fn issend(
        &mut self,
        to: Rank,
        mpi_tag: i32,
        piece: WireRegion,
        number: u32,
    ) -> Result<(), WireError> {
        let (mut request, what) = (ffi::request_null(), ffi::uint8_t());
        let (ptr, len) = (piece.ptr.cast_const().cast(), piece.len as c_int);
        let (dest, comm) = (to as c_int, self.comm.0);
        // SAFETY: the caller's promise.
        let code = unsafe { ffi::PMPI_Issend(ptr, len, what, dest, mpi_tag, comm, &mut request) };
        check("MPI_Issend", code).map_err(|error| WireError { peer: Some(to), ..error })?;
        self.requests.push(request);
        self.numbers.push(number);
        Ok(())
    }

    /// Queues the receive of a peer's message whose header has arrived; the next
    /// [`post_queued`](Transfers::post_queued) posts it.
    ///
    /// # Safety
    /// As [`Endpoint::post_recv`](crate::endpoint::Endpoint::post_recv).
    pub(super) unsafe fn receive(&mut self, envelope: Envelope, slot: Slot, region: WireRegion) {
        let pieces_left = n_pieces(region.len);
        let number = self
            .messages
            .insert(LongMessage { role: Role::Recv(envelope.from, slot), pieces_left });
        self.to_post.push_back((number, envelope, region));
    }

    /// Queues the receive of a message without a header; the next [`post_queued`](Transfers::post_queued) posts it.
    ///
    /// # Safety
    /// As [`Endpoint::post_recv`](crate::endpoint::Endpoint::post_recv).
    pub(super) unsafe fn recv_headerless(&mut self, awaited: HeaderlessRecv) {
        let number = self
            .messages
            .insert(LongMessage { role: Role::HeaderlessRecv(awaited), pieces_left: 1 });
        self.n_headerless_recvs += 1;
        self.to_post.push_back((number, awaited.envelope, awaited.recv.region));
    }

    /// Whether a receive is open for a message without a header with this envelope.
    pub(super) fn has_headerless_recv(&self, envelope: Envelope) -> bool {
        self.find_headerless_recv(|awaited| awaited.envelope == envelope).is_some()
    }

    /// Cancels the first receive for a message without a header that `is_it` accepts, and returns it.
    ///
    /// # Errors
    /// [`WireError`] if MPI has already matched another message with it.
    #[cold]
    pub(super) fn cancel_headerless_recv(
        &mut self,
        is_it: impl Fn(&HeaderlessRecv) -> bool,
    ) -> Result<Option<RecvPost>, WireError> {
        let Some((number, awaited)) = self.find_headerless_recv(is_it) else { return Ok(None) };
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
            None => self.to_post.retain(|&(due, ..)| due != number),
        }
        self.messages.remove(number);
        self.n_headerless_recvs -= 1;
        Ok(Some(awaited.recv))
    }

    fn find_headerless_recv(
        &self,
        is_it: impl Fn(&HeaderlessRecv) -> bool,
    ) -> Option<(u32, HeaderlessRecv)> {
        self.messages.iter().find_map(|(number, of)| match &of.role {
            Role::HeaderlessRecv(awaited) if is_it(awaited) => Some((number, *awaited)),
            _ => None,
        })
    }

    /// Posts the receives that are queued.
    ///
    /// MPI may move a whole message while its receive is being posted. So this rank's sends should start earlier:
    /// then two ranks that exchange messages move both at once.
    #[inline]
    pub(super) fn post_queued(&mut self) -> Result<(), WireError> {
        while let Some((number, envelope, WireRegion { ptr, len, .. })) = self.to_post.pop_front() {
            // SAFETY: the promise of `receive` and `recv_headerless`, since the receive has not been reported.
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
        let (ptr, pieces_left) = (waste.as_mut_ptr(), n_pieces(len));
        self.n_dropped += 1;
        let number = self.messages.insert(LongMessage { role: Role::Dropped(waste), pieces_left });
        // SAFETY: the memory is only used for this message and lives in `messages` as long as the message.
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
            let Some(of) = self.messages.get_mut(number) else { continue };
            of.pieces_left -= 1;
            if of.pieces_left > 0 {
                continue;
            }
            match &of.role {
                Role::Send(slot) => events.push(Event::Sent(*slot)),
                Role::HeaderlessSend(HeaderlessSend { slot, .. }) => {
                    self.n_headerless_sends -= 1;
                    events.push(Event::Sent(*slot));
                }
                Role::Recv(_, slot) => events.push(Event::Received(*slot)),
                &Role::HeaderlessRecv(HeaderlessRecv { envelope, recv }) => {
                    self.n_headerless_recvs -= 1;
                    self.arrived_headerless.push(envelope);
                    let fits = n_bytes(status)? == recv.region.len;
                    let differs = Event::Differs(recv.slot, envelope.from);
                    events.push(if fits { Event::Received(recv.slot) } else { differs });
                }
                Role::Dropped(_) => self.n_dropped -= 1,
            }
            self.messages.remove(number);
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
    pub(super) fn next_headerless(&mut self) -> Option<Envelope> {
        self.arrived_headerless.pop()
    }

    /// Counts a poll; whether it should check for messages without a header that wait for their receives.
    #[inline]
    pub(super) fn is_time_to_announce(&mut self) -> bool {
        if self.n_headerless_sends == 0 {
            return false;
        }
        self.n_polls = self.n_polls.wrapping_add(1);
        self.n_polls.is_multiple_of(POLLS_PER_CHECK)
    }

    /// Headers that announce messages whose receives have been missing for long: a receiver that makes another call
    /// would never learn of these messages. The interval doubles with each announcement of a message.
    #[cold]
    pub(super) fn unmatched(&mut self) -> Vec<(Rank, Header)> {
        let now = Instant::now();
        let announced = |of: &mut LongMessage| match &mut of.role {
            Role::HeaderlessSend(send) => send.announcement(now),
            _ => None,
        };
        self.messages.iter_mut().filter_map(announced).take(ANNOUNCED_AT_A_TIME).collect()
    }

    /// Ends all transfers ([`PostedRequests::drain`]).
    pub(super) fn abandon(&mut self, rank: Rank, times: [Instant; 3]) {
        let mut open = PostedRequests::of(rank);
        for (request, number) in self.requests.drain(..).zip(self.numbers.drain(..)) {
            open.add(request, self.messages.get_mut(number).map(|of| &of.role));
        }
        if !open.drain(self.comm, times) {
            // MPI may still write to the memory of dropped messages.
            std::mem::forget(std::mem::take(&mut self.messages));
        }
        (self.messages, self.to_post) = Default::default();
        (self.n_dropped, self.n_headerless_sends, self.n_headerless_recvs) = Default::default();
    }

    /// Whether MPI may write to regions of receives.
    pub(super) fn is_receiving(&self) -> bool {
        self.messages.iter().any(|(_, of)| of.role.sender().is_some())
    }
}
