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
