//! The exchange, which is all that most of a program sees of how its ranks meet.

use std::time::Duration;

use crate::error::{BootstrapError, Refusal};
use crate::records::Records;

/// Collective exchange of small messages. All ranks make the same calls in the same order.
pub trait Exchange: Send + Sync {
    /// This rank.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// How long later calls wait for the other ranks.
    fn set_timeout(&mut self, timeout: Duration);

    /// Gives everyone `mine`; returns everyone's, by rank. Lengths may differ.
    ///
    /// # Errors
    /// [`BootstrapError::Missing`] names the ranks that did not take part in time. The exchange is
    /// out of step then and not to be used further.
    fn allgather(&mut self, mine: &[u8]) -> Result<Records, BootstrapError>;

    /// As [`Exchange::allgather`], for what a rank may fail to have: then everyone gets the same
    /// refusal, that of the first such rank.
    ///
    /// # Errors
    /// As [`Exchange::allgather`].
    fn agree(
        &mut self,
        mine: Result<&[u8], String>,
    ) -> Result<Result<Records, Refusal>, BootstrapError> {
        let (mark, told) = match &mine {
            Ok(bytes) => (HAS, *bytes),
            Err(reason) => (LACKS, reason.as_bytes()),
        };
        let all = self.allgather(&[&[mark], told].concat())?;
        for (rank, record) in all.iter().enumerate() {
            if record.first() != Some(&HAS) {
                let reason = String::from_utf8_lossy(record.get(1..).unwrap_or_default());
                return Ok(Err(Refusal { rank, reason: reason.into_owned() }));
            }
        }
        Ok(Ok(all.without_first(1)))
    }

    /// The ranks that do not call it in time; empty if all have. For ranks that are left after a
    /// failure: the exchange may be out of step, and is not to be used further.
    ///
    /// # Errors
    /// As [`Exchange::allgather`], but for [`BootstrapError::Missing`].
    fn roll_call(&mut self) -> Result<Vec<usize>, BootstrapError> {
        match self.barrier() {
            Ok(()) => Ok(Vec::new()),
            Err(BootstrapError::Missing { missing, .. }) => Ok(missing),
            Err(error) => Err(error),
        }
    }

    /// Returns when all ranks have called it.
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
