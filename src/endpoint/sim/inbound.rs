//! What a simulated port receives.

use crate::Rank;
use crate::endpoint::matcher::Unexpected;
use crate::endpoint::{Arrival, Event, Posted, RecvPost, Slot, View, WireError, WireRegion};

use super::SimEndpoint;
pub(super) use super::net::SimBody;
use super::net::{NetState, SimAction, SimPacket, SimPut};
use super::trace::TraceStep;

/// What a message that came before its receive takes besides its bytes.
pub(super) const RECORD_BYTES: usize = 64;

/// A receive whose message comes in pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimCicoRecv {
    slot: Slot,
    region: WireRegion,
    /// Bytes that have not come.
    rest: usize,
}

/// A rendezvous message that this rank reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimCmaRecv {
    from: Rank,
    id: u64,
    slot: Slot,
    region: WireRegion,
    done: usize,
}

/// A view, until the next poll.
#[derive(Debug)]
pub(super) struct SimOpenView {
    /// A copy of the message: its sender may give up before the view ends, and its program free the memory.
    bytes: Box<[u8]>,
    /// The sender and the rendezvous, if the sender waits for the end of the view.
    rendezvous: Option<(Rank, u64)>,
}

impl SimOpenView {
    pub(super) fn is_rendezvous(&self) -> bool {
        self.rendezvous.is_some()
    }
}

impl SimEndpoint {
    /// Posts a receive.
    ///
    /// # Safety
    /// As [`Endpoint::post_recv`](crate::endpoint::Endpoint::post_recv).
    pub(super) unsafe fn receive(
        &mut self,
        core: &mut NetState,
        from: Rank,
        posted: RecvPost,
    ) -> Posted {
        let peer = self.peer(core, from);
        let defers_posts = core.params.defers_posts;
        if core.chance(defers_posts) {
            self.try_again(core);
            return Posted::Later;
        }
        let (tag, len) = (posted.tag, posted.region.len);
        core.note(self.rank, TraceStep::Awaits { from, port: self.port, tag, len });
        let found = self.matcher.post(peer, posted);
        let is_met =
            found.as_ref().is_some_and(|unexpected| posted.fits(unexpected.tag, unexpected.len));
        if let Some(unexpected) = found {
            self.release_unexpected(peer, &unexpected.body);
            self.met(core, peer, &posted, unexpected);
        }
        // What is done at once may be said at once.
        let received = Event::Received(posted.slot);
        let tells = core.params.completes_at_once;
        if is_met && self.events.last() == Some(&received) && core.chance(tells) {
            self.events.pop();
            return Posted::Done;
        }
        if !self.events.is_empty() {
            self.try_again(core);
        }
        Posted::Accepted
    }

    /// A message has come before its receive. The credit of an eager one may be kept with it.
    fn keep(&mut self, peer: usize, mut message: Unexpected<SimBody>) {
        message.body = match message.body {
            SimBody::Eager(bytes) if !self.matcher.bytes.keep(bytes.len() + RECORD_BYTES) => {
                SimBody::Held(bytes)
            }
            body => body,
        };
        if matches!(message.body, SimBody::Eager(_)) {
            self.credits_to_return[peer] += 1;
        }
        self.matcher.add_unexpected(peer, message);
    }

    /// A receive has been posted, whose message may have been kept.
    fn release_unexpected(&mut self, peer: usize, body: &SimBody) {
        if let SimBody::Eager(bytes) | SimBody::Held(bytes) = body {
            self.matcher.bytes.release(bytes.len() + RECORD_BYTES);
        }
        if let SimBody::Held(_) = body {
            self.credits_to_return[peer] += 1;
        }
    }

    /// A message and its receive have met.
    fn met(
        &mut self,
        core: &mut NetState,
        peer: usize,
        posted: &RecvPost,
        message: Unexpected<SimBody>,
    ) {
        let from = self.ranks[peer];
        match (posted.fits(message.tag, message.len), message.body) {
            (true, SimBody::Eager(bytes) | SimBody::Held(bytes)) => self.take(core, posted, bytes),
            (true, SimBody::Rendezvous(id)) => self.recv_rendezvous(core, from, posted, id),
            (false, body) => {
                if let SimBody::Rendezvous(id) = body {
                    core.send(self.rank, self.port, from, SimPacket::Read(id));
                }
                self.events.push(Event::Differs(posted.slot, from));
            }
        }
    }

    fn take(&mut self, core: &mut NetState, posted: &RecvPost, bytes: Box<[u8]>) {
        let &RecvPost { slot, region, arrival, .. } = posted;
        if arrival == Arrival::Anywhere && self.is_shown(core) {
            self.show(slot, SimOpenView { bytes, rendezvous: None });
            return;
        }
        // SAFETY: the receive is posted, so its region is valid and nobody else's; both have one length.
        unsafe { core.write(self.rank, &region, 0, bytes.as_ptr(), bytes.len()) };
        self.events.push(Event::Received(slot));
    }

    fn is_shown(&self, core: &mut NetState) -> bool {
        let gives_views = core.params.gives_views;
        core.chance(gives_views)
    }

    fn show(&mut self, slot: Slot, open: SimOpenView) {
        let view = View { ptr: open.bytes.as_ptr(), len: open.bytes.len() };
        self.events.push(Event::Viewed(slot, view));
        self.next_views.push((slot, open));
    }

    fn recv_rendezvous(&mut self, core: &mut NetState, from: Rank, posted: &RecvPost, id: u64) {
        use rand::Rng;
        let &RecvPost { slot, region, arrival, .. } = posted;
        if arrival == Arrival::Anywhere
            && self.is_shown(core)
            && let Some(source) = core.rendezvous_send(id)
        {
            // SAFETY: the send is posted, and neither its event has been reported nor has its port given up.
            let bytes = unsafe { core.copied(self.rank, &source.region) };
            self.show(slot, SimOpenView { bytes, rendezvous: Some((from, id)) });
            return;
        }
        let [read, put, pull] = core.params.rendezvous_weights.map(u32::from);
        match core.rng.random_range(0..read + put + pull) {
            way if way < read => {
                self.cma_recvs.push(SimCmaRecv { from, id, slot, region, done: 0 });
                self.try_again(core);
            }
            way if way < read + put => {
                let to = (self.rank, self.port);
                core.later(SimAction::Put(SimPut { id, to, slot, region, done: 0 }));
            }
            _ => {
                let recv =
                    self.rendezvous_recvs.insert(SimCicoRecv { slot, region, rest: region.len });
                core.send(self.rank, self.port, from, SimPacket::ClearToSend { id, recv });
            }
        }
    }

    /// Ends the views that the last poll has reported.
    pub(super) fn end_views(&mut self, core: &mut NetState) {
        for view in std::mem::take(&mut self.views) {
            self.end_view(core, view);
        }
    }

    /// Lets go of one view.
    pub(super) fn end_view(&mut self, core: &mut NetState, view: SimOpenView) {
        let SimOpenView { mut bytes, rendezvous } = view;
        // Whoever still reads it reads nonsense.
        bytes.fill(0xdd);
        if let Some((from, id)) = rendezvous {
            core.send(self.rank, self.port, from, SimPacket::Read(id));
        }
    }

    /// A poll of a port that has not given up.
    pub(super) fn poll_on(
        &mut self,
        core: &mut NetState,
        events: &mut Vec<Event>,
    ) -> Result<(), WireError> {
        let state = core.port(self.rank, self.port);
        let (inbox, own) = (std::mem::take(&mut state.inbox), std::mem::take(&mut state.events));
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        self.events.extend(own);
        let delays_events = core.params.delays_events;
        let mut is_left = false;
        for (from, packet) in inbox {
            if core.chance(delays_events) {
                core.port(self.rank, self.port).inbox.push((from, packet));
                is_left = true;
            } else {
                self.on_packet(core, from, packet)?;
            }
        }
        self.advance_cma(core)?;
        self.advance_cico(core);
        self.return_credits(core);
        let mut kept = Vec::new();
        for event in std::mem::take(&mut self.events) {
            if core.chance(delays_events) {
                kept.push(event);
                continue;
            }
            if let Event::Viewed(slot, _) = event
                && let Some(at) = self.next_views.iter().position(|(of, _)| *of == slot)
            {
                self.views.push(self.next_views.swap_remove(at).1);
            }
            self.open.end(&event);
            events.push(event);
        }
        is_left |= !kept.is_empty();
        self.events = kept;
        if is_left {
            self.try_again(core);
        }
        if let Some(blame) = self.news
            && !std::mem::replace(&mut self.reported, true)
        {
            events.push(Event::News(blame));
        }
        Ok(())
    }

    fn on_packet(
        &mut self,
        core: &mut NetState,
        from: Rank,
        packet: SimPacket,
    ) -> Result<(), WireError> {
        match packet {
            SimPacket::Message { tag, len, body } => {
                let peer = self.peer(core, from);
                let found =
                    self.matcher.match_message(peer, tag).map_err(|other| self.differs(other))?;
                let message = Unexpected { tag, len: len as usize, body };
                let Some(posted) = found else {
                    self.keep(peer, message);
                    return Ok(());
                };
                self.credits_to_return[peer] +=
                    u32::from(matches!(message.body, SimBody::Eager(_)));
                self.met(core, peer, &posted, message);
            }
            SimPacket::Read(id) => {
                if let Some(source) = core.end_rendezvous(id) {
                    self.events.push(Event::Sent(source.slot));
                }
            }
            SimPacket::ClearToSend { id, recv } => self.begin_cico(from, recv, id),
            SimPacket::Piece { recv, offset, bytes } => self.piece(core, recv, offset, &bytes),
            SimPacket::Credits(n) => {
                let peer = self.peer(core, from);
                self.credits[peer] += n;
                if self.credits[peer] > core.params.credits {
                    core.violated(format!(
                        "rank {}: rank {from} gives back more credits than it got",
                        self.rank
                    ));
                }
            }
            SimPacket::Answer(status) => {
                if self.asked.take_if(|asked| *asked == from).is_some() {
                    self.answer = Some(status);
                }
            }
            SimPacket::News(blame) => _ = self.news.get_or_insert(blame),
        }
        Ok(())
    }

    fn piece(&mut self, core: &mut NetState, number: u32, offset: usize, bytes: &[u8]) {
        let Some(recv) = self.rendezvous_recvs.get_mut(number) else { return };
        // SAFETY: the receive is posted, so its region is valid and nobody else's.
        unsafe { core.write(self.rank, &recv.region, offset, bytes.as_ptr(), bytes.len()) };
        recv.rest -= bytes.len();
        if recv.rest == 0 {
            let slot = recv.slot;
            self.rendezvous_recvs.remove(number);
            self.events.push(Event::Received(slot));
        }
    }

    /// Reads the next piece of each rendezvous message.
    fn advance_cma(&mut self, core: &mut NetState) -> Result<(), WireError> {
        let params = core.params;
        for at in (0..self.cma_recvs.len()).rev() {
            let SimCmaRecv { from, id, slot, region, done } = self.cma_recvs[at];
            let Some(source) = core.rendezvous_send(id) else {
                // Its sender has given up or is dead.
                self.cma_recvs.swap_remove(at);
                let notices = core.params.notices_dead;
                if core.life(from) == super::Life::Dead && core.chance(notices) {
                    let reason = format!("rank {from} is gone, with the memory of its message");
                    return Err(WireError::new("reading", reason).at(from));
                }
                continue;
            };
            let len = params.piece(region.len).min(region.len - done);
            core.touches(self.rank, "reads", source.region.ptr, source.region.len);
            // SAFETY: the send and the receive are posted, so both regions are valid, and have one length.
            unsafe { core.write(self.rank, &region, done, source.region.ptr.add(done), len) };
            core.note(self.rank, TraceStep::Moves { from, bytes: len });
            if done + len < region.len {
                self.cma_recvs[at].done += len;
                continue;
            }
            self.cma_recvs.swap_remove(at);
            core.send(self.rank, self.port, from, SimPacket::Read(id));
            self.events.push(Event::Received(slot));
        }
        if !self.cma_recvs.is_empty() {
            self.try_again(core);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use hopbine_torus::PortId;

    use super::super::{Config, SimWire, run};
    use super::*;
    use crate::endpoint::{Endpoint, SendPost, Tag};

    const LEN: usize = 1 << 13;
    const MOMENT: Duration = Duration::from_micros(1);

    /// A sender gives up, and its program writes to the memory, while the receiver has a view of the message.
    #[test]
    fn a_view_does_not_end_with_the_memory_of_its_sender() {
        let mut n_viewed = 0;
        for seed in 0..16 {
            let limit = Duration::from_secs(1);
            let size = (2, 1);
            let wire =
                SimWire::new(Config { size, seed, is_calm: true, keeps_entries: false, limit });
            let ranks = [0, 1].map(|rank| wire.rank(rank));
            let (has_come, has_given_up) = (Cell::new(false), Cell::new(false));
            let wait_for = |rank: Rank, what: &Cell<bool>| {
                while !what.get() {
                    ranks[rank as usize].sleep(MOMENT);
                }
            };
            let viewed = Cell::new(None);
            run(&wire, &ranks, 1 << 18, &|rank| {
                let mut endpoint = ranks[rank as usize].endpoint(PortId(0));
                let mut bytes = vec![rank as u8; LEN];
                let region = WireRegion { ptr: bytes.as_mut_ptr(), len: LEN, key: 0 };
                let slot = Slot { run: 0, task: 0 };
                let tag = Tag { context: 0, operation: 0, message: 0, call: 0 };
                if rank == 0 {
                    // SAFETY: the memory lives until the endpoint has given up.
                    let posted = unsafe { endpoint.post_send(1, SendPost { slot, tag, region }) };
                    assert_eq!(posted.unwrap(), Posted::Accepted);
                    wait_for(0, &has_come);
                    endpoint.abandon();
                    bytes.fill(7);
                    return has_given_up.set(true);
                }
                let recv = RecvPost { slot, tag, region, arrival: Arrival::Anywhere };
                // SAFETY: as above.
                let posted = unsafe { endpoint.post_recv(0, recv) };
                assert_ne!(posted.unwrap(), Posted::Later);
                let mut events = Vec::new();
                while events.is_empty() {
                    endpoint.poll(&mut events).unwrap();
                    ranks[1].sleep(MOMENT);
                }
                has_come.set(true);
                wait_for(1, &has_given_up);
                if let Event::Viewed(_, view) = events[0] {
                    // SAFETY: there has been no poll since.
                    viewed.set(Some(unsafe { view.ptr.read() }));
                }
                endpoint.abandon();
            })
            .unwrap();
            n_viewed += usize::from(viewed.get().is_some());
            assert!(viewed.get().is_none_or(|byte| byte == 0), "seed {seed}: {viewed:?}");
        }
        assert!(n_viewed > 0);
    }
}
