//! What a rank does as a wait of its own becomes long: it shows whom it waits for, looks for a
//! rank that is gone, and in the end gives up, naming whoever is at fault.
//!
//! A rank that waits can see only its neighbour in the plan, which may itself wait for another.
//! So it follows the chain of waits by reading the status words of the ranks on it, which
//! works whatever those ranks do, and ends at a rank that is gone or waits for nobody.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Rank;

use crate::endpoint::{Status, confidants};
use crate::error::{Awaited, Blame, Error, Fault};

use super::port::Port;
use super::request::Operation;
use super::workers::Engine;

/// A wait this long is shown to others. Much longer than most waits, much shorter than any
/// time-out.
const SHOWN_AFTER: Duration = Duration::from_millis(20);
/// When a rank that is gone is looked for first; then again whenever the wait has become twice
/// as long.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// How long a search may take, whatever the time-out.
const LONGEST_SEARCH: Duration = Duration::from_secs(60);
/// How long news may take to reach everybody, if all ranks are waiting.
const NEWS_TAKE: Duration = Duration::from_millis(250);
/// The most that one look at the clock adds to the idle time of somebody who only tests now
/// and then: what lies between two tests is mostly the caller's own computing.
const LONGEST_GAP: Duration = Duration::from_millis(10);

/// What is waited for.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'a> {
    Operation(&'a Arc<Operation>),
    /// All of so many ranks, at the barrier gates.
    Everybody(u32),
}

/// How much is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// What can be asked again and again.
    Quick,
    /// Everything that may help, once.
    Thorough,
}

/// The watch over one wait.
#[derive(Debug, Default)]
pub(super) struct Vigil {
    shown: bool,
    /// How long the wait was when a rank that is gone was looked for last.
    looked: Option<Duration>,
}

impl Vigil {
    /// Something has moved, or the wait is over. A rank that has given up goes on showing whom
    /// it waited for: others may be about to follow that.
    pub(super) fn ease(&mut self, engine: &Engine) {
        if self.shown && engine.check().is_ok() {
            engine.show(Status::Busy);
        }
        *self = Vigil::default();
    }

    /// Nothing has moved for `idle`.
    ///
    /// # Errors
    /// [`Error::Lost`] or [`Error::Timeout`] if there is no point in waiting any longer.
    pub(super) fn idle(
        &mut self,
        engine: &Engine,
        wanted: Wanted<'_>,
        idle: Duration,
    ) -> Result<(), Error> {
        let timeout = engine.config().timeout;
        if idle < SHOWN_AFTER.min(timeout / 8) {
            return Ok(());
        }
        let rank = engine.rank();
        let patience = (timeout / 4).min(LONGEST_SEARCH);
        if !self.shown {
            self.shown = true;
            engine.show(wanted.status(engine));
        }
        if let Some(blame) = engine.ports.first().and_then(|port| port.told()) {
            return Err(Error::Lost { rank, blame });
        }
        if idle > timeout {
            let (port, step, awaited) = wanted.awaited(engine);
            let cause = wanted.cause(engine, patience, Care::Thorough);
            return Err(Error::Timeout { rank, port, step, awaited, waited: timeout, cause });
        }
        if idle > self.looked.map_or(FIRST_LOOK.min(timeout / 4), |last| 2 * last) {
            self.looked = Some(idle);
            if let Some(blame) = wanted.cause(engine, patience, Care::Quick)
                && matches!(blame.fault, Fault::Unreachable | Fault::Failed)
            {
                return Err(Error::Lost { rank, blame });
            }
        }
        Ok(())
    }
}

impl Wanted<'_> {
    fn awaited(self, engine: &Engine) -> (usize, u32, Awaited) {
        match self {
            Wanted::Everybody(_) => (0, 0, Awaited::AllRanks),
            Wanted::Operation(operation) => {
                let found = engine.ports.iter().enumerate().find_map(|(index, port)| {
                    port.awaited(operation).map(|(step, awaited)| (index, step, awaited))
                });
                found.unwrap_or((0, 0, Awaited::Interface))
            }
        }
    }

    fn status(self, engine: &Engine) -> Status {
        match self.awaited(engine).2 {
            Awaited::MessageFrom(peer) | Awaited::ReadyFrom(peer) => Status::WaitsFor(peer),
            Awaited::AllRanks => {
                Status::AtGates(engine.ports.iter().find_map(|port| match port.awaited_first().1 {
                    Awaited::MessageFrom(peer) | Awaited::ReadyFrom(peer) => Some(peer),
                    Awaited::AllRanks | Awaited::Interface => None,
                }))
            }
            Awaited::Interface => Status::Busy,
        }
    }

    /// Who is at fault, as far as can be found out within `patience`.
    fn cause(self, engine: &Engine, patience: Duration, care: Care) -> Option<Blame> {
        let (port, _, awaited) = self.awaited(engine);
        let search = Search {
            rank: engine.rank(),
            port: &engine.ports[port],
            patience: patience / 2,
            end: Instant::now() + patience / 2,
        };
        let found = match (self, awaited) {
            (Wanted::Everybody(n_ranks), _) => match care {
                Care::Quick => search.among(confidants(engine.rank(), n_ranks)),
                Care::Thorough => search.among(others(engine.rank(), n_ranks)),
            },
            (_, Awaited::MessageFrom(peer) | Awaited::ReadyFrom(peer)) => search.chain(peer),
            (_, Awaited::AllRanks | Awaited::Interface) => None,
        };
        match found {
            Some(Blame { fault: Fault::Unreachable, .. }) => {
                news(patience, || search.port.told()).or(found)
            }
            found => found,
        }
    }
}

/// Waits a little for the news of a failure, at most for `patience`. A rank that cannot be
/// reached may have given up, told others, and ended: then its news are on their way, and say
/// whose fault it was.
pub(super) fn news(patience: Duration, told: impl Fn() -> Option<Blame>) -> Option<Blame> {
    let end = Instant::now() + NEWS_TAKE.min(patience);
    loop {
        match told() {
            None if Instant::now() < end => std::thread::sleep(NEWS_TAKE / 100),
            told => return told,
        }
    }
}

/// All ranks but `rank`, beginning with the next one, so that different ranks ask different ones
/// first: whoever finds the cause tells the others.
fn others(rank: Rank, n_ranks: u32) -> impl Iterator<Item = Rank> {
    (rank + 1..n_ranks).chain(0..rank)
}

struct Search<'a> {
    rank: Rank,
    port: &'a Port,
    /// For one answer.
    patience: Duration,
    /// Nobody is asked after this.
    end: Instant,
}

impl Search<'_> {
    fn found(&self, rank: Rank, fault: Fault) -> Option<Blame> {
        Some(Blame { rank, fault, by: self.rank })
    }

    fn ask(&self, rank: Rank) -> Result<Status, Blame> {
        if Instant::now() > self.end {
            return Ok(Status::Unknown);
        }
        self.port.ask(rank, self.patience).map_err(|error| error.blame(self.rank))
    }

    /// Follows the waits from `first`, for whom this rank waits.
    fn chain(&self, first: Rank) -> Option<Blame> {
        let mut seen = HashSet::from([self.rank]);
        let mut at = first;
        while seen.insert(at) {
            match self.ask(at) {
                Err(blame) => return Some(blame),
                Ok(Status::WaitsFor(next) | Status::AtGates(Some(next))) => at = next,
                Ok(Status::Busy) => return self.found(at, Fault::Absent),
                Ok(Status::AtGates(None)) => return self.found(at, Fault::Elsewhere),
                Ok(Status::Silent) => return self.found(at, Fault::Unreachable),
                Ok(Status::Unknown) => return None,
            }
        }
        self.found(at, Fault::Circle)
    }

    /// Looks for somebody among `ranks` who is not at the gates, and for what keeps it.
    fn among(&self, ranks: impl Iterator<Item = Rank>) -> Option<Blame> {
        let mut elsewhere = None;
        let mut absent = None;
        for at in ranks {
            if let Some(blame) = self.port.told() {
                return Some(blame);
            }
            match self.ask(at) {
                Err(blame) => return Some(blame),
                Ok(Status::AtGates(_)) => {}
                Ok(Status::Silent) => return self.found(at, Fault::Unreachable),
                Ok(Status::Unknown) => break,
                Ok(Status::Busy) => absent = absent.or(self.found(at, Fault::Absent)),
                // On its way to the gates, if it is not this rank that it waits for.
                Ok(Status::WaitsFor(_)) => match self.chain(at) {
                    Some(blame) if blame.fault == Fault::Unreachable => return Some(blame),
                    Some(blame) if blame.fault == Fault::Absent => absent = absent.or(Some(blame)),
                    _ => elsewhere = elsewhere.or(self.found(at, Fault::Elsewhere)),
                },
            }
        }
        // There may have been worse to come.
        absent.or(elsewhere)
    }
}

/// The watch over an operation that is only tested now and then.
#[derive(Debug, Default)]
pub(super) struct TestVigil {
    vigil: Vigil,
    last: Option<Instant>,
    idle: Duration,
    /// The engine's count of moves at the last test.
    moves: u64,
}

impl TestVigil {
    /// The operation is not done yet.
    ///
    /// # Errors
    /// As [`Vigil::idle`].
    pub(super) fn tested(
        &mut self,
        engine: &Engine,
        operation: &Arc<Operation>,
    ) -> Result<(), Error> {
        let now = Instant::now();
        let has_moved = engine.has_moved(&mut self.moves);
        let Some(last) = self.last.replace(now).filter(|_| !has_moved) else {
            self.vigil.ease(engine);
            self.idle = Duration::ZERO;
            return Ok(());
        };
        self.idle += (now - last).min(LONGEST_GAP);
        self.vigil.idle(engine, Wanted::Operation(operation), self.idle)
    }

    /// The operation is done.
    pub(super) fn end(&mut self, engine: &Engine) {
        self.vigil.ease(engine);
        *self = TestVigil::default();
    }
}

/// The watch over a wait at the barrier gates; see [`Engine::at_gates`].
pub struct GatesVigil<'a> {
    engine: &'a Engine,
    n_ranks: u32,
    vigil: Vigil,
}

impl<'a> GatesVigil<'a> {
    pub(super) fn new(engine: &'a Engine, n_ranks: u32) -> Self {
        GatesVigil { engine, n_ranks, vigil: Vigil::default() }
    }

    /// Something has moved.
    pub fn ease(&mut self) {
        self.vigil.ease(self.engine);
    }

    /// Nothing has moved for `idle`.
    ///
    /// # Errors
    /// [`Error::Lost`] or [`Error::Timeout`] if there is no point in waiting any longer.
    pub fn idle(&mut self, idle: Duration) -> Result<(), Error> {
        self.vigil.idle(self.engine, Wanted::Everybody(self.n_ranks), idle)
    }
}

impl Drop for GatesVigil<'_> {
    fn drop(&mut self) {
        self.vigil.ease(self.engine);
    }
}
