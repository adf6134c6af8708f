//! The watchdog of one wait. When the wait becomes long, the watchdog publishes the awaited rank, searches for a rank
//! that is gone, and finally gives up and names the rank at fault.
//!
//! A waiting rank sees only its neighbour in the plan, which may itself wait for another rank. So the search follows
//! the chain of waits by reading status words, which needs no help of the ranks on the chain. The chain ends at a
//! rank that is gone or does not wait.
//!
//! A status word may be stale: its rank has been stopped, or has only tested and computes now. So a waiting rank
//! keeps publishing its status, with another number each time ([`Beat`](crate::endpoint::Beat)), and the search
//! checks an apparent circle twice.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hopbine_torus::PortId;

use crate::Rank;
use crate::endpoint::{Status, gossip_peers};
use crate::error::{Awaited, Blame, Error, Fault};

use super::search::BlameSearch;
use crate::engine::run::group::{OnTimeout, PortGroup};
use crate::engine::run::port::Port;

/// Age of a wait at which it is published: much more than most waits take, much less than any time-out.
const PUBLISH_AFTER: Duration = Duration::from_millis(20);
/// Age of a wait at the first search for a rank that is gone; each later search is at twice the age of the one
/// before.
const FIRST_SEARCH: Duration = Duration::from_secs(1);
/// Least and most time for a search: the least because a slow wire must make no rank unreachable, the most for any
/// time-out.
const SEARCH_TIME: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Least time-out at tear-down for the device to finish, however short the configured time-out, which is meant for
/// other ranks.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time to see which ranks keep publishing that they wait, and the number of times that this rank publishes
/// meanwhile.
const BEATS_TIME: Duration = Duration::from_millis(250);
const BEATS: u32 = 25;
/// Longest time counted between two looks at the clock: in a longer interval this process was stopped, or had no
/// core, and has not seen what arrived.
const LONGEST_GAP: Duration = Duration::from_millis(100);

/// The subject of a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WaitedFor {
    /// The operation with this context and number.
    Operation((u64, u32)),
    /// All ranks, at the barrier gates.
    AllRanks,
    /// All ranks of a communicator: the given rank has not arrived at the flat buffer, or is the next at the gates.
    Rank(Rank),
    /// All that is left to do on this port at tear-down.
    TearDown(PortId),
}

/// How many ranks a search asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// The gossip peers; may be repeated often.
    Quick,
    /// All ranks.
    Thorough,
}

impl Effort {
    /// The ranks to ask if no particular rank is suspected.
    fn ranks(self, group: &PortGroup) -> Box<dyn Iterator<Item = Rank>> {
        let (rank, n_ranks) = (group.rank, group.n_ranks);
        match self {
            Effort::Quick => Box::new(gossip_peers(rank, n_ranks)),
            // From the next rank on, so that ranks begin with different ones: the rank that finds the cause tells the
            // others.
            Effort::Thorough => Box::new((rank + 1..n_ranks).chain(0..rank)),
        }
    }
}

/// The watch over one wait.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    last_check: Option<Instant>,
    /// Time without progress of the subject.
    idle: Duration,
    /// [`WaitedFor::progress_mark`] at the last check.
    progress_mark: u64,
    is_published: bool,
    /// Age of the wait at the last search for a rank that is gone.
    last_search: Option<Duration>,
    /// Age of the wait when it was last found too long.
    last_warning: Option<Duration>,
}

impl Watchdog {
    /// Ends the watch over a wait that is over.
    #[inline]
    pub(crate) fn end(&mut self, group: &PortGroup) {
        if self.last_check.is_some() {
            self.end_started(group);
        }
    }

    #[cold]
    fn end_started(&mut self, group: &PortGroup) {
        if self.is_published {
            group.publish(Status::Busy);
        }
        *self = Watchdog::default();
    }

    /// Checks the clock and the progress of the subject.
    ///
    /// # Errors
    /// [`Error::Lost`] or [`Error::Timeout`] if waiting longer is pointless.
    pub(crate) fn check(&mut self, group: &PortGroup, wanted: WaitedFor) -> Result<(), Error> {
        self.check_with_gap(group, wanted, LONGEST_GAP)
    }

    pub(super) fn check_with_gap(
        &mut self,
        group: &PortGroup,
        wanted: WaitedFor,
        gap: Duration,
    ) -> Result<(), Error> {
        let now = group.waits.time.now();
        let last = self.last_check.replace(now).unwrap_or(now);
        self.idle += (now - last).min(gap);
        let timeout = wanted.timeout(group);
        if self.idle < PUBLISH_AFTER.min(timeout / 8) {
            return Ok(());
        }
        // The moves since the last check may all belong to other operations.
        let mark = wanted.progress_mark(group);
        if std::mem::replace(&mut self.progress_mark, mark) != mark {
            self.end(group);
            (self.last_check, self.progress_mark) = (Some(now), mark);
            return Ok(());
        }
        let idle = self.idle;
        let rank = group.rank;
        let patience = (timeout / 4).clamp(SEARCH_TIME.0, SEARCH_TIME.1);
        self.is_published = true;
        group.publish(wanted.status(group));
        if let Some(blame) = group.ports.first().and_then(|port| port.received_news()) {
            return Err(Error::Lost { rank, blame });
        }
        let waited = self.last_warning.map_or(timeout, |last| 2 * last);
        if idle > waited {
            self.last_warning = Some(waited);
            let (port, step, awaited) = wanted.awaited(group);
            let n_parts = group.n_parts();
            let cause = wanted.cause(group, patience, Effort::Thorough);
            let moves = n_parts != group.n_parts();
            let is_witness = wanted.is_witness(group, patience, cause);
            if let Some(reason) = group.failure.reason() {
                // Another rank has found a failure first, and this rank's search is incomplete.
                return Err(reason);
            }
            // Relaxed: a statistic.
            group.n_long_waits.fetch_add(1, Ordering::Relaxed);
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
                (OnTimeout::Warn, Some(blame)) if is_certain(group, blame, moves) => {
                    return Err(Error::Lost { rank, blame });
                }
                (OnTimeout::Warn, _) if is_witness => {
                    group.waits.time.warn(&format!("hopbine: {error}; waiting on"))
                }
                // Another rank prints the warning.
                (OnTimeout::Warn, _) => {}
            }
        }
        if idle > self.last_search.map_or(FIRST_SEARCH.min(timeout / 4), |last| 2 * last) {
            self.last_search = Some(idle);
            if let Some(blame) = wanted.cause(group, patience, Effort::Quick)
                && matches!(blame.fault, Fault::Unreachable | Fault::Failed | Fault::Left)
            {
                return Err(Error::Lost { rank, blame });
            }
        }
        Ok(())
    }

    /// Whether nothing has moved since the last check.
    pub(crate) fn is_still(&self, group: &PortGroup, wanted: WaitedFor) -> bool {
        wanted.progress_mark(group) == self.progress_mark
    }
}

/// Whether waiting longer is certainly in vain. `moves`: parts of long messages have moved meanwhile.
fn is_certain(group: &PortGroup, blame: Blame, moves: bool) -> bool {
    match blame.fault {
        Fault::Unreachable | Fault::Failed | Fault::Left | Fault::Disagrees => true,
        // The rank may still arrive.
        Fault::Absent => false,
        // A rank publishes one of its waits. If threads of a rank wait for different things, an apparent circle need
        // not be one. Nor is it one while its messages move.
        Fault::Elsewhere | Fault::Circle => !group.has_several_comms() && !moves,
    }
}

impl WaitedFor {
    /// A number that changes when the subject makes progress.
    fn progress_mark(self, group: &PortGroup) -> u64 {
        match self {
            WaitedFor::Operation(operation) => {
                group.ports.iter().map(|port| port.unfinished(operation) as u64).sum()
            }
            // Progress is invisible before the end.
            WaitedFor::AllRanks | WaitedFor::Rank(_) => 0,
            WaitedFor::TearDown(_) => group.n_moves(),
        }
    }

    /// Longest time without progress.
    fn timeout(self, group: &PortGroup) -> Duration {
        let timeout = group.config.timeout;
        match self {
            WaitedFor::TearDown(_) if self.awaited(group).2 == Awaited::Interface => {
                timeout.max(DEVICE_TIMEOUT)
            }
            _ => timeout,
        }
    }

    fn awaited(self, group: &PortGroup) -> (PortId, u32, Awaited) {
        match self {
            WaitedFor::AllRanks => (PortId(0), 0, Awaited::AllRanks),
            WaitedFor::Rank(rank) => (PortId(0), 0, Awaited::MessageFrom(rank)),
            WaitedFor::TearDown(port) => {
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

    fn status(self, group: &PortGroup) -> Status {
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

    /// The rank at fault, if a search of at most `patience` finds it.
    fn cause(self, group: &PortGroup, patience: Duration, effort: Effort) -> Option<Blame> {
        let is_apparent = |found: &Option<Blame>| {
            found.is_some_and(|blame| matches!(blame.fault, Fault::Circle | Fault::Elsewhere))
        };
        let mut found = self.search(group, patience, effort);
        if is_apparent(&found) {
            // A rank publishes one of its waits; another of its waits may be for a rank that is gone or late. So a
            // circle counts only if all ranks wait.
            match self.survey(group, patience, effort) {
                Err(gone) => found = gone,
                Ok(earlier) if effort == Effort::Thorough => {
                    self.keep_publishing(group);
                    found = self.search(group, patience, effort);
                    if is_apparent(&found) {
                        let later = self.survey(group, patience, effort);
                        let absent = |later: Vec<_>| self.absent(group, &earlier, later);
                        found = later.map_or_else(|gone| gone, |later| absent(later).or(found));
                    }
                }
                Ok(_) => {}
            }
        }
        match found {
            Some(Blame { fault: Fault::Unreachable, .. }) => {
                let (port, ..) = self.awaited(group);
                group.ports[port.index()].await_news(patience).or(found)
            }
            found => found,
        }
    }

    /// Whether this rank, of all ranks with possibly the same cause, should report that its wait takes too long.
    fn is_witness(self, group: &PortGroup, patience: Duration, cause: Option<Blame>) -> bool {
        let search = self.begin_search(group, patience);
        let reporter = match (self, self.awaited(group).2) {
            (WaitedFor::AllRanks, _) => search.reporter_at_gates(group.n_ranks),
            (_, Awaited::MessageFrom(peer) | Awaited::ReadyFrom(peer)) => {
                search.reporter(peer, cause, group.n_ranks)
            }
            (_, Awaited::AllRanks | Awaited::Interface) => None,
        };
        let Some((rank, status)) = reporter else { return true };
        // A rank that was stopped, or hardly ever tests, reports nothing, and does not update its status either.
        self.keep_publishing(group);
        self.begin_search(group, patience).ask(rank) == Ok(status)
    }

    /// Publishes for [`BEATS_TIME`] that this rank still waits.
    fn keep_publishing(self, group: &PortGroup) {
        for _ in 0..BEATS {
            group.waits.time.sleep(BEATS_TIME / BEATS);
            group.progress();
            group.publish(self.status(group));
        }
    }

    /// A search of at most `patience`, on the port that the wait is for.
    fn begin_search(self, group: &PortGroup, patience: Duration) -> BlameSearch<'_> {
        BlameSearch {
            rank: group.rank,
            port: &group.ports[self.awaited(group).0.index()],
            is_at_hardware: matches!(self, WaitedFor::AllRanks | WaitedFor::Rank(_)),
            patience: patience / 2,
            end: group.waits.time.now() + patience / 2,
        }
    }

    /// Statuses of the ranks, even if no chain of waits leads to them: see [`BlameSearch::survey`]. Notes whether one
    /// has several communicators. This rank keeps publishing that it waits, since other ranks may check twice
    /// meanwhile.
    fn survey(
        self,
        group: &PortGroup,
        patience: Duration,
        effort: Effort,
    ) -> Result<Vec<(Rank, Status)>, Option<Blame>> {
        let publish = || group.publish(self.status(group));
        let statuses = self.begin_search(group, patience).survey(effort.ranks(group), publish)?;
        if statuses.iter().any(|(_, status)| status.has_several_comms()) {
            group.note_several_comms();
        }
        Ok(statuses)
    }

    /// A rank that does not wait, by the surveys `earlier` and `now`: it is busy, or has not updated its
    /// status, as a waiting rank would.
    fn absent(
        self,
        group: &PortGroup,
        earlier: &[(Rank, Status)],
        now: Vec<(Rank, Status)>,
    ) -> Option<Blame> {
        let earlier: HashMap<Rank, Status> = earlier.iter().copied().collect();
        let is_absent = |&(rank, status): &(Rank, Status)| {
            status == Status::Busy || earlier.get(&rank) == Some(&status)
        };
        let (rank, _) = now.into_iter().find(is_absent)?;
        Some(Blame { rank, fault: Fault::Absent, by: group.rank })
    }

    /// The rank at fault, by the chain of waits.
    fn search(self, group: &PortGroup, patience: Duration, effort: Effort) -> Option<Blame> {
        let search = self.begin_search(group, patience);
        match (self, self.awaited(group).2) {
            (WaitedFor::AllRanks, _) => search.find_absent(effort.ranks(group)),
            (_, Awaited::MessageFrom(peer) | Awaited::ReadyFrom(peer)) => search.follow_chain(peer),
            (_, Awaited::AllRanks | Awaited::Interface) => None,
        }
    }
}
