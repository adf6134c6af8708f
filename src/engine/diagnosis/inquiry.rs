//! The item that a port waits for, and what it learns about other ranks while messages do not arrive; see
//! [`Observer`](crate::endpoint::Observer).

use std::sync::TryLockError;
use std::time::Duration;

use crate::Rank;

use crate::endpoint::{Status, WireError};
use crate::error::{Awaited, Blame, Error};

use crate::engine::run::port::Port;

/// Longest time for news of a failure to reach all ranks, if all of them are waiting.
const NEWS_TIME: Duration = Duration::from_millis(250);
/// Longest time counted between two polls: if this thread had no core, the peer is not at fault.
const LONGEST_GAP: Duration = Duration::from_millis(10);

impl Port {
    /// Unfinished tasks of an operation on this port, plus 1 if its run is under way here.
    pub(crate) fn unfinished(&self, operation: (u64, u32)) -> usize {
        let state = self.lock_state();
        let found = state.runs.values().find(|active| active.run.operation() == operation);
        // The 1 is for a run that has finished, but has not ended yet.
        found.map_or(0, |active| 1 + active.run.unfinished())
    }

    /// Step and item that `operation` waits for on this port, if it is under way here and does not only wait for
    /// other ports.
    pub(crate) fn awaited(&self, operation: (u64, u32)) -> Option<(u32, Awaited)> {
        let state = self.lock_state();
        let mut active = state.runs.values();
        let run = &active.find(|active| active.run.operation() == operation)?.run;
        match run.awaited() {
            // All tasks have finished, but the endpoint has not sent everything.
            None if run.is_finished() => Some((0, Awaited::Interface)),
            awaited => awaited,
        }
    }

    /// Step and item that the first run with a pending wait, of those under way, waits for.
    pub(crate) fn awaited_by_run(&self) -> Option<(u32, Awaited)> {
        self.lock_state().runs.values().find_map(|active| active.run.awaited())
    }

    /// Publishes this rank's status for other ranks.
    pub(crate) fn publish(&self, status: Status) {
        let state = &mut *self.lock_state();
        if let Some(observer) = state.endpoint.observer().filter(|_| !state.has_given_up) {
            observer.publish(status);
        }
    }

    /// Requests another rank's status, and waits at most `patience` for the answer. The port can be driven meanwhile.
    pub(crate) fn ask(&self, rank: Rank, patience: Duration) -> Result<Status, Error> {
        let _asking = match self.asking.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
            // Another thread is asking.
            Err(TryLockError::WouldBlock) => return Ok(Status::Unknown),
        };
        let (mut polled, mut last) = (Duration::ZERO, self.time.now());
        let mut is_asked = false;
        loop {
            if self.has_failed() {
                return Ok(Status::Unknown);
            }
            {
                let mut state = self.lock_state();
                let Some(observer) = state.endpoint.observer() else { return Ok(Status::Unknown) };
                if !is_asked {
                    let asked = observer.request_status(rank);
                    is_asked = asked.map_err(|source| self.wire_error(None, source))?;
                }
                match observer.answer().filter(|_| is_asked) {
                    // Equivalent to news from that rank.
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

    /// The reason for which another rank has given up, if news of that have arrived.
    pub(crate) fn received_news(&self) -> Option<Blame> {
        self.lock_state().endpoint.observer()?.received_news()
    }

    /// Waits for news of a failure, at most [`NEWS_TIME`] and at most `patience`. An unreachable rank may have given
    /// up, told others, and exited: then news that name the rank at fault are on their way.
    pub(crate) fn await_news(&self, patience: Duration) -> Option<Blame> {
        let end = self.time.now() + NEWS_TIME.min(patience);
        loop {
            match self.received_news() {
                None if self.time.now() < end => self.time.sleep(NEWS_TIME / 100),
                told => return told,
            }
        }
    }

    /// Replaces an error by its cause: an unreachable peer may have given up for another reason, and told others.
    pub(crate) fn with_cause(&self, error: Error) -> Error {
        match &error {
            Error::Wire { source: WireError { peer: Some(_), .. }, .. } => {
                let told = self.await_news(Duration::MAX);
                told.map_or(error, |blame| Error::Lost { rank: self.rank, blame })
            }
            _ => error,
        }
    }
}
