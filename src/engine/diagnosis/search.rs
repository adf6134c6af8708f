//! The search for the rank that blocks this one, by the status words of ranks.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::Rank;
use crate::endpoint::{Status, gossip_peers};
use crate::error::{Blame, Fault};

use crate::engine::run::port::Port;

/// See the module documentation.
pub(crate) struct BlameSearch<'a> {
    pub(crate) rank: Rank,
    pub(crate) port: &'a Port,
    /// Whether this rank waits at the gates or the flat buffer, and not for a message.
    pub(crate) is_at_hardware: bool,
    /// Longest wait for one answer.
    pub(crate) patience: Duration,
    /// No rank is asked after this time.
    pub(crate) end: Instant,
}

/// A chain of ranks, each of which waits for the next.
struct Chain {
    /// The waiting ranks in order, with their statuses.
    waiting: Vec<(Rank, Status)>,
    /// The last rank; if the chain is a circle, the lowest rank of the circle.
    end: Rank,
    cause: Option<Blame>,
}

impl BlameSearch<'_> {
    fn found(&self, rank: Rank, fault: Fault) -> Option<Blame> {
        Some(Blame { rank, fault, by: self.rank })
    }

    pub(super) fn ask(&self, rank: Rank) -> Result<Status, Blame> {
        if self.port.time.now() > self.end {
            return Ok(Status::Unknown);
        }
        self.port.ask(rank, self.patience).map_err(|error| error.blame(self.rank))
    }

    /// Follows the chain of waits from `first`, the rank that this rank waits for.
    pub(crate) fn follow_chain(&self, first: Rank) -> Option<Blame> {
        self.follow(first).cause
    }

    fn follow(&self, first: Rank) -> Chain {
        let mut seen = HashSet::from([self.rank]);
        let (mut at, mut before) = (first, None);
        let mut waiting = Vec::new();
        while seen.insert(at) {
            let status = match self.ask(at) {
                Ok(status) => status,
                Err(blame) => return Chain { waiting, end: at, cause: Some(blame) },
            };
            let cause = match status {
                Status::WaitsFor(next, _)
                | Status::AtGates(Some(next), _)
                | Status::AtHardware(next, _) => {
                    waiting.push((at, status));
                    before = Some(std::mem::replace(&mut at, next));
                    continue;
                }
                Status::AtGates(None, _) => self.found(at, Fault::Elsewhere),
                Status::Busy => self.found(at, Fault::Absent),
                // The rank before it may have all its messages by now, or else detects the departure itself.
                Status::Left => {
                    let left = || self.found(at, Fault::Left);
                    before.map_or_else(left, |before| self.found(before, Fault::Absent))
                }
                Status::Silent => self.found(at, Fault::Unreachable),
                // If the rank has given up, `ask` has set this rank's failure.
                Status::Unknown | Status::GivenUp(_) => None,
            };
            return Chain { waiting, end: at, cause };
        }
        // Waits for messages and waits at hardware in one circle belong to different calls: name a rank whose wait is
        // of the other kind than this rank's.
        let is_elsewhere = |(_, status): &&(Rank, Status)| match status {
            Status::AtGates(..) => !self.is_at_hardware,
            // The status does not exclude that the rank makes the same call.
            Status::AtHardware(..) => false,
            _ => self.is_at_hardware,
        };
        let cause = match waiting.iter().find(is_elsewhere) {
            Some(&(other, _)) => self.found(other, Fault::Elsewhere),
            None => self.found(at, Fault::Circle),
        };
        let begin = waiting.iter().position(|&(rank, _)| rank == at).unwrap_or(0);
        let end = waiting[begin..].iter().fold(at, |lowest, &(rank, _)| lowest.min(rank));
        Chain { waiting, end, cause }
    }

    /// The rank that should report the waits that end at the same rank as this rank's wait for `first`, and its
    /// status; `None` if this rank should. It is one of the ranks that wait for the end itself, and of these the
    /// first in the order of the end's gossip peers, if one of the gossip peers waits for the end.
    pub(super) fn reporter(
        &self,
        first: Rank,
        cause: Option<Blame>,
        n_ranks: u32,
    ) -> Option<(Rank, Status)> {
        let waits_for = |status, end| match status {
            Status::WaitsFor(rank, _)
            | Status::AtGates(Some(rank), _)
            | Status::AtHardware(rank, _) => rank == end,
            _ => false,
        };
        // The status of an absent `first` may be stale: do not follow it.
        let is_next = |blame: Blame| (blame.rank, blame.fault) == (first, Fault::Absent);
        if !cause.is_some_and(is_next) {
            let Chain { waiting, end, .. } = self.follow(first);
            if end != first {
                return waiting.into_iter().find(|&(_, status)| waits_for(status, end));
            }
        }
        let mut before = gossip_peers(first, n_ranks).take_while(|&at| at != self.rank);
        before.find_map(|at| {
            let status = self.ask(at).ok().filter(|&status| waits_for(status, first))?;
            Some((at, status))
        })
    }

    /// The same for a wait for all ranks at the gates, where each rank may blame a different one: the first of rank 0
    /// and its gossip peers that is at the gates.
    pub(super) fn reporter_at_gates(&self, n_ranks: u32) -> Option<(Rank, Status)> {
        let first = [0].into_iter().chain(gossip_peers(0, n_ranks));
        first.take_while(|&at| at != self.rank).find_map(|at| {
            let is_there = |status: &Status| matches!(status, Status::AtGates(..));
            Some((at, self.ask(at).ok().filter(is_there)?))
        })
    }

    /// Statuses of those `ranks` that have not left; calls `meanwhile` before each question.
    ///
    /// # Errors
    /// The rank that is gone; `None` if a rank's status is unknown.
    pub(super) fn survey(
        &self,
        ranks: impl Iterator<Item = Rank>,
        mut meanwhile: impl FnMut(),
    ) -> Result<Vec<(Rank, Status)>, Option<Blame>> {
        let mut statuses = Vec::new();
        for at in ranks {
            meanwhile();
            match self.ask(at).map_err(Some)? {
                Status::Silent => return Err(self.found(at, Fault::Unreachable)),
                Status::Unknown | Status::GivenUp(_) => return Err(None),
                Status::Left => {}
                status => statuses.push((at, status)),
            }
        }
        Ok(statuses)
    }

    /// Searches `ranks` for one that is not at the gates, and for the rank that blocks it.
    pub(crate) fn find_absent(&self, ranks: impl Iterator<Item = Rank>) -> Option<Blame> {
        let mut elsewhere = None;
        let mut absent = None;
        for at in ranks {
            if let Some(blame) = self.port.received_news() {
                return Some(blame);
            }
            match self.ask(at) {
                Err(blame) => return Some(blame),
                Ok(Status::AtGates(..)) => {}
                Ok(Status::Left) => return self.found(at, Fault::Left),
                Ok(Status::Silent) => return self.found(at, Fault::Unreachable),
                Ok(Status::Unknown | Status::GivenUp(_)) => break,
                Ok(Status::Busy) => absent = absent.or(self.found(at, Fault::Absent)),
                // On its way to the gates, unless it waits for this rank.
                Ok(Status::WaitsFor(..) | Status::AtHardware(..)) => match self.follow_chain(at) {
                    Some(blame) if blame.fault == Fault::Unreachable => return Some(blame),
                    Some(blame) if blame.fault == Fault::Absent => absent = absent.or(Some(blame)),
                    Some(_) => elsewhere = elsewhere.or(self.found(at, Fault::Elsewhere)),
                    // The end of the chain is unknown.
                    None => {}
                },
            }
        }
        // Only after all ranks: an unreachable rank takes precedence.
        absent.or(elsewhere)
    }
}
