//! The exchange: the interface to the rendezvous for most of a program.

use std::time::Duration;

use crate::error::{BootstrapError, Refusal};
use crate::records::Records;

/// Collective exchange of small messages. All ranks make the same calls in the same order.
pub trait Exchange: Send + Sync {
    /// Returns this rank.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn size(&self) -> usize;

    /// Sets how long later calls wait for the other ranks.
    fn set_timeout(&mut self, timeout: Duration);

    /// Sends `mine` to all ranks and returns the records of all ranks, by rank. Lengths may differ.
    ///
    /// # Errors
    /// [`BootstrapError::Missing`] names the ranks that did not take part in time. The exchange is then out of step
    /// and must not be used further.
    fn allgather(&mut self, mine: &[u8]) -> Result<Records, BootstrapError>;

    /// As [`Exchange::allgather`], for records that a rank may fail to provide: then all ranks return the same
    /// refusal, that of the first rank that failed.
    ///
    /// # Errors
    /// As [`Exchange::allgather`].
    fn agree(
        &mut self,
        mine: Result<&[u8], String>,
    ) -> Result<Result<Records, Refusal>, BootstrapError> {
        let (mark, payload) = match &mine {
            Ok(bytes) => (HAS, *bytes),
            Err(reason) => (LACKS, reason.as_bytes()),
        };
        let all = self.allgather(&[&[mark], payload].concat())?;
        for (rank, record) in all.iter().enumerate() {
            if record.first() != Some(&HAS) {
                let reason = String::from_utf8_lossy(record.get(1..).unwrap_or_default());
                return Ok(Err(Refusal { rank, reason: reason.into_owned() }));
            }
        }
        Ok(Ok(all.without_first(1)))
    }

    /// Returns the ranks that do not call this function in time; empty if all do. For the ranks left after a failure:
    /// the exchange may be out of step afterwards, and must not be used further.
    ///
    /// # Errors
    /// As [`Exchange::allgather`], except [`BootstrapError::Missing`].
    fn roll_call(&mut self) -> Result<Vec<usize>, BootstrapError> {
        match self.barrier() {
            Ok(()) => Ok(Vec::new()),
            Err(BootstrapError::Missing { missing, .. }) => Ok(missing),
            Err(error) => Err(error),
        }
    }

    /// Returns when all ranks have called this function.
    ///
    /// # Errors
    /// As [`Exchange::allgather`].
    fn barrier(&mut self) -> Result<(), BootstrapError> {
        self.allgather(&[]).map(drop)
    }
}

/// First byte of a rank's record in [`Exchange::agree`].
const HAS: u8 = 1;
const LACKS: u8 = 0;
