//! Opening and closing streams to and from peers ([`streams`](super::streams)).

use super::State;
use super::header::{Header, HeaderKind};
use super::long_message::{Envelope, HeaderlessRecv};
use super::peer::MpiPeer;
use super::streams::can_carry;
use crate::Rank;
use crate::endpoint::{Tag, WireError};

impl State {
    /// The stream for a long message, which is opened if necessary and possible. Counts the message.
    #[inline]
    pub(super) fn stream_to(
        &mut self,
        index: u32,
        tag: Tag,
        len: usize,
    ) -> Result<Option<u32>, WireError> {
        let streams = &mut self.peers[index as usize].streams_to;
        let stream = match streams.carrying(tag, len) {
            None if can_carry(tag, len) => self.open_stream(index, tag, len)?,
            stream => stream,
        };
        if let Some(stream) = stream {
            self.peers[index as usize].streams_to.count(stream);
        }
        Ok(stream)
    }

    /// Opens a stream for long messages of a communicator, once timing has shown which messages are long. Headers that
    /// wait for credits must go first: they determine how earlier messages travel. If all streams are open, starts to
    /// close an idle one, for use by a later message.
    #[cold]
    fn open_stream(&mut self, index: u32, tag: Tag, len: usize) -> Result<Option<u32>, WireError> {
        let lengths = &self.outbound.lengths;
        let MpiPeer { rank, streams_to, outbox, .. } = &mut self.peers[index as usize];
        let rank = *rank;
        let least_bytes = streams_to.least_bytes().unwrap_or(lengths.eager_bytes() + 1);
        if lengths.is_timing() || len < least_bytes {
            return Ok(None);
        }
        streams_to.count_other();
        if !outbox.is_empty() {
            return Ok(None);
        }
        let Some(stream) = streams_to.free(self.tags) else {
            if let Some((stream, n_messages)) = streams_to.close_idle() {
                self.send_control(
                    rank,
                    Header {
                        len: n_messages,
                        arg: stream,
                        ..Header::control(HeaderKind::Close, 0, 0)
                    },
                )?;
            }
            return Ok(None);
        };
        streams_to.open(stream, tag.context, least_bytes);
        self.send_control(rank, Header::of(HeaderKind::Stream, tag, least_bytes, stream))?;
        Ok(Some(stream))
    }

    /// Handles the opening of a stream by the peer: posted receives that the stream carries move to it.
    pub(super) fn stream_opened(
        &mut self,
        index: u32,
        context: u64,
        stream: u32,
        least_bytes: usize,
    ) -> Result<(), WireError> {
        let MpiPeer { rank: from, streams_from, .. } = &mut self.peers[index as usize];
        let from = *from;
        let opened = streams_from.opened(stream, context, least_bytes, self.tags);
        opened.map_err(|invalid| invalid.wire_error_from(from, "MPI_Irecv"))?;
        let carried = self.matcher.take_posted(index as usize, |posted| {
            posted.tag.context == context
                && streams_from.carrying(posted.tag, posted.region.len).is_some()
        });
        for recv in carried {
            let mpi_tag = self.tags.of(stream, recv.tag, recv.region.len);
            let awaited = HeaderlessRecv::new(Envelope { from, mpi_tag }, recv);
            // SAFETY: the receive is posted, so its region is valid and no other thread accesses it.
            unsafe { self.transfers.recv_headerless(awaited) };
        }
        Ok(())
    }

    /// Handles the peer's closing of a stream, on which it has sent `n_messages`.
    pub(super) fn stream_closing(
        &mut self,
        index: u32,
        stream: u32,
        n_messages: u64,
    ) -> Result<(), WireError> {
        let MpiPeer { rank, streams_from, .. } = &mut self.peers[index as usize];
        let closing = streams_from.close(stream, n_messages);
        closing.map_err(|invalid| invalid.wire_error_from(*rank, "MPI_Irecv"))?;
        self.close_stream(index)
    }

    /// Handles the peer's confirmation that a stream to it is closed: another communicator may use the stream.
    pub(super) fn stream_closed(&mut self, index: u32, stream: u32) -> Result<(), WireError> {
        let MpiPeer { rank, streams_to, .. } = &mut self.peers[index as usize];
        streams_to.closed(stream).map_err(|invalid| invalid.wire_error_from(*rank, "MPI_Irecv"))
    }

    /// Counts a message that has arrived without a header.
    pub(super) fn headerless_arrived(&mut self, envelope: Envelope) -> Result<(), WireError> {
        let Envelope { from, mpi_tag } = envelope;
        let index = self.peer(from);
        self.peers[index as usize].streams_from.count(self.tags.stream_of(mpi_tag));
        self.close_stream(index)
    }

    /// Confirms the close of the stream that the peer is closing, once all its messages have arrived. Receives still
    /// open on the stream return to the matcher: their messages come with headers.
    #[inline]
    fn close_stream(&mut self, index: u32) -> Result<(), WireError> {
        let MpiPeer { rank, streams_from, .. } = &mut self.peers[index as usize];
        let Some((stream, context)) = streams_from.take_closed() else { return Ok(()) };
        let rank = *rank;
        let is_there = |awaited: &HeaderlessRecv| {
            awaited.envelope.from == rank && awaited.recv.tag.context == context
        };
        while let Some(recv) = self.transfers.cancel_headerless_recv(is_there)? {
            self.matcher.await_message(index as usize, recv);
        }
        self.send_control(rank, Header { arg: stream, ..Header::control(HeaderKind::Closed, 0, 0) })
    }

    /// Sends a header without a message.
    fn send_control(&mut self, to: Rank, header: Header) -> Result<(), WireError> {
        // SAFETY: there is no payload.
        unsafe { self.outbound.send(to, &header, None) }
    }
}
