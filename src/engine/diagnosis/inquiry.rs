//! What a port waits for, and what it can learn about other ranks while messages do not come;
//! see [`Observer`](crate::endpoint::Observer).

use std::sync::TryLockError;
use std::time::Duration;

use crate::Rank;

use crate::endpoint::{Status, WireError};
use crate::error::{Awaited, Blame, Error};

use crate::engine::run::port::Port;

/// How long news may take to reach everybody, if all ranks are waiting.
const NEWS_TAKE: Duration = Duration::from_millis(250);
/// The most that counts between two polls: time in which this thread had no core is not the
/// other's fault.
const LONGEST_GAP: Duration = Duration::from_millis(10);

impl Port {
    /// What an operation waits for on this port, if it is under way here and does not only wait for other ports.
    pub(crate) fn awaited(&self, operation: (u64, u32)) -> Option<(u32, Awaited)> {
        let state = self.reserve();
        let mut active = state.runs.values();
        let run = &active.find(|active| active.run.operation() == operation)?.run;
        match run.awaited() {
            // All tasks finished, but something is still to go out.
            None if run.is_finished() => Some((0, Awaited::Interface)),
            awaited => awaited,
        }
    }

    /// What the first of the runs under way waits for that waits for anything.
    pub(crate) fn awaited_by_run(&self) -> Option<(u32, Awaited)> {
        self.reserve().runs.values().find_map(|active| active.run.awaited())
    }

    /// Shows what this rank is doing to whoever asks.
    pub(crate) fn show(&self, status: Status) {
        let state = &mut *self.reserve();
        if let Some(observer) = state.endpoint.observer().filter(|_| !state.has_given_up) {
            observer.show(status);
        }
    }

    /// Asks what another rank is doing, and waits for the answer at most for `patience`. The
    /// port can be driven meanwhile.
    pub(crate) fn ask(&self, rank: Rank, patience: Duration) -> Result<Status, Error> {
        let _asking = match self.asking.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
            // Another thread finds out.
            Err(TryLockError::WouldBlock) => return Ok(Status::Unknown),
        };
        let (mut polled, mut last) = (Duration::ZERO, self.time.now());
        let mut is_asked = false;
        loop {
            if self.has_failed() {
                return Ok(Status::Unknown);
            }
            {
                let mut state = self.reserve();
                let Some(observer) = state.endpoint.observer() else { return Ok(Status::Unknown) };
                if !is_asked {
                    let asked = observer.ask(rank);
                    is_asked = asked.map_err(|source| self.wire_error(None, source))?;
                }
                match observer.answer().filter(|_| is_asked) {
                    // As if it had told this rank.
                    Some(Status::GivenUp(blame)) => {
                        self.failure.set(&Error::Lost { rank: self.rank, blame });
                        return Ok(Status::Unknown);
                    }
                    Some(answer) => return Ok(answer),
                    None => {}
                }
            }
            self.drive();
            self.time.yield_now(LONGEST_GAP);
            let before = std::mem::replace(&mut last, self.time.now());
            polled += (last - before).min(LONGEST_GAP);
            if polled > patience {
                return Ok(if is_asked { Status::Silent } else { Status::Unknown });
            }
        }
    }

    /// Why another rank has given up, if one has said so.
    pub(crate) fn told(&self) -> Option<Blame> {
        self.reserve().endpoint.observer()?.told()
    }

    /// Waits a little for the news of a failure, at most for `patience`. A rank that cannot be
    /// reached may have given up, told others, and ended: then its news are on their way, and
    /// say whose fault it was.
    pub(crate) fn news(&self, patience: Duration) -> Option<Blame> {
        let end = self.time.now() + NEWS_TAKE.min(patience);
        loop {
            match self.told() {
                None if self.time.now() < end => self.time.sleep(NEWS_TAKE / 100),
                told => return told,
            }
        }
    }

    /// What is behind a failure: a peer that cannot be reached may have given up for reasons of
    /// its own, and told others.
    pub(crate) fn explained(&self, error: Error) -> Error {
        match &error {
            Error::Wire { source: WireError { peer: Some(_), .. }, .. } => {
                let told = self.news(Duration::MAX);
                told.map_or(error, |blame| Error::Lost { rank: self.rank, blame })
            }
            _ => error,
        }
    }
}
