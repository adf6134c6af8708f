//! How the ranks of a job find each other without MPI.
//!
//! Before the first one-sided operation every rank must learn the others' VCQ ids and STADDs. Any
//! launcher will do that starts the processes and sets three variables:
//!
//! | variable | meaning |
//! | --- | --- |
//! | `HOPBINE_RANK` | this rank, from 0 |
//! | `HOPBINE_SIZE` | number of ranks |
//! | `HOPBINE_RENDEZVOUS` | path on a file system that all ranks share |
//!
//! [`Bootstrap`] then exchanges small messages through files beside it, of that name and `.ranks`, and
//! `.ranks.all` (they need not exist and may be left over), with plain reads and writes. So it works wherever the
//! ranks share a file system: across containers and network name spaces, over NFS or Lustre.
//! [`LocalExchange`] does the same for ranks that are threads of one process. Both are an
//! [`Exchange`], which is all that the rest of the program sees.
//!
//! This is for starting up: rounds take file system time, not network time.

mod file;
mod files;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod hostile;
mod leaving;
mod local;
mod own;
mod piece;
mod record;
mod wait;

use std::path::PathBuf;
use std::time::Duration;

pub use file::Bootstrap;
pub use local::LocalExchange;
use record::PROTOCOL;

/// Variable with the rank.
pub const ENV_RANK: &str = "HOPBINE_RANK";
/// Variable with the number of ranks.
pub const ENV_SIZE: &str = "HOPBINE_SIZE";
/// Variable with the rendezvous file.
pub const ENV_RENDEZVOUS: &str = "HOPBINE_RENDEZVOUS";

/// Collective exchange of small messages. All ranks make the same calls in the same order.
pub trait Exchange: Send {
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
    fn allgather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, BootstrapError>;

    /// As [`Exchange::allgather`], for what a rank may fail to have: then everyone gets the same
    /// refusal, that of the first such rank.
    ///
    /// # Errors
    /// As [`Exchange::allgather`].
    fn agree(
        &mut self,
        mine: Result<&[u8], String>,
    ) -> Result<Result<Vec<Vec<u8>>, Refusal>, BootstrapError> {
        let (mark, told) = match &mine {
            Ok(bytes) => (HAS, *bytes),
            Err(reason) => (LACKS, reason.as_bytes()),
        };
        let mut all = self.allgather(&[&[mark], told].concat())?;
        for (rank, record) in all.iter_mut().enumerate() {
            if record.first() != Some(&HAS) {
                let reason = String::from_utf8_lossy(record.get(1..).unwrap_or_default());
                return Ok(Err(Refusal { rank, reason: reason.into_owned() }));
            }
            record.remove(0);
        }
        Ok(Ok(all))
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

/// A rank that does not have what [`Exchange::agree`] asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank}: {reason}")]
pub struct Refusal {
    /// The rank.
    pub rank: usize,
    /// Why not.
    pub reason: String,
}

/// Why the ranks did not come together.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// A variable is not set.
    #[error(
        "{variable} is not set; a launcher must set {ENV_RANK}, {ENV_SIZE} and {ENV_RENDEZVOUS} \
         (a path on a file system that all ranks share)"
    )]
    NotSet {
        /// The variable.
        variable: &'static str,
    },
    /// A variable has no usable value.
    #[error("{variable}={value} is wrong: it must be {wanted}")]
    BadValue {
        /// The variable.
        variable: &'static str,
        /// What it says.
        value: String,
        /// What would be right.
        wanted: String,
    },
    /// The rendezvous file cannot be used.
    #[error("rendezvous file {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// Ranks did not appear, or stopped taking part.
    #[error(
        "rank {rank} waited {:.1} s in {phase} for rank(s) {} of {size}{}{}",
        waited.as_secs_f64(),
        List(missing),
        other_size.map_or(String::new(), |s| format!(
            "; a rank was started with {ENV_SIZE}={s} on the same rendezvous file"
        )),
        other_protocol.map_or(String::new(), |(other, number)| format!(
            "; rank {other} speaks protocol {number}, and rank {rank} protocol {PROTOCOL}: all ranks \
             of a job need the same release of hopbine"
        ))
    )]
    Missing {
        /// Who waited.
        rank: usize,
        /// Number of ranks.
        size: usize,
        /// For whom.
        missing: Vec<usize>,
        /// What they were to take part in.
        phase: Phase,
        /// How long it waited.
        waited: Duration,
        /// A different number of ranks that one of the missing claims.
        other_size: Option<usize>,
        /// One of the missing whose records are of another protocol, and its number.
        other_protocol: Option<(usize, u8)>,
    },
    /// What the exchange is made of has failed.
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
    /// A rank of the same process gave up (it dropped its exchange).
    #[error("rank {gone} left before rank {rank} had its answer")]
    Gone {
        /// Who waited.
        rank: usize,
        /// Who left.
        gone: usize,
    },
}

/// What ranks wait for each other in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Appearing at the rendezvous.
    Arrival,
    /// The exchange with this number, counted from 1.
    Exchange(u64),
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Phase::Arrival => f.write_str("the rendezvous"),
            Phase::Exchange(n) => write!(f, "exchange {n}"),
        }
    }
}

/// Ranks in an error message: all of them up to a screenful.
struct List<'a>(&'a [usize]);

impl std::fmt::Display for List<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SHOWN: usize = 16;
        for (i, rank) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{rank}", if i == 0 { "" } else { ", " })?;
        }
        if self.0.len() > SHOWN {
            write!(f, " and {} more", self.0.len() - SHOWN)?;
        }
        Ok(())
    }
}
