//! The search for the rank that keeps this one waiting, by what ranks show of themselves.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::Rank;
use crate::endpoint::{Status, gossip_peers};
use crate::error::{Blame, Fault};

use crate::engine::run::port::Port;

/// See the module documentation.
pub(crate) struct Search<'a> {
    pub(crate) rank: Rank,
    pub(crate) port: &'a Port,
    /// Whether this rank waits at the gates or the flat buffer, or else for a message.
    pub(crate) is_at_hardware: bool,
    /// For one answer.
    pub(crate) patience: Duration,
    /// Nobody is asked after this.
    pub(crate) end: Instant,
}

/// Waits from one rank to the next.
struct Chain {
    /// The ranks that wait, and what they show.
    shown: Vec<(Rank, Status)>,
    /// Where they end; of a circle the lowest rank.
    end: Rank,
    cause: Option<Blame>,
}

impl Search<'_> {
    fn found(&self, rank: Rank, fault: Fault) -> Option<Blame> {
        Some(Blame { rank, fault, by: self.rank })
    }

    pub(super) fn ask(&self, rank: Rank) -> Result<Status, Blame> {
        if self.port.time.now() > self.end {
            return Ok(Status::Unknown);
        }
        self.port.ask(rank, self.patience).map_err(|error| error.blame(self.rank))
    }

    /// Follows the waits from `first`, for whom this rank waits.
    pub(crate) fn chain(&self, first: Rank) -> Option<Blame> {
        self.follow(first).cause
    }

    fn follow(&self, first: Rank) -> Chain {
        let mut seen = HashSet::from([self.rank]);
        let (mut at, mut before) = (first, None);
        let mut shown = Vec::new();
        while seen.insert(at) {
            let status = match self.ask(at) {
                Ok(status) => status,
                Err(blame) => return Chain { shown, end: at, cause: Some(blame) },
            };
            let cause = match status {
                Status::WaitsFor(next, _)
                | Status::AtGates(Some(next), _)
                | Status::AtHardware(next, _) => {
                    shown.push((at, status));
                    before = Some(std::mem::replace(&mut at, next));
                    continue;
                }
                Status::AtGates(None, _) => self.found(at, Fault::Elsewhere),
                Status::Busy => self.found(at, Fault::Absent),
                // A rank that waits for it may have got all from it by now, or else finds this out.
                Status::Left => {
                    let left = || self.found(at, Fault::Left);
                    before.map_or_else(left, |before| self.found(before, Fault::Absent))
                }
                Status::Silent => self.found(at, Fault::Unreachable),
                // Who has given up has failed this rank as well.
                Status::Unknown | Status::GivenUp(_) => None,
            };
            return Chain { shown, end: at, cause };
        }
        // Ranks of both kinds make different calls: then whoever does not wait as this one is named.
        let is_elsewhere = |(_, status): &&(Rank, Status)| match status {
            Status::AtGates(..) => !self.is_at_hardware,
            // As far as this status tells, it may make the same call.
            Status::AtHardware(..) => false,
            _ => self.is_at_hardware,
        };
        let cause = match shown.iter().find(is_elsewhere) {
            Some(&(other, _)) => self.found(other, Fault::Elsewhere),
            None => self.found(at, Fault::Circle),
        };
        let begin = shown.iter().position(|&(rank, _)| rank == at).unwrap_or(0);
        let end = shown[begin..].iter().fold(at, |lowest, &(rank, _)| lowest.min(rank));
        Chain { shown, end, cause }
    }

    /// The rank that is to say that waits take too long which end where this rank's ends, that for `first`, and what it
    /// shows; `None` if this rank is to. Of all these ranks it is one of those that wait for the end itself, and of
    /// these the first of the end's gossip peers, if it is waited for by any of these.
    pub(super) fn nearer(
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
        // What that one shows may be old.
        let is_next = |blame: Blame| (blame.rank, blame.fault) == (first, Fault::Absent);
        if !cause.is_some_and(is_next) {
            let Chain { shown, end, .. } = self.follow(first);
            if end != first {
                return shown.into_iter().find(|&(_, status)| waits_for(status, end));
            }
        }
        let mut before = gossip_peers(first, n_ranks).take_while(|&at| at != self.rank);
        before.find_map(|at| {
            let status = self.ask(at).ok().filter(|&status| waits_for(status, first))?;
            Some((at, status))
        })
    }

    /// The same if this rank waits for all ranks at the gates, of which each may find somebody else to be at fault.
    pub(super) fn nearer_at_gates(&self, n_ranks: u32) -> Option<(Rank, Status)> {
        let first = [0].into_iter().chain(gossip_peers(0, n_ranks));
        first.take_while(|&at| at != self.rank).find_map(|at| {
            let is_there = |status: &Status| matches!(status, Status::AtGates(..));
            Some((at, self.ask(at).ok().filter(is_there)?))
        })
    }

    /// What those of `ranks` show that have not left; `meanwhile` is called before each question.
    ///
    /// # Errors
    /// A rank that is gone, or nothing if not all can be asked.
    pub(super) fn survey(
        &self,
        ranks: impl Iterator<Item = Rank>,
        mut meanwhile: impl FnMut(),
    ) -> Result<Vec<(Rank, Status)>, Option<Blame>> {
        let mut shown = Vec::new();
        for at in ranks {
            meanwhile();
            match self.ask(at).map_err(Some)? {
                Status::Silent => return Err(self.found(at, Fault::Unreachable)),
                Status::Unknown | Status::GivenUp(_) => return Err(None),
                Status::Left => {}
                status => shown.push((at, status)),
            }
        }
        Ok(shown)
    }

    /// Looks for somebody among `ranks` who is not at the gates, and for what keeps it.
    pub(crate) fn among(&self, ranks: impl Iterator<Item = Rank>) -> Option<Blame> {
        let mut elsewhere = None;
        let mut absent = None;
        for at in ranks {
            if let Some(blame) = self.port.told() {
                return Some(blame);
            }
            match self.ask(at) {
                Err(blame) => return Some(blame),
                Ok(Status::AtGates(..)) => {}
                Ok(Status::Left) => return self.found(at, Fault::Left),
                Ok(Status::Silent) => return self.found(at, Fault::Unreachable),
                Ok(Status::Unknown | Status::GivenUp(_)) => break,
                Ok(Status::Busy) => absent = absent.or(self.found(at, Fault::Absent)),
                // On its way to the gates, if it is not this rank that it waits for.
                Ok(Status::WaitsFor(..) | Status::AtHardware(..)) => match self.chain(at) {
                    Some(blame) if blame.fault == Fault::Unreachable => return Some(blame),
                    Some(blame) if blame.fault == Fault::Absent => absent = absent.or(Some(blame)),
                    Some(_) => elsewhere = elsewhere.or(self.found(at, Fault::Elsewhere)),
                    // The end of its chain could not be seen.
                    None => {}
                },
            }
        }
        // There may have been worse to come.
        absent.or(elsewhere)
    }
}
