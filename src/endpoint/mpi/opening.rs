//! Opening and closing lanes to and from peers ([`lanes`](super::lanes)).

use super::State;
use super::header::{Header, Kind};
use super::lanes::can_carry;
use super::long_message::{Envelope, HeaderlessRecv};
use super::peer::Peer;
use crate::Rank;
use crate::endpoint::{Tag, WireError};

impl State {
    /// The lane for a long message, which is opened if necessary and possible. Counts the message.
    #[inline]
    pub(super) fn lane_to(
        &mut self,
        index: u32,
        tag: Tag,
        len: usize,
    ) -> Result<Option<u32>, WireError> {
        let lanes = &mut self.peers[index as usize].lanes_to;
        let lane = match lanes.carrying(tag, len) {
            None if can_carry(tag, len) => self.open_lane(index, tag, len)?,
            lane => lane,
        };
        if let Some(lane) = lane {
            self.peers[index as usize].lanes_to.count(lane);
        }
        Ok(lane)
    }

    /// Opens a lane for long messages of a communicator, once timing has shown which messages are long. Headers that
    /// wait for credits must go first: they determine how earlier messages travel. If all lanes are open, starts to
    /// close an idle one, for use by a later message.
    #[cold]
    fn open_lane(&mut self, index: u32, tag: Tag, len: usize) -> Result<Option<u32>, WireError> {
        let lengths = &self.outbound.lengths;
        let Peer { rank, lanes_to, outbox, .. } = &mut self.peers[index as usize];
        let rank = *rank;
        let least_bytes = lanes_to.least_bytes().unwrap_or(lengths.eager_bytes() + 1);
        if lengths.is_timing() || len < least_bytes {
            return Ok(None);
        }
        lanes_to.count_other();
        if !outbox.is_empty() {
            return Ok(None);
        }
        let Some(lane) = lanes_to.free(self.tags) else {
            if let Some((lane, n_messages)) = lanes_to.close_idle() {
                self.send_control(
                    rank,
                    Header { len: n_messages, arg: lane, ..Header::control(Kind::Close, 0, 0) },
                )?;
            }
            return Ok(None);
        };
        lanes_to.open(lane, tag.context, least_bytes);
        self.send_control(rank, Header::of(Kind::Lane, tag, least_bytes, lane))?;
        Ok(Some(lane))
    }

    /// Handles the opening of a lane by the peer: posted receives that the lane carries move to it.
    pub(super) fn lane_opened(
        &mut self,
        index: u32,
        context: u64,
        lane: u32,
        least_bytes: usize,
    ) -> Result<(), WireError> {
        let Peer { rank: from, lanes_from, .. } = &mut self.peers[index as usize];
        let from = *from;
        let opened = lanes_from.opened(lane, context, least_bytes, self.tags);
        opened.map_err(|invalid| invalid.wire_error_from(from, "MPI_Irecv"))?;
        let carried = self.matcher.take_posted(index as usize, |posted| {
            posted.tag.context == context
                && lanes_from.carrying(posted.tag, posted.region.len).is_some()
        });
        for recv in carried {
            let mpi_tag = self.tags.of(lane, recv.tag, recv.region.len);
            let awaited = HeaderlessRecv::new(Envelope { from, mpi_tag }, recv);
            // SAFETY: the receive is posted, so its region is valid and no other thread accesses it.
            unsafe { self.transfers.recv_headerless(awaited) };
        }
        Ok(())
    }

    /// Handles the peer's closing of a lane, on which it has sent `n_messages`.
    pub(super) fn lane_closing(
        &mut self,
        index: u32,
        lane: u32,
        n_messages: u64,
    ) -> Result<(), WireError> {
        let Peer { rank, lanes_from, .. } = &mut self.peers[index as usize];
        let closing = lanes_from.close(lane, n_messages);
        closing.map_err(|invalid| invalid.wire_error_from(*rank, "MPI_Irecv"))?;
        self.close_lane(index)
    }

    /// Handles the peer's confirmation that a lane to it is closed: another communicator may use the lane.
    pub(super) fn lane_closed(&mut self, index: u32, lane: u32) -> Result<(), WireError> {
        let Peer { rank, lanes_to, .. } = &mut self.peers[index as usize];
        lanes_to.closed(lane).map_err(|invalid| invalid.wire_error_from(*rank, "MPI_Irecv"))
    }

    /// Counts a message that has arrived without a header.
    pub(super) fn headerless_arrived(&mut self, envelope: Envelope) -> Result<(), WireError> {
        let Envelope { from, mpi_tag } = envelope;
        let index = self.peer(from);
        self.peers[index as usize].lanes_from.count(self.tags.lane_of(mpi_tag));
        self.close_lane(index)
    }

    /// Confirms the close of the lane that the peer is closing, once all its messages have arrived. Receives still
    /// open on the lane return to the matcher: their messages come with headers.
    #[inline]
    fn close_lane(&mut self, index: u32) -> Result<(), WireError> {
        let Peer { rank, lanes_from, .. } = &mut self.peers[index as usize];
        let Some((lane, context)) = lanes_from.take_closed() else { return Ok(()) };
        let rank = *rank;
        let is_there = |awaited: &HeaderlessRecv| {
            awaited.envelope.from == rank && awaited.recv.tag.context == context
        };
        while let Some(recv) = self.transfers.cancel_headerless_recv(is_there)? {
            self.matcher.await_message(index as usize, recv);
        }
        self.send_control(rank, Header { arg: lane, ..Header::control(Kind::Closed, 0, 0) })
    }

    /// Sends a header without a message.
    fn send_control(&mut self, to: Rank, header: Header) -> Result<(), WireError> {
        // SAFETY: there is no payload.
        unsafe { self.outbound.send(to, &header, None) }
    }
}
