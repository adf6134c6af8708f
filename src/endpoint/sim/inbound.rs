//! What a simulated port receives.

use crate::Rank;
use crate::endpoint::matcher::Unexpected;
use crate::endpoint::{Arrival, Event, Posted, RecvPost, Slot, View, WireError, WireRegion};

use super::SimEndpoint;
pub(super) use super::net::Body;
use super::net::{Core, Packet, Put, What};
use super::trace::TraceStep;

/// What a message that came before its receive takes besides its bytes.
pub(super) const KEPT_BYTES: usize = 64;

/// A receive whose message comes in pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct RendezvousRecv {
    slot: Slot,
    region: WireRegion,
    /// Bytes that have not come.
    rest: usize,
}

/// A lent message that this rank reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    from: Rank,
    id: u64,
    slot: Slot,
    region: WireRegion,
    done: usize,
}

/// What was shown in a view, until the next poll.
#[derive(Debug)]
pub(super) enum Shown {
    /// A copy of a message,
    Copy(Box<[u8]>),
    /// or the lent message itself.
    Lent { from: Rank, id: u64 },
}

impl SimEndpoint {
    /// Posts a receive.
    ///
    /// # Safety
    /// As [`Endpoint::post_recv`](crate::endpoint::Endpoint::post_recv).
    pub(super) unsafe fn receive(
        &mut self,
        core: &mut Core,
        from: Rank,
        posted: RecvPost,
    ) -> Posted {
        let peer = self.peer(core, from);
        let puts_off = core.habits.puts_off;
        if core.chance(puts_off) {
            self.try_again(core);
            return Posted::Later;
        }
        let (tag, len) = (posted.tag, posted.region.len);
        core.note(self.rank, TraceStep::Awaits { from, port: self.port, tag, len });
        let found = self.matcher.post(peer, posted);
        let is_met =
            found.as_ref().is_some_and(|unexpected| posted.fits(unexpected.tag, unexpected.len));
        if let Some(unexpected) = found {
            self.unkeep(peer, &unexpected.body);
            self.met(core, peer, &posted, unexpected);
        }
        // What is done at once may be said at once.
        let received = Event::Received(posted.slot);
        let tells = core.habits.tells_at_once;
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
    fn keep(&mut self, peer: usize, mut message: Unexpected<Body>) {
        message.body = match message.body {
            Body::Eager(bytes) if !self.unexpected.keep(bytes.len() + KEPT_BYTES) => {
                Body::Held(bytes)
            }
            body => body,
        };
        if matches!(message.body, Body::Eager(_)) {
            self.owed[peer] += 1;
        }
        self.matcher.add_unexpected(peer, message);
    }

    /// A receive has been posted, whose message may have been kept.
    fn unkeep(&mut self, peer: usize, body: &Body) {
        if let Body::Eager(bytes) | Body::Held(bytes) = body {
            self.unexpected.release(bytes.len() + KEPT_BYTES);
        }
        if let Body::Held(_) = body {
            self.owed[peer] += 1;
        }
    }

    /// A message and its receive have met.
    fn met(&mut self, core: &mut Core, peer: usize, posted: &RecvPost, message: Unexpected<Body>) {
        let from = self.ranks[peer];
        match (posted.fits(message.tag, message.len), message.body) {
            (true, Body::Eager(bytes) | Body::Held(bytes)) => self.take(core, posted, bytes),
            (true, Body::Lent(id)) => self.take_lent(core, from, posted, id),
            (false, body) => {
                if let Body::Lent(id) = body {
                    core.send(self.rank, self.port, from, Packet::Read(id));
                }
                self.events.push(Event::Differs(posted.slot, from));
            }
        }
    }

    fn take(&mut self, core: &mut Core, posted: &RecvPost, bytes: Box<[u8]>) {
        let &RecvPost { slot, region, arrival, .. } = posted;
        if arrival == Arrival::Anywhere && self.is_shown(core) {
            let view = View { ptr: bytes.as_ptr(), len: bytes.len() };
            self.events.push(Event::Viewed(slot, view));
            self.due_shown.push((slot, Shown::Copy(bytes)));
            return;
        }
        // SAFETY: the receive is posted, so its region is valid and nobody else's; both have one length.
        unsafe { core.write(self.rank, &region, 0, bytes.as_ptr(), bytes.len()) };
        self.events.push(Event::Received(slot));
    }

    fn is_shown(&self, core: &mut Core) -> bool {
        let shows = core.habits.shows;
        core.chance(shows)
    }

    fn take_lent(&mut self, core: &mut Core, from: Rank, posted: &RecvPost, id: u64) {
        use rand::Rng;
        let &RecvPost { slot, region, arrival, .. } = posted;
        if arrival == Arrival::Anywhere
            && self.is_shown(core)
            && let Some(lent) = core.lent(id)
        {
            core.touches(self.rank, "reads", lent.region.ptr, lent.region.len);
            let view = View { ptr: lent.region.ptr, len: lent.region.len };
            self.events.push(Event::Viewed(slot, view));
            self.due_shown.push((slot, Shown::Lent { from, id }));
            return;
        }
        let [read, put, pull] = core.habits.ways.map(u32::from);
        match core.rng.random_range(0..read + put + pull) {
            way if way < read => {
                self.readings.push(Reading { from, id, slot, region, done: 0 });
                self.try_again(core);
            }
            way if way < read + put => {
                let to = (self.rank, self.port);
                core.later(What::Put(Put { id, to, slot, region, done: 0 }));
            }
            _ => {
                let recv =
                    self.rendezvous_recvs.insert(RendezvousRecv { slot, region, rest: region.len });
                core.send(self.rank, self.port, from, Packet::ClearToSend { id, recv });
            }
        }
    }

    /// What was shown has been read.
    pub(super) fn end_views(&mut self, core: &mut Core) {
        for shown in std::mem::take(&mut self.shown) {
            self.end_view(core, shown);
        }
    }

    /// Lets go of one view.
    pub(super) fn end_view(&mut self, core: &mut Core, shown: Shown) {
        match shown {
            // Whoever still reads it reads nonsense.
            Shown::Copy(mut bytes) => bytes.fill(0xdd),
            Shown::Lent { from, id } => core.send(self.rank, self.port, from, Packet::Read(id)),
        }
    }

    /// A poll of a port that has not given up.
    pub(super) fn poll_on(
        &mut self,
        core: &mut Core,
        events: &mut Vec<Event>,
    ) -> Result<(), WireError> {
        let state = core.port(self.rank, self.port);
        let (inbox, own) = (std::mem::take(&mut state.inbox), std::mem::take(&mut state.events));
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        self.events.extend(own);
        let keeps = core.habits.keeps;
        let mut is_left = false;
        for (from, packet) in inbox {
            if core.chance(keeps) {
                core.port(self.rank, self.port).inbox.push((from, packet));
                is_left = true;
            } else {
                self.hear(core, from, packet)?;
            }
        }
        self.advance_readings(core)?;
        self.advance_pulled(core);
        self.give_credits(core);
        let mut kept = Vec::new();
        for event in std::mem::take(&mut self.events) {
            if core.chance(keeps) {
                kept.push(event);
                continue;
            }
            if let Event::Viewed(slot, _) = event
                && let Some(at) = self.due_shown.iter().position(|(of, _)| *of == slot)
            {
                self.shown.push(self.due_shown.swap_remove(at).1);
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

    fn hear(&mut self, core: &mut Core, from: Rank, packet: Packet) -> Result<(), WireError> {
        match packet {
            Packet::Message { tag, len, body } => {
                let peer = self.peer(core, from);
                let found =
                    self.matcher.match_message(peer, tag).map_err(|other| self.differs(other))?;
                let message = Unexpected { tag, len: len as usize, body };
                let Some(posted) = found else {
                    self.keep(peer, message);
                    return Ok(());
                };
                self.owed[peer] += u32::from(matches!(message.body, Body::Eager(_)));
                self.met(core, peer, &posted, message);
            }
            Packet::Read(id) => {
                if let Some(lent) = core.take_back(id) {
                    self.events.push(Event::Sent(lent.slot));
                }
            }
            Packet::ClearToSend { id, recv } => self.begin_cico(from, recv, id),
            Packet::Piece { recv, offset, bytes } => self.piece(core, recv, offset, &bytes),
            Packet::Credits(n) => {
                let peer = self.peer(core, from);
                self.credits[peer] += n;
                if self.credits[peer] > core.habits.credits {
                    core.violated(format!(
                        "rank {}: rank {from} gives back more credits than it got",
                        self.rank
                    ));
                }
            }
            Packet::Answer(status) => {
                if std::mem::take(&mut self.is_asked) {
                    self.answer = Some(status);
                }
            }
            Packet::News(blame) => _ = self.news.get_or_insert(blame),
        }
        Ok(())
    }

    fn piece(&mut self, core: &mut Core, number: u32, offset: usize, bytes: &[u8]) {
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

    /// Reads the next piece of each lent message.
    fn advance_readings(&mut self, core: &mut Core) -> Result<(), WireError> {
        let habits = core.habits;
        for at in (0..self.readings.len()).rev() {
            let Reading { from, id, slot, region, done } = self.readings[at];
            let Some(lent) = core.lent(id) else {
                // Its sender has given up or is dead.
                self.readings.swap_remove(at);
                let notices = core.habits.notices_dead;
                if core.life(from) == super::Life::Dead && core.chance(notices) {
                    let reason = format!("rank {from} is gone, with the memory that it has lent");
                    return Err(WireError::new("reading", reason).at(from));
                }
                continue;
            };
            let len = habits.piece(region.len).min(region.len - done);
            core.touches(self.rank, "reads", lent.region.ptr, lent.region.len);
            // SAFETY: the send and the receive are posted, so both regions are valid, and have one length.
            unsafe { core.write(self.rank, &region, done, lent.region.ptr.add(done), len) };
            core.note(self.rank, TraceStep::Moves { from, bytes: len });
            if done + len < region.len {
                self.readings[at].done += len;
                continue;
            }
            self.readings.swap_remove(at);
            core.send(self.rank, self.port, from, Packet::Read(id));
            self.events.push(Event::Received(slot));
        }
        if !self.readings.is_empty() {
            self.try_again(core);
        }
        Ok(())
    }
}
