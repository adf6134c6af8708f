//! The end of an engine: no further operations, and nothing of it on the wire.

use std::sync::atomic::Ordering;

use crate::error::Error;

use super::wait::Waiter;
use super::workers::Engine;

impl Engine {
    /// Refuses every operation from now on.
    pub fn refuse(&self) {
        // Relaxed: see `check`.
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Before the end, after [`refuse`](Engine::refuse): waits until nothing is under way and
    /// all that this engine has written has arrived in its peers' memory.
    ///
    /// # Errors
    /// [`Error::Timeout`] if nothing moved for too long, [`Error::Wire`], and
    /// [`Error::Poisoned`] after an earlier failure. Peers may then be written to at any time.
    pub fn drain(&self) -> Result<(), Error> {
        self.wait_until_drained().inspect_err(|error| self.give_up(error))
    }

    fn wait_until_drained(&self) -> Result<(), Error> {
        for (index, port) in self.ports.iter().enumerate() {
            let mut waiter = Waiter::new(self.config.own_cores);
            let mut moves = self.n_moves();
            while !port.is_drained()? {
                self.progress();
                if self.has_moved(&mut moves) {
                    waiter.progress();
                    continue;
                }
                let idle = if self.help() { waiter.busy() } else { waiter.idle() };
                if idle > self.config.timeout {
                    let (step, awaited) = port.awaited_first();
                    let waited = self.config.timeout;
                    let (rank, port) = (self.rank, index);
                    return Err(Error::Timeout { rank, port, step, awaited, waited, cause: None });
                }
            }
        }
        Ok(())
    }

    /// After a failure: ends everything that is under way, here and wherever it fails together
    /// with this.
    pub fn give_up(&self, error: &Error) {
        match error {
            // Not the first.
            Error::Poisoned(_) | Error::Closed => self.poison.spread(),
            error => self.poison(error),
        }
    }
}
