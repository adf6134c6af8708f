//! What a rank does as a wait of its own becomes long: it shows whom it waits for, looks for a
//! rank that is gone, and in the end gives up, naming whoever is at fault.
//!
//! A rank that waits can see only its neighbour in the plan, which may itself wait for another.
//! So it follows the chain of waits by reading the status words of the ranks on it, which
//! works whatever those ranks do, and ends at a rank that is gone or waits for nobody.
//!
//! A word may be old: its rank has been stopped, or has only tested and computes by now. So a rank
//! that waits goes on showing that, with another number each time ([`Beat`](crate::endpoint::Beat)),
//! and what seems to be a circle is looked at twice.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hopbine_torus::PortId;

use crate::Rank;
use crate::endpoint::{Status, gossip_peers};
use crate::error::{Awaited, Blame, Error, Fault};

use super::search::Search;
use crate::engine::run::group::{Group, OnTimeout};
use crate::engine::run::port::Port;

/// A wait this long is shown to others. Much longer than most waits, much shorter than any
/// time-out.
const SHOWN_AFTER: Duration = Duration::from_millis(20);
/// When a rank that is gone is looked for first; then again whenever the wait has become twice
/// as long.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// How long a search may take at least, so that a slow wire makes nobody unreachable, and at
/// most, whatever the time-out.
const SEARCH: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long the device may take at the end for what it still carries, however short the time-out is: that
/// is meant for other ranks.
const DEVICE_TAKES: Duration = Duration::from_secs(1);
/// How long it takes to see which ranks go on showing that they wait, and how often one does so meanwhile.
const BEATS_TAKE: Duration = Duration::from_millis(250);
const BEATS: u32 = 25;
/// The most that counts between two looks at the clock: in a longer time this process was
/// stopped, or had no core, and has not seen what came meanwhile.
const LONGEST_GAP: Duration = Duration::from_millis(100);

/// What is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WaitedFor {
    /// The operation with this context and number.
    Operation((u64, u32)),
    /// All ranks, at the barrier gates.
    Everybody,
    /// All ranks of a communicator, of which this one is known to be missing at the flat buffer, or is the next at the
    /// gates.
    Rank(Rank),
    /// Whatever is left on the port with this number.
    Rest(PortId),
}

/// How much is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// What can be asked again and again.
    Quick,
    /// Everything that may help.
    Thorough,
}

impl Care {
    /// Those who are asked where no one rank is in question.
    fn asked(self, group: &Group) -> Box<dyn Iterator<Item = Rank>> {
        let (rank, n_ranks) = (group.rank, group.n_ranks);
        match self {
            Care::Quick => Box::new(gossip_peers(rank, n_ranks)),
            // Beginning with the next one, so that different ranks ask different ones first:
            // whoever finds the cause tells the others.
            Care::Thorough => Box::new((rank + 1..n_ranks).chain(0..rank)),
        }
    }
}

/// The watch over one wait.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    last_look: Option<Instant>,
    /// For how long nothing has moved of what is waited for.
    idle: Duration,
    /// What was left of it at the last look.
    rest: u64,
    shown: bool,
    /// How long the wait was when a rank that is gone was looked for last.
    looked: Option<Duration>,
    /// How long it was when it was last found too long.
    warned: Option<Duration>,
}

impl Watchdog {
    /// The wait is over.
    #[inline]
    pub(crate) fn end(&mut self, group: &Group) {
        if self.last_look.is_some() {
            self.end_looked(group);
        }
    }

    #[cold]
    fn end_looked(&mut self, group: &Group) {
        if self.shown {
            group.show(Status::Busy);
        }
        *self = Watchdog::default();
    }

    /// A look at the clock, and at what is waited for.
    ///
    /// # Errors
    /// [`Error::Lost`] or [`Error::Timeout`] if there is no point in waiting any longer.
    pub(crate) fn look(&mut self, group: &Group, wanted: WaitedFor) -> Result<(), Error> {
        self.look_after(group, wanted, LONGEST_GAP)
    }

    pub(super) fn look_after(
        &mut self,
        group: &Group,
        wanted: WaitedFor,
        gap: Duration,
    ) -> Result<(), Error> {
        let now = group.waits.time.now();
        let last = self.last_look.replace(now).unwrap_or(now);
        self.idle += (now - last).min(gap);
        let timeout = wanted.timeout(group);
        if self.idle < SHOWN_AFTER.min(timeout / 8) {
            return Ok(());
        }
        // Other operations may have moved all the while.
        let rest = wanted.rest(group);
        if std::mem::replace(&mut self.rest, rest) != rest {
            self.end(group);
            (self.last_look, self.rest) = (Some(now), rest);
            return Ok(());
        }
        let idle = self.idle;
        let rank = group.rank;
        let patience = (timeout / 4).clamp(SEARCH.0, SEARCH.1);
        self.shown = true;
        group.show(wanted.status(group));
        if let Some(blame) = group.ports.first().and_then(|port| port.told()) {
            return Err(Error::Lost { rank, blame });
        }
        if idle > self.warned.map_or(timeout, |last| 2 * last) {
            self.warned = Some(idle);
            let (port, step, awaited) = wanted.awaited(group);
            let cause = wanted.cause(group, patience, Care::Thorough);
            let is_witness = wanted.is_witness(group, patience, cause);
            if let Some(reason) = group.failure.reason() {
                // Somebody else was faster, and nobody was asked to the end.
                return Err(reason);
            }
            // Relaxed: a figure.
            group.n_long_waits.fetch_add(1, Ordering::Relaxed);
            let waited = timeout;
            let error = Error::Timeout {
                rank,
                port: port.index(),
                step,
                awaited,
                waited,
                cause,
                is_witness,
            };
            match (group.config.on_timeout, cause) {
                (OnTimeout::Fail, _) => return Err(error),
                (OnTimeout::Warn, Some(blame)) if is_certain(group, blame) => {
                    return Err(Error::Lost { rank, blame });
                }
                (OnTimeout::Warn, _) if is_witness => {
                    group.waits.time.warn(&format!("hopbine: {error}; waiting on"))
                }
                // Another rank says so.
                (OnTimeout::Warn, _) => {}
            }
        }
        if idle > self.looked.map_or(FIRST_LOOK.min(timeout / 4), |last| 2 * last) {
            self.looked = Some(idle);
            if let Some(blame) = wanted.cause(group, patience, Care::Quick)
                && matches!(blame.fault, Fault::Unreachable | Fault::Failed | Fault::Left)
            {
                return Err(Error::Lost { rank, blame });
            }
        }
        Ok(())
    }

    /// Whether nothing has moved since the last look.
    pub(crate) fn is_still(&self, group: &Group, wanted: WaitedFor) -> bool {
        wanted.rest(group) == self.rest
    }
}

/// Whether waiting on is in vain.
fn is_certain(group: &Group, blame: Blame) -> bool {
    match blame.fault {
        Fault::Unreachable | Fault::Failed | Fault::Left | Fault::Disagrees => true,
        // It may still come.
        Fault::Absent => false,
        // A rank shows one of its waits. Where its threads wait for different things, what
        // looks like a circle need not be one.
        Fault::Elsewhere | Fault::Circle => !group.has_several(),
    }
}

impl WaitedFor {
    /// A number that changes when something of it has moved.
    fn rest(self, group: &Group) -> u64 {
        match self {
            WaitedFor::Operation(operation) => {
                group.ports.iter().map(|port| port.unfinished(operation) as u64).sum()
            }
            // Nothing shows until it is over.
            WaitedFor::Everybody | WaitedFor::Rank(_) => 0,
            WaitedFor::Rest(_) => group.n_moves(),
        }
    }

    /// How long nothing of it may move.
    fn timeout(self, group: &Group) -> Duration {
        let timeout = group.config.timeout;
        match self {
            WaitedFor::Rest(_) if self.awaited(group).2 == Awaited::Interface => {
                timeout.max(DEVICE_TAKES)
            }
            _ => timeout,
        }
    }

    fn awaited(self, group: &Group) -> (PortId, u32, Awaited) {
        match self {
            WaitedFor::Everybody => (PortId(0), 0, Awaited::AllRanks),
            WaitedFor::Rank(rank) => (PortId(0), 0, Awaited::MessageFrom(rank)),
            WaitedFor::Rest(port) => {
                let (step, awaited) = group.ports[port.index()].awaited_first();
                (port, step, awaited)
            }
            WaitedFor::Operation(operation) => {
                let found = group.ports.iter().find_map(|port| {
                    port.awaited(operation).map(|(step, awaited)| (port.id, step, awaited))
                });
                found.unwrap_or((PortId(0), 0, Awaited::Interface))
            }
        }
    }

    fn status(self, group: &Group) -> Status {
        let beat = group.next_beat();
        if let WaitedFor::Rank(peer) = self {
            return Status::AtHardware(peer, beat);
        }
        match self.awaited(group).2 {
            Awaited::MessageFrom(peer) | Awaited::ReadyFrom(peer) => Status::WaitsFor(peer, beat),
            Awaited::AllRanks => {
                let peer = |port: &Arc<Port>| match port.awaited_by_run()?.1 {
                    Awaited::MessageFrom(peer) | Awaited::ReadyFrom(peer) => Some(peer),
                    Awaited::AllRanks | Awaited::Interface => None,
                };
                Status::AtGates(group.ports.iter().find_map(peer), beat)
            }
            Awaited::Interface => Status::Busy,
        }
    }

    /// Who is at fault, as far as can be found out within `patience`.
    fn cause(self, group: &Group, patience: Duration, care: Care) -> Option<Blame> {
        let is_shown = |found: &Option<Blame>| {
            found.is_some_and(|blame| matches!(blame.fault, Fault::Circle | Fault::Elsewhere))
        };
        let mut found = self.search(group, patience, care);
        if is_shown(&found) {
            // Each rank shows one of its waits; others may be for a rank that is gone or late. So a
            // circle counts only if all ranks wait.
            match self.survey(group, patience, care) {
                Err(gone) => found = gone,
                Ok(shown) if care == Care::Thorough => {
                    self.go_on(group);
                    found = self.search(group, patience, care);
                    if is_shown(&found) {
                        let later = self.survey(group, patience, care);
                        let absent = |later: Vec<_>| self.absent(group, &shown, later);
                        found = later.map_or_else(|gone| gone, |later| absent(later).or(found));
                    }
                }
                Ok(_) => {}
            }
        }
        match found {
            Some(Blame { fault: Fault::Unreachable, .. }) => {
                let (port, ..) = self.awaited(group);
                group.ports[port.index()].news(patience).or(found)
            }
            found => found,
        }
    }

    /// Whether this rank is the one, of all that may wait for the same, to say that it takes too long.
    fn is_witness(self, group: &Group, patience: Duration, cause: Option<Blame>) -> bool {
        let search = self.begin_search(group, patience);
        let nearer = match (self, self.awaited(group).2) {
            (WaitedFor::Everybody, _) => search.nearer_at_gates(group.n_ranks),
            (_, Awaited::MessageFrom(peer) | Awaited::ReadyFrom(peer)) => {
                search.nearer(peer, cause, group.n_ranks)
            }
            (_, Awaited::AllRanks | Awaited::Interface) => None,
        };
        let Some((rank, shown)) = nearer else { return true };
        // One that has been stopped, or hardly ever tests, says nothing.
        self.go_on(group);
        self.begin_search(group, patience).ask(rank) == Ok(shown)
    }

    /// Shows for a while that this rank still waits.
    fn go_on(self, group: &Group) {
        for _ in 0..BEATS {
            group.waits.time.sleep(BEATS_TAKE / BEATS);
            group.progress();
            group.show(self.status(group));
        }
    }

    /// A search of `patience` at most, on a port of what is waited for.
    fn begin_search(self, group: &Group, patience: Duration) -> Search<'_> {
        Search {
            rank: group.rank,
            port: &group.ports[self.awaited(group).0.index()],
            is_at_hardware: matches!(self, WaitedFor::Everybody | WaitedFor::Rank(_)),
            patience: patience / 2,
            end: group.waits.time.now() + patience / 2,
        }
    }

    /// What ranks show, whether or not a chain of waits leads to them: see [`Search::survey`]. This
    /// rank goes on showing that it waits, since others may look twice meanwhile.
    fn survey(
        self,
        group: &Group,
        patience: Duration,
        care: Care,
    ) -> Result<Vec<(Rank, Status)>, Option<Blame>> {
        let show = || group.show(self.status(group));
        self.begin_search(group, patience).survey(care.asked(group), show)
    }

    /// A rank that does not wait, by what all have shown, and show now. What one shows may be old: who
    /// waits shows it anew.
    fn absent(
        self,
        group: &Group,
        shown: &[(Rank, Status)],
        now: Vec<(Rank, Status)>,
    ) -> Option<Blame> {
        let shown: HashMap<Rank, Status> = shown.iter().copied().collect();
        let is_absent = |&(rank, status): &(Rank, Status)| {
            status == Status::Busy || shown.get(&rank) == Some(&status)
        };
        let (rank, _) = now.into_iter().find(is_absent)?;
        Some(Blame { rank, fault: Fault::Absent, by: group.rank })
    }

    /// Who is at fault, by the chain of waits.
    fn search(self, group: &Group, patience: Duration, care: Care) -> Option<Blame> {
        let search = self.begin_search(group, patience);
        match (self, self.awaited(group).2) {
            (WaitedFor::Everybody, _) => search.among(care.asked(group)),
            (_, Awaited::MessageFrom(peer) | Awaited::ReadyFrom(peer)) => search.chain(peer),
            (_, Awaited::AllRanks | Awaited::Interface) => None,
        }
    }
}
