//! The failure of a port, after an error here or on another rank.

use crate::Rank;
use crate::endpoint::{Status, WireError};
use crate::error::{Blame, Error, Fault};
use crate::planted::{self, Planted};

use super::port::{EndedOwners, Port, State};

impl Port {
    /// After a failure, ends all runs and releases their memory. Returns whether there were any.
    pub(super) fn fail_all(&self, state: &mut State, ended: &mut EndedOwners) -> bool {
        let Some(reason) = self.failure.reason() else { return false };
        if !std::mem::replace(&mut state.has_given_up, true) {
            let is_fenced = state.is_fenced;
            let must_tell = !is_fenced && !planted::is(Planted::NotSpread);
            if let Some(observer) = state.endpoint.observer().filter(|_| must_tell) {
                let blame = reason.blame(self.rank);
                observer.send_news(blame);
                // The ranks that are told may have left, and then forward nothing.
                observer.publish(Status::GivenUp(blame));
            }
            // Before any owner gets its memory back.
            state.endpoint.abandon();
            state.events.clear();
        }
        let mut failed = false;
        for active in state.runs.drain() {
            self.retire(active, Some(&reason), ended);
            failed = true;
        }
        state.due.clear();
        state.windows.clear();
        state.n_recvs = 0;
        failed
    }

    /// Fails the rank after a panic of the worker, which may have left its work half done.
    pub(crate) fn worker_panicked(&self) {
        let (rank, message) = (self.rank, format!("in the worker of port {}", self.id));
        self.failure.set(&Error::RankPanicked { rank, message });
        self.drive();
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_set()
    }

    /// Whether a peer may still write to memory whose address it knows.
    pub(crate) fn may_be_written(&self) -> bool {
        self.failure.may_be_written()
    }

    /// The error for a peer that has made another call.
    pub(super) fn mismatch_error(&self, peer: Rank) -> Error {
        let (rank, fault) = (self.rank, Fault::Elsewhere);
        Error::Lost { rank, blame: Blame { rank: peer, fault, by: rank } }
    }

    pub(crate) fn wire_error(&self, step: Option<u32>, source: WireError) -> Error {
        Error::Wire { rank: self.rank, port: self.id.index(), step, source }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hopbine_torus::PortId;

    use super::*;
    use crate::engine::Failure;
    use crate::engine::run::polled::Polled;

    /// A thread whose poll has failed waits for news of the cause. Meanwhile other threads drive the port.
    #[test]
    fn after_an_error_no_thread_polls_any_more() {
        let n_polls = Arc::new(AtomicUsize::new(0));
        let counter = n_polls.clone();
        let poll = Box::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
            Err(WireError::new("the test", "is not there").at(1))
        });
        let wire = Box::new(Polled { poll, registry: None });
        let port = Port::new(0, PortId(0), wire, Arc::new(Failure::default()), false, None);
        std::thread::scope(|scope| {
            scope.spawn(|| port.drive());
            while n_polls.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            let mut n_drives = 0u32;
            while !port.failure.is_set() {
                port.try_drive();
                n_drives += 1;
            }
            assert!(n_drives > 0, "the cause is known at once");
        });
        assert_eq!(n_polls.load(Ordering::SeqCst), 1);
        let reason = port.failure.reason();
        assert!(matches!(&reason, Some(Error::Wire { source, .. }) if source.peer == Some(1)));
    }
}
