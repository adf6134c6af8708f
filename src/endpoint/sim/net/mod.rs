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

use super::habits::Habits;
use super::heap::Heap;
use super::memory::Forbidden;
use super::trace::{Trace, TraceStep};
pub(super) use device::Device;
#[cfg(feature = "emu")]
pub(super) use device::Listener;
use packet::Due;
pub use packet::Fate;
pub(super) use packet::{Body, Packet, Put, What};
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
    /// A wire without moods, on which many ranks are simulated quickly.
    pub(crate) is_calm: bool,
    /// Keeps the whole story; see [`Wire::entries`](super::Wire::entries).
    pub(crate) is_told: bool,
    /// Ranks that have not ended after so long hang.
    pub(crate) limit: Duration,
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Net(Mutex<Core>);

impl Net {
    pub(super) fn new(setup: &Config) -> Self {
        Net(Mutex::new(Core::new(setup)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Core> {
        lock(&self.0)
    }
}

/// A message that stays in its sender's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lent {
    /// The sender's rank and port.
    pub(super) of: (Rank, PortId),
    pub(super) slot: Slot,
    pub(super) region: WireRegion,
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Core {
    now: u64,
    pub(super) rng: Xoshiro256PlusPlus,
    pub(super) habits: Habits,
    #[cfg_attr(not(feature = "emu"), expect(dead_code, reason = "of the emulated device"))]
    pub(super) is_calm: bool,
    /// What carries the messages, if the wire does not do so itself.
    pub(super) device: Option<Device>,
    queue: BinaryHeap<Reverse<Due>>,
    n_scheduled: u64,
    ranks: Vec<OneRank>,
    ready: Vec<Rank>,
    /// Ranks that have not ended, and are not dead.
    n_living: usize,
    n_open: usize,
    lent: FxHashMap<u64, Lent>,
    next_lent: u64,
    pub(super) trace: Trace,
    pub(super) forbidden: Forbidden,
    pub(super) heap: Heap,
    violations: Vec<String>,
    may_leave: bool,
    is_over: bool,
    limit: u64,
}

impl Core {
    fn new(setup: &Config) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(setup.seed);
        let drawn = Habits::draw(&mut rng, &mut Xoshiro256PlusPlus::seed_from_u64(!setup.seed));
        let (n_ranks, n_ports) = setup.size;
        let n = n_ranks as usize;
        Core {
            now: 0,
            rng,
            habits: if setup.is_calm { Habits::calm() } else { drawn },
            is_calm: setup.is_calm,
            device: None,
            queue: BinaryHeap::new(),
            n_scheduled: 0,
            ranks: (0..n).map(|_| OneRank::new(n_ports)).collect(),
            ready: (0..n_ranks).collect(),
            n_living: n,
            n_open: n,
            lent: FxHashMap::default(),
            next_lent: 0,
            trace: Trace::new(setup.is_told),
            forbidden: Forbidden::default(),
            heap: Heap::new(setup.seed, n),
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
        let Habits { latency_ns, is_slow, .. } = self.habits;
        let usual = latency_ns / 2 + self.rng.random_range(0..=2 * latency_ns);
        match self.chance(is_slow) {
            true => usual * self.rng.random_range(10..=300),
            false => usual,
        }
    }

    fn schedule(&mut self, at: u64, what: What) {
        self.n_scheduled += 1;
        self.queue.push(Reverse(Due { at, number: self.n_scheduled, what }));
    }

    /// Has something happen after a random time.
    pub(super) fn later(&mut self, what: What) {
        let at = self.now + self.latency();
        self.schedule(at, what);
    }

    /// Has something happen after this time.
    pub(super) fn after(&mut self, ns: u64, what: What) {
        self.schedule(self.now.saturating_add(ns), what);
    }

    pub(super) fn send(&mut self, from: Rank, port: PortId, to: Rank, packet: Packet) {
        self.later(What::Packet { from, to, port, packet });
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
    pub(super) fn happen(&mut self) {
        loop {
            let next = self.queue.peek().map(|Reverse(due)| due.at).filter(|&at| at <= self.now);
            // The device comes first.
            if self.step_device(next.unwrap_or(self.now)) {
                continue;
            }
            let Some(Reverse(due)) = next.and_then(|_| self.queue.pop()) else { return };
            self.perform(due.what);
        }
    }

    fn perform(&mut self, what: What) {
        match what {
            What::Wake(rank, number) => {
                if self.ranks[rank as usize].pauses == number {
                    self.wake(rank);
                }
            }
            What::Packet { from, to, port, packet } => self.deliver(from, to, port, packet),
            What::Read { from, to, port, send } => self.read(from, to, port, send),
            What::Put(put) => self.put(put),
            What::Report { rank, port, event } => self.report(rank, port, event),
            What::Ask { asker, port, about } => self.asked(asker, port, about),
            What::Fate(rank, fate) => self.meet(rank, fate),
            What::Announce(rank, memory) => self.announce(rank, memory),
            What::Unreachable(rank) => self.unreachable_on_device(rank),
            What::Continues(rank) => self.go_on(rank),
            What::GoOn(rank) => self.wake(rank),
        }
    }

    fn deliver(&mut self, from: Rank, to: Rank, port: PortId, packet: Packet) {
        if self.life(to) == Life::Dead {
            let notices = self.habits.notices_dead;
            if matches!(packet, Packet::Message { .. }) && self.chance(notices) {
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
                let notices = self.habits.notices_dead;
                if !self.chance(notices) {
                    // Whoever asks gives up some time.
                    return;
                }
                Status::Silent
            }
            // Its memory can be read, whatever it does.
            _ => self.port(about, port).status.unwrap_or(Status::Busy),
        };
        self.send(about, port, asker, Packet::Answer(answer));
    }

    pub(super) fn lend(&mut self, lent: Lent) -> u64 {
        self.next_lent += 1;
        self.lent.insert(self.next_lent, lent);
        self.next_lent
    }

    pub(super) fn lent(&self, id: u64) -> Option<Lent> {
        self.lent.get(&id).copied()
    }

    pub(super) fn take_back(&mut self, id: u64) -> Option<Lent> {
        self.lent.remove(&id)
    }

    /// A port gives up: the device touches nothing of it any more.
    pub(super) fn abandon(&mut self, rank: Rank, port: PortId) {
        if !planted::is(Planted::RevokedRead) {
            self.lent.retain(|_, lent| lent.of != (rank, port));
        }
        let state = self.port(rank, port);
        state.is_abandoned = true;
        state.events.clear();
        state.inbox.clear();
    }

    /// Whether something of this port is on its way to another rank, and to which.
    pub(super) fn unfenced(&self, rank: Rank, port: PortId) -> Option<Rank> {
        self.queue.iter().find_map(|Reverse(due)| match &due.what {
            What::Packet {
                from,
                to,
                port: of,
                packet: Packet::Message { .. } | Packet::Piece { .. },
            }
            | What::Read { from, to, port: of, .. }
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
        if !self.lent.is_empty() {
            let n = self.lent.len();
            self.violations.push(format!("{n} messages are still lent after the end"));
        }
        let is_message = |Reverse(due): &&Reverse<Due>| {
            matches!(
                due.what,
                What::Packet { packet: Packet::Message { .. } | Packet::Piece { .. }, .. }
                    | What::Read { .. }
                    | What::Put(_)
            )
        };
        let n = self.queue.iter().filter(is_message).count();
        if n > 0 {
            self.violations.push(format!("{n} messages are still under way after the end"));
        }
    }
}
