//! A simulation as whoever runs it sees it, and each rank as its program does.

use std::sync::Arc;
use std::time::Duration;

use hopbine_torus::PortId;

use crate::Rank;

use super::SimEndpoint;
use super::clock::RankClock;
use super::net::{Config, Fate, Life, Net, SimAction};
use super::trace::{Entry, TraceStep};
use crate::endpoint::Time;

/// A simulated wire; see the module documentation.
#[derive(Clone, Debug)]
pub(crate) struct SimWire(pub(super) Arc<Net>);

impl SimWire {
    pub(crate) fn new(config: Config) -> Self {
        SimWire(Arc::new(Net::new(&config)))
    }

    /// What the rank's program knows of the simulation.
    pub(crate) fn rank(&self, rank: Rank) -> Simulated {
        Simulated {
            net: self.0.clone(),
            clock: Arc::new(RankClock::new(self.0.clone(), rank)),
            rank,
        }
    }

    /// All that has gone wrong that no program may bring about. `all_ended_well` says that nothing may
    /// be left on the wire.
    pub(crate) fn violations(&self, all_ended_well: bool) -> Vec<String> {
        let mut core = self.0.lock();
        core.check_all_unmapped();
        core.left_on_device(all_ended_well);
        if all_ended_well {
            core.leftovers();
        }
        core.take_violations()
    }

    /// All ranks have ended: nothing moves any more. If they have ended well, nothing may.
    pub(crate) fn end(&self, all_ended_well: bool) {
        self.0.lock().end_device(all_ended_well);
    }

    /// A hash of all that has happened, and how much that was.
    pub(crate) fn trace(&self) -> (u64, u64) {
        let core = self.0.lock();
        (core.trace.hash(), core.trace.n_steps())
    }

    /// The time that has passed.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.0.lock().now())
    }

    /// All entries of the trace, if they were to be kept.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.0.lock().trace.take_entries()
    }
}

/// A simulated rank, as its program sees the simulation.
#[derive(Clone, Debug)]
pub struct Simulated {
    pub(super) net: Arc<Net>,
    pub(super) clock: Arc<RankClock>,
    pub(super) rank: Rank,
}

impl Simulated {
    /// One port of this rank.
    pub(crate) fn endpoint(&self, port: PortId) -> SimEndpoint {
        SimEndpoint::new(self.net.clone(), self.clock.clone(), self.rank, port)
    }

    /// The rank's number.
    pub fn number(&self) -> Rank {
        self.rank
    }

    /// Lets so much time pass, in which this rank does nothing.
    pub fn sleep(&self, duration: Duration) {
        Time::of(Some(self.clock.clone())).sleep(duration);
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.net.lock().now())
    }

    /// Has this happen to the rank after so long.
    pub fn meets(&self, fate: Fate, after: Duration) {
        self.net.lock().after(after.as_nanos() as u64, SimAction::Fate(self.rank, fate));
    }

    /// Whether this rank has met its end: what it does from then on means nothing.
    pub fn is_dead(&self) -> bool {
        self.net.lock().life(self.rank) == Life::Dead
    }

    /// From now on no message may touch this memory. To be [allowed](Simulated::allow) before it is
    /// freed.
    pub fn forbid<T>(&self, memory: &[T]) {
        self.net.lock().forbidden.forbid(addresses(memory));
    }

    /// Takes back a [`forbid`](Simulated::forbid) of the same memory.
    pub fn allow<T>(&self, memory: &[T]) {
        self.net.lock().forbidden.allow(addresses(memory));
    }

    /// The next `n` registrations of this rank's memory are refused, if its wire registers any.
    pub fn refuses_memory(&self, n: u32) {
        self.net.lock().refuse(self.rank, n);
    }

    /// Whether a registration has been refused since this was asked last.
    pub fn has_refused_memory(&self) -> bool {
        self.net.lock().has_refused(self.rank)
    }

    /// Ranks make different calls: messages may be left on the wire although all ranks end well.
    pub fn leaves_messages(&self) {
        self.net.lock().leaves_messages();
    }

    /// Puts a remark into the story.
    pub fn note(&self, text: String) {
        self.net.lock().note(self.rank, TraceStep::Says(text));
    }

    /// What the program finds wrong.
    pub fn complain(&self, what: String) {
        self.net.lock().violated(what);
    }
}

fn addresses<T>(memory: &[T]) -> std::ops::Range<usize> {
    let start = memory.as_ptr().addr();
    start..start + size_of_val(memory)
}
