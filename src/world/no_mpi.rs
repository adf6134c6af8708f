//! A build without MPI: there are no sessions.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hopbine_meet::Exchange;
use hopbine_meet::variables::{BACKEND, Lookup};

use super::backend::Backend;
use crate::error::{Error, WireError};

/// A session, which cannot exist in this build.
pub(super) struct Session(Infallible);

pub(super) fn find(get: Lookup<'_>) -> Result<Option<Arc<Session>>, Error> {
    if BACKEND.get(get).as_deref() != Some("mpi") {
        return Ok(None);
    }
    let reason = "this build has no MPI backend (feature mpi); use tofu, shm or emu".to_owned();
    let tried = vec![("mpi".to_owned(), reason)];
    Err(Error::Backend { wanted: "mpi".to_owned(), tried })
}

impl Session {
    pub(super) fn exchange(self: &Arc<Self>, _: Duration) -> Box<dyn Exchange> {
        match self.0 {}
    }

    pub(super) fn backend(self: &Arc<Self>) -> Box<dyn Backend> {
        match self.0 {}
    }

    pub(super) fn place(&self) -> (usize, usize) {
        match self.0 {}
    }

    pub(super) fn has_given_up(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn give_up(&self, _: Duration, _: &str) {
        match self.0 {}
    }

    pub(super) fn end(&self) -> Result<(), WireError> {
        match self.0 {}
    }
}
