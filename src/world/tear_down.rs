//! Tear-down of a world.

use hopbine_meet::BootstrapError;

use super::init::World;
use super::launcher::meeting_error;
use crate::error::Error;

impl World {
    /// The ranks that are missing after a failure, all of them; the error itself names only the first one noticed.
    /// All remaining ranks must call it. It waits for up to three timeouts, since a rank that was computing learns
    /// of the failure only in its next call.
    ///
    /// # Errors
    /// [`Error::Meeting`] if the rendezvous file, or MPI, cannot be used.
    pub fn missing(&mut self) -> Result<Vec<u32>, Error> {
        self.exchange.set_timeout(self.facts.timeout.saturating_mul(3));
        let missing = self.exchange.roll_call();
        self.exchange.set_timeout(self.facts.timeout);
        let missing = missing.map_err(|error| meeting_error(self.communicator().rank(), &error))?;
        Ok(missing.into_iter().map(|rank| rank as u32).collect())
    }

    /// Leaves the world in an orderly way: waits for all ranks, at most for the timeout.
    ///
    /// # Errors
    /// [`Error::Ending`] names ranks that do not leave; the failure of an earlier operation,
    /// after which this does not wait for other ranks.
    pub fn finish(mut self) -> Result<(), Error> {
        self.close()
    }

    fn close(&mut self) -> Result<(), Error> {
        let Some(comm) = self.comm.take() else { return Ok(()) };
        let rank = comm.rank();
        let outcome = comm.close().and_then(|()| {
            // Peers may write their last credits until all ranks are here.
            self.exchange.barrier().map_err(|error| match error {
                BootstrapError::Missing { .. } => Error::Ending { reason: error.to_string() },
                error => meeting_error(rank, &error),
            })
        });
        comm.end();
        if let Err(error) = outcome {
            // Memory that peers may still write to must not be freed.
            std::mem::forget(comm);
            return Err(error);
        }
        comm.release();
        drop(comm);
        let Some(session) = &self.session else { return Ok(()) };
        session.end().map_err(|source| Error::Wire { rank, port: 0, step: None, source })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A drop cannot report the error; `finish` can.
        let _ = self.close();
    }
}
