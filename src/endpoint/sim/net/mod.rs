//! What all ranks of a simulation share: its time, its random numbers, what is under way between ranks,
//! and which rank runs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use hopbine_torus::PortId;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustc_hash::FxHashMap;

use crate::Rank;
use crate::endpoint::{Event, Slot, Status, WireError, WireRegion};
use crate::planted::{self, Planted};
use crate::sync::lock;

#[cfg(feature = "emu")]
mod device;
#[cfg(not(feature = "emu"))]
#[path = "no_device.rs"]
mod device;
mod packet;
mod rank;
mod ranks;

use super::heap::SimHeap;
use super::memory::Forbidden;
use super::params::WireParams;
use super::trace::{Trace, TraceStep};
pub(super) use device::Device;
#[cfg(feature = "emu")]
pub(super) use device::Listener;
pub use packet::Fate;
use packet::Scheduled;
pub(super) use packet::{SimAction, SimBody, SimPacket, SimPut};
use rank::OneRank;
pub(super) use rank::{Life, PortState};

/// What an operation on the wire takes its rank, in ns: at least, and at most.
const OWN_TIME: (u64, u64) = (20, 300);

/// How a wire is simulated.
#[derive(Debug)]
pub(crate) struct Config {
    /// Ranks, and ports of each.
    pub(crate) size: (u32, usize),
    /// Decides all that the wire leaves open.
    pub(crate) seed: u64,
    /// A wire with fixed parameters, on which many ranks are simulated quickly.
    pub(crate) is_calm: bool,
    /// Keeps all entries of the trace; see [`SimWire::entries`](super::SimWire::entries).
    pub(crate) keeps_entries: bool,
    /// Ranks that have not ended after so long hang.
    pub(crate) limit: Duration,
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Net(Mutex<NetState>);

impl Net {
    pub(super) fn new(setup: &Config) -> Self {
        Net(Mutex::new(NetState::new(setup)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, NetState> {
        lock(&self.0)
    }
}

/// A message that stays in its sender's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimRendezvousSend {
    /// The sender's rank and port.
    pub(super) of: (Rank, PortId),
    pub(super) slot: Slot,
    pub(super) region: WireRegion,
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct NetState {
    now: u64,
    pub(super) rng: Xoshiro256PlusPlus,
    pub(super) params: WireParams,
    #[cfg_attr(not(feature = "emu"), expect(dead_code, reason = "of the emulated device"))]
    pub(super) is_calm: bool,
    /// What carries the messages, if the wire does not do so itself.
    pub(super) device: Option<Device>,
    queue: BinaryHeap<Reverse<Scheduled>>,
    n_scheduled: u64,
    ranks: Vec<OneRank>,
    ready: Vec<Rank>,
    /// Ranks that have not ended, and are not dead.
    n_living: usize,
    n_open: usize,
    rendezvous_sends: FxHashMap<u64, SimRendezvousSend>,
    next_rendezvous: u64,
    pub(super) trace: Trace,
    pub(super) forbidden: Forbidden,
    pub(super) heap: SimHeap,
    violations: Vec<String>,
    may_leave: bool,
    is_over: bool,
    limit: u64,
}

impl NetState {
    fn new(setup: &Config) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(setup.seed);
        let drawn = WireParams::draw(&mut rng, &mut Xoshiro256PlusPlus::seed_from_u64(!setup.seed));
        let (n_ranks, n_ports) = setup.size;
        let n = n_ranks as usize;
        NetState {
            now: 0,
            rng,
            params: if setup.is_calm { WireParams::calm() } else { drawn },
            is_calm: setup.is_calm,
            device: None,
            queue: BinaryHeap::new(),
            n_scheduled: 0,
            ranks: (0..n).map(|_| OneRank::new(n_ports)).collect(),
            ready: (0..n_ranks).collect(),
            n_living: n,
            n_open: n,
            rendezvous_sends: FxHashMap::default(),
            next_rendezvous: 0,
            trace: Trace::new(setup.keeps_entries),
            forbidden: Forbidden::default(),
            heap: SimHeap::new(setup.seed, n),
            violations: Vec::new(),
            may_leave: false,
            is_over: false,
            limit: setup.limit.as_nanos() as u64,
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Every rank has ended or died: those that are dead go on only to let go of what they have.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn note(&mut self, rank: Rank, step: TraceStep) {
        self.trace.note(self.now, rank, step);
    }

    /// Something has happened that may never happen.
    pub(super) fn violated(&mut self, what: String) {
        // After the end dead ranks leave everything as it is.
        if !self.is_over {
            self.violations.push(what);
        }
    }

    pub(super) fn leaves_messages(&mut self) {
        self.may_leave = true;
    }

    pub(super) fn may_leave_messages(&self) -> bool {
        self.may_leave
    }

    pub(super) fn take_violations(&mut self) -> Vec<String> {
        std::mem::take(&mut self.violations)
    }

    /// True with this probability of 256.
    pub(super) fn chance(&mut self, of_256: u8) -> bool {
        of_256 > 0 && self.rng.random::<u8>() < of_256 || of_256 == u8::MAX
    }

    /// What something takes on its way.
    fn latency(&mut self) -> u64 {
        let WireParams { latency_ns, is_slow, .. } = self.params;
        let usual = latency_ns / 2 + self.rng.random_range(0..=2 * latency_ns);
        match self.chance(is_slow) {
            true => usual * self.rng.random_range(10..=300),
            false => usual,
        }
    }

    fn schedule(&mut self, at: u64, action: SimAction) {
        self.n_scheduled += 1;
        self.queue.push(Reverse(Scheduled { at, number: self.n_scheduled, action }));
    }

    /// Has something happen after a random time.
    pub(super) fn later(&mut self, action: SimAction) {
        let at = self.now + self.latency();
        self.schedule(at, action);
    }

    /// Has something happen after this time.
    pub(super) fn after(&mut self, ns: u64, action: SimAction) {
        self.schedule(self.now.saturating_add(ns), action);
    }

    pub(super) fn send(&mut self, from: Rank, port: PortId, to: Rank, packet: SimPacket) {
        self.later(SimAction::Packet { from, to, port, packet });
    }

    pub(super) fn port(&mut self, rank: Rank, port: PortId) -> &mut PortState {
        &mut self.ranks[rank as usize].ports[port.index()]
    }

    pub(super) fn n_ranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    pub(super) fn life(&self, rank: Rank) -> Life {
        self.ranks[rank as usize].life
    }

    /// Some time passes with an operation of a rank.
    pub(super) fn pass_time(&mut self) {
        self.now += self.rng.random_range(OWN_TIME.0..=OWN_TIME.1);
    }

    /// Does what is due.
    pub(super) fn run_due(&mut self) {
        loop {
            let next = self.queue.peek().map(|Reverse(due)| due.at).filter(|&at| at <= self.now);
            // The device comes first.
            if self.step_device(next.unwrap_or(self.now)) {
                continue;
            }
            let Some(Reverse(due)) = next.and_then(|_| self.queue.pop()) else { return };
            self.perform(due.action);
        }
    }

    fn perform(&mut self, action: SimAction) {
        match action {
            SimAction::Wake(rank, number) => {
                if self.ranks[rank as usize].pauses == number {
                    self.wake(rank);
                }
            }
            SimAction::Packet { from, to, port, packet } => self.deliver(from, to, port, packet),
            SimAction::Read { from, to, port, send } => self.read(from, to, port, send),
            SimAction::Put(put) => self.put(put),
            SimAction::Report { rank, port, event } => self.report(rank, port, event),
            SimAction::Ask { asker, port, about } => self.asked(asker, port, about),
            SimAction::Fate(rank, fate) => self.apply_fate(rank, fate),
            SimAction::Announce(rank, memory) => self.announce(rank, memory),
            SimAction::Unreachable(rank) => self.unreachable_on_device(rank),
            SimAction::Continues(rank) => self.go_on(rank),
            SimAction::GoOn(rank) => self.wake(rank),
        }
    }

    fn deliver(&mut self, from: Rank, to: Rank, port: PortId, packet: SimPacket) {
        if self.life(to) == Life::Dead {
            let notices = self.params.notices_dead;
            if matches!(packet, SimPacket::Message { .. }) && self.chance(notices) {
                self.fail_port(from, port, to);
            }
            return;
        }
        self.note(to, TraceStep::Hears { from, port, what: packet.name() });
        self.port(to, port).inbox.push((from, packet));
        self.wake(to);
    }

    /// The next poll of a port reports that a peer is gone.
    pub(super) fn fail_port(&mut self, rank: Rank, port: PortId, peer: Rank) {
        let reason = format!("rank {peer} does not answer");
        let error = WireError::new("the simulated wire", reason).at(peer);
        self.port(rank, port).error.get_or_insert(error);
        self.wake(rank);
    }

    pub(super) fn report(&mut self, rank: Rank, port: PortId, event: Event) {
        let state = self.port(rank, port);
        if !state.is_abandoned {
            state.events.push(event);
            self.wake(rank);
        }
    }

    fn asked(&mut self, asker: Rank, port: PortId, about: Rank) {
        let answer = match self.life(about) {
            Life::Dead => {
                let notices = self.params.notices_dead;
                if !self.chance(notices) {
                    // Whoever asks gives up some time.
                    return;
                }
                Status::Silent
            }
            // Its memory can be read, whatever it does.
            _ => self.port(about, port).status.unwrap_or(Status::Busy),
        };
        self.send(about, port, asker, SimPacket::Answer(answer));
    }

    pub(super) fn add_rendezvous(&mut self, send: SimRendezvousSend) -> u64 {
        self.next_rendezvous += 1;
        self.rendezvous_sends.insert(self.next_rendezvous, send);
        self.next_rendezvous
    }

    pub(super) fn rendezvous_send(&self, id: u64) -> Option<SimRendezvousSend> {
        self.rendezvous_sends.get(&id).copied()
    }

    pub(super) fn end_rendezvous(&mut self, id: u64) -> Option<SimRendezvousSend> {
        self.rendezvous_sends.remove(&id)
    }

    /// A port gives up: the device touches nothing of it any more.
    pub(super) fn abandon(&mut self, rank: Rank, port: PortId) {
        if !planted::is(Planted::RevokedRead) {
            self.rendezvous_sends.retain(|_, send| send.of != (rank, port));
        }
        let state = self.port(rank, port);
        state.is_abandoned = true;
        state.events.clear();
        state.inbox.clear();
    }

    /// Whether something of this port is on its way to another rank, and to which.
    pub(super) fn unfenced(&self, rank: Rank, port: PortId) -> Option<Rank> {
        self.queue.iter().find_map(|Reverse(due)| match &due.action {
            SimAction::Packet {
                from,
                to,
                port: of,
                packet: SimPacket::Message { .. } | SimPacket::Piece { .. },
            }
            | SimAction::Read { from, to, port: of, .. }
                if (*from, *of) == (rank, port) && self.life(*to) != Life::Dead =>
            {
                Some(*to)
            }
            _ => None,
        })
    }

    /// What is left when all ranks have ended well.
    pub(super) fn leftovers(&mut self) {
        if self.may_leave {
            return;
        }
        if !self.rendezvous_sends.is_empty() {
            let n = self.rendezvous_sends.len();
            self.violations.push(format!("{n} rendezvous have not ended"));
        }
        let is_message = |Reverse(due): &&Reverse<Scheduled>| {
            matches!(
                due.action,
                SimAction::Packet {
                    packet: SimPacket::Message { .. } | SimPacket::Piece { .. },
                    ..
                } | SimAction::Read { .. }
                    | SimAction::Put(_)
            )
        };
        let n = self.queue.iter().filter(is_message).count();
        if n > 0 {
            self.violations.push(format!("{n} messages are still under way after the end"));
        }
    }
}
